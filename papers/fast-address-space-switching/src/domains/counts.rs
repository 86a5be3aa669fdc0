//! What happened.

use serde::Serialize;

/// Why caches and TLBs were flushed: section 2.3's four cases, and those of an implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum FlushCause {
    /// Case 1: a fixed mapping between 32 MiB and 2 GiB, in the slot of a process.
    FixedInSlot,
    /// Case 2: a fixed mapping above 2 GiB, where another space has one.
    FixedInShared,
    /// Case 3: no more room above 2 GiB for all mappings.
    NoRoom,
    /// Case 4: no domain is free, and the one taken is dirty.
    NoDomain,
    /// What another space left behind: a process that exited, a mapping or region that is gone.
    Leftover,
    /// A shared writable region was attached at a second address, and must not be cached any more.
    Alias,
    /// The caller asked for it.
    Asked,
}

impl FlushCause {
    /// All, the paper's four first.
    pub const ALL: [Self; 7] = [
        Self::FixedInSlot,
        Self::FixedInShared,
        Self::NoRoom,
        Self::NoDomain,
        Self::Leftover,
        Self::Alias,
        Self::Asked,
    ];
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DomainCounts {
    /// Switches to another process.
    pub switches: u64,
    /// Faults, those denied included.
    pub faults: u64,
    /// Faults that became a signal.
    pub denied: u64,
    /// Entries of the caching page directory that were loaded.
    pub reloads: u64,
    /// Flushes of both caches and TLBs, by [`FlushCause::ALL`].
    pub flushes: [u64; 7],
    /// Mappings that overlapped another space's when they were made, by the first three of [`FlushCause::ALL`].
    pub overlaps: [u64; 3],
    /// Domains that were taken from a space, or were given up dirty and used again, with a flush.
    pub recycled_dirty: u64,
    /// Domains that were taken from a space without a flush of the caches.
    pub recycled_clean: u64,
    /// Flushes of the TLBs alone.
    pub tlb_flushes: u64,
    /// Flushes of an unmapped range.
    pub range_flushes: u64,
}

impl DomainCounts {
    /// Flushes for this cause.
    pub fn flushes_by(&self, cause: FlushCause) -> u64 {
        self.flushes[cause as usize]
    }

    /// Flushes for any cause.
    pub fn all_flushes(&self) -> u64 {
        self.flushes.iter().sum()
    }
}
