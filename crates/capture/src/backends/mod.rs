//! The recorders, one module each, and the choice between them.
//!
//! A new recorder is a variant of [`RecorderBackend`], a module here with a `start`, and its line in [`start`].

mod qemu;
mod sample;
mod valgrind;

use std::ffi::OsString;

use crate::error::CaptureError;
use crate::program::{inspect_program, ProgramIsa};
use crate::recording::Recording;
use crate::request::{RecordRequest, RecordTarget, RecorderBackend};

pub(crate) use qemu::plain_qemu_command;
pub(crate) use sample::{prepare as prepare_child, read_memory, start_with as start_sampling, ChildSetup};

/// Starts a recording. Without [`RecordRequest::backend`]: Valgrind for a program of this machine, QEMU for one of
/// another, the sampler where they aren't installed or can't; the notes say which and why.
///
/// # Errors
/// The program can't be started, or the backend that was asked for isn't there or doesn't fit it.
pub fn start(request: &RecordRequest) -> Result<Recording, CaptureError> {
    let (backend, note) = match request.backend {
        Some(backend) => (backend, None),
        None => choose(request)?,
    };
    let mut recording = match backend {
        RecorderBackend::Valgrind => valgrind::start(request),
        RecorderBackend::Qemu => qemu::start(request),
        RecorderBackend::Sample => sample::start(request),
    }?;
    if let Some(note) = note {
        recording.notes.insert(0, note);
    }
    Ok(recording)
}

/// The backend that sees every access of a command's program, whether it is installed or not: Valgrind for a program of
/// this machine, QEMU for one of another. [`start`] says what it lacks.
///
/// # Errors
/// The program can't be started, or no backend can see its every access.
pub fn exact_backend(command: &[OsString]) -> Result<RecorderBackend, CaptureError> {
    let program = inspect_program(command)?;
    let name = command[0].to_string_lossy().into_owned();
    match program.isa {
        ProgramIsa::Foreign(_) => Ok(RecorderBackend::Qemu),
        ProgramIsa::Unknown(machine) => Err(unknown(name, machine)),
        ProgramIsa::Native if program.privileged => Err(CaptureError::Program {
            program: name,
            reason: "is setuid or setgid: its every access can't be seen, only samples; use --backend sample".into(),
            code: 126,
        }),
        ProgramIsa::Native => Ok(RecorderBackend::Valgrind),
    }
}

fn unknown(program: String, machine: u16) -> CaptureError {
    let reason = format!("is for ELF machine {machine}, which no recorder knows");
    CaptureError::Program { program, reason, code: 126 }
}

/// The best backend that is installed and fits, and why.
fn choose(request: &RecordRequest) -> Result<(RecorderBackend, Option<String>), CaptureError> {
    let sampled = |why: String| Ok((RecorderBackend::Sample, Some(format!("sampled: {why}"))));
    let command = match &request.target {
        RecordTarget::Pid(_) => return sampled("a process that runs already can only be sampled".into()),
        RecordTarget::Command(command) => command,
    };
    let program = inspect_program(command)?;
    match program.isa {
        ProgramIsa::Foreign(isa) => Ok((
            RecorderBackend::Qemu,
            Some(format!("exact, by qemu-{isa}: the program is for another instruction set")),
        )),
        ProgramIsa::Unknown(machine) => Err(unknown(command[0].to_string_lossy().into_owned(), machine)),
        ProgramIsa::Native if program.privileged => {
            sampled("the program is setuid or setgid, which Valgrind can't run".into())
        }
        ProgramIsa::Native => match valgrind::missing() {
            None => Ok((RecorderBackend::Valgrind, Some("exact, by valgrind: every access of the program".into()))),
            Some(reason) => sampled(format!("{reason}; with it every access would be counted exactly")),
        },
    }
}
