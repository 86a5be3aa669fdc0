//! Starting, stopping and waiting for a plain run.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{pidfd_send_signal, Signal};

use super::guest::QemuGuest;
use super::maps::{Aslr, PlainRunMaps, StoppedProgram};
use super::tracer;
use crate::backends::plain_qemu_command;
use crate::error::CaptureError;
use crate::program::{inspect_program, ProgramIsa};

/// Time between SIGTERM and SIGKILL in [`PlainRun::stop`], as for recordings.
const GRACE: Duration = Duration::from_secs(2);

/// A program that runs plainly. Its output and signals pass through; but job control's stops don't hold it. If we are
/// killed, it is too; what it has forked runs on, unseen.
#[derive(Debug)]
pub struct PlainRun {
    pid: u32,
    process: OwnedFd,
    tracer: Mutex<Option<JoinHandle<Result<PlainRunMaps, CaptureError>>>>,
}

impl PlainRun {
    /// Starts a command. `at_stop` is called at each [stop point](super::StopPoint), while the program is stopped; if
    /// it executes another program, the points come again, and the last maps stand.
    ///
    /// # Errors
    /// The program can't be started, is for a processor that QEMU can't stand in for here, has rights of its own, or
    /// may not be traced here.
    pub fn start(
        command: &[OsString],
        aslr: Aslr,
        at_stop: impl FnMut(&StoppedProgram<'_>) + Send + 'static,
    ) -> Result<PlainRun, CaptureError> {
        let refused = |reason: String| CaptureError::Program {
            program: command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            reason,
            code: 126,
        };
        let program = inspect_program(command)?;
        let (command, guest) = match program.isa {
            _ if program.privileged => {
                return Err(refused("is setuid or setgid: traced, it would run without its rights".into()))
            }
            ProgramIsa::Native => (command.to_vec(), None),
            ProgramIsa::Foreign(isa) => {
                let making = |source| CaptureError::Io { what: "a temporary file for QEMU's log".into(), source };
                let guest = QemuGuest::new().map_err(making)?;
                (plain_qemu_command(command, &program, isa, guest.log()).map_err(refused)?, Some(guest))
            }
            ProgramIsa::Unknown(machine) => return Err(refused(format!("is for ELF machine {machine}, not this one"))),
        };
        let (pid, process, tracer) = tracer::start(command, aslr, Box::new(at_stop), guest)?;
        Ok(PlainRun { pid, process, tracer: Mutex::new(Some(tracer)) })
    }

    /// Process id of the program.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks it to end: SIGTERM, then SIGKILL after two seconds.
    pub fn stop(&self) {
        // What has ended needs no signal.
        let _ = pidfd_send_signal(&self.process, Signal::TERM);
        if let Ok(process) = self.process.try_clone() {
            std::thread::spawn(move || {
                std::thread::sleep(GRACE);
                let _ = pidfd_send_signal(&process, Signal::KILL);
            });
        }
    }

    /// Waits for its end. Only the first call has an answer.
    ///
    /// # Errors
    /// It could not be traced to its end; it is killed then.
    pub fn wait(&self) -> Result<PlainRunMaps, CaptureError> {
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = |why: &str| CaptureError::Io {
            what: format!("waiting for process {}", self.pid),
            source: std::io::Error::other(why.to_owned()),
        };
        let tracer = tracer.ok_or_else(|| ended("it was waited for already"))?;
        tracer.join().unwrap_or_else(|_| Err(ended("what looked at it panicked")))
    }
}

impl Drop for PlainRun {
    fn drop(&mut self) {
        let left = self.tracer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tracer) = left {
            let _ = pidfd_send_signal(&self.process, Signal::KILL);
            let _ = tracer.join();
        }
    }
}
