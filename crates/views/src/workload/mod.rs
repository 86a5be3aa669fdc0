//! The papers' programs: what there is, a timed run, a recording.

pub mod list;
pub mod recording;
pub mod run;

use lookaside_report::{num, Document};
use lookaside_workloads::Workload;
use serde::Serialize;

/// How large a part of a workload's input is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkloadParameter {
    /// What is counted, as `words`.
    pub name: &'static str,
    /// How many there are.
    pub count: u64,
}

/// How large the parts of its input are.
pub fn parameters(workload: &dyn Workload) -> Vec<WorkloadParameter> {
    workload.parameters().into_iter().map(|(name, count)| WorkloadParameter { name, count }).collect()
}

/// A document on a workload with these parameters.
fn document(name: &str, parameters: &[WorkloadParameter]) -> Document {
    let words = |p: &WorkloadParameter| format!("{} {}", num::grouped(p.count), p.name.replace('_', " "));
    Document::new(name, parameters.iter().map(words).collect::<Vec<_>>().join(", "))
}
