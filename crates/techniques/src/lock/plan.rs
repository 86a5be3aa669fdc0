//! A lock plan: the pages, what each is and saves, the ways to choose side by side, and what more entries would add.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use lookaside_engine::{ObjectRow, Outcome, Setup};
use serde::{Deserialize, Serialize};

use super::bench::Bench;
use super::exhaustive::{self, MOST_ENTRIES, MOST_PAGES};
use super::histogram::{page_shift, Page, PageCounts};
use super::maps::Mapping;
use super::miss_stream::MissStream;
use super::profile::LockProfile;
use super::reason::Confidence;
use super::select::{candidates, select, worst_cycles, Objective, Search, Selector};
use super::stall::StallCycles;
use super::target::LockTarget;
use super::LockError;
use crate::names::{mapping_name, Namer};

/// Seeds that a plan's stall cycles are of: a power of two, so that their mean is exact.
pub const SEEDS: u64 = 8;

/// Entries beyond those asked for that the curve goes on to.
const MORE_ENTRIES: u32 = 2;

/// Recorded accesses up to which pages are chosen by whole runs, and beyond which by runs over first-level misses alone.
const SEARCHED_WHOLE: u64 = 1 << 12;

/// Accesses that trying all sets may run over: a few seconds.
const EXHAUSTIVE_ACCESSES: u64 = 1 << 25;

/// A lock plan. Cycles are of the model; means and worst are over `seeds`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    pub selector: Selector,
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
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// Of the worst seed.
    pub worst_cycles: f64,
    /// The mean, side by side and level by level.
    pub mean: StallCycles,
}

impl Stalls {
    fn of(stalls: &[StallCycles]) -> Self {
        Self { worst_cycles: worst_cycles(stalls), mean: StallCycles::mean(stalls) }
    }
}

/// A page to lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedPage {
    /// Whose.
    pub process: u32,
    /// Page number in the profiled run.
    pub vpn: u64,
    /// Function at its first byte (pages of code) or call site of the large allocation that it lies in; empty = not known.
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
    pub region: Option<Region>,
    /// Where it lies in a plain run; absent = nobody looked, or [`Self::not_native`] says why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativePage>,
}

/// A page of the plan in a plain run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[serde(deny_unknown_fields)]
pub struct Region {
    /// The mapping's name, as `analyze` has it.
    pub name: String,
    /// Bytes from its start to the page.
    pub offset_bytes: u64,
    /// The mapping, as a line of `/proc/PID/maps`.
    pub mapping: Mapping,
}

/// What one way to choose comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockChoice {
    /// The way.
    pub selector: Selector,
    /// With its pages locked.
    pub stalls: Stalls,
    /// Its pages.
    #[serde(default)]
    pub pages: Vec<Page>,
}

/// What so many entries leave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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

/// What to plan.
#[derive(Clone, Debug, PartialEq)]
pub struct LockRequest {
    /// Where to lock, and how many pages.
    pub target: LockTarget,
    /// How to choose.
    pub selector: Selector,
    /// How far to look.
    pub search: Search,
    /// The program and its arguments, or the trace.
    pub command: Vec<String>,
}

/// Chooses pages for a profiled program.
///
/// # Errors
/// A setup that can't be run; `stop` was set: then there is no plan.
pub fn plan(
    base: &Setup,
    profile: &LockProfile,
    request: &LockRequest,
    namer: &dyn Namer,
    stop: &AtomicBool,
) -> Result<LockPlan, LockError> {
    let LockTarget { tlb, entries } = &request.target;
    let most = entries + MORE_ENTRIES;
    let seeds: Vec<u64> = (0..SEEDS).map(|i| base.seed.wrapping_add(i)).collect();
    let mut bench = Bench::new(base, tlb, most, seeds.clone(), &profile.blocks, stop);
    let lean = if bench.rows() > SEARCHED_WHOLE { MissStream::of(base, tlb, &profile.blocks)? } else { None };
    let (searched, blocks) = lean.as_ref().map_or((base, &profile.blocks), |lean| (&lean.setup, &lean.blocks));
    let mut search = Bench::new(searched, tlb, most, seeds.clone(), blocks, stop);
    let mut remarks = profile.remarks.clone();
    if lean.is_some() {
        remarks.push(format!(
            "pages were chosen by runs over the {} accesses that miss the first level, where walks cost less than in whole runs; \
             the stall cycles stated are of whole runs",
            search.rows()
        ));
    }
    let mut choices = Vec::new();
    let mut order = Vec::new();
    for selector in Selector::ALL {
        let chosen = select(selector, &profile.counts, &mut search, most as usize, request.search)?;
        let pages = chosen[..chosen.len().min(*entries as usize)].to_vec();
        choices.push(LockChoice { selector, stalls: Stalls::of(bench.stalls(&pages)?), pages });
        if selector == request.selector {
            order = chosen;
        }
    }
    let curve = curve(&mut bench, &order, most)?;
    order.truncate(*entries as usize);
    let (base_stalls, locked) = (Stalls::of(bench.stalls(&[])?), Stalls::of(bench.stalls(&order)?));
    let optimum = optimum(&mut search, &mut bench, &profile.counts, *entries)?;
    let names = PageNames { profile, namer, shift: page_shift(&base.machine) };
    let saved = |i: usize| curve[i].mean_cycles - curve[i + 1].mean_cycles;
    let pages = order.iter().enumerate().map(|(i, page)| names.page(*page, saved(i))).collect();
    Ok(LockPlan {
        machine: base.machine.name.clone(),
        tlb: tlb.clone(),
        entries: *entries,
        page_bytes: 1 << names.shift,
        selector: request.selector,
        command: request.command.clone(),
        accesses: profile.accesses,
        tried_share: profile.tried_share,
        seeds,
        model_runs: search.runs() + bench.runs(),
        remarks,
        base: base_stalls,
        locked,
        optimum,
        pages,
        choices,
        curve,
    })
}

