//! The model run again for several setups over the same accesses: all of them, or windows of them.

mod baked;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use lookaside_engine::{run_many_watched, Detail, Engine, IntervalCounts, Outcome, RunEnd, Setup, SetupError};
use lookaside_machine::{Cache, Machine, Serves};
use lookaside_trace::{Block, Source, TraceInfo};

use crate::cost_curve::CostCurve;
use crate::recent_uses::UsesBefore;
use crate::window::SampledWindows;
use crate::window_plan::WindowPlan;

pub use baked::{rerun_baked, HelperHours};

/// Recorded accesses in windows, where there is a filter before the model that leaves out hits of the first TLB level,
/// or most: what was recorded misses there. Half a dozen runs over this take a few seconds.
const FILTERED_BUDGET: u64 = 2 << 20;
/// The same where every access was recorded: so many are run in about the time, since most hit.
const WHOLE_BUDGET: u64 = 8 << 20;

/// Accesses in which a structure is warmed up, as a multiple of its entries. Of n entries, each access that misses at
/// random replaces one; after n such accesses e⁻¹ of the old entries are left, after four times as many e⁻⁴ = 2 %.
const REFILLS: u64 = 4;

/// What a model counted over a stretch of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StretchCounts {
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
}

impl StretchCounts {
    /// From a run's beginning until now.
    pub fn of(outcome: &Outcome) -> Self {
        Self {
            accesses: outcome.data.accesses + outcome.fetch.accesses,
            walks: outcome.data.cost.walks + outcome.fetch.cost.walks,
            walk_cycles: outcome.data.cost.walk_cycles + outcome.fetch.cost.walk_cycles,
            translation_cycles: outcome.translation_cycles(),
            modelled_cycles: outcome.modelled_cycles(),
        }
    }

    /// Of each interval of a run.
    fn of_intervals(outcome: &Outcome) -> Vec<Self> {
        let of = |&IntervalCounts { accesses, walks, walk_cycles, translation_cycles, modelled_cycles, .. }: &_| Self {
            accesses,
            walks,
            walk_cycles,
            translation_cycles,
            modelled_cycles,
        };
        outcome.intervals.iter().map(of).collect()
    }

    /// Of several stretches together.
    pub fn sum(stretches: &[Self]) -> Self {
        stretches.iter().fold(Self::default(), |sum, one| sum.with(one, |a, b| a + b, |a, b| a + b))
    }

    /// How far these estimates of a whole run are off its own cost, as a share of that: what walks are off (their cycles, or
    /// their number if that is more) and what hits of later levels are.
    pub(crate) fn error_of_cost(&self, whole: &Self) -> f64 {
        let off = |of: f64, whole: f64| if whole > 0.0 { (of / whole - 1.0).abs() } else { 0.0 };
        let walks = off(self.walk_cycles, whole.walk_cycles).max(off(self.walks as f64, whole.walks as f64));
        let hit_cycles = |of: &Self| of.translation_cycles - of.walk_cycles;
        let hits = off(hit_cycles(self), hit_cycles(whole));
        (walks * whole.walk_cycles + hits * hit_cycles(whole)) / whole.translation_cycles.max(f64::MIN_POSITIVE)
    }

    /// So many times as much: what a window stands for.
    fn times(&self, weight: f64) -> Self {
        let many = |count: u64| (count as f64 * weight).round() as u64;
        Self {
            accesses: many(self.accesses),
            walks: many(self.walks),
            walk_cycles: self.walk_cycles * weight,
            translation_cycles: self.translation_cycles * weight,
            modelled_cycles: self.modelled_cycles * weight,
        }
    }

    /// What windows of a plan stand for; all of a run stands for itself.
    pub(crate) fn weighted(windows: &[Self], plan: Option<&WindowPlan>) -> Vec<Self> {
        match plan {
            None => windows.to_vec(),
            Some(plan) => windows.iter().zip(plan.windows()).map(|(of, window)| of.times(window.weight)).collect(),
        }
    }

    /// Without what was counted `before`.
    fn since(&self, before: &Self) -> Self {
        self.with(before, |a, b| a - b, |a, b| a - b)
    }

    fn with(&self, other: &Self, counts: fn(u64, u64) -> u64, cycles: fn(f64, f64) -> f64) -> Self {
        Self {
            accesses: counts(self.accesses, other.accesses),
            walks: counts(self.walks, other.walks),
            walk_cycles: cycles(self.walk_cycles, other.walk_cycles),
            translation_cycles: cycles(self.translation_cycles, other.translation_cycles),
            modelled_cycles: cycles(self.modelled_cycles, other.modelled_cycles),
        }
    }
}

/// What the runs came to.
pub struct Rerun {
    /// By setup: the counts of each window, or of the whole run alone. All have the same windows.
    pub counts: Vec<Vec<StretchCounts>>,
    /// The counts are of windows.
    pub is_sampled: bool,
    /// Why the runs ended.
    pub end: RunEnd,
}

