//! Measures a real machine's translation hardware (TLBs, walk caches, walks, data caches) without a PMU, by timing
//! dependent loads and by the
//! accessed bits that page-table walks set, and gives a machine description for the model.
//!
//! What is measured is behind one trait, [`Metal`]. [`HostMachine`] is the machine that the program runs on; anything
//! else that can time a
//! chain of loads will do. Here a TLB of 16 sets and 4 ways is found behind nothing but times:
//!
//! ```
//! use lookaside_machine::PageSize;
//! use lookaside_probe::{probe, Metal, MetalError, PageChain, ProbeOptions, ProbeStep};
//!
//! /// 16 sets of 4 ways with LRU: a hit takes 4 ticks, a miss 24.
//! #[derive(Default)]
//! struct SmallTlb {
//!     sets: [Vec<u64>; 16],
//! }
//!
//! impl SmallTlb {
//!     fn load(&mut self, page: u64) -> f64 {
//!      let set = &mut self.sets[page as usize % 16];
//!      let hit = set.iter().position(|&held| held == page).map(|way| set.remove(way)).is_some();
//!      set.truncate(3);
//!      set.insert(0, page);
//!      if hit { 4.0 } else { 24.0 }
//!     }
//! }
//!
//! impl Metal for SmallTlb {
//!     fn page_bits(&self, size: PageSize) -> u32 {
//!      if size == PageSize::K4 { 20 } else { 0 }
//!     }
//!
//!     fn max_pages(&self, _: PageSize) -> usize {
//!      1 << 12
//!     }
//!
//!     fn chase(&mut self, chain: &PageChain<'_>, _rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
//!      for &page in chain.pages {
//!          self.load(page); // the round that warms it
//!      }
//!      Ok((0..samples).map(|_| chain.pages.iter().map(|&page| self.load(page)).sum()).collect())
//!     }
//!
//!     fn cycles_per_tick(&self) -> f64 {
//!      1.0
//!     }
//!
//!     fn rest(&mut self, _: std::time::Duration) {} // no neighbour to wait for
//! }
//!
//! let options = ProbeOptions { only: Some(ProbeStep::L1), seed: 1, ..ProbeOptions::default() };
//! let report = probe(&mut SmallTlb::default(), &options, &|| None, &mut |step| eprintln!("{step}"));
//! let geometry = report.levels[0].geometry.value().expect("two passes agree");
//! assert_eq!((geometry.sets, geometry.ways, geometry.entries), (16, 4, 64));
//! ```
//!
//! # The path of a probe through the files
//!
//! 1. `run.rs` runs the steps that `options.rs` lists, each in its share of the time (`budget.rs`).
//! 2. A step asks for times: of rounds through chains of pages (`bench.rs`), or of loads through memory areas
//!    (`hierarchy/latency_bench.rs`). Both repeat samples until they agree.
//! 3. `metal/host.rs` takes the samples on this machine. It backs pages at chosen addresses
//!    (`metal/page_reservation.rs`), times loops of loads (`metal/clock.rs`), runs single shots
//!    (`metal/single_shot/`), and waits until the core's other hardware thread is idle (`metal/idle_core.rs`).
//! 4. `tlb/search.rs` finds the geometry of each TLB level: pages that overload their sets, then pages of one set
//!    (`tlb/one_set.rs`), then the number of ways (`tlb/set_capacity.rs`) and the index function
//!    (`tlb/set_index.rs`). `tlb/confirm.rs` checks it with fresh pages, and `until_two_agree.rs` repeats it until
//!    two passes agree. `tlb/policy/` identifies how a set replaces.
//! 5. `effects/` measures what else fills and evicts entries, `hierarchy/` data caches, walks and walk caches,
//!    `large_pages.rs` the entries for larger pages, `timing/` reads and page faults in nanoseconds, `pmu/` hardware
//!    counters, if there are some.
//! 6. Each step puts its [`Finding`]s in the report (`report/`): a value that two measurements agree on, or the
//!    reason why there is none. `claims/` compares it with CPUID and sysfs, `retry.rs` repeats the probe where a
//!    neighbour disturbed it, and `evidence.rs` writes every measurement down.
//! 7. `description/` turns the report into a machine description, and [`validate`] checks such a description against
//!    the machine.
//!
//! Where the geometry is known, [`counter`] counts the TLB misses of a caller's own accesses; `ffi.rs` is its C
//! interface.

mod agreed_range;
mod bench;
mod budget;
mod claims;
pub mod counter;
mod description;
pub mod effects;
mod eviction_sets;
mod evidence;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod ffi;
mod finding;
#[cfg(target_os = "linux")]
mod flush_tlb;
pub mod gf2;
mod hierarchy;
mod large_pages;
mod metal;
mod options;
mod pmu;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod replay;
mod report;
mod retry;
mod run;
mod stream;
mod timing;
mod tlb;
mod until_two_agree;
pub mod validate;

pub use agreed_range::MeasuredRange;
pub use bench::{ChainBench, Halt};
pub use claims::{
    claims_of_cpu, cpuid_claims, sysfs_claims, CheckedClaim, Claim, CpuidRegisters, HardwarePart, PartSize,
};
pub use eviction_sets::TlbLevels;
pub use evidence::{EvidenceRecorder, EvidenceTotals};
pub use finding::Finding;
#[cfg(target_os = "linux")]
pub use flush_tlb::flush_tlb;
pub use hierarchy::*;
pub use large_pages::gigantic_levels;
pub use metal::{
    AccessOrder, Act, ChainAccess, HostMachine, LineChain, MemoryArea, Metal, MetalError, NeighbourWalk, OtherCpu,
    PageChain, PairedTicks, PrefetchHint, Shot, TimedFaults, TimedRound, WordSequence, MOST_ACTS, SPARSE_STEP,
};
pub use options::{ProbeOptions, ProbeStep};
pub use pmu::{try_events, usable_events, CountProof, CountedMisses, CountedSet, PmuEvent, TriedEvent, EVENTS};
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use replay::{replay, HeldFrames, ReplayBudget, ReplayError};
pub use report::access_patterns::AccessPatternCosts;
pub use report::caches::{CacheReport, CacheReports, CacheShape, LatencyPoint};
pub use report::entry_coverage::{EntryCoverage, LevelCoverage};
pub use report::levels::LevelReport;
pub use report::page_sizes::{GiganticPages, LargePages};
pub use report::timing::{AbsentCost, TimingReport};
pub use report::walk_caches::{CountCost, WalkCacheReport, WalkCacheSize, WalkCaches};
pub use report::walks::{PteLocation, WalkCosts, WalkReport};
pub use report::ProbeReport;
pub use retry::{probe_with_retries, RetryLimits};
pub use run::probe;
pub use tlb::{
    first_level, first_level_of_stores, given_first_level, given_second_level, is_modelled_tree, policy, second_level,
    CoreUse, FirstLevelFlood, FoundLevel, Geometry, LevelMeter, Prediction, TlbPolicy, Trial, TrialRole,
};
pub use until_two_agree::until_two_agree;
