//! What is kept of a run's intervals, and what they counted.

use crate::counts::EngineCounts;
use crate::os::to_cycles;
use crate::plan::EnginePlan;
use crate::IntervalCounts;

/// The intervals so far.
#[derive(Debug)]
pub(crate) struct IntervalState {
    /// What was counted apart.
    pub(crate) warm_up: EngineCounts,
    pub(crate) warms_up: bool,
    /// CPU time at each begin, and what was counted before.
    pub(crate) begins: Vec<(u64, IntervalUnits)>,
    /// The counts then, where arrays in many forms have some.
    pub(crate) counts: Vec<EngineCounts>,
    /// Lines of the last cache when the present interval began to count.
    pub(crate) lines: Option<u64>,
    /// Of those before it, lines that came into empty places.
    pub(crate) filled: Vec<u64>,
}

/// What was counted so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntervalUnits {
    pub(crate) accesses: u64,
    pub(crate) walks: u64,
    pub(crate) walk: u128,
    pub(crate) translation: u128,
    pub(crate) other: u128,
    /// Of translation: hits of first-level arrays.
    pub(crate) first_level: u128,
}

impl IntervalState {
    pub(crate) fn new(plan: &EnginePlan) -> Self {
        Self {
            warm_up: EngineCounts::new(plan),
            warms_up: false,
            begins: Vec::new(),
            counts: Vec::new(),
            lines: None,
            filled: Vec::new(),
        }
    }
}

impl IntervalUnits {
    /// What was counted since an interval's begin.
    pub(crate) fn since(&self, begin: &Self, cpu_ns: u64) -> IntervalCounts {
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
            filled_lines: 0,
        }
    }
}
