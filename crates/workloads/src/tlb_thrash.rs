//! PT-Baker's Algorithm 5, the TLB thrashing microbenchmark (Chatzopoulos 2024, section 4.4.3).
//!
//! ```text
//! page_index <- 0;  offset <- page_size * page_step
//! for i <- 0 to N - 1:
//!     access <- array[page_index mod array_size]
//!     page_index <- page_index + offset
//! ```

use lookaside_trace::{Block, Kind};

use crate::stream::{Pattern, MOST_PAGES, PAGE_BYTES};

/// The loop over an array; a step of the stream is one iteration.
#[derive(Clone, Debug)]
pub struct TlbThrash {
    pages: u64,
    page_step: u64,
    page_index: u64,
    stack: bool,
}

impl TlbThrash {
    /// Over an array of this many 4 KiB pages, `page_step` pages an iteration (both from 1 to 2^40; what is beyond
    /// counts as the nearest).
    pub fn new(pages: u64, page_step: u64) -> Self {
        Self {
            pages: pages.clamp(1, MOST_PAGES),
            page_step: page_step.clamp(1, MOST_PAGES),
            page_index: 0,
            stack: false,
        }
    }

    /// Each iteration also stores to one page of its own, as the loop does when compiled without optimisation,
    /// where its variables live on the stack. The page lies 1 GiB above the array's start or, for a larger array,
    /// right above it.
    pub fn with_stack(mut self) -> Self {
        self.stack = true;
        self
    }

    fn array_bytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }
}

impl Pattern for TlbThrash {
    fn name(&self) -> &'static str {
        "tlb-thrash"
    }

    fn bytes(&self) -> u64 {
        self.array_bytes()
    }

    #[inline]
    fn step(&mut self, base: u64, block: &mut Block) {
        let bytes = self.array_bytes();
        block.push(Kind::Load, base + self.page_index);
        self.page_index = (self.page_index + self.page_step * PAGE_BYTES) % bytes;
        if self.stack {
            block.push(Kind::Store, base + bytes.max(1 << 30));
        }
    }
}
