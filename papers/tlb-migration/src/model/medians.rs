//! Medians of the benchmarks' repetitions.

use std::collections::BTreeMap;

/// A benchmark's medians by the id of their row.
pub(super) type Medians = BTreeMap<String, f64>;

/// The median, which the paper takes for what is measured; not a number where there are no values.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    lookaside_stats::median(values).unwrap_or(f64::NAN)
}
