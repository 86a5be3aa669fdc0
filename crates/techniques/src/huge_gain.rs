//! "Will huge pages help me?": the range of run time that is foreseen for huge pages everywhere, and what runs with and
//! without them took.
//!
//! Where the program ran natively and its visits were replayed, `lookaside-timing` says what is saved. Without that
//! there is the model alone, in which nothing overlaps. A core that runs ahead hides a part of what translation costs,
//! and how large a part no count of accesses tells. So the model's range is wide: its high end has nothing hidden
//! (runtime is linear in walk cycles with slope 1: the model of Basu et al., Efficient Virtual Memory for Big Memory
//! Servers, ISCA 2013, section 6.1 \[recalled\]), its low end has walks overlap each other as far as any walker lets
//! them, and hits of later TLB levels hidden wholly.

use lookaside_timing::FaultBill;
use serde::{Deserialize, Serialize};

pub use crate::gain_evidence::GainEvidence;
use crate::mosaic_gain::MosaicGain;
pub use crate::predicted_gain::{Denominator, GainPosition, PredictedGain, PredictionBasis, WALKS_AT_ONCE};
use crate::verdict::HugePageVerdict;

/// What is known of the gain by huge pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct HugeGain {
    /// The answer: of user time.
    #[serde(default)]
    pub verdict: Option<HugePageVerdict>,
    /// What is foreseen of user time; `None` = nothing was modelled, or huge pages can change nothing.
    pub predicted: Option<PredictedGain>,
    /// What page faults huge pages save; `None` = the program did not run natively.
    #[serde(default)]
    pub faults: Option<FaultBill>,
    /// What runs took; `None` = they were not asked for, or could not be made (a note says why).
    pub measured: Option<MeasuredGain>,
    /// Where the measured ratio of user times lies to the predicted range, if there are both.
    pub place: Option<GainPosition>,
    /// What runs with different parts of the memory huge say; `None` = they were not asked for, or can't tell (a note
    /// says why).
    #[serde(default)]
    pub mosaic: Option<MosaicGain>,
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
        let verdict = Some(HugePageVerdict::new(evidence, predicted.as_ref()));
        Self { verdict, predicted, faults: evidence.faults, measured, place, mosaic: None }
    }
}

/// What runs in turns took: small pages only against huge pages (the variants `base` and `thp` of `compare`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MeasuredGain {
    /// Complete rounds.
    pub rounds: u32,
    /// CPU time, in user mode and in the kernel: page faults too. `None` = some run did none that was counted.
    #[serde(default)]
    pub cpu: Option<TimeRatio>,
    /// CPU time in user mode, of all threads: what the prediction is of. `None` = some run took none that could be
    /// counted.
    pub user: Option<TimeRatio>,
    /// From start to end: page faults, zeroing and waiting are in it.
    pub wall: Option<TimeRatio>,
    /// Of the resident memory, the share that huge pages held when a run with them was largest; `None` = not seen.
    pub huge_share: Option<f64>,
}

/// Medians of one time, and their ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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
