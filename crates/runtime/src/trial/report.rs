//! What a trial found.

use serde::Serialize;

use super::decide::{Decision, TrialVerdict};
use super::effect::MeasureEffect;
use super::lever::{LeverCalls, LeverState};

/// What a trial found, and what was done.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TrialReport {
    /// Its number in the journal: for `lookaside undo`.
    pub number: u64,
    /// What was switched: `hugepages` or `bake`.
    pub what: String,
    /// Whose.
    pub processes: Vec<TrialProcess>,
    /// Windows of 2 MiB that were chosen; absent where it is not about these.
    pub windows: Option<usize>,
    /// Share of the samples (or bytes referenced) while choosing that fell in these.
    pub windows_share: Option<f64>,
    /// By what it was judged.
    pub metric: String,
    /// More of it is better.
    pub more_is_better: bool,
    /// Why that, where it was chosen here.
    pub metric_reason: Option<String>,
    /// Of the order of the phases.
    pub seed: u64,
    /// Seconds of a phase.
    pub phase_seconds: f64,
    /// Of these, seconds at its beginning that do not count.
    pub settle_seconds: f64,
    /// Seconds from the first switch to the last.
    pub seconds: f64,
    /// Times that it was switched.
    pub switches: u32,
    /// The confidence of all intervals.
    pub confidence: f64,
    /// What the metric did, which decides; absent where there were too few phases.
    pub effect: Option<MeasureEffect>,
    /// What other measures did.
    pub beside: Vec<MeasureEffect>,
    /// The metric's effect by the first halves of the phases, and by the second ones: where they differ, a phase
    /// carries over into the next.
    pub halves: [Option<MeasureEffect>; 2],
    /// Bytes more in memory while it was applied: the median over pairs of phases.
    pub added_bytes: i64,
    /// What comes of it.
    pub verdict: TrialVerdict,
    /// What was done with it.
    pub decision: Decision,
    /// How a user gets it for good, where it helps.
    pub advice: Option<String>,
    /// How much of it was applied at the end.
    pub state_at_end: LeverState,
    /// The calls.
    pub calls: LeverCalls,
    /// Each phase.
    pub phases: Vec<PhaseRow>,
    /// Why it ended early, if it did.
    pub ended: Option<String>,
    /// What else has to be known.
    pub notes: Vec<String>,
}

/// A process of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TrialProcess {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub comm: String,
}

/// A phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PhaseRow {
    /// Its pair, from 0 on.
    pub pair: u32,
    /// Whether it was applied.
    pub on: bool,
    /// When what counts of it began, in seconds since the first switch.
    pub at_seconds: f64,
    /// The metric; absent where there was nothing to measure.
    pub value: Option<f64>,
    /// CPU seconds that the processes used in a second.
    pub cpus: f64,
    /// Bytes that the processes had in memory at its end.
    pub resident_bytes: u64,
    /// Share of what is switched that was applied at its end.
    pub applied_share: f64,
    /// Why it does not count, if so.
    pub left_out: Option<String>,
}
