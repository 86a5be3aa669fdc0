//! What a run gives: counts with their denominators, as plain data.

use lookaside_machine::PageSize;
use lookaside_trace::MapSource;
use serde::{Deserialize, Serialize};

/// Counts of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// Name of the machine.
    pub machine: String,
    /// Loads and stores.
    pub data: Side,
    /// Instruction fetches.
    pub fetch: Side,
    /// Counts of each TLB array, summed over its instances, in the machine's order.
    pub tlbs: Vec<TlbCounts>,
    /// Counts of each walk cache; then of the directory entries in TLB arrays that hold such.
    pub walk_caches: Vec<CacheCounts>,
    /// Counts of each data cache: data and walk references.
    pub caches: Vec<CacheCounts>,
    /// Loads and stores by kind, if the trace tells (its `Totals` event, or every access is in it).
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Instructions executed, 0 = not known.
    pub instructions: u64,
    /// Switches between processes on one hardware thread.
    pub context_switches: u64,
    /// Ranges invalidated by unmap, remap, protect, `MADV_DONTNEED`, fork, exec, exit.
    pub shootdowns: u64,
    /// Fixed cycles of context switches.
    pub switch_cycles: f64,
    /// Distinct base-page-sized pages touched (a huge page counts as one page of its size below).
    pub pages_touched: Vec<(PageSize, u64)>,
    /// Bytes of page-table pages that walks have read from (guest stage), as laid out.
    pub table_bytes: u64,
    /// Intervals of the run, where it was recorded in such: what each counted after it had warmed up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<IntervalCounts>,
    /// Rows by page, hottest translation cost first, ties by address.
    pub pages: Vec<PageRow>,
    /// Rows by mapping.
    pub regions: Vec<RegionRow>,
    /// Rows by heap allocation site (allocations of 64 KiB and more).
    pub objects: Vec<ObjectRow>,
    /// Rows by accessing instruction.
    pub instructions_rows: Vec<IpRow>,
    /// Rows by thread.
    pub threads: Vec<ThreadRow>,
}

impl Outcome {
    /// Cycles spent in translation: TLB hit latencies beyond the first level, and walks.
    pub fn translation_cycles(&self) -> f64 {
        self.data.cost.cycles() + self.fetch.cost.cycles()
    }

    /// All cycles the model accounts for: one an access (loads, stores; and fetches if recorded),
    /// stalls of data accesses beyond the first cache level, translation, switches.
    /// No overlap between them is modelled.
    pub fn modelled_cycles(&self) -> f64 {
        (self.data.accesses + self.fetch.accesses) as f64
            + self.data.data_stall_cycles
            + self.fetch.data_stall_cycles
            + self.translation_cycles()
            + self.switch_cycles
    }
}

/// What an interval of a run counted after it had warmed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct IntervalCounts {
    /// CPU time that the program had used when the interval began, in nanoseconds.
    pub cpu_ns: u64,
    /// Accesses, left-out repeats too.
    pub accesses: u64,
    /// Walks, of data and of fetches.
    pub walks: u64,
    /// Cycles of these.
    pub walk_cycles: f64,
    /// Cycles of translation: walks, and hits beyond the first level.
    pub translation_cycles: f64,
    /// All modelled cycles.
    pub modelled_cycles: f64,
    /// Lines that came into empty places of the last data cache. Had the cache been at work for longer, it might have
    /// had them.
    pub filled_lines: u64,
}

/// Counts of the data side or of the fetch side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Side {
    /// Accesses, the recorder's left-out repeats included: the denominator of everything "per kilo access".
    pub accesses: u64,
    /// Costs in all.
    pub cost: Cost,
    /// Walks by page size of the page found.
    pub walks_by_page_size: Vec<(PageSize, u64)>,
    /// Walk references by what served them: each cache by name, then `memory`.
    pub walk_references_by_server: Vec<(String, u64)>,
    /// Walk references by table level read (leaf = 1), guest stage then host stage: `guest L1`, `host L2`, ….
    pub walk_references_by_table: Vec<(String, u64)>,
    /// Cycles of data (or instruction) accesses beyond a hit in the first cache level.
    pub data_stall_cycles: f64,
}

