//! What a run of accesses on the short path counts: little for each access, and all else from it at the end.

use crate::engine::{Engine, Run};
use crate::plan::{CLASSES, KINDS};
use crate::rows::RowCost;
use crate::slots::MAX_LEVELS;

/// Counts of one kind and class, by level.
#[derive(Default)]
pub(crate) struct Tally {
    /// Accesses that hit there; those after the last level walked.
    pub(crate) ends: [u64; MAX_LEVELS + 1],
    /// In levels of one array: fills that threw an entry out, fills that only added a page to an entry.
    pub(crate) evictions: [u64; MAX_LEVELS],
    pub(crate) merges: [u64; MAX_LEVELS],
    /// Hit costs after the first level, in levels of several arrays.
    pub(crate) hit_units: u64,
}

impl Engine {
    /// Adds what was counted in a run.
    pub(crate) fn add_tallies(&mut self, run: &Run, tallies: &[[Tally; CLASSES]; KINDS]) {
        let mut sum = RowCost::default();
        for (kind, by_class) in tallies.iter().enumerate() {
            for (class, tally) in by_class.iter().enumerate().filter(|(_, tally)| tally.ends != [0; MAX_LEVELS + 1]) {
                let levels = &run.plan.routes[kind][class].levels;
                let mut reached: u64 = tally.ends.iter().sum();
                sum.l1_misses += reached - tally.ends[0];
                sum.walks += tally.ends[levels.len()];
                sum.hit_units = sum.hit_units.saturating_add(tally.hit_units);
                for (at, level) in levels.iter().enumerate() {
                    self.counts.reached[kind][class][at] += reached;
                    let hits = tally.ends[at];
                    reached -= hits;
                    let [array] = level.arrays[..] else { continue };
                    let counts = &mut self.counts.tlbs[array];
                    counts.hits[kind][class] += hits;
                    counts.fills += reached - tally.merges[at];
                    counts.evictions += tally.evictions[at];
                    if at > 0 {
                        let units = run.plan.tlbs[array].hit_units.saturating_mul(hits);
                        sum.hit_units = sum.hit_units.saturating_add(units);
                    }
                }
                self.counts.reached[kind][class][levels.len()] += reached;
            }
        }
        self.threads[run.thread].cost.add(&sum);
    }
}
