//! PT-Baker's Algorithm 5, the TLB thrashing microbenchmark (Chatzopoulos 2024, section 4.4.3).
//!
//! ```text
//! page_index <- 0;  offset <- page_size * page_step
//! for i <- 0 to N - 1:
//!     access <- array[page_index mod array_size]
//!     page_index <- page_index + offset
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

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

    /// Runs the loop itself on this machine: touches the array first, then times `iterations`.
    ///
    /// # Errors
    /// Where the array can't be allocated.
    pub fn run_native(&self, iterations: u64) -> Result<NativeRun, std::io::Error> {
        let too_large = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let bytes = usize::try_from(self.array_bytes()).map_err(|_| too_large())?;
        let mut array: Vec<u8> = Vec::new();
        // One page more, so that an aligned start lies inside.
        array
            .try_reserve_exact(bytes.checked_add(PAGE_BYTES as usize).ok_or_else(too_large)?)
            .map_err(|_| too_large())?;
        array.resize(bytes + PAGE_BYTES as usize, 1);
        let start = array.as_ptr().align_offset(PAGE_BYTES as usize).min(PAGE_BYTES as usize);
        let array = &array[start..start + bytes];

        let (mut page_index, offset, mut sum) = (0u64, self.page_step * PAGE_BYTES % bytes as u64, 0u64);
        let begin = Instant::now();
        for _ in 0..iterations {
            sum = sum.wrapping_add(u64::from(*black_box(&array[page_index as usize])));
            // The same as `mod array_size`, without a division to hide the loads behind.
            page_index += offset;
            if page_index >= bytes as u64 {
                page_index -= bytes as u64;
            }
        }
        Ok(NativeRun { iterations, elapsed: begin.elapsed(), sum })
    }

    fn array_bytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }
}

/// What a native run gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeRun {
    /// Array accesses made.
    pub iterations: u64,
    /// Time of the loop alone.
    pub elapsed: Duration,
    /// Sum of the bytes read, each 1: equal to `iterations`.
    pub sum: u64,
}

impl NativeRun {
    /// Nanoseconds an array access.
    pub fn ns_per_access(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e9 / self.iterations.max(1) as f64
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
