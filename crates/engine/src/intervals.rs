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
    /// Lines of the last cache when the present interval began to count.
    lines: Option<u64>,
    /// Of those before it, lines that came into empty places.
    filled: Vec<u64>,
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
        Self { warm_up: EngineCounts::new(plan), warms_up: false, begins: Vec::new(), lines: None, filled: Vec::new() }
    }
}

impl Engine {
    /// An interval begins, which does not count yet.
    pub(crate) fn begin_interval(&mut self, cpu_ns: u64) {
        self.count_apart(false);
        if !self.intervals.begins.is_empty() {
            let filled = self.filled_lines();
            self.intervals.filled.push(filled);
        }
        self.intervals.lines = None;
        self.intervals.begins.push((cpu_ns, self.interval_units()));
        self.count_apart(true);
    }

    /// The interval counts from here on.
    pub(crate) fn count_interval(&mut self) {
        if self.intervals.warms_up {
            self.intervals.lines = Some(self.last_cache_lines());
        }
        self.count_apart(false);
    }

    /// Lines that came into empty places of the last cache since the interval counts.
    fn filled_lines(&self) -> u64 {
        self.intervals.lines.map_or(0, |before| self.last_cache_lines().saturating_sub(before))
    }

    /// Lines that all instances of the last data cache hold.
    fn last_cache_lines(&self) -> u64 {
        let level = self.setup.machine.caches.iter().map(|cache| cache.level).max();
        let is_last = |number: usize| Some(self.setup.machine.caches[number].level) == level;
        let mut lines = 0;
        for cache in self.hardware.caches.iter().filter(|cache| is_last(cache.number)) {
            cache.store.for_each(|_| lines += 1);
        }
        lines
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
        let filled = self.intervals.filled.iter().copied().chain([self.filled_lines()]);
        let both = begins.iter().zip(ends).zip(filled);
        both.map(|(((cpu_ns, begin), end), filled_lines)| IntervalCounts { filled_lines, ..end.since(begin, *cpu_ns) })
            .collect()
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
            filled_lines: 0,
        }
    }
}
