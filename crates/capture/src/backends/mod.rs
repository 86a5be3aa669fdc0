//! The recorders, one module each, and the choice between them.
//!
//! A new recorder is a variant of [`RecorderBackend`], a module here with a `start`, and its line in [`start`].

mod compiled;
#[cfg(target_arch = "x86_64")]
mod intervals;
mod qemu;
mod sample;
mod valgrind;

use std::ffi::OsString;

use crate::error::CaptureError;
use crate::program::{inspect_program, ProgramIsa};
use crate::recording::Recording;
use crate::request::{RecordRequest, RecordTarget, RecorderBackend};

pub use compiled::{recording_compiler, RecordingCompiler};
pub(crate) use qemu::plain_qemu_command;
pub use sample::{find_progress_mark, mark_of_function, ProgressMark};
pub(crate) use sample::{prepare as prepare_child, read_memory, start_with as start_sampling, ChildSetup};
pub use sample::{sample_bursts, BurstPlan, BurstSample};

/// Starts a recording. Without [`RecordRequest::backend`]: the program itself if it was built to, else Valgrind for a
/// program of this machine, QEMU for one of another, the sampler where they aren't installed or can't; the notes say which
/// and why.
///
/// # Errors
/// The program can't be started, or the backend that was asked for isn't there or doesn't fit it.
pub fn start(request: &RecordRequest) -> Result<Recording, CaptureError> {
    let (backend, note) = choose(request)?;
    let mut recording = match backend {
        RecorderBackend::Valgrind => valgrind::start(request),
        RecorderBackend::Qemu => qemu::start(request),
        RecorderBackend::Compiled => compiled::start(request),
        RecorderBackend::Intervals => start_intervals(request),
        RecorderBackend::Sample => sample::start(request),
    }?;
    if let Some(note) = note {
        recording.notes.insert(0, note);
    }
    Ok(recording)
}

#[cfg(target_arch = "x86_64")]
fn start_intervals(request: &RecordRequest) -> Result<Recording, CaptureError> {
    intervals::start(request)
}

#[cfg(not(target_arch = "x86_64"))]
fn start_intervals(_: &RecordRequest) -> Result<Recording, CaptureError> {
    let reason = "follows x86-64 code only: use the valgrind backend here".into();
    Err(CaptureError::Backend { backend: "intervals", reason })
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
            reason: "is setuid or setgid, so it can only be sampled; use --backend sample".into(),
            code: 126,
        }),
        ProgramIsa::Native => Ok(RecorderBackend::Valgrind),
    }
}

fn unknown(program: String, machine: u16) -> CaptureError {
    let reason = format!("is for ELF machine {machine}, which no recorder supports");
    CaptureError::Program { program, reason, code: 126 }
}

