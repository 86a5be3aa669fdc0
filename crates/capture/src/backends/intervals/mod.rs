//! Exact within intervals of a run: now and then, the running process is copied, and the copy's code is translated into
//! code that logs each access. The program itself runs on at native speed, and the copy is thrown away.
//!
//! No program has to be prepared, started by us or stopped for long, and nothing of the recorder's is left in it.

mod area;
mod block_maker;
mod block_plan;
mod call_marker;
mod driver;
mod emitter;
mod follow;
mod harmless;
mod injection;
mod instruction;
mod interval_source;
mod landmark;
mod message;
mod phase;
mod program_entry;
mod recorded_calls;
mod snapshot_process;
mod stopped_thread;
mod target;
mod thread_speed;
mod tracee;
mod translator;

use std::ffi::OsString;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};

use lookaside_host::Process;
use lookaside_trace::{Granularity, Source, TraceInfo, WindowedSource};

use super::sample::{child_state, ChildHandle, ChildState, CollectorState, SampleControl, SampledProgram};
use crate::error::CaptureError;
use crate::program::{inspect_program, ProgramIsa};
use crate::recording::{ChildEnd, ProgramControl, Recording};
use crate::request::{Intervals, RecordRequest, RecordTarget, RecorderBackend, RunMoment};
use driver::{IntervalDriver, IntervalTally};
use interval_source::IntervalSource;
use phase::PhaseWatch;
use program_entry::HeldProgram;
use thread_speed::LengthChooser;

/// Words of the log under way: a megabyte each.
const NEWS_IN_FLIGHT: usize = 32;

/// Starts the program, or attaches to it, and records intervals of it.
///
/// # Errors
/// The program can't be started, or may not be looked into.
pub(crate) fn start(request: &RecordRequest) -> Result<Recording, CaptureError> {
    let intervals = request.intervals.clone().ok_or_else(|| refused("no intervals were asked for".into()))?;
    if !std::arch::is_x86_feature_detected!("sse4.2") {
        return Err(refused("this processor has no SSE 4.2, which translated code uses".into()));
    }
    let length = LengthChooser::new(intervals.length)
        .map_err(|error| refused(format!("--for with a time: {}; give instructions", call_marker::refusal(&error))))?;
    let (pid, program, command, phase) = match &request.target {
        RecordTarget::Command(command) => {
            check(command)?;
            let (child, phase) = started(command, &intervals)?;
            let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            (child.id(), SampledProgram::Child(Mutex::new(ChildHandle::Running(child))), words, phase)
        }
        RecordTarget::Pids(_) => return Err(refused("records one process: name it with --pid".into())),
        RecordTarget::Pid(pid) => {
            check_running(*pid)?;
            let phase = PhaseWatch::new(*pid, &intervals).map_err(refused)?;
            (*pid, SampledProgram::Attached, Process::of(*pid).command().unwrap_or_default(), phase)
        }
    };
    let is_attached = matches!(program, SampledProgram::Attached);
    let state = Arc::new(CollectorState::default());
    let (sender, news) = crossbeam_channel::bounded(NEWS_IN_FLIGHT);
    let outcome: Arc<Mutex<Option<IntervalTally>>> = Arc::default();
    let driver = IntervalDriver {
        pid,
        intervals,
        phase,
        length,
        collector: Arc::clone(&state),
        news: sender,
        has_ended: Box::new(move || has_ended(pid, is_attached)),
        is_attached,
    };
    let told = Arc::clone(&outcome);
    let drive = move || {
        let news = driver.news.clone();
        let tally = driver.run();
        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(tally);
        // Now the source ends, and the outcome is known.
        drop(news);
    };
    let thread = std::thread::Builder::new().name("intervals".into()).spawn(drive);
    thread.map_err(|source| CaptureError::Io { what: "a thread for intervals".into(), source })?;
    let window = Some(request.filter_window).filter(|its| its.pages > 0 && request.granularity == Granularity::Page);
    let info = TraceInfo {
        granularity: request.granularity,
        recorder: "intervals".into(),
        command,
        filter_stores_apart: request.filter_stores_apart,
        has_fetches: request.fetches,
        has_ip: true,
        ..TraceInfo::default()
    };
    let source = IntervalSource::new(info, (request.filter_unified, request.fetches), news);
    let source: Box<dyn Source + Send> = match window {
        Some(window) => Box::new(WindowedSource::new(source, window, request.filter_unified)),
        None => Box::new(source),
    };
    let sampled = SampleControl { pid, program: Arc::new(program), collector: state };
    let control = IntervalControl { program: sampled, outcome };
    Ok(Recording { source, control: Box::new(control), backend: RecorderBackend::Intervals, notes: Vec::new() })
}

