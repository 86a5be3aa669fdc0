//! Which workloads there are.

use lookaside_report::{Cell, Column, Document, Section, Table};
use lookaside_workloads::WORKLOADS;
use serde::Serialize;

/// What there is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkloadList {
    /// The workloads, by name.
    pub workloads: Vec<WorkloadKind>,
}

/// A workload that can be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkloadKind {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// What one round of its main task is.
    pub round: &'static str,
}

/// All workloads.
pub fn workloads() -> WorkloadList {
    let kinds = WORKLOADS.iter().map(|kind| WorkloadKind { name: kind.name, what: kind.what, round: kind.round });
    WorkloadList { workloads: kinds.collect() }
}

/// A line each.
pub fn view(workloads: &[WorkloadKind]) -> Document {
    let mut table = Table::new([Column::left("workload"), Column::left("what").wrap(), Column::left("a round").wrap()]);
    for kind in workloads {
        table.row([kind.name, kind.what, kind.round].map(Cell::from));
    }
    let mut document = Document { titled: false, ..Document::new("The papers' programs", "") };
    document.section(Section::unheaded("Workloads").with(table));
    document
}
