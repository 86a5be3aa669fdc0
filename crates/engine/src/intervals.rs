//! Intervals of a run: what each counts, and what is counted apart while it warms the model up (`SEMANTICS.md` §10).

use crate::counts::EngineCounts;
use crate::os::to_cycles;
use crate::plan::EnginePlan;
use crate::{Engine, IntervalCounts};

/// The intervals so far.
#[derive(Debug)]
pub(crate) struct IntervalState {
    /// What was counted apart.
    warm_up: EngineCounts,
    warms_up: bool,
    /// CPU time at each begin, and what was counted before.
    begins: Vec<(u64, IntervalUnits)>,
}

/// What was counted so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntervalUnits {
    pub(crate) accesses: u64,
    pub(crate) walks: u64,
    pub(crate) walk: u128,
    pub(crate) translation: u128,
    pub(crate) other: u128,
}

impl IntervalState {
    pub(crate) fn new(plan: &EnginePlan) -> Self {
        Self { warm_up: EngineCounts::new(plan), warms_up: false, begins: Vec::new() }
    }
}

impl Engine {
    /// An interval begins, which does not count yet.
    pub(crate) fn begin_interval(&mut self, cpu_ns: u64) {
        self.count_apart(false);
        self.intervals.begins.push((cpu_ns, self.interval_units()));
        self.count_apart(true);
    }

    /// From here on what is counted is kept apart, or no longer, in the midst of a block.
    pub(crate) fn count_apart(&mut self, apart: bool) {
        if self.intervals.warms_up != apart {
            self.intervals.warms_up = true;
            self.swap_warm_up();
            self.intervals.warms_up = apart;
        }
    }

    /// At the begin and end of a block: between blocks, the counts are those that count.
    pub(crate) fn swap_warm_up(&mut self) {
        if self.intervals.warms_up {
            std::mem::swap(&mut self.counts, &mut self.intervals.warm_up);
            // Whoever reads a table first: it is one of the run's.
            std::mem::swap(&mut self.counts.table_bytes, &mut self.intervals.warm_up.table_bytes);
        }
    }

    /// What each interval counted.
    pub(crate) fn interval_counts(&self) -> Vec<IntervalCounts> {
        let begins = &self.intervals.begins;
        let ends = begins.iter().skip(1).map(|(_, units)| *units).chain([self.interval_units()]);
        begins.iter().zip(ends).map(|((cpu_ns, begin), end)| end.since(begin, *cpu_ns)).collect()
    }
}

impl IntervalUnits {
    fn since(&self, begin: &Self, cpu_ns: u64) -> IntervalCounts {
        let cycles = |end: u128, begin: u128| to_cycles(end.saturating_sub(begin));
        let accesses = self.accesses.saturating_sub(begin.accesses);
        let translation_cycles = cycles(self.translation, begin.translation);
        IntervalCounts {
            cpu_ns,
            accesses,
            walks: self.walks.saturating_sub(begin.walks),
            walk_cycles: cycles(self.walk, begin.walk),
            translation_cycles,
            modelled_cycles: accesses as f64 + translation_cycles + cycles(self.other, begin.other),
        }
    }
}
