//! The machine description: one schema for presets, probe output, engine, coloured heap and planner.
//!
//! Every struct here is what the TOML holds, checked (`check.rs`) before anyone sees it: a
//! [`Machine`] that came from [`crate::load`] has a possible geometry.

use serde::{Deserialize, Serialize};

use crate::array::{FilledBy, Replacement, Serves, SharedBy, Tag, Ways};
use crate::{IndexFn, Origins, PageSize, TableFormat, Timing};

/// A whole machine: topology, page-table format, TLBs, walk caches, data caches, costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Short name, as `--machine` takes it.
    pub name: String,
    /// One line for people.
    #[serde(default)]
    pub description: String,
    /// Where the figures come from, one line a source.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Core clock in MHz; turns cycles into time.
    pub clock_mhz: f64,
    /// Sockets, cores and hardware threads.
    #[serde(default)]
    pub topology: Topology,
    /// How the page table looks to the walker.
    pub page_table: PageTable,
    /// The walker: where it may look, what it costs beside its memory references.
    #[serde(default)]
    pub walker: Walker,
    /// TLB arrays, any number at any number of levels.
    #[serde(rename = "tlb")]
    pub tlbs: Vec<Tlb>,
    /// Caches of upper page-table levels ("paging-structure caches", "MMU caches").
    #[serde(default, rename = "walk_cache")]
    pub walk_caches: Vec<WalkCache>,
    /// Data caches, first level first.
    #[serde(default, rename = "cache")]
    pub caches: Vec<Cache>,
    /// Main memory.
    pub memory: Memory,
    /// What ascending walks cost, where prefetchers keep up with them; absent = as any other access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// What the hardware and OS do on a switch between address spaces.
    #[serde(default)]
    pub context_switch: ContextSwitch,
    /// Evictions that the system causes, by set of a TLB; what is absent was not measured.
    #[serde(default, rename = "disturbance", skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbance>,
    /// What reads, page faults and streams take in nanoseconds; absent = not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// Where the values are from, by their paths; a path that is not there was given by whoever wrote the file.
    #[serde(default, skip_serializing_if = "Origins::is_empty")]
    pub origins: Origins,
    /// What could not be measured or found, and why (a probe writes this; presets may).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_determined: Vec<String>,
}

impl Machine {
    /// Cycles of a page-walk reference that no cache serves.
    pub fn walk_memory_cycles(&self) -> f64 {
        self.walker.memory_cycles.unwrap_or(self.memory.cycles)
    }

    /// Cycles that memory takes to transfer a line of the last data cache; 0 where its bandwidth is not limited.
    pub fn memory_line_cycles(&self) -> f64 {
        let Some(bytes_per_second) = self.memory.bytes_per_second else { return 0.0 };
        let last = self.caches.iter().max_by_key(|cache| cache.level);
        let line_bytes = last.map_or_else(crate::defaults::line_bytes, |cache| cache.line_bytes);
        f64::from(line_bytes) * self.clock_mhz * 1e6 / bytes_per_second
    }
}

/// Counts of the hardware's parts; each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Sockets in the machine.
    pub sockets: u32,
    /// Cores in each socket.
    pub cores_per_socket: u32,
    /// Hardware threads in each core.
    pub threads_per_core: u32,
}

impl Default for Topology {
    fn default() -> Self {
        Self { sockets: 1, cores_per_socket: 1, threads_per_core: 1 }
    }
}

/// Page-table format of the (guest) address space, and of the host below it when nested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PageTable {
    /// Format that programs run under.
    pub format: TableFormat,
    /// Second stage: present when the machine is a virtual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostTable>,
}

/// Second stage of a nested translation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    /// The host's format; need not be the guest's.
    pub format: TableFormat,
    /// Page size that the host backs guest memory with.
    pub page_size: PageSize,
    /// log2 of the bytes of guest-physical memory that frames lie in: how far they are scattered, and so how many of
    /// the host's tables are read. Absent = as far as the formats reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bits: Option<u32>,
}

