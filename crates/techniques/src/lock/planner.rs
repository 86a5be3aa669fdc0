//! Chooses the pages to lock.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use lookaside_engine::{Filter, ObjectRow, Outcome, Setup};
use lookaside_trace::{Block, Source};

use super::bench::LockBench;
use super::exhaustive::{self, MOST_ENTRIES, MOST_PAGES};
use super::histogram::{page_shift, LockPage, PageCounts};
use super::miss_stream::MissStream;
use super::plan::{CurvePoint, LockChoice, LockPlan, Optimum, PageRegion, PlannedPage, Stalls, SEEDS};
use super::profile::LockProfile;
use super::select::{candidates, select, worst_cycles, worth_locking, Objective, PageSelector, SearchLimits};
use super::stall::StallCycles;
use super::target::LockTarget;
use crate::names::{mapping_name, Namer};
use crate::plan::{Coverage, PlanError, Planner};

/// Entries beyond those asked for that the curve goes on to.
const MORE_ENTRIES: u32 = 2;

/// Recorded accesses up to which pages are chosen by whole runs, and beyond which by runs over first-level misses
/// alone.
const SEARCHED_WHOLE: u64 = 1 << 12;

/// Accesses that trying all sets may run over: a few seconds.
const EXHAUSTIVE_ACCESSES: u64 = 1 << 25;

/// Plans locks.
#[derive(Clone, Debug, PartialEq)]
pub struct LockPlanner {
    /// The machine, with base pages.
    pub setup: Setup,
    /// Where to lock, and how many pages.
    pub target: LockTarget,
    /// How to choose.
    pub selector: PageSelector,
    /// How far to look.
    pub search: SearchLimits,
}

impl Planner for LockPlanner {
    type Profile = LockProfile;
    type Plan = LockPlan;

    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn filter(&self) -> Filter {
        Filter::exact_for(std::slice::from_ref(&self.setup))
    }

    fn profile(&self, source: &mut dyn Source, watch: &mut dyn FnMut(&Block)) -> Result<LockProfile, PlanError> {
        LockProfile::record(source, &self.setup, &self.target.tlb, watch)
    }

    fn coverage(profile: &mut LockProfile) -> &mut Coverage {
        &mut profile.coverage
    }

