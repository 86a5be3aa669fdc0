//! What came of a comparison.

use lookaside_stats::{ratio, Ratio, RESAMPLES};
use serde::Serialize;

use super::watch::{HelperTotals, PageUse};
use crate::hugepages::{AppliedPlan, CodeTotals, PromotionSummary};

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct VariantRun {
    /// Which round, from 1.
    pub round: u32,
    /// Which in its round, from 1.
    pub position: u32,
    /// The metric.
    pub value: f64,
    /// Seconds from start to end.
    pub wall_seconds: f64,
    /// Seconds of CPU in user mode: the program, all its threads, and those it waited for.
    pub user_seconds: f64,
    /// Seconds of CPU in the kernel.
    pub sys_seconds: f64,
    /// Most resident bytes of a process of it; at least what the comparing program had itself when it started it.
    pub max_resident_bytes: u64,
    /// Joules of all CPU packages meanwhile.
    pub energy_joules: Option<f64>,
    /// What baked it.
    pub helped: Option<HelperTotals>,
    /// Huge pages that were chosen and made while it ran.
    pub hugepages: Option<PromotionSummary>,
    /// Huge pages of a plan that were made while it ran.
    pub planned: Option<AppliedPlan>,
    /// Code that was put on huge pages.
    pub code: Option<CodeTotals>,
}

/// A variant's runs and what they say. All but `unfinished` is of complete rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct VariantOutcome {
    /// Its name, as it is written in a list of variants.
    pub name: String,
    /// What it is.
    pub what: String,
    /// Its runs, by round.
    pub runs: Vec<VariantRun>,
    /// Its run of the round that was not finished.
    pub unfinished: Option<VariantRun>,
    /// Median of the metric.
    pub median: Option<f64>,
    /// Least.
    pub least: Option<f64>,
    /// Most.
    pub most: Option<f64>,
    /// Medians' ratio to the base: base ÷ variant of a time, variant ÷ base of other numbers.
    pub ratio: Option<Ratio>,
    /// Median of the energy, in joules.
    pub energy_joules: Option<f64>,
    /// Base's median energy ÷ this one's.
    pub energy_ratio: Option<Ratio>,
    /// Pages seen in the warm-up runs, at their most.
    pub pages: Option<PageUse>,
}

/// Why it ended before all rounds were run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EarlyEnd {
    /// By a signal.
    #[error("interrupted")]
    Interrupted,
    /// The program failed, or did not say what was asked for.
    #[error("{variant}, {run}: {what}")]
    Failed {
        /// Which variant.
        variant: String,
        /// Which run of it.
        run: String,
        /// What happened.
        what: String,
    },
    /// The pressure ended.
    #[error("pressure {0}")]
    Pressure(String),
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Lookaside's version.
    pub version: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The metric's name.
    pub metric: String,
    /// It is a time in seconds, and ratios are base ÷ variant; else they are variant ÷ base.
    pub is_time: bool,
    /// What ran beside.
    pub pressure: String,
    /// Seed of the orders and resamples.
    pub seed: u64,
    /// Rounds that were asked for.
    pub rounds_wanted: u32,
    /// Rounds in which every variant ran.
    pub rounds: u32,
    /// Rounds before them that don't count.
    pub warmups: u32,
    /// CPUs that this program may use.
    pub cpus: u32,
    /// The variants, base first.
    pub variants: Vec<VariantOutcome>,
    /// Why there is no energy.
    pub no_energy: Option<String>,
    /// What has to be known to judge it.
    pub notes: Vec<String>,
    /// Why it ended early.
    pub early: Option<EarlyEnd>,
}

impl Comparison {
    /// Base ÷ variant of a time of the runs, whatever was compared: medians over the complete rounds, with the same
    /// draws as the variant's own ratio. `None` if there is no round, or a time that is not above 0.
    pub fn time_ratio(&self, variant: &VariantOutcome, seconds: impl Fn(&VariantRun) -> f64) -> Option<Ratio> {
        let times = |outcome: &VariantOutcome| outcome.runs.iter().map(&seconds).collect::<Vec<f64>>();
        ratio(&times(self.variants.first()?), &times(variant), self.seed, RESAMPLES)
    }
}