/// The page-table walker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Walker {
    /// Fixed cycles a walk, beside its references.
    #[serde(default)]
    pub base_cycles: f64,
    /// First data-cache level whose lines a walk may hit: 1 = L1, 2 = from L2 on. One more than the
    /// last level = walks go past every cache to memory (ARM cores with virtually tagged caches).
    #[serde(default = "one")]
    pub first_cache_level: u32,
    /// Cycles of a walk reference that memory serves, where that is not what a line costs: the walker of a core
    /// without cached walks fetches one word (SA-1100). Absent = `memory.cycles`; see [`Machine::walk_memory_cycles`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_cycles: Option<f64>,
}

impl Default for Walker {
    fn default() -> Self {
        Self { base_cycles: 0.0, first_cache_level: 1, memory_cycles: None }
    }
}

fn one() -> u32 {
    1
}

/// One TLB array. Arrays with the same `level` are looked up side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tlb {
    /// Name used in results and in `--set tlb.NAME.key=value`; unique in the machine.
    pub name: String,
    /// 1 is asked first; a miss in every array of a level that serves the access goes on to the next level.
    pub level: u32,
    /// Kinds of access that look here.
    pub serves: Vec<Serves>,
    /// Page sizes that an entry here may hold.
    pub page_sizes: Vec<PageSize>,
    /// Total entries, lockable ones not counted.
    pub entries: u32,
    /// Ways in a set; `"full"` = fully associative.
    pub ways: Ways,
    /// Set index from the page number (of the entry's own page size): one GF(2) mask an index bit.
    /// `"linear"` = the low log2(sets) bits.
    #[serde(default)]
    pub index: IndexFn,
    /// Which entry goes when a set is full.
    pub replacement: Replacement,
    /// What an entry is tagged with beside its page number. Without `asid`, a switch of address
    /// space must flush (see [`ContextSwitch`]).
    #[serde(default)]
    pub tags: Vec<Tag>,
    /// Additional fully associative entries that only a lock may fill (Cortex-A9: 4).
    #[serde(default)]
    pub lockable_entries: u32,
    /// Most contiguous pages, aligned to this power of two, that one entry may cover
    /// (virtually and physically contiguous); 1 = no coalescing.
    #[serde(default = "one")]
    pub coalesce_pages: u32,
    /// Its sets also hold entries of table level 2 (on x86-64 page-directory entries), which take places beside those
    /// of pages and let a walk begin at the leaf table. AMD's second-level data TLBs do so since Zen (Software
    /// Optimization Guide for the family 19h processors, 56665, section 2.7).
    #[serde(default)]
    pub directory_entries: bool,
    /// Cycles that a hit at this level adds (0 for a first level that is hidden by the L1 cache access).
    pub hit_cycles: f64,
    /// Who shares one such array.
    #[serde(default)]
    pub shared_by: SharedBy,
}

impl Tlb {
    /// Number of sets; 1 when fully associative.
    pub fn sets(&self) -> u32 {
        self.ways.sets(self.entries)
    }
}

/// Cache of page-table entries of one upper level: lets a walk start below that level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WalkCache {
    /// Name used in results; unique in the machine.
    pub name: String,
    /// Table level whose entries it holds, the leaf table being 1: on x86-64 2 = page-directory
    /// entries (PDE), 3 = PDPTE, 4 = PML4E. With `stage = "host"`, 1 is allowed and caches whole
    /// guest-physical to host-physical translations (a nested TLB).
    pub table_level: u32,
    /// Entries in all.
    pub entries: u32,
    /// Ways; `"full"` = fully associative.
    pub ways: Ways,
    /// Which entry goes.
    pub replacement: Replacement,
    /// Cycles that a hit adds.
    #[serde(default)]
    pub hit_cycles: f64,
    /// Which stage's tables it caches.
    #[serde(default)]
    pub stage: Stage,
    /// Who shares one.
    #[serde(default)]
    pub shared_by: SharedBy,
}

impl WalkCache {
    /// Number of sets; 1 when fully associative.
    pub fn sets(&self) -> u32 {
        self.ways.sets(self.entries)
    }
}

/// Stage of a nested translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The program's (guest's) own table; the only stage when not nested.
    #[default]
    Guest,
    /// The hypervisor's table.
    Host,
}

