//! A TLB level, as the probe found it.

use crate::agreed_range::{agreed_range, MeasuredRange};
use crate::bench::ChainBench;
use crate::finding::Finding;
use crate::tlb::geometry::{FoundLevel, Geometry};
use crate::tlb::policy::trial::{TlbPolicy, Trial};
use crate::until_two_agree::SAME_MISS;
use lookaside_machine::PageSize;
use serde::Serialize;

/// One level, for data loads of 4 KiB pages.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LevelReport {
    /// 1 or 2.
    pub level: u32,
    /// Size of the pages.
    pub page_size: PageSize,
    /// Entries, ways, sets, index.
    pub geometry: Finding<Geometry>,
    /// Core cycles that a miss here adds, where the next level (or a walk with warm tables) serves it, as passes with
    /// fresh pages agree on it.
    pub miss_cycles: Finding<MeasuredRange>,
    /// Replacement policy.
    pub policy: Finding<TlbPolicy>,
    /// Sequences that were measured for the policy; the shortest that tells it comes first.
    pub trials: Vec<Trial>,
}

impl LevelReport {
    /// Takes back what was found with a geometry that did not hold to the end.
    pub(crate) fn retract(&mut self, geometry: &Geometry) {
        let Geometry { entries, ways, .. } = geometry;
        let reason = format!(
            "{entries} entries were confirmed at first, but in the end {} pages of one set fit, not {ways}",
            ways + 1
        );
        self.geometry = Finding::not_determined(&reason);
        if self.policy.value().is_some() {
            self.policy = Finding::not_determined(&reason);
        }
    }

    /// A level as [`crate::until_two_agree`] found it, 1 or 2, with the ticks of a miss in each pass that agreed; of
    /// its policy nothing is known.
    pub fn new(level: u32, bench: &ChainBench<'_>, found: &FoundLevel, ticks: &[f64]) -> Self {
        let cycles: Vec<f64> = ticks.iter().map(|ticks| ticks * bench.cycles_per_tick()).collect();
        let evidence = vec![format!("{cycles:.1?} cycles by pass")];
        let miss_cycles = match (agreed_range(&cycles, SAME_MISS), cycles.is_empty()) {
            (Some(seen), _) => Finding::confirmed(seen, evidence),
            (None, true) => Finding::not_asked(),
            (None, false) => Finding::NotDetermined { reason: "no two passes agree".into(), evidence, asked: true },
        };
        Self {
            level,
            page_size: bench.size(),
            geometry: found.geometry.clone(),
            miss_cycles,
            policy: Finding::not_asked(),
            trials: Vec::new(),
        }
    }
}
