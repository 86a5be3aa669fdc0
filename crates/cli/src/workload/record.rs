//! `workload --record`: a workload's accesses as a trace.

use std::fmt::Write;
use std::path::Path;

use lookaside_report::num::{bytes, grouped};
use lookaside_trace::{Block, Source, TraceError, TraceInfo};
use lookaside_workloads::{Workload, WorkloadStream};
use serde::Serialize;

use super::outcome::{parameters, title, WorkloadParameter};
use super::size::read_bytes;
use crate::args::workload::WorkloadArgs;
use crate::recording::trace_file::copy;
use lookaside_cli::exit::{Failure, BROKE_OFF};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{print, print_json};

/// What was written.
#[derive(Serialize)]
struct WorkloadRecording {
    workload: &'static str,
    trace: String,
    asked_bytes: u64,
    seed: u64,
    rounds: u64,
    arrays: Vec<RecordedArray>,
    parameters: Vec<WorkloadParameter>,
    accesses: u64,
    operation: &'static str,
    operations: u64,
    /// Hexadecimal; of what is done so far.
    checksum: String,
    /// `false`: a signal ended it before its time.
    complete: bool,
}

/// An array's mapping in the trace.
#[derive(Serialize)]
struct RecordedArray {
    name: &'static str,
    start: u64,
    bytes: u64,
    /// PT-Baker touches this one.
    main: bool,
}

/// Does the main task and writes its accesses on the way: of the trace, a chunk is in memory at a time. At a signal the
/// trace ends where it is.
pub fn write(
    args: &WorkloadArgs,
    path: &Path,
    workload: Box<dyn Workload>,
    interrupt: Interrupt,
) -> Result<u8, Failure> {
    let asked = ["lookaside", "workload", &args.name, "--size", &args.size].map(String::from).to_vec();
    let numbers = ["--seed".into(), args.seed.to_string(), "--rounds".into(), args.rounds.to_string()];
    let stream = WorkloadStream::new(workload).asked_by([asked, numbers.to_vec()].concat());
    let mut source = InterruptibleStream { stream, interrupt, accesses: 0, stopped: false };
    copy(&mut source, path)
        .map_err(|e| Failure { line: format!("{e}; what was written until then can be read"), code: BROKE_OFF })?;
    let workload = source.stream.workload();
    let arrays = workload.regions().iter();
    let arrays = arrays.map(|r| RecordedArray { name: r.name, start: r.stream_start, bytes: r.bytes, main: r.main });
    let written = WorkloadRecording {
        workload: workload.name(),
        trace: path.display().to_string(),
        asked_bytes: read_bytes(&args.size)?,
        seed: args.seed,
        rounds: args.rounds,
        arrays: arrays.collect(),
        parameters: parameters(workload),
        accesses: source.accesses,
        operation: workload.operation(),
        operations: workload.operations(),
        checksum: format!("{:016x}", workload.checksum()),
        complete: !source.stopped,
    };
    if args.json {
        print_json(&written)?;
    } else {
        print(&text(&written))?;
    }
    if source.stopped {
        eprintln!("lookaside: interrupted: the trace has the task up to there");
        return Ok(source.interrupt.code());
    }
    Ok(0)
}

fn text(written: &WorkloadRecording) -> String {
    let mut out = title(written.workload, &written.parameters);
    for array in &written.arrays {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {} of {} at {:#x}", array.name, bytes(array.bytes), array.start);
    }
    let WorkloadRecording { trace, accesses, operation, operations, rounds, seed, checksum, .. } = written;
    let (accesses, operations) = (grouped(*accesses), grouped(*operations));
    let _ = writeln!(
        out,
        "{trace}: accesses {accesses} of operations {operations} ({operation}), rounds {rounds}, seed {seed}"
    );
    let _ = writeln!(out, "checksum {checksum}");
    out
}

/// A stream that ends at a signal.
struct InterruptibleStream {
    stream: WorkloadStream,
    interrupt: Interrupt,
    accesses: u64,
    stopped: bool,
}

impl Source for InterruptibleStream {
    fn info(&self) -> &TraceInfo {
        self.stream.info()
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        if self.interrupt.asked() {
            block.clear();
            self.stopped = true;
            return Ok(false);
        }
        let more = self.stream.next_block(block)?;
        self.accesses += block.accesses();
        Ok(more)
    }
}
