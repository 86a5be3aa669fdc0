//! What is sampled: waits of threads, and the memory that they wait for.

/// Of all that is drawn.
pub(super) const SEED: u64 = 1;
/// log2 of the bytes of a small page.
pub(super) const PAGE_SHIFT: u32 = 12;

/// A sample of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingSample {
    /// Its thread.
    pub thread: u32,
    /// The data address that it waited for; 0 = none, or not known.
    pub addr: u64,
}

/// A range of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRange {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// Bytes of it in memory.
    pub resident_bytes: u64,
    /// Of those, bytes that huge pages map.
    pub huge_bytes: u64,
}

impl MemoryRange {
    /// How many small pages of it are in memory.
    pub(super) fn small_pages(&self) -> u64 {
        self.resident_bytes.saturating_sub(self.huge_bytes) >> PAGE_SHIFT
    }

    /// The part of its memory in small pages.
    pub(super) fn small_share(&self) -> f64 {
        match self.resident_bytes {
            0 => 1.0,
            all => 1.0 - (self.huge_bytes as f64 / all as f64).min(1.0),
        }
    }
}
