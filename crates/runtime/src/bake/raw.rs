//! The baker's touches, `auto`'s judgement and what is told, by themselves, for a helper that may neither allocate, nor panic, nor set
//! `errno`: what is here is machine code, the kernel's own types, and sums.

pub use super::auto::{Auto, Moment, Took, Turn};
pub use super::counters::{line, Counters, Line, State};
pub use super::kernel::{PmScanArg, CHUNK_BYTES, LET_IN, PAGEMAP_SCAN, PAGE_IS_HUGE, PAGE_IS_PRESENT};
pub use super::module::{Walk, DEVICE, VERSION, WALK};
pub use super::others::{runnable, Busy, Cpus};
pub use super::pace::{Times, BATCH_TOUCHES};
use super::settings::{Backend, Hint};
pub use super::small::{add_small, finding, Found, Looks, Range, Ranges, FOUND_RANGES, GAP_BYTES, MOST_RANGES};
use super::touch;

/// Name of a helper within the program that it bakes: of its thread, and of the memory file in which it tells what it does.
pub const HELPER: &std::ffi::CStr = c"pt-baker";
/// What is told is written anew so often.
pub const TELL_NANOS: u64 = 200_000_000;

/// The counter that batches of touches are timed by: one that all CPUs share.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: reads a counter.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The clock in nanoseconds: no counter that a user may read is as fine everywhere.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    super::clock::now_nanos()
}

/// Prefetches `count` addresses from `start` on (at least one), `stride` bytes apart, each followed by so many NOPs. Never
/// faults, whatever is or is not mapped there.
pub fn prefetch(hint: Hint, start: u64, stride: u64, count: u64, nops: u32) {
    // SAFETY: prefetches need no mapping.
    unsafe { touch::sweep(Backend::Prefetch(hint), start, stride, count, nops) }
}
