//! A program that is started to be tried on.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lookaside_capture::{CaptureError, ChildEnd, ProgramControl};
use lookaside_cli::exit::Failure;
use lookaside_runtime::hugepages::{collapse_side, remote_collapse, when_set_up, CollapseSide};

use crate::launch::Launch;
use crate::preload::library::{self, check_loadable, BAKER, HUGEPAGES_INSTEAD};

/// The program, which goes on when the trial is over.
pub struct TrialProgram {
    child: Arc<TrialChild>,
}

/// The child, which is ended by a signal and waited for.
struct TrialChild {
    pid: u32,
    child: Mutex<Child>,
}

impl TrialProgram {
    /// Starts it; with the preloaded library where there is no right to change its memory from outside.
    pub fn start(command: &[OsString]) -> Result<Self, Failure> {
        let side = collapse_side().map_err(Failure::bad)?;
        let mut launch = Launch::of(command);
        if side == CollapseSide::Inside {
            check_loadable(command, HUGEPAGES_INSTEAD)?;
            launch.preload(&library::find(&BAKER)?);
            launch.command.env(remote_collapse::VARIABLE, remote_collapse::VALUE);
        }
        let child = launch.spawn()?;
        Ok(Self { child: Arc::new(TrialChild { pid: child.id(), child: Mutex::new(child) }) })
    }

    /// For signals.
    pub fn control(&self) -> Arc<dyn ProgramControl> {
        Arc::clone(&self.child) as Arc<dyn ProgramControl>
    }

    /// Waits until it has set up its memory. Gives it and those that it started.
    pub fn when_set_up(&self, stop: &dyn Fn() -> bool) -> Result<Vec<u32>, Failure> {
        let pids = when_set_up(self.child.pid, stop);
        match pids.is_empty() {
            false => Ok(pids),
            true => Err(Failure::bad("the program ended, or has less than 8 MiB of memory: there is nothing to try")),
        }
    }

    /// Waits for its end; its exit code, or 128 and the signal that ended it.
    pub fn wait(&mut self) -> Result<u8, Failure> {
        Ok(match self.child.wait()? {
            ChildEnd::Code(code) => (code & 0xff) as u8,
            ChildEnd::Signal(signal) => (128 + (signal & 0x7f)) as u8,
            ChildEnd::Detached => 0,
        })
    }
}

impl TrialChild {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgramControl for TrialChild {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn stop(&self) {
        let _ = self.child().kill(); // it has ended already
    }

    fn wait(&self) -> Result<ChildEnd, CaptureError> {
        /// So often it is looked whether it has ended, so that a signal can end it meanwhile.
        const LOOK: Duration = Duration::from_millis(20);
        loop {
            let status = self.child().try_wait();
            match status.map_err(|source| CaptureError::Io { what: "waiting for the program".into(), source })? {
                Some(status) => {
                    let signal = status.signal().map(ChildEnd::Signal);
                    return Ok(signal.unwrap_or(ChildEnd::Code(status.code().unwrap_or(0))));
                }
                None => std::thread::sleep(LOOK),
            }
        }
    }
}
