//! TLB misses counted without a PMU, by timing loads: of a caller's own accesses, and of passes over a caller's own
//! pages.

pub(crate) mod error;
pub(crate) mod miss_counter;
mod pass_meter;
mod timed_chain;
pub(crate) mod verdict;

pub use error::{CounterError, MOST_TIMED};
pub use miss_counter::{Confusion, JudgedAccess, MissCounter, MissCounts};
pub use pass_meter::{GroupVerdict, MeterAccuracy, PassMeter};
pub use timed_chain::{prefetch, GroupTicks, TimedChain, Timer};
pub use verdict::{AccessVerdict, MissCosts};
