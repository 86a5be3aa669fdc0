//! "Will huge pages help me?": the range of run time that is foreseen for huge pages everywhere, and what runs with and
//! without them took.
//!
//! Where the program ran natively and its visits were replayed, `lookaside-timing` says what is saved. Without that there
//! is the model alone, in which nothing overlaps. A core that runs ahead hides a part of what translation costs, and how
//! large a part no count of accesses tells. So the model's range is wide: its high end has nothing hidden (runtime is linear
//! in walk cycles with slope 1: the model of Basu et al., Efficient Virtual Memory for Big Memory Servers, ISCA 2013, section
//! 6.1 \[recalled\]), its low end has walks overlap each other as far as any walker lets them, and hits of later TLB levels
//! hidden wholly.

use lookaside_engine::Outcome;
use lookaside_machine::Machine;
use lookaside_timing::{FaultBill, NativeClock, SavedSeconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::remedy::{Remedy, RemedyKind};
use crate::verdict::Verdict;

/// Walks that the low end lets run side by side: as many as a core has page-table walkers, and no core here has more. AMD's
/// Zen 3 has six, Intel's Golden Cove four, Skylake two (their optimization guides \[recalled\]); ARM's in-order cores one. It is
/// an assumption, no bound: other work than walks may hide more of them.
pub const WALKS_AT_ONCE: f64 = 6.0;

/// What is known of the gain by huge pages.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HugeGain {
    /// The answer: of CPU time in all, page faults too.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// What is foreseen of user time; `None` = nothing was modelled, or huge pages can change nothing.
    pub predicted: Option<PredictedGain>,
    /// What page faults huge pages save; `None` = the program did not run natively.
    #[serde(default)]
    pub faults: Option<FaultBill>,
    /// What runs took; `None` = they were not asked for, or could not be made (a note says why).
    pub measured: Option<MeasuredGain>,
    /// Where the measured ratio of user times lies to the predicted range, if there are both.
    pub place: Option<GainPosition>,
}

/// What a prediction is made from.
#[derive(Clone, Copy, Debug)]
pub struct GainEvidence<'a> {
    /// The model's rows.
    pub remedies: &'a [Remedy],
    /// Its counts without huge pages.
    pub outcome: &'a Outcome,
    /// The machine it is of.
    pub machine: &'a Machine,
    /// The native run, if there was one.
    pub native: Option<&'a NativeClock>,
    /// What the native run would save by the replay; the reason why that is not known.
    pub saved: Result<SavedSeconds, &'a str>,
    /// The bill of its page faults.
    pub faults: Option<FaultBill>,
}

impl HugeGain {
    /// Puts prediction and measurement side by side. Without a native run, what was measured gives the prediction its
    /// denominator: the program's own time.
    pub fn new(evidence: &GainEvidence, measured: Option<MeasuredGain>) -> Self {
        let user = measured.and_then(|measured| measured.user);
        let native = evidence.native.filter(|clock| clock.user_seconds > 0.0);
        let replayed = native.zip(evidence.saved.ok()).and_then(|(clock, saved)| {
            PredictedGain::of_saved(saved, clock.user_seconds, Denominator::UserTime, PredictionBasis::Replay)
        });
        let seconds = native.map(|clock| clock.user_seconds).or(user.map(|user| user.base_seconds));
        let modelled = || PredictedGain::new(evidence.remedies, evidence.outcome, evidence.machine.clock_mhz, seconds);
        let predicted = replayed.or_else(modelled);
        let place = predicted.zip(user).map(|(predicted, user)| predicted.place(user.ratio));
        let verdict = Some(Verdict::new(evidence, predicted.as_ref()));
        Self { verdict, predicted, faults: evidence.faults, measured, place }
    }
}

/// The range of user time that is foreseen. Page faults, zeroing and memory bloat are not in it.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PredictedGain {
    /// Seconds of CPU saved at the low end; negative: they cost. By the model: if [`WALKS_AT_ONCE`] walks run side by side
    /// and other hits cost nothing.
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
    /// Seconds without huge pages ÷ with them at the low end, above 1 = faster; `None` = as much is saved as there is, or more.
    pub least_ratio: Option<f64>,
    /// The same of the best guess.
    pub ratio: Option<f64>,
    /// The same at the high end.
    pub most_ratio: Option<f64>,
}

/// Which time a [`PredictedGain`] saving is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Denominator {
    /// All modelled cycles at the machine's clock. The program's run time is another.
    ModelledTime,
    /// User time with small pages: of the native run; without one, the median of the measured runs.
    UserTime,
}

/// What a prediction is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictionBasis {
    /// The native run's time at each instruction, and replays of the program's accesses on this machine.
    Replay,
    /// The model's cycles alone: with all or nothing overlapped.
    Model,
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
