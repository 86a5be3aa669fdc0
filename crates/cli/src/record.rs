//! `lookaside record`: a program's accesses into a trace file.

use std::sync::Arc;

use lookaside_capture::{ChildEnd, RecordRequest, RecordTarget, RecorderBackend};
use lookaside_engine::{Filter, Setup};
use lookaside_trace::{Block, FilterWindow};

use crate::args::record::RecordArgs;
use crate::args::recording::GranularityArg;
use crate::recording::backend;
use crate::recording::trace_file::copy;
use lookaside_cli::exit::{Failure, BROKE_OFF};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::machines;
use lookaside_cli::output::check_writable;
use lookaside_cli::say::say;

/// Runs the command; the exit code is the program's own.
pub fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let target = match args.pid {
        Some(pid) => RecordTarget::Pid(pid),
        None => RecordTarget::Command(args.command.clone()),
    };
    check_writable(&args.output)?;
    let (intervals, backend) = args.intervals.intervals(args.backend.map(Into::into))?;
    let backend = backend::choose(&target, backend, false, args.yes)?;
    let filter = filter(args, backend)?;
    let interrupt = Interrupt::install()?;
    let (recording, _) = backend::start(RecordRequest {
        target,
        backend,
        granularity: args.granularity.into(),
        filter_log2_classes: filter.log2_classes,
        filter_window: filter.window,
        filter_stores_apart: filter.stores_apart,
        filter_unified: filter.unified,
        fetches: !args.no_fetches,
        waits: false,
        sample_hz: args.hz,
        intervals,
    })?;
    let control: Arc<dyn lookaside_capture::ProgramControl> = Arc::from(recording.control);
    interrupt.watch(Arc::clone(&control), args.pid.is_none());
    let mut source = recording.source;
    let written = copy(&mut *source, &args.output, args.pid.is_none());
    if written.is_err() {
        control.stop();
        while source.next_block(&mut Block::default()).unwrap_or(false) {} // so that it need not wait for us
    }
    let end = control.wait()?;
    interrupt.unwatch();
    // The terminal was the program's until now.
    recording.notes.iter().for_each(say);
    control.remarks().iter().for_each(say);
    let whole = written.map_err(|e| Failure {
        line: format!("{e}; recording stopped and the program was ended; the trace holds what was recorded until then"),
        code: BROKE_OFF,
    })?;
    Ok(match end {
        ChildEnd::Code(0) | ChildEnd::Detached if !whole => BROKE_OFF,
        ChildEnd::Code(code) => (code & 0xff) as u8,
        ChildEnd::Signal(signal) => (128 + (signal & 0x7f)) as u8,
        ChildEnd::Detached => 0,
    })
}

/// What a recording for these machines may leave out; without any, what makes no difference to most.
fn filter(args: &RecordArgs, backend: Option<RecorderBackend>) -> Result<Filter, Failure> {
    if args.machine.is_empty() {
        let window = FilterWindow::default();
        return Ok(Filter { log2_classes: 0, window, stores_apart: false, unified: false });
    }
    if backend == Some(RecorderBackend::Sample) {
        return Err(Failure::bad("--machine: samples leave nothing out; drop it, or --backend sample"));
    }
    if matches!(args.granularity, GranularityArg::Byte) {
        return Err(Failure::bad("--machine leaves accesses out, --granularity byte none: drop one of them"));
    }
    let setup = |name: &String| Ok(Setup::new(machines::find(name)?));
    let setups = args.machine.iter().map(setup).collect::<Result<Vec<_>, Failure>>()?;
    Ok(Filter::exact_for(&setups))
}
