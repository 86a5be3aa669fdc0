//! Recording a real program as a trace: three backends behind one [`start`].
//!
//! A recording is a [`Source`](lookaside_trace::Source) that yields blocks **while the program runs**.

mod cached;
mod launch;
pub mod native;
mod program;
mod qemu;
mod request;
mod sample;
mod symbols;
mod valgrind;
pub mod wire;

use std::ffi::OsString;

pub use program::{inspect, Isa, Program};
pub use request::{Backend, CaptureError, ChildEnd, Control, Recording, Request, Target};
pub use symbols::{CodeName, Symbols};
pub use wire::WireReader;

/// Starts to record as asked. Without [`Request::backend`]: Valgrind for a program of this machine, QEMU for one of another,
/// the sampler where they aren't installed or can't; the notes say which and why.
///
/// # Errors
/// The program can't be started, or the backend that was asked for isn't there or doesn't fit it.
pub fn start(request: &Request) -> Result<Recording, CaptureError> {
    let (backend, note) = match request.backend {
        Some(backend) => (backend, None),
        None => choose(request)?,
    };
    let mut recording = match backend {
        Backend::Valgrind => valgrind::start(request),
        Backend::Qemu => qemu::start(request),
        Backend::Sample => sample::start(request),
    }?;
    if let Some(note) = note {
        recording.notes.insert(0, note);
    }
    Ok(recording)
}

/// The backend that sees every access of a command's program, whether it is installed or not: Valgrind for a program of this
/// machine, QEMU for one of another. What it lacks, [`start`] says.
///
/// # Errors
/// The program can't be started, or no backend can see its every access.
pub fn exact_backend(command: &[OsString]) -> Result<Backend, CaptureError> {
    let program = program::inspect(command)?;
    let name = command[0].to_string_lossy().into_owned();
    match program.isa {
        Isa::Foreign(_) => Ok(Backend::Qemu),
        Isa::Unknown(machine) => Err(unknown(name, machine)),
        Isa::Native if program.privileged => Err(CaptureError::Program {
            program: name,
            reason: "is setuid or setgid: its every access can't be seen, only samples; use --backend sample".into(),
            code: 126,
        }),
        Isa::Native => Ok(Backend::Valgrind),
    }
}

fn unknown(program: String, machine: u16) -> CaptureError {
    let reason = format!("is for ELF machine {machine}, which no recorder knows");
    CaptureError::Program { program, reason, code: 126 }
}

/// The best backend that is installed and fits, and why.
fn choose(request: &Request) -> Result<(Backend, Option<String>), CaptureError> {
    let sampled = |why: String| Ok((Backend::Sample, Some(format!("sampled: {why}"))));
    let command = match &request.target {
        Target::Pid(_) => return sampled("a process that runs already can only be sampled".into()),
        Target::Command(command) => command,
    };
    let program = program::inspect(command)?;
    match program.isa {
        Isa::Foreign(isa) => {
            Ok((Backend::Qemu, Some(format!("exact, by qemu-{isa}: the program is for another instruction set"))))
        }
        Isa::Unknown(machine) => Err(unknown(command[0].to_string_lossy().into_owned(), machine)),
        Isa::Native if program.privileged => {
            sampled("the program is setuid or setgid, which Valgrind can't run".into())
        }
        Isa::Native => match valgrind::missing() {
            None => Ok((Backend::Valgrind, Some("exact, by valgrind: every access of the program".into()))),
            Some(reason) => sampled(format!("{reason}; with it every access would be counted exactly")),
        },
    }
}