/// The backend that [`start`] takes, and why: the one that was asked for, without a word, else the best that is
/// installed and fits. For who wants to say it before the program starts.
///
/// # Errors
/// The program can't be started, or no backend can record it.
pub fn choose(request: &RecordRequest) -> Result<(RecorderBackend, Option<String>), CaptureError> {
    if let Some(backend) = request.backend {
        return Ok((backend, None));
    }
    let sampled = |why: String| Ok((RecorderBackend::Sample, Some(format!("sampled: {why}"))));
    let command = match &request.target {
        RecordTarget::Pids(_) => return sampled("processes that are already running can't be recorded whole".into()),
        RecordTarget::Pid(_) => {
            return sampled(
                "a process that is already running can't be recorded whole; --every 1s records intervals of it".into(),
            )
        }
        RecordTarget::Command(command) => command,
    };
    let program = inspect_program(command)?;
    match program.isa {
        ProgramIsa::Foreign(isa) => Ok((
            RecorderBackend::Qemu,
            Some(format!("exact, by qemu-{isa}: the program is for another instruction set")),
        )),
        ProgramIsa::Unknown(machine) => Err(unknown(command[0].to_string_lossy().into_owned(), machine)),
        ProgramIsa::Native if program.records_itself && !program.privileged => {
            let why = "exact, by the program itself (built by lookaside cc): its own loads and stores";
            Ok((RecorderBackend::Compiled, Some(why.into())))
        }
        ProgramIsa::Native if program.privileged => {
            sampled("the program is setuid or setgid, which Valgrind can't run".into())
        }
        ProgramIsa::Native => match valgrind::missing() {
            None => Ok((RecorderBackend::Valgrind, Some("exact, by valgrind: every access of the program".into()))),
            Some(reason) => sampled(format!("{reason}; with it every access would be counted exactly")),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    const NATIVE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    const FOREIGN: u16 = 243;
    const NOBODYS: u16 = 4660;

    /// A program that nobody has to run.
    fn program(folder: &Path, machine: u16, mode: u32) -> Vec<OsString> {
        let path = folder.join(format!("{machine}-{mode:o}"));
        let mut elf = [0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18..20].copy_from_slice(&machine.to_le_bytes());
        std::fs::write(&path, elf).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        vec![path.into()]
    }

    fn line<T: std::fmt::Debug>(result: Result<T, CaptureError>) -> String {
        match result {
            Err(error @ CaptureError::Program { code: 126, .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_access_is_seen_by_the_backend_for_the_programs_machine() {
        let folder = tempfile::tempdir().unwrap();
        let exact = |machine, mode| exact_backend(&program(folder.path(), machine, mode));
        assert_eq!(exact(NATIVE, 0o755).unwrap(), RecorderBackend::Valgrind);
        assert_eq!(exact(FOREIGN, 0o755).unwrap(), RecorderBackend::Qemu);
        let unknown = line(exact(NOBODYS, 0o755));
        assert!(unknown.ends_with("4660-755: is for ELF machine 4660, which no recorder supports"), "{unknown}");
        for mode in [0o4755, 0o2755] {
            let privileged = line(exact(NATIVE, mode));
            assert!(privileged.contains("is setuid or setgid") && privileged.contains("--backend sample"));
        }
        assert!(matches!(exact_backend(&[]), Err(CaptureError::Program { code: 127, .. })));
    }

    #[test]
    fn the_choice_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let target = |machine, mode| RecordTarget::Command(program(folder.path(), machine, mode));
        let chosen = |target| choose(&RecordRequest { backend: None, ..RecordRequest::sampling(target, 1) });
        let said = |target| {
            let (backend, note) = chosen(target).unwrap();
            (backend, note.expect("a reason"))
        };
        // What was asked for is taken without a look at the program.
        let asked = RecordRequest::sampling(RecordTarget::Command(vec!["/no/such/program".into()]), 1);
        for backend in [RecorderBackend::Valgrind, RecorderBackend::Qemu, RecorderBackend::Sample] {
            assert_eq!(choose(&RecordRequest { backend: Some(backend), ..asked.clone() }).unwrap(), (backend, None));
        }
        let running =
            "sampled: a process that is already running can't be recorded whole; --every 1s records intervals of it";
        assert_eq!(said(RecordTarget::Pid(1)), (RecorderBackend::Sample, running.into()));
        let foreign = "exact, by qemu-riscv64: the program is for another instruction set";
        assert_eq!(said(target(FOREIGN, 0o755)), (RecorderBackend::Qemu, foreign.into()));
        let privileged = "sampled: the program is setuid or setgid, which Valgrind can't run";
        assert_eq!(said(target(NATIVE, 0o4755)), (RecorderBackend::Sample, privileged.into()));
        let native = match valgrind::missing() {
            None => (RecorderBackend::Valgrind, "exact, by valgrind: every access of the program".into()),
            Some(why) => {
                (RecorderBackend::Sample, format!("sampled: {why}; with it every access would be counted exactly"))
            }
        };
        assert_eq!(said(target(NATIVE, 0o755)), native);
        assert!(line(chosen(target(NOBODYS, 0o755))).contains("ELF machine 4660"));
    }
}