fn curve(bench: &mut Bench, order: &[Page], most: u32) -> Result<Vec<CurvePoint>, LockError> {
    let point = |entries: u32| {
        let stalls = Stalls::of(bench.stalls(&order[..order.len().min(entries as usize)])?);
        Ok(CurvePoint { entries, mean_cycles: stalls.mean.cycles(), worst_cycles: stalls.worst_cycles })
    };
    (0..=most).map(point).collect()
}

/// `None` where it would take too long.
fn optimum(
    search: &mut Bench,
    bench: &mut Bench,
    counts: &[PageCounts],
    entries: u32,
) -> Result<Option<Optimum>, LockError> {
    let pages = candidates(counts, MOST_PAGES);
    let entries = entries as usize;
    if entries > MOST_ENTRIES {
        return Ok(None);
    }
    let sets = exhaustive::sets(&pages, entries).len() as u64;
    let accesses = search.rows().saturating_mul(sets * search.seeds().len() as u64);
    if accesses > EXHAUSTIVE_ACCESSES {
        return Ok(None);
    }
    let by_mean = exhaustive::best(search, &pages, entries, Objective::Mean)?;
    let by_worst = exhaustive::best(search, &pages, entries, Objective::Worst)?;
    Ok(Some(Optimum {
        of_pages: pages.len() as u32,
        entries: entries as u32,
        mean_cycles: StallCycles::mean(bench.stalls(&by_mean)?).cycles(),
        worst_cycles: worst_cycles(bench.stalls(&by_worst)?),
    }))
}

/// Whence pages get their names.
struct PageNames<'a> {
    profile: &'a LockProfile,
    namer: &'a dyn Namer,
    /// log2 of the bytes of a page.
    shift: u32,
}

impl PageNames<'_> {
    fn page(&self, page: Page, saving_cycles: f64) -> PlannedPage {
        let addr = page.addr(self.shift);
        let counted = self.profile.counts.iter().find(|counts| counts.page == page);
        let [data_accesses, fetch_accesses, data_misses, fetch_misses] =
            counted.map_or([0; 4], |c| [c.data_accesses, c.fetch_accesses, c.data_misses, c.fetch_misses]);
        PlannedPage {
            process: page.process,
            vpn: page.vpn,
            symbol: self.symbol(page, addr, fetch_accesses > 0),
            data_accesses,
            fetch_accesses,
            data_misses,
            fetch_misses,
            saving_cycles,
            not_native: None,
            region: self.region(page, addr),
            native: None,
        }
    }

    fn region(&self, page: Page, addr: u64) -> Option<Region> {
        let maps = &self.profile.maps;
        let mapping = maps.find(page.process, addr)?.clone();
        let name = mapping_name(page.process, &mapping.source, maps.site(page.process, &mapping), self.namer);
        Some(Region { name, offset_bytes: addr - mapping.start, mapping })
    }

    fn symbol(&self, page: Page, addr: u64, is_code: bool) -> String {
        let process = page.process;
        if is_code {
            return self.namer.function(process, addr);
        }
        allocation(&self.profile.outcome, self.namer, process, addr..addr.saturating_add(1 << self.shift))
    }
}

/// The call site whose largest allocation has most of a range of addresses, the first of equal ones; empty if none has any.
pub(crate) fn allocation(outcome: &Outcome, namer: &dyn Namer, process: u32, range: Range<u64>) -> String {
    let overlap = |object: &ObjectRow| {
        let (start, bytes) = object.largest;
        start.saturating_add(bytes).min(range.end).saturating_sub(start.max(range.start))
    };
    let objects = outcome.objects.iter().filter(|object| object.process == process && overlap(object) > 0);
    let object = objects.min_by_key(|object| std::cmp::Reverse(overlap(object)));
    object.map(|object| namer.site(process, &object.site)).unwrap_or_default()
}