/// One data cache. Physically indexed, line-granular.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Name used in results; unique in the machine.
    pub name: String,
    /// 1 is asked first.
    pub level: u32,
    /// Kinds of access that look here (an L1D does not serve fetches).
    pub serves: Vec<Serves>,
    /// Size in bytes; in TOML a string with a unit: `"32K"`, `"1M"`.
    #[serde(with = "crate::units::bytes")]
    #[cfg_attr(feature = "schemas", schemars(schema_with = "crate::json_schema::bytes"))]
    pub size: u64,
    /// Ways; `"full"` = fully associative.
    pub ways: Ways,
    /// Line size in bytes, a power of two.
    #[serde(default = "crate::defaults::line_bytes")]
    pub line_bytes: u32,
    /// Set index from the line number (the physical address over the line size), as a TLB's from the page number.
    #[serde(default, skip_serializing_if = "IndexFn::is_linear")]
    pub index: IndexFn,
    /// Which line goes.
    #[serde(default = "lru")]
    pub replacement: Replacement,
    /// A store that finds no line here fetches it, as a load does; without that it leaves the cache as it was, and goes
    /// on to the next level.
    #[serde(default = "crate::defaults::yes", skip_serializing_if = "crate::defaults::is_yes")]
    pub write_allocate: bool,
    /// What comes in: the lines asked for, or those that the cache before throws out.
    #[serde(default, skip_serializing_if = "FilledBy::is_misses")]
    pub filled_by: FilledBy,
    /// Load-to-use cycles of a hit here, in all (not added to the level above).
    pub hit_cycles: f64,
    /// Who shares one.
    #[serde(default)]
    pub shared_by: SharedBy,
}

impl Cache {
    /// Number of lines: `size / line_bytes`.
    pub fn lines(&self) -> u32 {
        u32::try_from(self.size.checked_div(u64::from(self.line_bytes)).unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// Number of sets; 1 when fully associative.
    pub fn sets(&self) -> u32 {
        self.ways.sets(self.lines())
    }

    /// Takes another size, in bytes, and other ways, as they were measured. An index of another number of sets can't stay:
    /// it becomes linear.
    pub fn set_shape(&mut self, size: u64, ways: Ways) {
        let sets = self.sets();
        (self.size, self.ways) = (size, ways);
        if self.sets() != sets {
            self.index = IndexFn::Linear;
        }
    }
}

fn lru() -> Replacement {
    Replacement::Lru
}

/// Main memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Load-to-use cycles of a reference that misses every cache.
    pub cycles: f64,
    /// Bytes a second that it transfers, for all who share it together. Absent = not limited; see
    /// [`Machine::memory_line_cycles`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
}

/// Ascending walks over data, line by line, as far as prefetchers hide their latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Load-to-use cycles of a line of such a walk that a cache after the first serves (at most that cache's own).
    pub cache_cycles: f64,
    /// Load-to-use cycles of a line of such a walk that memory serves (at most memory's own).
    pub memory_cycles: f64,
    /// Cycles of the page-table walk that a line of such a walk needs where it enters a page (at most those of any
    /// other): what is left of it where translations are fetched ahead too. Absent = as any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk_cycles: Option<f64>,
}

/// What a switch between address spaces does beside loading the new root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContextSwitch {
    /// What is thrown away.
    #[serde(default)]
    pub action: SwitchAction,
    /// Fixed cycles a switch.
    #[serde(default)]
    pub cycles: f64,
    /// Processes that may have entries on a hardware thread at a time; another takes the place of each in turn, whose
    /// entries go. Of no account where a switch flushes. `None`: any number. Linux gives each x86 CPU 6 PCIDs
    /// (`TLB_NR_DYN_ASIDS`, arch/x86/include/asm/tlbflush.h).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_spaces: Option<u32>,
}

/// What a context switch throws away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SwitchAction {
    /// Nothing: entries are tagged.
    #[default]
    Nothing,
    /// Non-global entries of the core's TLBs and walk caches.
    FlushTlb,
    /// The same, and the core's own data caches (virtually indexed, virtually tagged ones).
    FlushTlbAndCaches,
}

/// Evictions that the system causes in the sets of one TLB ("noisy sets", Panchamukhi 2014, §6.0.6), beyond what its
/// median set has. Each list has one figure a set, by the set's number, or is empty: not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Disturbance {
    /// Name of the TLB.
    pub tlb: String,
    /// By what comes by itself while a program runs: interrupts, the hypervisor, other programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evictions_per_second: Vec<f64>,
    /// By a system call that does next to nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evictions_per_system_call: Vec<f64>,
    /// By a switch to another process and back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evictions_per_context_switch: Vec<f64>,
}