/// Where to look at a run of these costs by recorded access, of whose page tables the base model found `table_bytes` to be
/// read. A long run is looked at in windows, which lie by chance (the seed), each after a stretch that fills what the
/// largest structure of any machine among the setups can hold. `None`: it is run whole.
pub fn window_plan(
    setups: &[Setup],
    info: &TraceInfo,
    (costs, seed): (&CostCurve, u64),
    table_bytes: u64,
) -> Option<WindowPlan> {
    let budget = if info.filter_window > 0 { FILTERED_BUDGET } else { WHOLE_BUDGET };
    let largest = setups.iter().map(|setup| refilling_misses(&setup.machine, table_bytes)).max().unwrap_or(0);
    WindowPlan::by_cost(costs, budget, REFILLS * largest.max(1) * (budget / FILTERED_BUDGET), seed)
        .map(|plan| plan.primed_with(primed_pages(setups.iter().map(|setup| &setup.machine))))
}

/// Runs each setup over a source, or over the windows of a plan. `stop` ends the runs; counts are then of what was run,
/// and of whole windows.
///
/// # Errors
/// A setup is impossible.
pub fn rerun(
    mut setups: Vec<Setup>,
    source: impl Source,
    (plan, uses): (Option<WindowPlan>, Option<UsesBefore>),
    stop: &AtomicBool,
) -> Result<Rerun, SetupError> {
    for setup in &mut setups {
        setup.detail = Detail::Totals;
    }
    let tallies: Vec<Mutex<WindowTally>> = setups.iter().map(|_| Mutex::new(WindowTally::new(plan.as_ref()))).collect();
    let progress = |_| if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let ran = run_many_watched(
        setups,
        &mut SampledWindows::primed(source, plan.clone(), uses),
        progress,
        |number, engine, block| {
            if let Some(plan) = &plan {
                tallies[number].lock().unwrap_or_else(PoisonError::into_inner).add(plan, engine, block);
            }
        },
    )?;
    let windows = |tally: Mutex<WindowTally>| tally.into_inner().unwrap_or_else(PoisonError::into_inner).windows;
    // A run that was recorded in intervals is a sample, also where all of it is run.
    let has_intervals = ran.outcomes.iter().all(|outcome| outcome.intervals.len() > 1);
    let counts = match plan {
        Some(_) => tallies.into_iter().map(windows).collect(),
        None if has_intervals => ran.outcomes.iter().map(StretchCounts::of_intervals).collect(),
        None => ran.outcomes.iter().map(|outcome| vec![StretchCounts::of(outcome)]).collect(),
    };
    Ok(Rerun { counts, is_sampled: plan.is_some() || has_intervals, end: ran.end })
}

/// Pages that windows are primed with: twice as many as the largest TLB array of any machine has entries, because loads,
/// stores and fetches are counted apart.
fn primed_pages<'a>(machines: impl Iterator<Item = &'a Machine>) -> u64 {
    2 * machines.flat_map(|machine| &machine.tlbs).map(|tlb| u64::from(tlb.entries)).max().unwrap_or(0)
}

/// Misses that can fill each entry of the machine's largest structure once: pages of a TLB array, entries of a walk
/// cache, lines of the page tables that the largest cache can hold.
fn refilling_misses(machine: &Machine, table_bytes: u64) -> u64 {
    let pages = machine.tlbs.iter().map(|tlb| u64::from(tlb.entries) * u64::from(tlb.coalesce_pages));
    let entries = machine.walk_caches.iter().map(|cache| u64::from(cache.entries));
    let read = |cache: &&Cache| cache.level >= machine.walker.first_cache_level && cache.serves.contains(&Serves::Load);
    // A host's tables for this memory are about as large.
    let stages = if machine.page_table.host.is_some() { 2 } else { 1 };
    let lines = machine.caches.iter().filter(read).map(|cache| {
        let line = u64::from(cache.line_bytes).max(1);
        (cache.size / line).min(stages * table_bytes / line)
    });
    pages.chain(entries).chain(lines).max().unwrap_or(0)
}

/// A model's counts window by window.
struct WindowTally {
    /// Recorded accesses that were let through.
    passed: u64,
    /// The model's counts when the window began that it is in, or in which it begins.
    before: Option<StretchCounts>,
    windows: Vec<StretchCounts>,
}

impl WindowTally {
    /// Of nothing yet.
    fn new(plan: Option<&WindowPlan>) -> Self {
        let begins = plan.is_some_and(|plan| plan.begins_window(0));
        Self { passed: 0, before: begins.then(StretchCounts::default), windows: Vec::new() }
    }

    /// After a block, none of which reaches over a window's border.
    fn add(&mut self, plan: &WindowPlan, engine: &Engine, block: &Block) {
        self.passed += block.len() as u64;
        if plan.ends_window(self.passed) {
            if let Some(before) = self.before.take() {
                self.windows.push(StretchCounts::of(&engine.outcome()).since(&before));
            }
        }
        if plan.begins_window(self.passed) {
            self.before.get_or_insert_with(|| StretchCounts::of(&engine.outcome()));
        }
    }
}

#[cfg(test)]
mod tests;
