//! "Will huge pages help me?": the range of run time that the model foresees for huge pages everywhere, and what runs with
//! and without them took.
//!
//! Nothing overlaps in the model. A core that runs ahead hides a part of what translation costs, and how large a part no
//! count of accesses tells. So there is a range: its high end has nothing hidden (runtime is linear in walk cycles with slope
//! 1: the model of Basu et al., Efficient Virtual Memory for Big Memory Servers, ISCA 2013, section 6.1 \[recalled\]), its low
//! end has walks overlap each other as far as any walker lets them, and hits of later TLB levels hidden wholly.

use lookaside_engine::Outcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::remedy::{Remedy, RemedyKind};

/// Walks that the low end lets run side by side: as many as a core has page-table walkers, and no core here has more. AMD's
/// Zen 3 has six, Intel's Golden Cove four, Skylake two (their optimization guides \[recalled\]); ARM's in-order cores one. It is
/// an assumption, no bound: other work than walks may hide more of them.
pub const WALKS_AT_ONCE: f64 = 6.0;

/// What is known of the gain by huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HugeGain {
    /// What the model foresees; `None` = nothing was modelled, or huge pages can change nothing.
    pub predicted: Option<PredictedGain>,
    /// What runs took; `None` = they were not asked for, or could not be made (a note says why).
    pub measured: Option<MeasuredGain>,
    /// Where the measured ratio of user times lies to the predicted range, if there are both.
    pub place: Option<GainPosition>,
}

impl HugeGain {
    /// Puts both side by side. What was measured gives the prediction its denominator: the program's own time.
    pub fn new(remedies: &[Remedy], outcome: &Outcome, clock_mhz: f64, measured: Option<MeasuredGain>) -> Self {
        let user = measured.and_then(|measured| measured.user);
        let predicted = PredictedGain::new(remedies, outcome, clock_mhz, user.map(|user| user.base_seconds));
        let place = predicted.zip(user).map(|(predicted, user)| predicted.place(user.ratio));
        Self { predicted, measured, place }
    }
}

/// The range that the model foresees. Page faults, zeroing and memory bloat are in neither end.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PredictedGain {
    /// Seconds of CPU saved if [`WALKS_AT_ONCE`] walks run side by side and other hits cost nothing; negative: they cost.
    pub least_saved_seconds: f64,
    /// The same if nothing overlaps.
    pub most_saved_seconds: f64,
    /// The denominator: seconds of CPU with base pages.
    pub of_seconds: f64,
    /// What that is.
    pub of: Denominator,
    /// Seconds without huge pages ÷ with them at the low end, above 1 = faster; `None` = as much is saved as there is, or more.
    pub least_ratio: Option<f64>,
    /// The same at the high end.
    pub most_ratio: Option<f64>,
}

/// Which time a [`PredictedGain`] saving is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Denominator {
    /// All modelled cycles at the machine's clock. The program's run time is another.
    ModelledTime,
    /// User time of the runs with base pages, their median.
    UserTime,
}

/// A measured ratio to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GainPosition {
    /// Less is gained than at the low end.
    Below,
    /// Between both ends, or at one.
    Within,
    /// More is gained than at the high end.
    Above,
}

/// What runs in turns took: small pages only against huge pages (the variants `base` and `thp` of `compare`).
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MeasuredGain {
    /// Complete rounds.
    pub rounds: u32,
    /// CPU time in user mode, of all threads: what the prediction is of. `None` = some run took none that could be counted.
    pub user: Option<TimeRatio>,
    /// From start to end: page faults, zeroing and waiting are in it.
    pub wall: Option<TimeRatio>,
    /// Of the resident memory, the share that huge pages held when a run with them was largest; `None` = not seen.
    pub huge_share: Option<f64>,
}

/// Medians of one time, and their ratio.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TimeRatio {
    /// Seconds with small pages only.
    pub base_seconds: f64,
    /// Seconds with huge pages.
    pub huge_seconds: f64,
    /// The first ÷ the second: above 1 = huge pages are faster.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// There are rounds enough, and the interval does not hold 1.
    pub significant: bool,
}

impl PredictedGain {
    /// From the row for huge pages everywhere, scaled to the whole run by what translation costs in its part and in all.
    /// `user_seconds`: the run's own, if they were measured. `None` where there is no such row, no cost, no clock.
    pub fn new(remedies: &[Remedy], outcome: &Outcome, clock_mhz: f64, user_seconds: Option<f64>) -> Option<Self> {
        let huge = remedies.iter().find(|remedy| remedy.kind == RemedyKind::HugeEverywhere)?;
        let hz = clock_mhz * 1e6;
        let seconds = |cycles: f64| cycles * outcome.translation_cycles() / huge.base_translation_cycles / hz;
        let walks = huge.base_walk_cycles - huge.walk_cycles;
        let all = huge.base_translation_cycles - huge.translation_cycles;
        let (of_seconds, of) = match user_seconds {
            Some(measured) => (measured, Denominator::UserTime),
            None => (outcome.modelled_cycles() / hz, Denominator::ModelledTime),
        };
        Self::of_parts(seconds(walks), seconds(all - walks), of_seconds, of)
    }

    /// From seconds saved in walks and in hits of later levels (negative: spent). Each part moves both ends by itself, so what
    /// costs makes the low end lower, whatever the other part saves. `None` of what is no number, or of no time.
    pub fn of_parts(walk_seconds: f64, hit_seconds: f64, of_seconds: f64, of: Denominator) -> Option<Self> {
        let parts = [(walk_seconds, walk_seconds / WALKS_AT_ONCE), (hit_seconds, 0.0)];
        let least: f64 = parts.iter().map(|(shown, hidden)| shown.min(*hidden)).sum();
        let most: f64 = parts.iter().map(|(shown, hidden)| shown.max(*hidden)).sum();
        let numbers = [walk_seconds, hit_seconds, of_seconds, least, most];
        if !numbers.iter().all(|number| number.is_finite()) || of_seconds <= 0.0 {
            return None;
        }
        let faster = |saved: f64| (saved < of_seconds).then(|| of_seconds / (of_seconds - saved));
        let ratio = |saved: f64| faster(saved).filter(|ratio| ratio.is_finite());
        Some(Self {
            least_saved_seconds: least,
            most_saved_seconds: most,
            of_seconds,
            of,
            least_ratio: ratio(least),
            most_ratio: ratio(most),
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
