//! Starts a program and holds it before its first instruction, where its libraries are mapped already.

use std::ffi::OsString;
use std::io;
use std::process::Child;

use lookaside_host::Process;

use super::tracee::{Stop, Tracee};
use crate::backends::{prepare_child, ChildSetup};
use crate::error::CaptureError;

/// Of a process's auxiliary vector (getauxval(3)): where the program begins.
const AT_ENTRY: u64 = 9;
/// Debug register 7 with register 0 as a breakpoint on execution (Intel SDM 3B, 18.2.4: L0 set, R/W0 and LEN0 zero).
const FIRST_ON_EXECUTION: u64 = 1;

/// A program that is held at its entry.
#[derive(Debug)]
pub(super) struct HeldProgram {
    child: Child,
    tracee: Tracee,
}

impl HeldProgram {
    /// Starts a program. The thread that calls this is the only one that can let it go.
    ///
    /// # Errors
    /// It can't be started, or ends before it begins.
    pub(super) fn start(command: &[OsString]) -> Result<Self, CaptureError> {
        let failed = |source| CaptureError::Io { what: "holding the program at its entry".into(), source };
        let waiting = prepare_child(command, ChildSetup::AsOurs)?;
        let seized = Tracee::seize_with(waiting.pid() as libc::pid_t, libc::PTRACE_O_TRACEEXEC);
        let tracee = match seized {
            Ok(tracee) => tracee,
            Err(error) => {
                waiting.cancel();
                return Err(failed(error));
            }
        };
        let held = Self { child: waiting.run()?, tracee };
        match held.go_to_entry() {
            Ok(()) => Ok(held),
            Err(error) => {
                held.end();
                Err(failed(error))
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it run.
    pub(super) fn run(self) -> Child {
        self.tracee.detach(0);
        self.child
    }

    /// Ends it: nothing of it has run but what its libraries do when they are loaded.
    pub(super) fn end(mut self) {
        // It is there until it is waited for, and has no way to refuse.
        let _ = self.child.kill();
        self.tracee.detach(0);
        let _ = self.child.wait();
    }

    fn go_to_entry(&self) -> io::Result<()> {
        self.go_to(|stop| stop == Stop::Event(libc::PTRACE_EVENT_EXEC))?;
        self.tracee.set_options(0)?;
        let entry = self.entry().ok_or(io::ErrorKind::InvalidData)?;
        self.tracee.set_debug_register(0, entry)?;
        self.tracee.set_debug_register(7, FIRST_ON_EXECUTION)?;
        self.tracee.go_on(0)?;
        self.go_to(|stop| stop == Stop::Signal(libc::SIGTRAP))?;
        self.tracee.set_debug_register(7, 0)
    }

    fn go_to(&self, is_it: impl Fn(Stop) -> bool) -> io::Result<()> {
        loop {
            match self.tracee.wait(true)? {
                Some(stop) if is_it(stop) => return Ok(()),
                Some(Stop::Ended) | None => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
                Some(Stop::Signal(signal)) => self.tracee.go_on(signal)?,
                Some(Stop::Group) => self.tracee.listen()?,
                Some(Stop::Call | Stop::Event(_)) => self.tracee.go_on(0)?,
            }
        }
    }

    fn entry(&self) -> Option<u64> {
        let bytes = Process::of(self.pid()).bytes("auxv").ok()?;
        let words: Vec<u64> =
            bytes.chunks_exact(8).filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?))).collect();
        words.chunks_exact(2).find(|pair| pair[0] == AT_ENTRY).map(|pair| pair[1])
    }
}
