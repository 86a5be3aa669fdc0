//! Intervals of a run: what each counts, and what is counted apart while it warms the model up (`SEMANTICS.md` §10).

use crate::{Engine, IntervalCounts};

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
        if self.plan.forms.is_some() {
            self.intervals.counts.push(self.counts.clone());
        }
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
