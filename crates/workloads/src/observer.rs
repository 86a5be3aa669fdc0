//! Who sees the accesses of a workload, and what its arrays may hold.

use lookaside_timing::{AddressFlow, FlowRegister};
use lookaside_trace::{Block, Kind};

/// Keeps [`AccessObserver`] to this crate: [`Chunked`] relies on what the observers give back.
pub(crate) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Unseen {}
    impl Sealed for super::Block {}
    impl Sealed for super::FlowBlock {}
}

/// Sees the accesses of a workload. The native run's sees nothing and compiles to nothing.
pub trait AccessObserver: sealed::Sealed {
    /// An element at this address of the stream is loaded or stored.
    fn access(&mut self, kind: Kind, addr: u64);

    /// The next access's address is computed from what came into this register last, which a core has to wait for.
    /// Gives back itself, to be handed on to that access. An access of which nothing is said has its address at hand.
    #[inline(always)]
    fn by(&mut self, _from: FlowRegister) -> &mut Self {
        self
    }

    /// What the next access loads goes into this register. Gives back itself.
    #[inline(always)]
    fn to(&mut self, _into: FlowRegister) -> &mut Self {
        self
    }

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

/// A block, and of each of its accesses where its address comes from.
#[derive(Clone, Debug, Default)]
pub struct FlowBlock {
    /// The accesses.
    pub block: Block,
    /// One for each.
    pub flows: Vec<AddressFlow>,
    /// The next one's.
    next: AddressFlow,
}

impl AccessObserver for FlowBlock {
    #[inline]
    fn access(&mut self, kind: Kind, addr: u64) {
        self.block.access(kind, addr);
        self.flows.push(std::mem::take(&mut self.next));
    }

    fn by(&mut self, from: FlowRegister) -> &mut Self {
        self.next.from = from;
        self
    }

    fn to(&mut self, into: FlowRegister) -> &mut Self {
        self.next.into = into;
        self
    }

    fn execute(&mut self, code: u64, instructions: u32) {
        self.block.execute(code, instructions);
        self.flows.push(AddressFlow::FREE);
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
