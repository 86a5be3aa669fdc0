//! A workload's accesses, written as a trace.

use lookaside_report::{num, Cell, Column, Document, Section, Table};
use serde::Serialize;

use super::{document, WorkloadParameter};

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkloadRecording {
    /// The workload's name.
    pub workload: &'static str,
    /// The trace file.
    pub trace: String,
    /// Bytes of its arrays, as asked for.
    pub asked_bytes: u64,
    /// Seed of its input.
    pub seed: u64,
    /// How often its main task was done.
    pub rounds: u64,
    /// Its arrays in the trace.
    pub arrays: Vec<RecordedArray>,
    /// How large the parts of its input are.
    pub parameters: Vec<WorkloadParameter>,
    /// Accesses written.
    pub accesses: u64,
    /// What an operation is.
    pub operation: &'static str,
    /// Operations done.
    pub operations: u64,
    /// Of the results, hexadecimal; of what is done so far.
    pub checksum: String,
    /// `false`: a signal ended it before its time.
    pub complete: bool,
}

/// An array's mapping in the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RecordedArray {
    /// Its name.
    pub name: &'static str,
    /// Its first address.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// PT-Baker touches this one.
    pub main: bool,
}

/// What the trace has, and where its arrays are.
pub fn view(recording: &WorkloadRecording) -> Document {
    let WorkloadRecording { trace, accesses, operation, operations, rounds, seed, .. } = recording;
    let counted = |n: &u64, one| num::counted(*n as usize, one);
    let mut document = document(recording.workload, &recording.parameters);
    if !recording.complete {
        document.cut_short("interrupted");
    }
    let accesses = match accesses {
        1 => "1 access".to_string(),
        n => format!("{} accesses", num::grouped(*n)),
    };
    let (operations, rounds) = (counted(operations, "operation"), counted(rounds, "round"));
    document
        .answer(format!("{trace}: {accesses} of {operations} in {rounds}, seed {seed} (an operation: {operation})"));
    document.fact("checksum", recording.checksum.clone());
    let mut table = Table::new([Column::left("array"), Column::right("size"), Column::right("first address")]);
    for array in &recording.arrays {
        let start = Cell::number(array.start as f64, format!("{:#x}", array.start));
        table.row([array.name.into(), Cell::bytes(array.bytes), start]);
    }
    document.section(Section::unheaded("Arrays").with(table));
    document
}
