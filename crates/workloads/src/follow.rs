//! A native run that is followed: somebody is told when it first touches a chunk of its arrays, and now and then.

use crate::observer::{sealed, AccessObserver};
use lookaside_trace::Kind;

/// Elements that are touched from one look to the next.
pub const LOOK: u32 = 32;

/// Who is told.
pub trait Follower {
    /// The chunk of this number is about to be touched, the first time since the run was to be seen anew.
    fn first_touch(&mut self, chunk: usize) -> Next;

    /// 32 elements were touched since the last look.
    fn look(&mut self) -> Next;
}

/// How a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As it was.
    On,
    /// As if none of its chunks had been touched.
    Anew,
}

/// What was seen of a workload's chunks so far; made once, so that a run needs no memory of its own.
#[derive(Debug)]
pub struct Touched {
    /// Of each chunk its first byte; null: not touched yet.
    ///
    /// Loads and stores take the address from here. So none can be begun, not even by a processor that guesses that the
    /// chunk was touched, before it is known.
    starts: Vec<*mut u8>,
    until_look: u32,
    elements: u64,
}

// SAFETY: addresses of a workload's memory, which are used where the workload is borrowed.
unsafe impl Send for Touched {}

impl Touched {
    /// For a workload of so many chunks ([`crate::Workload::chunks`]), none of them touched.
    pub fn new(chunks: usize) -> Self {
        Self { starts: vec![std::ptr::null_mut(); chunks], until_look: LOOK, elements: 0 }
    }

    /// From now on none is.
    pub fn anew(&mut self) {
        self.starts.fill(std::ptr::null_mut());
    }

    /// Elements touched so far, the same again counted again.
    pub fn elements(&self) -> u64 {
        self.elements + u64::from(LOOK - self.until_look)
    }
}

/// A run, followed.
pub struct Followed<'a> {
    /// What was touched.
    pub touched: &'a mut Touched,
    /// Who is told.
    pub follower: &'a mut dyn Follower,
}

impl Followed<'_> {
    #[cold]
    #[inline(never)]
    fn first(&mut self, number: usize, start: *mut u8) {
        if self.follower.first_touch(number) == Next::Anew {
            self.touched.anew();
        }
        self.touched.starts[number] = start;
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        self.touched.until_look = LOOK;
        self.touched.elements += u64::from(LOOK);
        if self.follower.look() == Next::Anew {
            self.touched.anew();
        }
    }
}

impl sealed::Sealed for Followed<'_> {}

impl AccessObserver for Followed<'_> {
    #[inline(always)]
    fn access(&mut self, _: Kind, _: u64) {}

    #[inline(always)]
    fn chunk(&mut self, number: usize, start: *mut u8) -> *mut u8 {
        self.touched.until_look -= 1;
        if self.touched.until_look == 0 {
            self.look();
        }
        if self.touched.starts[number].is_null() {
            self.first(number, start);
        }
        self.touched.starts[number]
    }
}
