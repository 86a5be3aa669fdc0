//! Where everything of a program lies in a plain run of it: no recorder's memory is among it.
//!
//! The program runs at nearly its own speed: it stops at its system calls only, to see its mappings being made. A 32-bit
//! program for another processor runs under QEMU's user mode, without our plugin; addresses are its own then.

mod calls;
mod guest;
mod stops;
mod tracer;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lookaside_trace::Region;
use rustix::process::{pidfd_send_signal, Signal};

use crate::program::{self, Isa};
use crate::{qemu, CaptureError, ChildEnd};
pub(crate) use guest::Guest;

/// Time between SIGTERM and SIGKILL in [`NativeRun::stop`], as for recordings.
const GRACE: Duration = Duration::from_secs(2);

/// Whether the kernel puts stack, heap, libraries and program at random places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The same places in each run with the same arguments and environment (`personality(ADDR_NO_RANDOMIZE)`).
    Fixed,
    /// As the system has it.
    System,
}

/// A time at which the program was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The libraries that it begins with are mapped; none of its own functions has made a system call.
    Loaded,
    /// Right before its end, by itself or by a signal: all that it has mapped is still there.
    Exit,
}

/// A stopped program.
#[derive(Debug)]
pub struct Stopped<'a> {
    /// When.
    pub moment: Moment,
    /// What is mapped, and what was ([`Region::gone`]), in order of address; [`Region::made`] numbers the calls that made it.
    pub regions: &'a [Region],
    /// As in [`NativeMaps::entry_stack`].
    pub entry_stack: Option<u64>,
    process: u32,
    /// Where the program's address 0 is in the process.
    base: u64,
}

impl Stopped<'_> {
    /// Copies the program's bytes at `addr`; how many could be read.
    pub fn read(&self, addr: u64, into: &mut [u8]) -> usize {
        crate::sample::read_memory(self.process, self.base.wrapping_add(addr), into)
    }
}

/// What a plain run was like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeMaps {
    /// [`Stopped::regions`] at [`Moment::Loaded`]; empty if the program didn't come so far.
    pub loaded: Vec<Region>,
    /// [`Stopped::regions`] at [`Moment::Exit`]; empty if it was killed before it could be looked at.
    pub exit: Vec<Region>,
    /// Stack pointer at the first instruction; `None` = the kernel doesn't say.
    pub entry_stack: Option<u64>,
    /// It ran under QEMU: a program for another processor.
    pub emulated: bool,
    /// How the program ended: its own exit code or signal.
    pub end: ChildEnd,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// A program that runs plainly. Its output and signals pass through; but job control's stops don't hold it. If we are
/// killed, it is too; what it has forked runs on, unseen.
#[derive(Debug)]
pub struct NativeRun {
    pid: u32,
    process: OwnedFd,
    tracer: Mutex<Option<JoinHandle<Result<NativeMaps, CaptureError>>>>,
}

impl NativeRun {
    /// Starts a command. `look` is called whenever the program has come to a [`Moment`], and holds it up; if it executes
    /// another program, the moments come again, and the last ones stand.
    ///
    /// # Errors
    /// The program can't be started, is for a processor that QEMU can't stand in for here, has rights of its own, or may not
    /// be traced here.
    pub fn start(
        command: &[OsString],
        placement: Placement,
        look: impl FnMut(&Stopped<'_>) + Send + 'static,
    ) -> Result<NativeRun, CaptureError> {
        let refused = |reason: String| CaptureError::Program {
            program: command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            reason,
            code: 126,
        };
        let program = program::inspect(command)?;
        let (command, guest) = match program.isa {
            _ if program.privileged => {
                return Err(refused("is setuid or setgid: traced, it would run without its rights".into()))
            }
            Isa::Native => (command.to_vec(), None),
            Isa::Foreign(isa) => {
                let making = |source| CaptureError::Io { what: "a temporary file for QEMU's log".into(), source };
                let guest = Guest::new().map_err(making)?;
                (qemu::plain(command, &program, isa, guest.log()).map_err(refused)?, Some(guest))
            }
            Isa::Unknown(machine) => return Err(refused(format!("is for ELF machine {machine}, not this one"))),
        };
        let (pid, process, tracer) = tracer::start(command, placement, Box::new(look), guest)?;
        Ok(NativeRun { pid, process, tracer: Mutex::new(Some(tracer)) })
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
    pub fn wait(&self) -> Result<NativeMaps, CaptureError> {
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = |why: &str| CaptureError::Io {
            what: format!("waiting for process {}", self.pid),
            source: std::io::Error::other(why.to_owned()),
        };
        let tracer = tracer.ok_or_else(|| ended("it was waited for already"))?;
        tracer.join().unwrap_or_else(|_| Err(ended("what looked at it panicked")))
    }
}

impl Drop for NativeRun {
    fn drop(&mut self) {
        let left = self.tracer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tracer) = left {
            let _ = pidfd_send_signal(&self.process, Signal::KILL);
            let _ = tracer.join();
        }
    }
}