    fn plan(
        &self,
        profile: &LockProfile,
        command: Vec<String>,
        namer: &dyn Namer,
        stop: &AtomicBool,
    ) -> Result<LockPlan, PlanError> {
        let (base, LockTarget { tlb, entries }) = (&self.setup, &self.target);
        let most = entries + MORE_ENTRIES;
        let seeds: Vec<u64> = (0..SEEDS).map(|i| base.seed.wrapping_add(i)).collect();
        let mut bench = LockBench::new(base, tlb, most, seeds.clone(), &profile.blocks, stop);
        let lean = if bench.rows() > SEARCHED_WHOLE { MissStream::of(base, tlb, &profile.blocks)? } else { None };
        let (searched, blocks) = lean.as_ref().map_or((base, &profile.blocks), |lean| (&lean.setup, &lean.blocks));
        let mut search = LockBench::new(searched, tlb, most, seeds.clone(), blocks, stop);
        let mut remarks = profile.coverage.remarks.clone();
        if lean.is_some() {
            remarks.push(format!(
                "pages were chosen by runs over the {} accesses that miss the first level, where walks cost less than in whole runs; \
                 the stall cycles stated are of whole runs",
                search.rows()
            ));
        }
        let mut choices = Vec::new();
        let (mut order, mut planned) = (Vec::new(), Vec::new());
        for selector in PageSelector::ALL {
            let chosen = select(selector, &profile.counts, &mut search, most as usize, self.search)?;
            let fitting = &chosen[..chosen.len().min(*entries as usize)];
            let pages = match selector.objective() {
                Some(objective) => worth_locking(objective, &mut bench, fitting)?,
                None => fitting.to_vec(),
            };
            if selector == self.selector {
                planned.clone_from(&pages);
                order = chosen;
            }
            choices.push(LockChoice { selector, stalls: Stalls::of(bench.stalls(&pages)?), pages });
        }
        let curve = curve(&mut bench, &order, most)?;
        let (base_stalls, locked) = (Stalls::of(bench.stalls(&[])?), Stalls::of(bench.stalls(&planned)?));
        let optimum = optimum(&mut search, &mut bench, &profile.counts, *entries)?;
        let names = PageNames { profile, namer, shift: page_shift(&base.machine) };
        let saved = |i: usize| curve[i].mean_cycles - curve[i + 1].mean_cycles;
        let pages = planned.iter().enumerate().map(|(i, page)| names.page(*page, saved(i))).collect();
        Ok(LockPlan {
            machine: base.machine.name.clone(),
            tlb: tlb.clone(),
            entries: *entries,
            page_bytes: 1 << names.shift,
            selector: self.selector,
            command,
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
}

fn curve(bench: &mut LockBench, order: &[LockPage], most: u32) -> Result<Vec<CurvePoint>, PlanError> {
    let point = |entries: u32| {
        let stalls = Stalls::of(bench.stalls(&order[..order.len().min(entries as usize)])?);
        Ok(CurvePoint { entries, mean_cycles: stalls.mean.cycles(), worst_cycles: stalls.worst_cycles })
    };
    (0..=most).map(point).collect()
}

/// `None` where it would take too long.
fn optimum(
    search: &mut LockBench,
    bench: &mut LockBench,
    counts: &[PageCounts],
    entries: u32,
) -> Result<Option<Optimum>, PlanError> {
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
    fn page(&self, page: LockPage, saving_cycles: f64) -> PlannedPage {
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

    fn region(&self, page: LockPage, addr: u64) -> Option<PageRegion> {
        let maps = &self.profile.maps;
        let mapping = maps.find(page.process, addr)?.clone();
        let name = mapping_name(page.process, &mapping.source, maps.site(page.process, &mapping), self.namer);
        Some(PageRegion { name, offset_bytes: addr - mapping.start, mapping })
    }

    fn symbol(&self, page: LockPage, addr: u64, is_code: bool) -> String {
        let process = page.process;
        if is_code {
            return self.namer.function(process, addr);
        }
        allocation(&self.profile.outcome, self.namer, process, addr..addr.saturating_add(1 << self.shift))
    }
}

/// The call site whose largest allocation has most of a range of addresses, the first of equal ones; empty if none has
/// any.
pub(crate) fn allocation(outcome: &Outcome, namer: &dyn Namer, process: u32, range: Range<u64>) -> String {
    let overlap = |object: &ObjectRow| {
        let (start, bytes) = object.largest;
        start.saturating_add(bytes).min(range.end).saturating_sub(start.max(range.start))
    };
    let objects = outcome.objects.iter().filter(|object| object.process == process && overlap(object) > 0);
    let object = objects.min_by_key(|object| std::cmp::Reverse(overlap(object)));
    object.map(|object| namer.site(process, &object.site)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use lookaside_engine::Cost;
    use lookaside_machine::preset;
    use lookaside_trace::Kind;

    use super::*;
    use crate::names::Unnamed;

    #[test]
    fn the_site_with_the_most_of_a_range_names_it() {
        let object = |process, site, largest| ObjectRow {
            process,
            site: vec![site],
            allocations: 1,
            peak_bytes: 0,
            largest,
            accesses: 0,
            cost: Cost::default(),
        };
        let objects = vec![
            object(1, 0x11, (0x4000, 0x1800)),
            object(1, 0x22, (0x5800, 0x4000)),
            object(2, 0x33, (0x5000, 0x1000)),
        ];
        let outcome = Outcome { objects, ..Outcome::default() };
        let name = |process, range| allocation(&outcome, &Unnamed, process, range);
        // Of the first process both have half; the second has all.
        assert_eq!([1, 2, 3].map(|process| name(process, 0x5000..0x6000)), ["0x11", "0x33", ""]);
        assert_eq!(name(1, 0x57ff..0x5801), "0x11");
        assert_eq!(name(1, 0x57ff..0x5802), "0x22");
        // At the edges.
        let edges = [0x3000..0x4000, 0x3000..0x4001, 0x97ff..0x9800, 0x9800..0xa000];
        assert_eq!(edges.map(|range| name(1, range)), ["", "0x11", "0x22", ""]);
    }

    #[test]
    fn all_sets_are_tried_of_few_entries_and_accesses() {
        // What is tried is stopped at once.
        let stop = AtomicBool::new(true);
        let setup = Setup::new(preset("cortex-a9").expect("a preset"));
        let page = LockPage { process: 1, vpn: 1 };
        let counts = [PageCounts { page, data_accesses: 1, fetch_accesses: 0, data_misses: 1, fetch_misses: 0 }];
        let is_tried = |rows: usize, entries: u32| {
            let blocks = [Block { addr: vec![0; rows], kind: vec![Kind::Load; rows], ..Block::default() }];
            let bench = || LockBench::new(&setup, "main", 4, (0..64).collect(), &blocks, &stop);
            match optimum(&mut bench(), &mut bench(), &counts, entries) {
                Ok(None) => false,
                Err(PlanError::Stopped) => true,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([is_tried(8, 4), is_tried(8, 5)], [true, false]);
        // Two sets, 64 seeds: 2^25 accesses.
        assert_eq!([is_tried(1 << 18, 1), is_tried((1 << 18) + 1, 1)], [true, false]);
    }
}
