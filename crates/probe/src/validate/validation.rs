//! The result of a validation: a row a pattern, a summary, and what was left out.

use lookaside_stats::median;
use serde::Serialize;

use crate::validate::access_pattern::{AccessPattern, PatternFamily};
use crate::validate::model::ModelledCycles;

/// Median error that a description is to stay within, in percent.
pub const MEDIAN_BOUND_PERCENT: f64 = 5.0;
/// Worst error that it is to stay within, in percent.
pub const WORST_BOUND_PERCENT: f64 = 20.0;

/// What came out.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Validation {
    /// Lookaside's version.
    pub version: String,
    /// Name of the description.
    pub machine: String,
    /// Seed.
    pub seed: u64,
    /// Runs of each pattern.
    pub repeats: usize,
    /// Core cycles in a tick of the timer, lowest and highest seen.
    pub cycles_per_tick: (f64, f64),
    /// Neighbouring 4 KiB pages with neighbouring frames, in aligned runs of so many; 1 = frames lay at random.
    pub frame_run_pages: u64,
    /// The last data cache, where others use it too.
    pub last_cache: Option<SharedCache>,
    /// Runs that do not count, since the last cache was left more or less to us after them than before, in all their
    /// tries.
    pub unsteady_runs: usize,
    /// Patterns with both sides.
    pub rows: Vec<ValidationRow>,
    /// Patterns without.
    pub left_out: Vec<OmittedPattern>,
    /// All rows but those on the edge ([`ValidationRow::on_edge`]).
    pub summary: Option<ErrorSummary>,
    /// All rows, also those on the edge.
    pub with_edge: Option<ErrorSummary>,
    /// All rows, also those on the edge, had the last cache the size that the description gives it.
    pub as_described: Option<ErrorSummary>,
    /// Each family's rows but those on the edge.
    pub families: Vec<(PatternFamily, ErrorSummary)>,
    /// Why it ended early; `None` = it did not.
    pub halted: Option<String>,
}

/// A data cache that others use too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SharedCache {
    /// What the description says that it holds.
    pub described_bytes: u64,
    /// The least that was left to us around a run.
    pub least_bytes: u64,
    /// The most.
    pub most_bytes: u64,
}

/// A pattern, measured and modelled.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ValidationRow {
    /// The pattern.
    pub pattern: AccessPattern,
    /// Its name.
    pub name: String,
    /// Core cycles an access on the metal: that of the run at the lower quartile, by its ratio to what the model says
    /// with the last cache as it was then. What comes from elsewhere (a neighbour on the core, others' use of memory)
    /// only adds.
    pub measured_cycles: f64,
    /// The fastest run.
    pub low_cycles: f64,
    /// The slowest run.
    pub high_cycles: f64,
    /// Bytes that the last cache held for us around that run; `None` where it makes no difference.
    pub last_cache_bytes: Option<u64>,
    /// Cycles an access in the model, with that last cache.
    pub modelled: ModelledCycles,
    /// Least and most modelled cycles within what is known of the last cache: it is searched for in quarter octaves,
    /// and changes meanwhile.
    pub modelled_range_cycles: (f64, f64),
    /// The range is wider than [`WORST_BOUND_PERCENT`]: whether it fits the last cache or not is all that decides. What
    /// such a row is off by says nothing of the description, and it is not in [`Validation::summary`].
    pub on_edge: bool,
    /// Modelled less measured, in percent of measured.
    pub error_percent: f64,
    /// The same with the last cache that the description has.
    pub as_described_error_percent: f64,
    /// All runs, by that ratio.
    pub runs: Vec<PairedRun>,
}

/// A run on the metal, and the model with the last cache as it was then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PairedRun {
    /// Core cycles an access on the metal.
    pub cycles: f64,
    /// Bytes that the last cache held for us around it; `None` where it makes no difference.
    pub last_cache_bytes: Option<u64>,
    /// Cycles an access in the model.
    pub modelled_cycles: f64,
}

/// A pattern that was not compared.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct OmittedPattern {
    /// The pattern.
    pub pattern: AccessPattern,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Errors without their sign over some rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ErrorSummary {
    /// Rows.
    pub rows: usize,
    /// Median error in percent of the measured.
    pub median_error_percent: f64,
    /// Worst error in percent of the measured.
    pub worst_error_percent: f64,
    /// The row that has it.
    pub worst: String,
}

impl Validation {
    /// A pattern walked in the model: else nothing was held against the machine of what walks cost, which is most of a
    /// description.
    pub fn walked(&self) -> bool {
        self.rows.iter().any(|row| row.modelled.walks_per_access > 0.0)
    }
}

impl ErrorSummary {
    pub(crate) fn of(rows: &[&ValidationRow], error_percent: impl Fn(&ValidationRow) -> f64) -> Option<Self> {
        let mut errors: Vec<(f64, &str)> =
            rows.iter().map(|row| (error_percent(row).abs(), row.name.as_str())).collect();
        errors.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (worst, name) = *errors.last()?;
        Some(Self {
            rows: errors.len(),
            median_error_percent: median(errors.iter().map(|error| error.0))?,
            worst_error_percent: worst,
            worst: name.to_string(),
        })
    }

    /// Whether it is within the bounds.
    pub fn within(&self) -> bool {
        self.median_error_percent <= MEDIAN_BOUND_PERCENT && self.worst_error_percent <= WORST_BOUND_PERCENT
    }
}
