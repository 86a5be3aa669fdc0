//! Who sees the accesses of a workload, and what its arrays may hold.

use lookaside_trace::{Block, Kind};

/// Keeps [`AccessObserver`] to this crate: [`Chunked`] relies on what the observers give back.
pub(crate) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Unseen {}
    impl Sealed for super::Block {}
}

/// Sees the accesses of a workload. The native run's sees nothing and compiles to nothing.
pub trait AccessObserver: sealed::Sealed {
    /// An element at this address of the stream is loaded or stored.
    fn access(&mut self, kind: Kind, addr: u64);

    /// An element of this chunk of a [`Chunked`](crate::kernel::Chunked) array is about to be touched: gives back where
    /// the chunk begins, as it was given.
    #[inline(always)]
    fn chunk(&mut self, _number: usize, start: *mut u8) -> *mut u8 {
        start
    }

    /// So many instructions (at least 1) of the code page at this address are executed, beside loads and stores.
    #[inline(always)]
    fn execute(&mut self, _code: u64, _instructions: u32) {}
}

/// Who looks at a native run: nobody.
#[derive(Clone, Copy, Debug)]
pub struct Unseen;

impl AccessObserver for Unseen {
    #[inline(always)]
    fn access(&mut self, _: Kind, _: u64) {}
}

impl AccessObserver for Block {
    #[inline]
    fn access(&mut self, kind: Kind, addr: u64) {
        self.push(kind, addr);
        if !self.repeat.is_empty() {
            self.repeat.push(0);
        }
    }

    fn execute(&mut self, code: u64, instructions: u32) {
        // What came before without a count, if anything, was accessed once.
        self.repeat.resize(self.addr.len(), 0);
        self.push(Kind::Fetch, code);
        self.repeat.push(instructions.saturating_sub(1));
    }
}

/// What an array may hold.
///
/// # Safety
/// All bits zero is a value of the type.
pub unsafe trait Plain: Copy {}

// SAFETY: numbers.
unsafe impl Plain for u8 {}
// SAFETY: numbers.
unsafe impl Plain for i16 {}
// SAFETY: numbers.
unsafe impl Plain for u16 {}
// SAFETY: numbers.
unsafe impl Plain for i32 {}
// SAFETY: numbers.
unsafe impl Plain for u32 {}
// SAFETY: numbers.
unsafe impl Plain for u64 {}
// SAFETY: numbers.
unsafe impl Plain for f64 {}
