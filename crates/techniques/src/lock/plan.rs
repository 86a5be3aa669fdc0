//! A lock plan: the pages, what each is and saves, the ways to choose side by side, and what more entries would add.

use serde::{Deserialize, Serialize};

use super::histogram::LockPage;
use super::maps::ListedMapping;
use super::reason::Confidence;
use super::select::{worst_cycles, PageSelector};
use super::stall::StallCycles;

/// Seeds that a plan's stall cycles are of: a power of two, so that their mean is exact.
pub const SEEDS: u64 = 8;

/// A lock plan. Cycles are of the model; means and worst are over `seeds`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LockPlan {
    /// Name of the machine.
    pub machine: String,
    /// Name of the TLB array that holds the locks.
    pub tlb: String,
    /// Lockable entries that were planned for.
    pub entries: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// How the pages were chosen.
    pub selector: PageSelector,
    /// The program and its arguments, or the trace.
    pub command: Vec<String>,
    /// Accesses of the program, left-out repeats included.
    pub accesses: u64,
    /// Of its recorded accesses, the share that the stall cycles are of; 1 = all.
    pub tried_share: f64,
    /// Seeds of the model runs: random replacement's victims, places of frames and tables.
    pub seeds: Vec<u64>,
    /// Model runs that choosing took.
    pub model_runs: u64,
    /// What a reader must know to believe the numbers.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Nothing locked.
    pub base: Stalls,
    /// The plan's pages locked.
    pub locked: Stalls,
    /// The best set of few pages, where there were few enough accesses to try all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimum: Option<Optimum>,
    /// The pages to lock, in the order of choice; fewer than `entries` where no further one saves anything.
    #[serde(default, rename = "page")]
    pub pages: Vec<PlannedPage>,
    /// Each way to choose, the paper's first.
    #[serde(default, rename = "choice")]
    pub choices: Vec<LockChoice>,
    /// What 0, 1, 2, … entries leave, up to two more than planned for, by the plan's way to choose.
    #[serde(default)]
    pub curve: Vec<CurvePoint>,
}

/// Stall cycles over all seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// Of the worst seed.
    pub worst_cycles: f64,
    /// The mean, side by side and level by level.
    pub mean: StallCycles,
}

impl Stalls {
    pub(super) fn of(stalls: &[StallCycles]) -> Self {
        Self { worst_cycles: worst_cycles(stalls), mean: StallCycles::mean(stalls) }
    }
}

/// A page to lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlannedPage {
    /// Whose.
    pub process: u32,
    /// Page number in the profiled run.
    pub vpn: u64,
    /// Function at its first byte (pages of code) or call site of the large allocation that it lies in; empty = not
    /// known.
    pub symbol: String,
    /// Loads and stores.
    pub data_accesses: u64,
    /// Instruction fetches.
    pub fetch_accesses: u64,
    /// Data accesses that missed the array, with nothing locked and the first seed.
    pub data_misses: u64,
    /// Fetches that did.
    pub fetch_misses: u64,
    /// Stall cycles that its lock removes once the pages before it are locked, in the mean; below 0 = it costs.
    pub saving_cycles: f64,
    /// Why it is not known where it lies in a plain run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_native: Option<String>,
    /// The mapping that held it last; absent = none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<PageRegion>,
    /// Where it lies in a plain run; absent = nobody looked, or [`Self::not_native`] says why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativePage>,
}

/// A page of the plan in a plain run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NativePage {
    /// Page number there.
    pub vpn: u64,
    /// The region that holds it there, as [`super::regions::name`] has it.
    pub region: String,
    /// Bytes from the region's start to the page.
    pub offset_bytes: u64,
    /// How sure it is that it holds the same.
    pub confidence: Confidence,
    /// What that rests on, in words.
    pub rests_on: Vec<String>,
}

/// Where a page lies in the profiled run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PageRegion {
    /// The mapping's name, as `analyze` has it.
    pub name: String,
    /// Bytes from its start to the page.
    pub offset_bytes: u64,
    /// The mapping, as a line of `/proc/PID/maps`.
    pub mapping: ListedMapping,
}

/// What one way to choose comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LockChoice {
    /// The way.
    pub selector: PageSelector,
    /// With its pages locked.
    pub stalls: Stalls,
    /// Its pages.
    #[serde(default)]
    pub pages: Vec<LockPage>,
}

/// What so many entries leave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// Entries.
    pub entries: u32,
    /// Stall cycles, mean.
    pub mean_cycles: f64,
    /// Of the worst seed.
    pub worst_cycles: f64,
}

/// The best of all sets of the pages with most misses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Optimum {
    /// How many pages the sets were of.
    pub of_pages: u32,
    /// Most pages of a set.
    pub entries: u32,
    /// Stall cycles with the best by the mean.
    pub mean_cycles: f64,
    /// Stall cycles of the worst seed with the best by that.
    pub worst_cycles: f64,
}
