//! `workload --record`: a workload's accesses as a trace.

use std::path::Path;

use lookaside_trace::{Block, Source, TraceError, TraceInfo};
use lookaside_views::json;
use lookaside_views::workload::parameters;
use lookaside_views::workload::recording::{view, RecordedArray, WorkloadRecording};
use lookaside_workloads::{Workload, WorkloadStream};

use super::size::read_bytes;
use crate::args::workload::WorkloadArgs;
use crate::recording::trace_file::copy;
use lookaside_cli::exit::{Failure, BROKE_OFF};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::style;
use lookaside_cli::say::say;

/// Does the main task and writes its accesses on the way: of the trace, a chunk is in memory at a time. At a signal the
/// trace ends where it is.
pub fn write(
    args: &WorkloadArgs,
    path: &Path,
    workload: Box<dyn Workload>,
    interrupt: Interrupt,
) -> Result<u8, Failure> {
    let asked = ["lookaside", "lab", "workload", &args.name, "--size", &args.size].map(String::from).to_vec();
    let numbers = ["--seed".into(), args.seed.to_string(), "--rounds".into(), args.rounds.to_string()];
    let stream = WorkloadStream::new(workload).asked_by([asked, numbers.to_vec()].concat());
    let mut source = InterruptibleStream { stream, interrupt, accesses: 0, stopped: false };
    copy(&mut source, path, false)
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
    args.output.write(&view(&written), &json::render(&written), &style(None))?;
    if source.stopped {
        say("interrupted: the trace has the task up to there");
        return Ok(source.interrupt.code());
    }
    Ok(0)
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