/// What translation of some accesses cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Accesses that missed every first-level TLB array that serves them.
    pub l1_misses: u64,
    /// Accesses that missed every level and walked.
    pub walks: u64,
    /// Page-table references of those walks, both stages.
    pub walk_references: u64,
    /// Of those, the ones that memory served.
    pub walk_references_memory: u64,
    /// Cycles of hits beyond free (each array's `hit_cycles`).
    pub tlb_hit_cycles: f64,
    /// Cycles of walks.
    pub walk_cycles: f64,
}

impl Cost {
    /// Cycles in all.
    pub fn cycles(&self) -> f64 {
        self.tlb_hit_cycles + self.walk_cycles
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.l1_misses += other.l1_misses;
        self.walks += other.walks;
        self.walk_references += other.walk_references;
        self.walk_references_memory += other.walk_references_memory;
        self.tlb_hit_cycles += other.tlb_hit_cycles;
        self.walk_cycles += other.walk_cycles;
    }
}

/// Counts of one TLB array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TlbCounts {
    /// Its name.
    pub name: String,
    /// Its level.
    pub level: u32,
    /// Accesses that looked here (left-out repeats included at the first level).
    pub lookups: u64,
    /// Of those, hits; those of locked entries included.
    pub hits: u64,
    /// Hits in lockable entries.
    pub locked_hits: u64,
    /// Hits by the page size of the entry.
    pub hits_by_page_size: Vec<(PageSize, u64)>,
    /// Entries filled, those of directories too.
    pub fills: u64,
    /// Valid entries that a fill threw out.
    pub evictions: u64,
    /// Entries invalidated by flushes and shootdowns.
    pub invalidated: u64,
}

/// Counts of one walk cache or data cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CacheCounts {
    /// Its name.
    pub name: String,
    /// Data (or instruction) lookups; 0 for walk caches.
    pub data_lookups: u64,
    /// Of those, hits.
    pub data_hits: u64,
    /// Lookups by walks.
    pub walk_lookups: u64,
    /// Of those, hits.
    pub walk_hits: u64,
}

/// One page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PageRow {
    /// Process id.
    pub process: u32,
    /// First byte.
    pub addr: u64,
    /// Page size.
    pub size: PageSize,
    /// Index in `Outcome::regions`; `None` = no mapping known.
    pub region: Option<u32>,
    /// Accesses to it, data and fetch, repeats included.
    pub accesses: u64,
    /// Their cost.
    pub cost: Cost,
}

/// One mapping (VMA), from its `Map` to its `Unmap`; mappings of one file, or grown parts of the
/// heap, are one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RegionRow {
    /// Process id.
    pub process: u32,
    /// Lowest address.
    pub start: u64,
    /// Highest address + 1.
    pub end: u64,
    /// What is behind it.
    pub source: MapSource,
    /// Call stack of its mmap (anonymous mappings), innermost first; empty = not known.
    pub site: Vec<u64>,
    /// Distinct pages touched in it.
    pub pages: u64,
    /// Accesses.
    pub accesses: u64,
    /// Their cost.
    pub cost: Cost,
}

/// All allocations of 64 KiB and more made at one site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ObjectRow {
    /// Process id.
    pub process: u32,
    /// Call stack of the allocation, innermost first.
    pub site: Vec<u64>,
    /// Allocations.
    pub allocations: u64,
    /// Most bytes live at one time.
    pub peak_bytes: u64,
    /// Address and length of the largest (the first of the largest).
    pub largest: (u64, u64),
    /// Accesses to pages that lie wholly in such an allocation (pages on its edges count by misses only).
    pub accesses: u64,
    /// Cost of accesses that missed the first level at an address in it.
    pub cost: Cost,
}

/// One accessing instruction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct IpRow {
    /// Process id.
    pub process: u32,
    /// Its address; 0 = not recorded.
    pub ip: u64,
    /// Cost of its accesses (data side) or of fetching it (fetch side).
    pub cost: Cost,
}

/// One thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ThreadRow {
    /// Process id.
    pub process: u32,
    /// Thread id.
    pub thread: u32,
    /// Accesses.
    pub accesses: u64,
    /// Cost.
    pub cost: Cost,
}