/// Starts the program, before it has made any call that is waited for.
fn started(command: &[OsString], intervals: &Intervals) -> Result<(Child, PhaseWatch), CaptureError> {
    let [name, arguments @ ..] = command else { return Err(refused("no program given".into())) };
    let is_call = |moment: &RunMoment| matches!(moment, RunMoment::Call(_));
    if !is_call(&intervals.start) && !intervals.stop.as_ref().is_some_and(is_call) {
        let child = Command::new(name).args(arguments).spawn();
        let child = child
            .map_err(|source| CaptureError::Io { what: format!("starting {}", name.to_string_lossy()), source })?;
        let phase = PhaseWatch::new(child.id(), intervals).map_err(refused)?;
        return Ok((child, phase));
    }
    let held = HeldProgram::start(command)?;
    match PhaseWatch::new(held.pid(), intervals) {
        Ok(phase) => Ok((held.run(), phase)),
        Err(why) => {
            held.end();
            Err(refused(why))
        }
    }
}

fn refused(reason: String) -> CaptureError {
    CaptureError::Backend { backend: "intervals", reason }
}

/// Refuses programs that can't be followed.
fn check(command: &[OsString]) -> Result<(), CaptureError> {
    let program = inspect_program(command)?;
    if program.isa != ProgramIsa::Native {
        return Err(refused("follows x86-64 code only, and the program is for another instruction set".into()));
    }
    if program.privileged && !rustix::process::geteuid().is_root() {
        return Err(refused("the program is setuid or setgid, and only root may look into it: run as root".into()));
    }
    Ok(())
}

/// Refuses processes that can't be followed.
fn check_running(pid: u32) -> Result<(), CaptureError> {
    let process = Process::of(pid);
    let gone = || refused(format!("there is no process {pid}"));
    let status = process.status().map_err(|_| gone())?;
    if process.stat().is_ok_and(|stat| stat.has_ended()) {
        return Err(gone());
    }
    if process.maps_text().is_ok_and(|text| text.is_empty()) {
        return Err(refused(format!("process {pid} is the kernel's own")));
    }
    if status.value("TracerPid").is_some_and(|tracer| tracer != "0") {
        let tracer = status.value("TracerPid").unwrap_or_default();
        return Err(refused(format!("process {pid} is traced already, by process {tracer}; end that first")));
    }
    if status.value("Seccomp").is_some_and(|mode| mode != "0") {
        let why = "filters its system calls (seccomp), and calls of the recorder's could end it";
        return Err(refused(format!("process {pid} {why}; use --backend sample")));
    }
    if let Err(error) = process.open("mem") {
        let may = "only root and, where ptrace is not restricted, its own user may";
        return Err(refused(format!("process {pid} may not be looked into ({error}): {may}")));
    }
    Ok(())
}

fn has_ended(pid: u32, is_attached: bool) -> bool {
    match is_attached {
        true => Process::of(pid).stat().map_or(true, |stat| stat.has_ended()),
        false => child_state(pid) != ChildState::Running,
    }
}

/// Stops the program and waits for it, and knows what came of the intervals.
struct IntervalControl {
    program: SampleControl,
    outcome: Arc<Mutex<Option<IntervalTally>>>,
}

impl ProgramControl for IntervalControl {
    fn pid(&self) -> u32 {
        self.program.pid()
    }

    fn stop(&self) {
        self.program.stop();
    }

    fn wait(&self) -> Result<ChildEnd, CaptureError> {
        self.program.wait()
    }

    fn remarks(&self) -> Vec<String> {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.as_ref().map(IntervalTally::remarks).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
