//! The sampler: which data addresses a program waits for, at native speed and without hardware counters.
//!
//! The kernel's software clock interrupts each thread after equal times of its CPU time. A program that waits for
//! memory is interrupted right after the waiting instruction; decoding that instruction and reading the sampled
//! registers gives the address. See `docs/explanation/sampling.md`.

mod access_resolver;
mod bursts;
mod child_state;
mod collector;
mod control;
mod decode;
mod events;
mod held_child;
mod memory;
mod perf;
mod perf_record;
mod progress_mark;
mod ring;

use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crossbeam_channel::Receiver;
use lookaside_trace::{Block, Damage, Source, TraceError, TraceInfo};

use crate::error::CaptureError;
use crate::program::{inspect_program, ProgramIsa};
use crate::recording::Recording;
use crate::request::{RecordRequest, RecordTarget, RecorderBackend};
pub use bursts::{sample_bursts, BurstPlan, BurstSample};
pub(super) use child_state::{child_state, ChildState};
pub(super) use collector::CollectorState;
use collector::{Collector, SampledProcess};
pub(super) use control::{ChildHandle, SampleControl, SampledProgram};
use events::Events;
pub(crate) use held_child::{prepare, ChildSetup};
pub(crate) use memory::read as read_memory;
pub(super) use perf::refusal as perf_refusal;
pub use progress_mark::{find_progress_mark, mark_of_function, ProgressMark};

/// The kernel refuses clock periods below 10 µs.
const MAX_HZ: u32 = 100_000;

/// Starts (or attaches to) the requested program and samples it.
///
/// # Errors
/// Where the program can't be started or the kernel refuses the clock event; the message says what to set.
pub(crate) fn start(request: &RecordRequest) -> Result<Recording, CaptureError> {
    start_with(request, ChildSetup::AsOurs)
}

/// As [`start`], a program of ours set up so.
///
/// # Errors
/// As [`start`].
pub(crate) fn start_with(request: &RecordRequest, setup: ChildSetup) -> Result<Recording, CaptureError> {
    if !cfg!(target_arch = "x86_64") {
        return Err(refused("decodes x86-64 code only: use the valgrind backend here".into()));
    }
    if !(1..=MAX_HZ).contains(&request.sample_hz) {
        return Err(refused(format!("{} samples a second: wants 1 to {MAX_HZ}", request.sample_hz)));
    }
    let period_ns = 1_000_000_000 / u64::from(request.sample_hz);
    let (events, sampled, command, program) = match &request.target {
        RecordTarget::Command(command) => {
            check(command)?;
            let waiting = held_child::prepare(command, setup)?;
            let process = waiting.pid();
            let events = match Events::on_exec(process, period_ns) {
                Ok(events) => events,
                Err(error) => {
                    waiting.cancel();
                    return Err(refused(perf::refusal(&error, false)));
                }
            };
            let child = waiting.run()?;
            let command = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            (
                events,
                SampledProcess::Child(process),
                command,
                SampledProgram::Child(Mutex::new(ChildHandle::Running(child))),
            )
        }
        RecordTarget::Pid(process) => {
            let events = Events::attached(&[*process], period_ns).map_err(|e| refused(perf::refusal(&e, true)))?;
            (events, SampledProcess::Attached(vec![*process]), command_of(*process), SampledProgram::Attached)
        }
        RecordTarget::Pids(processes) => {
            let events = Events::attached(processes, period_ns).map_err(|e| refused(perf::refusal(&e, true)))?;
            (events, SampledProcess::Attached(processes.clone()), Vec::new(), SampledProgram::Attached)
        }
    };
    let pid = match &sampled {
        SampledProcess::Attached(processes) => processes.first().copied().unwrap_or(0),
        SampledProcess::Child(process) => *process,
    };
    let state = Arc::new(CollectorState::default());
    // Unbounded: a slow reader must not make the kernel drop samples, and a second has few thousand.
    let (sender, blocks) = crossbeam_channel::unbounded();
    let thread_state = Arc::clone(&state);
    let collect = move || Collector::new(events, sampled, thread_state, sender).run();
    std::thread::Builder::new()
        .name("sampler".into())
        .spawn(collect)
        .map_err(|source| CaptureError::Io { what: "sampling thread".into(), source })?;
    let info = TraceInfo {
        recorder: "sample".into(),
        command,
        has_ip: true,
        sample_period_ns: period_ns,
        ..TraceInfo::default()
    };
    let source = SampleSource { info, blocks, collector: Arc::clone(&state), damage: Vec::new() };
    Ok(Recording {
        source: Box::new(source),
        control: Box::new(SampleControl { pid, program: Arc::new(program), collector: state }),
        backend: RecorderBackend::Sample,
        notes: notes(request.sample_hz),
    })
}

fn notes(hz: u32) -> Vec<String> {
    vec![
        format!("sampled {hz} times a second of each thread's time in user code: weights are time, not counts"),
        "time in the kernel and accesses that cost no time are not seen; the valgrind backend counts every access"
            .into(),
    ]
}

fn refused(reason: String) -> CaptureError {
    CaptureError::Backend { backend: "sample", reason }
}

/// Refuses what this backend cannot sample: code of other instruction sets, and, for ordinary users, programs that gain
/// rights by exec (the kernel then ends all sampling).
fn check(command: &[OsString]) -> Result<(), CaptureError> {
    let program = inspect_program(command)?;
    if program.isa != ProgramIsa::Native {
        return Err(refused("decodes x86-64 code only, and the program is for another instruction set".into()));
    }
    if program.privileged && !rustix::process::geteuid().is_root() {
        return Err(refused(
            "the program is setuid or setgid, and the kernel lets only root watch it: run as root".into(),
        ));
    }
    Ok(())
}

/// The command line of a running process.
fn command_of(process: u32) -> Vec<String> {
    lookaside_host::Process::of(process).command().unwrap_or_default()
}

/// The recording as a source: blocks as the collecting thread sends them.
struct SampleSource {
    info: TraceInfo,
    blocks: Receiver<Block>,
    collector: Arc<CollectorState>,
    damage: Vec<Damage>,
}

impl Source for SampleSource {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        if let Ok(next) = self.blocks.recv() {
            *block = next;
            return Ok(true);
        }
        block.clear();
        let lost = self.collector.lost.load(Ordering::Relaxed);
        if lost > 0 && self.damage.is_empty() {
            let reason = format!("{lost} records lost: the machine was too busy to take them; sample less often");
            self.damage.push(Damage { offset: 0, len: 0, reason });
        }
        Ok(false)
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

#[cfg(test)]
mod tests;
