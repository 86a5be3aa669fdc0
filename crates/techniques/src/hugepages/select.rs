//! Which windows to make huge: greedily by what each saves given those chosen before, and two plain ways to hold it
//! against.
//!
//! Greedy choice is near the best set (a factor of 1 - 1/e) where no window saves more after others were made huge than
//! before. In a TLB that is crowded it may: two windows may have to leave together before the rest fits. So no bound
//! holds.

use serde::{Deserialize, Serialize};

use super::bench::HugePageBench;
use super::cost::collapse_cycles;
use super::profile::WindowCounts;
use super::Window;
use crate::plan::PlanError;

/// A way to choose windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WindowSelector {
    /// The most accesses.
    Accesses,
    /// The most walks with base pages.
    Walks,
    /// Window after window, the one that saves most translation cycles given those chosen already, less its collapse.
    Gain,
}

/// A window that may be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CandidateWindow {
    /// Which.
    pub window: Window,
    /// What its own accesses cost with base pages: about what it can save.
    pub cycles: f64,
    /// What its collapse costs, once.
    pub collapse_cycles: f64,
}

/// A chosen window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChosenWindow {
    /// Which.
    pub window: Window,
    /// Translation cycles that it saves once those of the rounds before are huge.
    pub saved_cycles: f64,
}

/// Windows tried anew in each round at least, those in the lead. As in [`crate::lock::select`]: there six found what
/// trying all finds 35 times of 40.
const ALWAYS_TRIED: usize = 6;

/// Rounds about; for larger budgets each takes several windows.
const ROUNDS: usize = 64;

/// Candidates for a budget: as many again, and 24, which small budgets choose from.
pub fn candidates(windows: &[WindowCounts], budget: usize, clock_mhz: f64) -> Vec<CandidateWindow> {
    let most = budget.saturating_mul(2).saturating_add(24);
    let mut all: Vec<&WindowCounts> = windows.iter().filter(|counts| counts.cycles > 0.0).collect();
    all.sort_by(|a, b| b.cycles.total_cmp(&a.cycles).then(a.window.cmp(&b.window)));
    let candidate = |counts: &WindowCounts| CandidateWindow {
        window: counts.window,
        cycles: counts.cycles,
        collapse_cycles: collapse_cycles(counts.touched_pages, clock_mhz),
    };
    all.into_iter().take(most).map(candidate).collect()
}

/// The windows that have most of something, the lower first of equal ones; none that has nothing of it.
pub fn ranked(windows: &[WindowCounts], of: impl Fn(&WindowCounts) -> u64, most: usize) -> Vec<Window> {
    let mut rows: Vec<(u64, Window)> = windows.iter().map(|w| (of(w), w.window)).filter(|row| row.0 > 0).collect();
    rows.sort_unstable_by_key(|row| (std::cmp::Reverse(row.0), row.1));
    rows.into_iter().map(|row| row.1).take(most).collect()
}

/// Up to `budget` windows, those to make huge first in front, and how many of them save more than their collapse costs:
/// these come first, by what is left of their saving; behind them those that save anything at all, by saving.
///
/// A window is tried anew in a round if what it saved when last tried (at first, what its accesses cost) leaves it in
/// the lead, or among the first six. What that may lose is a window further behind that saves more than before because
/// another was chosen.
///
/// # Errors
/// Of the bench.
pub fn gain(
    bench: &mut HugePageBench,
    candidates: &[CandidateWindow],
    budget: usize,
) -> Result<(Vec<ChosenWindow>, usize), PlanError> {
    let tried =
        |candidate: &CandidateWindow| ScoredWindow { candidate: *candidate, saved: candidate.cycles, fresh: false };
    let mut greedy = Greedy {
        bench,
        left: candidates.iter().map(tried).collect(),
        chosen: Vec::new(),
        step: budget.min(candidates.len()).div_ceil(ROUNDS),
    };
    greedy.fill(budget, |tried| tried.saved - tried.candidate.collapse_cycles)?;
    let paying = greedy.chosen.len();
    greedy.fill(budget, |tried| tried.saved)?;
    Ok((greedy.chosen, paying))
}

/// A candidate, and what it saved when last tried.
struct ScoredWindow {
    candidate: CandidateWindow,
    saved: f64,
    fresh: bool,
}

struct Greedy<'a, 'b> {
    bench: &'a mut HugePageBench<'b>,
    left: Vec<ScoredWindow>,
    chosen: Vec<ChosenWindow>,
    /// Windows that a round takes.
    step: usize,
}

impl Greedy<'_, '_> {
    /// Goes on until `budget` windows are chosen or none is worth anything.
    fn fill(&mut self, budget: usize, worth: impl Fn(&ScoredWindow) -> f64) -> Result<(), PlanError> {
        while self.chosen.len() < budget && !self.left.is_empty() {
            self.try_leaders(&worth)?;
            let room = self.step.min(budget - self.chosen.len());
            let taken = self.left.iter().take(room).take_while(|tried| tried.fresh && worth(tried) > 0.0).count();
            if taken == 0 {
                break;
            }
            let taken = self.left.drain(..taken);
            self.chosen.extend(taken.map(|t| ChosenWindow { window: t.candidate.window, saved_cycles: t.saved }));
            self.left.iter_mut().for_each(|tried| tried.fresh = false);
        }
        Ok(())
    }

    /// Sorts by worth, and tries until all in front are fresh.
    fn try_leaders(&mut self, worth: &impl Fn(&ScoredWindow) -> f64) -> Result<(), PlanError> {
        let before: Vec<Window> = self.chosen.iter().map(|chosen| chosen.window).collect();
        let now = self.bench.cycles(&before)?;
        loop {
            let order = |a: &ScoredWindow, b: &ScoredWindow| {
                worth(b).total_cmp(&worth(a)).then(a.candidate.window.cmp(&b.candidate.window))
            };
            self.left.sort_by(order);
            let leaders = self.left.iter_mut().take(ALWAYS_TRIED.max(self.step));
            let stale: Vec<&mut ScoredWindow> = leaders.filter(|tried| !tried.fresh).collect();
            if stale.is_empty() {
                return Ok(());
            }
            let with = |tried: &&mut ScoredWindow| [before.as_slice(), &[tried.candidate.window]].concat();
            let sets: Vec<Vec<Window>> = stale.iter().map(with).collect();
            self.bench.try_all(&sets)?;
            for (tried, set) in stale.into_iter().zip(&sets) {
                tried.saved = now - self.bench.cycles(set)?;
                tried.fresh = true;
            }
        }
    }
}
