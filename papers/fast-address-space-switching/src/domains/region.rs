//! A shared region's record.

use super::page_span::PageSpan;
use super::tables::LeafEntry;

/// A shared region that exists; one that was destroyed is known by its number not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionId {
    pub(super) number: u8,
    pub(super) serial: u64,
}

/// A shared region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedRegion {
    pub(super) serial: u64,
    /// Where it is at home: the address at which TLB entries are shared.
    pub(super) home: PageSpan,
    pub(super) first: LeafEntry,
    pub(super) writable: bool,
    /// No process has it at another address, or nobody can write.
    pub(super) cached: bool,
    /// A leaf page table a section.
    pub(super) tables: Vec<u32>,
    /// [`NONE`](super::pool::NONE) until it is touched.
    pub(super) domain: u8,
    /// Slots of the processes that have it at home by its own tables.
    pub(super) sharing: u64,
    /// Slots of all that are attached.
    pub(super) attached: u64,
}
