//! What reads, page faults and streams take, as the probe found it.

use crate::finding::Finding;
use lookaside_machine::Timing;
use serde::Serialize;

/// Costs in nanoseconds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TimingReport {
    /// Those that were measured, as machine descriptions have them.
    pub costs: Finding<Timing>,
    /// The CPU that read memory in a row beside those that say so.
    pub stream_cpu: Option<usize>,
    /// Those that were not, and why: what this machine does not offer is no fault of the measurement.
    pub absent: Vec<AbsentCost>,
}

/// A cost that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct AbsentCost {
    /// Of what.
    pub what: String,
    /// Why.
    pub why: String,
}

impl TimingReport {
    /// None, for the reason that is given.
    pub(crate) fn nothing(costs: Finding<Timing>) -> Self {
        Self { costs, stream_cpu: None, absent: Vec::new() }
    }

    /// What of it was looked for in vain, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        self.costs.lacks("what reads and page faults take").into_iter().collect()
    }
}
