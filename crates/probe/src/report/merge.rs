//! Fills what one attempt at a probe left open from another attempt at the same machine.
//!
//! Each finding rests on looks of its own attempt that agree, so what one confirms stands whatever another left open.
//! Attempts that confirm different geometries are not put together.

use crate::finding::Finding;
use crate::report::access_patterns::AccessPatternCosts;
use crate::report::caches::CacheReports;
use crate::report::effects::TlbEffects;
use crate::report::entry_coverage::EntryCoverage;
use crate::report::levels::LevelReport;
use crate::report::timing::TimingReport;
use crate::report::walk_caches::WalkCaches;
use crate::report::walks::WalkCosts;
use crate::report::ProbeReport;

impl ProbeReport {
    /// Takes from another report what is open here, and says so in the evidence of each such finding.
    pub(crate) fn fill_from(&mut self, other: Self) {
        let values =
            |report: &Self| report.levels.iter().map(|level| level.geometry.value().cloned()).collect::<Vec<_>>();
        let contradict =
            values(self).iter().zip(&values(&other)).any(|pair| matches!(pair, (Some(a), Some(b)) if a != b));
        if contradict {
            return;
        }
        let from = format!("of the attempt with seed {}", other.seed);
        for (level, other) in self.levels.iter_mut().zip(other.levels) {
            level.fill_from(other, &from);
        }
        part(&mut self.caches, other.caches, &from, CacheReports::fill_from);
        part(&mut self.walks, other.walks, &from, WalkCosts::fill_from);
        part(&mut self.walk_caches, other.walk_caches, &from, WalkCaches::fill_from);
        part(&mut self.covers, other.covers, &from, EntryCoverage::fill_from);
        part(&mut self.spread, other.spread, &from, AccessPatternCosts::fill_from);
        part(&mut self.effects, other.effects, &from, TlbEffects::fill_from);
        part(&mut self.timing, other.timing, &from, TimingReport::fill_from);
        // Levels of larger pages are one piece: the second is found behind the first.
        if self.large.as_ref().is_some_and(|large| !large.missing().is_empty()) {
            self.large = other.large.filter(|large| large.missing().is_empty()).or(self.large.take());
        }
        if self.gigantic.as_ref().is_some_and(|gigantic| !gigantic.missing().is_empty()) {
            self.gigantic = other.gigantic.filter(|gigantic| gigantic.missing().is_empty()).or(self.gigantic.take());
        }
    }
}

/// What both looked at.
fn part<T>(mine: &mut Option<T>, other: Option<T>, from: &str, fill: impl Fn(&mut T, T, &str)) {
    match (mine, other) {
        (Some(mine), Some(other)) => fill(mine, other, from),
        (mine @ None, other) => *mine = other,
        (Some(_), None) => {}
    }
}

/// Takes a finding that is confirmed for one that is missed here.
fn fill<T>(mine: &mut Finding<T>, other: Finding<T>, from: &str) {
    if mine.is_missing() && other.value().is_some() {
        *mine = other.with_evidence(vec![from.to_string()]);
    }
}

impl LevelReport {
    fn fill_from(&mut self, other: Self, from: &str) {
        fill(&mut self.geometry, other.geometry, from);
        if self.miss_cycles.value().is_none() && other.miss_cycles.value().is_some() {
            self.miss_cycles = other.miss_cycles.with_evidence(vec![from.to_string()]);
        }
        if self.policy.is_missing() && other.policy.value().is_some() {
            (self.policy, self.trials) = (other.policy.with_evidence(vec![from.to_string()]), other.trials);
        }
    }
}

impl CacheReports {
    /// By level, where both saw as many.
    fn fill_from(&mut self, other: Self, from: &str) {
        fill(&mut self.line_bytes, other.line_bytes, from);
        fill(&mut self.memory_cycles, other.memory_cycles, from);
        if self.levels.is_empty() {
            self.levels = other.levels;
            return;
        }
        if self.levels.len() != other.levels.len() {
            return;
        }
        for (level, other) in self.levels.iter_mut().zip(other.levels) {
            fill(&mut level.cycles, other.cycles, from);
            fill(&mut level.bytes, other.bytes, from);
            fill(&mut level.ways, other.ways, from);
            fill(&mut level.shape, other.shape, from);
        }
    }
}

impl WalkCosts {
    /// By the place where leaf entries lie.
    fn fill_from(&mut self, other: Self, from: &str) {
        fill(&mut self.second_level_cycles, other.second_level_cycles, from);
        if self.walks.is_empty() {
            self.walks = other.walks;
        } else {
            for other in other.walks {
                if let Some(walk) = self.walks.iter_mut().find(|walk| walk.place == other.place) {
                    if walk.cycles.is_missing() && other.cycles.value().is_some() {
                        (walk.table_bytes, walk.cycles) =
                            (other.table_bytes, other.cycles.with_evidence(vec![from.to_string()]));
                    }
                }
            }
        }
        fill(&mut self.base_cycles, other.base_cycles, from);
        fill(&mut self.first_cache_level, other.first_cache_level, from);
    }
}

impl WalkCaches {
    fn fill_from(&mut self, other: Self, from: &str) {
        for (level, mut other) in self.levels.iter_mut().zip(other.levels) {
            // What a miss costs is seen beside how many there are.
            if level.entries.is_missing() && other.entries.value().is_some() {
                other.entries = other.entries.with_evidence(vec![from.to_string()]);
                *level = other;
            } else {
                fill(&mut level.miss_cycles, other.miss_cycles, from);
            }
        }
    }
}

