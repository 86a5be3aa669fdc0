//! A helper's own memory: its stack, its thread block, its buffers. One mapping; nothing of it is the allocator's.

use std::ffi::CStr;

use lookaside_runtime::bake::freestanding::{
    status_line, AddressRange, HelperCounters, StatusLine, MOST_RANGES, SCAN_RANGES,
};
use lookaside_runtime::bake::PreloadSettings;

use crate::maps::TEXT_BYTES;
use crate::sys;

/// Stack of a helper: it uses some KiB.
const STACK_BYTES: usize = 64 << 10;
/// A page below it that can't be touched.
const GUARD_BYTES: usize = 4096;
/// Where the C library has the state of a thread. It is the helper's alone, in case anything looks there; the C library
/// uses some KiB on both sides of the pointer.
const BLOCK_BYTES: usize = 32 << 10;

/// What to do, and what the statistics need, without the allocator.
#[derive(Debug)]
pub(crate) struct BakerPlan {
    pub(crate) baker: PreloadSettings,
    /// The same as text; zeros after it.
    pub(crate) baker_text: [u8; 128],
    /// CPU on which the program was started.
    pub(crate) start_cpu: u32,
    /// Ends with a zero; empty = no statistics.
    pub(crate) stats_path: [u8; 4096],
}

impl BakerPlan {
    /// The baker, as text.
    fn baker_text(&self) -> &str {
        CStr::from_bytes_until_nul(&self.baker_text).ok().and_then(|text| text.to_str().ok()).unwrap_or_default()
    }

    /// The line of this process.
    pub(crate) fn line(&self, counters: &HelperCounters, now_nanos: u64) -> Option<StatusLine> {
        status_line(sys::pid(), self.baker_text(), self.baker.settings.backend, counters, now_nanos)
    }
}

/// What the helper writes to. All zero at first.
#[repr(C)]
pub(crate) struct BakerBuffers {
    pub(crate) ranges: [AddressRange; MOST_RANGES],
    /// Text of `/proc/self/maps`.
    pub(crate) text: [u8; TEXT_BYTES],
    /// What `PAGEMAP_SCAN` finds: first byte, byte after the last, categories.
    pub(crate) found: [[u64; 3]; SCAN_RANGES],
    /// What `mincore` finds, a byte a page, a chunk of the baker's.
    pub(crate) resident: [u8; 4096],
}

/// All that the baker has.
#[repr(C)]
pub(crate) struct BakerMemory {
    pub(crate) plan: BakerPlan,
    pub(crate) counters: HelperCounters,
    pub(crate) buffers: BakerBuffers,
}

impl BakerMemory {
    /// Maps it; `None` where there is no memory.
    pub(crate) fn new(plan: BakerPlan) -> Option<*mut Self> {
        let memory = map::<Self>()?;
        // SAFETY: nothing else knows of it yet. The buffers' zeros are values of theirs.
        unsafe {
            (&raw mut (*memory).plan).write(plan);
            (&raw mut (*memory).counters).write(HelperCounters::default());
        }
        Some(memory)
    }
}

/// Maps a helper's own memory, all zero; the mapping has the guard, the stack and the thread block before it. `None`
/// where there is no memory.
pub(crate) fn map<T>() -> Option<*mut T> {
    let before = GUARD_BYTES + STACK_BYTES + BLOCK_BYTES;
    let bytes = before + size_of::<T>();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping wherever the system likes.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: within the mapping, which is page-aligned as all sizes before the helper's own are; nothing else knows of
    // it yet.
    unsafe {
        libc::mprotect(at, GUARD_BYTES, libc::PROT_NONE);
        let own = at.cast::<u8>().add(before).cast::<T>();
        let block = block(own);
        // The C library's threads have the block's own address at its begin and in its third word.
        block.cast::<u64>().write(block as u64);
        block.cast::<u64>().add(2).write(block as u64);
        Some(own)
    }
}

/// The byte after the stack, which grows downwards.
pub(crate) fn stack_end<T>(own: *mut T) -> *mut u8 {
    own.cast::<u8>().wrapping_sub(BLOCK_BYTES)
}

/// The middle of the thread block.
pub(crate) fn block<T>(own: *mut T) -> *mut u8 {
    own.cast::<u8>().wrapping_sub(BLOCK_BYTES / 2)
}
