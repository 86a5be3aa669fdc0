//! The baker's touches by themselves, for a helper that may neither allocate, nor panic, nor set `errno`: what is here is
//! machine code and the kernel's own types.

pub use super::kernel::{PmScanArg, CHUNK_BYTES, LET_IN, PAGEMAP_SCAN, PAGE_IS_HUGE, PAGE_IS_PRESENT};
pub use super::module::{Walk, DEVICE, VERSION, WALK};
use super::settings::{Backend, Hint};
use super::touch;

/// Name of a helper within the program that it bakes: of its thread, and of the memory file in which the preloaded one tells
/// what it does.
pub const HELPER: &std::ffi::CStr = c"pt-baker";

/// Prefetches `count` addresses from `start` on (at least one), `stride` bytes apart, each followed by so many NOPs. Never
/// faults, whatever is or is not mapped there.
pub fn prefetch(hint: Hint, start: u64, stride: u64, count: u64, nops: u32) {
    // SAFETY: prefetches need no mapping.
    unsafe { touch::sweep(Backend::Prefetch(hint), start, stride, count, nops) }
}
