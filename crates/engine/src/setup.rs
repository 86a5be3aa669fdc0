//! What to simulate: machine, OS model, what-ifs, seed.

use lookaside_machine::{Machine, PageSize};
use serde::{Deserialize, Serialize};

/// Everything that a run depends on beside the trace. Same setup and trace, same outcome to the bit.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The machine.
    pub machine: Machine,
    /// How the OS lays out page tables and frames.
    pub os: OsModel,
    /// What a page walk costs.
    pub walks: WalkModel,
    /// Pages held in lockable entries (at most the array's `lockable_entries`).
    pub locks: Vec<LockedPage>,
    /// Which rows to keep beside the totals.
    pub detail: Detail,
    /// Seed of random replacement and frame placement.
    pub seed: u64,
}

impl Setup {
    /// The machine as it is, small pages in contiguous frames, all rows, seed 1.
    pub fn new(machine: Machine) -> Self {
        Self {
            machine,
            os: OsModel::default(),
            walks: WalkModel::Full,
            locks: Vec::new(),
            detail: Detail::Rows,
            seed: 1,
        }
    }
}

/// Frames and page sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct OsModel {
    /// Where frames lie.
    pub frames: FrameLayout,
    /// Which page sizes are used where.
    pub pages: PagePolicy,
    /// The huge page; `None` = the format's smallest leaf of at least 1 MiB.
    pub huge_page: Option<PageSize>,
}

/// Physical placement of data pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FrameLayout {
    /// Neighbouring pages have neighbouring frames.
    #[default]
    Contiguous,
    /// Aligned runs of this many pages (a power of two) are contiguous; runs are scattered.
    Fragmented {
        /// Pages in a run.
        run_pages: u64,
    },
    /// Every page's frame is scattered.
    Random,
}

/// Which pages are huge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PagePolicy {
    /// Base pages only.
    #[default]
    Base,
    /// As Linux's THP=always: an aligned huge-page range that lies wholly in one anonymous or heap
    /// mapping when it is first touched (or anywhere, where no mapping is known).
    Thp,
    /// As `Thp`, but only inside these ranges.
    Selective(Vec<ProcessRange>),
    /// Files instead of memory, inside these ranges: an aligned huge-page range that lies wholly in one mapping of a
    /// file when it is first touched. For a program's code.
    SelectiveFiles(Vec<ProcessRange>),
}

/// A range of one process's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProcessRange {
    /// Process id; `None` = every process.
    pub process: Option<u32>,
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
}

/// What a page walk costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WalkModel {
    /// References go through walk caches and data caches.
    #[default]
    Full,
    /// Every reference costs what a hit in the cache of this name costs, and leaves the caches alone.
    AlwaysAt(String),
    /// Walks are counted only: no references, no cost.
    CountOnly,
}

/// A page held by a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedPage {
    /// Name of the TLB array that has lockable entries.
    pub tlb: String,
    /// Process id; `None` = every process.
    pub process: Option<u32>,
    /// Any address in the page.
    pub addr: u64,
}

/// How much is kept beside totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Totals only: the fastest.
    Totals,
    /// Rows by page, region, object, instruction, thread.
    #[default]
    Rows,
}