impl EntryCoverage {
    fn fill_from(&mut self, other: Self, from: &str) {
        if self.levels.is_empty() {
            self.levels = other.levels;
        } else {
            for (level, other) in self.levels.iter_mut().zip(other.levels) {
                fill(&mut level.small, other.small, from);
                fill(&mut level.huge, other.huge, from);
            }
        }
        fill(&mut self.second_stage_cycles, other.second_stage_cycles, from);
    }
}

impl AccessPatternCosts {
    fn fill_from(&mut self, other: Self, from: &str) {
        fill(&mut self.random_memory_cycles, other.random_memory_cycles, from);
        fill(&mut self.stream_cache_cycles, other.stream_cache_cycles, from);
        fill(&mut self.stream_memory_cycles, other.stream_memory_cycles, from);
        fill(&mut self.stream_walk_cycles, other.stream_walk_cycles, from);
        fill(&mut self.huge_pages_are_whole, other.huge_pages_are_whole, from);
    }
}

impl TimingReport {
    /// All or nothing: what takes turns is of the same rounds.
    fn fill_from(&mut self, mut other: Self, from: &str) {
        if self.costs.is_missing() && other.costs.value().is_some() {
            other.costs = other.costs.with_evidence(vec![from.to_string()]);
            *self = other;
        }
    }
}

impl TlbEffects {
    fn fill_from(&mut self, other: Self, from: &str) {
        for (prefetch, other) in self.prefetches.iter_mut().zip(other.prefetches) {
            fill(&mut prefetch.fills, other.fills, from);
            fill(&mut prefetch.faults, other.faults, from);
        }
        fill(&mut self.stores, other.stores, from);
        // Only those that have entries of their own have any there.
        fill(&mut self.store_level, other.store_level, from);
        fill(&mut self.process_switch, other.process_switch, from);
        fill(&mut self.thread_switch, other.thread_switch, from);
        fill(&mut self.system_call, other.system_call, from);
        match (&mut self.neighbours, other.neighbours) {
            (mine @ None, other) => *mine = other,
            (Some(mine), other) => {
                for other in other.into_iter().flatten() {
                    if let Some(neighbour) = mine.iter_mut().find(|neighbour| neighbour.cpu == other.cpu) {
                        fill(&mut neighbour.takes, other.takes, from);
                        fill(&mut neighbour.sharing, other.sharing, from);
                    }
                }
            }
        }
        if self.disturbed.is_empty() {
            self.disturbed = other.disturbed;
            return;
        }
        for other in other.disturbed {
            if let Some(level) = self.disturbed.iter_mut().find(|level| level.level == other.level) {
                fill(&mut level.per_system_call, other.per_system_call, from);
                fill(&mut level.per_context_switch, other.per_context_switch, from);
                fill(&mut level.per_second, other.per_second, from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::PageSize;

    use super::*;
    use crate::agreed_range::MeasuredRange;
    use crate::tlb::geometry::Geometry;
    use crate::tlb::policy::trial::TlbPolicy;

    fn seen(low: f64) -> Finding<MeasuredRange> {
        Finding::confirmed(MeasuredRange { low, high: low, passes: 2 }, vec!["looked".into()])
    }

    fn open<T>() -> Finding<T> {
        Finding::not_determined("a neighbour")
    }

    /// A report of two levels, of which one attempt may know the first's cost and walks, another the second's.
    fn report(seed: u64, entries: u32, first: bool) -> ProbeReport {
        let level = |level: u32, is_known: bool| LevelReport {
            level,
            page_size: PageSize::K4,
            geometry: Finding::confirmed(Geometry { entries, ways: entries, sets: 1, masks: Vec::new() }, Vec::new()),
            miss_cycles: if is_known { seen(seed as f64) } else { open() },
            policy: if is_known { Finding::confirmed(TlbPolicy::Lru, Vec::new()) } else { open() },
            trials: Vec::new(),
        };
        let walks = WalkCosts {
            second_level_cycles: seen(7.0),
            walks: Vec::new(),
            base_cycles: if first { seen(30.0) } else { open() },
            first_cache_level: if first { open() } else { Finding::confirmed(2, Vec::new()) },
        };
        let levels = vec![level(1, first), level(2, !first)];
        ProbeReport { seed, cycles_per_tick: 1.0, levels, walks: Some(walks), ..ProbeReport::default() }
    }

    #[test]
    fn what_one_attempt_left_open_is_the_others() {
        let mut both = report(1, 64, true);
        let before = both.missing().len();
        both.fill_from(report(2, 64, false));
        assert_eq!((before, both.missing(), both.seed), (3, Vec::new(), 1));
        // What was known stays, what was not says whose it is.
        assert_eq!(both.levels[0].miss_cycles, seen(1.0));
        assert_eq!(both.levels[1].miss_cycles, seen(2.0).with_evidence(vec!["of the attempt with seed 2".into()]));
        let walks = both.walks.expect("walks");
        assert_eq!(walks.base_cycles, seen(30.0));
        assert_eq!(walks.first_cache_level.value(), Some(&2));
        assert!(both.spread.is_none() && both.effects.is_none());
    }

    #[test]
    fn what_only_the_other_looked_at_is_its() {
        let mut mine = ProbeReport { walks: None, ..report(1, 64, true) };
        mine.fill_from(report(2, 64, false));
        assert!(mine.walks.is_some_and(|walks| walks.base_cycles.is_missing()));
    }

    #[test]
    fn contradictions_are_not_put_together() {
        let mut mine = report(1, 64, true);
        mine.fill_from(report(2, 63, false));
        assert_eq!(mine.missing(), report(1, 64, true).missing());
    }
}
