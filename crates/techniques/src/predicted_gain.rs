//! The range of user time that is foreseen for huge pages everywhere.

use lookaside_engine::Outcome;
use lookaside_timing::SavedSeconds;
use serde::{Deserialize, Serialize};

use crate::remedy::{Remedy, RemedyKind};

/// Walks that the low end lets run side by side: as many as a core has page-table walkers, and no core here has more.
/// AMD's Zen 3 has six, Intel's Golden Cove four, Skylake two (their optimization guides \[recalled\]); ARM's in-order
/// cores one. It is an assumption, no bound: other work than walks may hide more of them.
pub const WALKS_AT_ONCE: f64 = 6.0;

/// The range of user time that is foreseen. Page faults, zeroing and memory bloat are not in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PredictedGain {
    /// Seconds of CPU saved at the low end; negative: they cost. By the model: if [`WALKS_AT_ONCE`] walks run side by
    /// side and other hits cost nothing.
    pub least_saved_seconds: f64,
    /// The best guess. By the model alone, the middle.
    pub saved_seconds: f64,
    /// Those at the high end. By the model: if nothing overlaps.
    pub most_saved_seconds: f64,
    /// The denominator: seconds of CPU with base pages.
    pub of_seconds: f64,
    /// What that is.
    pub of: Denominator,
    /// What the prediction is made from.
    pub basis: PredictionBasis,
    /// Seconds without huge pages ÷ with them at the low end, above 1 = faster; `None` = as much is saved as there is,
    /// or more.
    pub least_ratio: Option<f64>,
    /// The same of the best guess.
    pub ratio: Option<f64>,
    /// The same at the high end.
    pub most_ratio: Option<f64>,
}

/// Which time a [`PredictedGain`] saving is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Denominator {
    /// All modelled cycles at the machine's clock. The program's run time is another.
    ModelledTime,
    /// User time with small pages: of the native run; without one, the median of the measured runs.
    UserTime,
    /// CPU time of the run up to its last interval, which the intervals' modelled cycles stand for.
    CpuTimeOfIntervals,
}

/// What a prediction is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PredictionBasis {
    /// The native run's time at each instruction, and replays of the program's accesses on this machine.
    Replay,
    /// The model's cycles alone: with all or nothing overlapped.
    Model,
}

/// A measured ratio to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GainPosition {
    /// Less is gained than at the low end.
    Below,
    /// Between both ends, or at one.
    Within,
    /// More is gained than at the high end.
    Above,
}

impl PredictedGain {
    /// From the row for huge pages everywhere, scaled to the whole run by what translation costs in its part and in
    /// all, and from a run's intervals to the run by its CPU time. `user_seconds`: the run's own, if they were measured.
    /// `None` where there is no such row, no cost, no clock.
    pub fn new(remedies: &[Remedy], outcome: &Outcome, clock_mhz: f64, user_seconds: Option<f64>) -> Option<Self> {
        let huge = remedies.iter().find(|remedy| remedy.kind == RemedyKind::HugeEverywhere)?;
        let hz = clock_mhz * 1e6;
        let modelled_seconds = outcome.modelled_cycles() / hz;
        let (of_seconds, of, scale) = match (user_seconds, outcome.intervals.last()) {
            (Some(measured), _) => (measured, Denominator::UserTime, 1.0),
            (None, Some(last)) if last.cpu_ns > 0 => {
                let cpu_seconds = last.cpu_ns as f64 / 1e9;
                (cpu_seconds, Denominator::CpuTimeOfIntervals, cpu_seconds / modelled_seconds)
            }
            (None, _) => (modelled_seconds, Denominator::ModelledTime, 1.0),
        };
        let seconds = |cycles: f64| scale * cycles * outcome.translation_cycles() / huge.base_translation_cycles / hz;
        let walks = huge.base_walk_cycles - huge.walk_cycles;
        let all = huge.base_translation_cycles - huge.translation_cycles;
        Self::of_parts(seconds(walks), seconds(all - walks), of_seconds, of)
    }

    /// From seconds saved in walks and in hits of later levels (negative: spent). Each part moves both ends by itself,
    /// so what costs makes the low end lower, whatever the other part saves. `None` of what is no number, or of no
    /// time.
    pub fn of_parts(walk_seconds: f64, hit_seconds: f64, of_seconds: f64, of: Denominator) -> Option<Self> {
        if !walk_seconds.is_finite() || !hit_seconds.is_finite() {
            return None; // the lesser of a number and of none is the number
        }
        let parts = [(walk_seconds, walk_seconds / WALKS_AT_ONCE), (hit_seconds, 0.0)];
        let least: f64 = parts.iter().map(|(shown, hidden)| shown.min(*hidden)).sum();
        let most: f64 = parts.iter().map(|(shown, hidden)| shown.max(*hidden)).sum();
        let saved = SavedSeconds { least, best: (least + most) / 2.0, most };
        Self::of_saved(saved, of_seconds, of, PredictionBasis::Model)
    }

    /// From seconds saved of all. `None` of what is no number, or of no time.
    pub fn of_saved(saved: SavedSeconds, of_seconds: f64, of: Denominator, basis: PredictionBasis) -> Option<Self> {
        let SavedSeconds { least, best, most } = saved;
        if ![least, best, most, of_seconds].iter().all(|number| number.is_finite()) || of_seconds <= 0.0 {
            return None;
        }
        Some(Self {
            least_saved_seconds: least,
            saved_seconds: best,
            most_saved_seconds: most,
            of_seconds,
            of,
            basis,
            least_ratio: times_as_fast(least, of_seconds),
            ratio: times_as_fast(best, of_seconds),
            most_ratio: times_as_fast(most, of_seconds),
        })
    }

    /// Where a measured ratio lies.
    pub fn place(&self, ratio: f64) -> GainPosition {
        match (self.least_ratio, self.most_ratio) {
            // Even the low end saves all that there is.
            (None, _) => GainPosition::Below,
            (Some(least), _) if ratio < least => GainPosition::Below,
            (_, Some(most)) if ratio > most => GainPosition::Above,
            _ => GainPosition::Within,
        }
    }
}

/// Seconds before ÷ after; `None` = as much is saved as there is, or more.
pub(crate) fn times_as_fast(saved: f64, of: f64) -> Option<f64> {
    let faster = (saved < of).then(|| of / (of - saved));
    faster.filter(|ratio| ratio.is_finite())
}
