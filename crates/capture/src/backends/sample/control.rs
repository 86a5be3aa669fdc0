//! Stopping and waiting for a sampled program.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::child_state::{child_state, ChildState};
use super::collector::CollectorState;
use crate::error::CaptureError;
use crate::recording::{ChildEnd, ProgramControl};

/// Between SIGTERM and SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);

/// A sampled program: a process of somebody else's, or a child of ours.
pub enum SampledProgram {
    /// A process that is not ours.
    Attached,
    /// Our child.
    Child(Mutex<ChildHandle>),
}

/// A child of ours, before and after it was waited for.
pub enum ChildHandle {
    /// Not waited for yet.
    Running(Child),
    /// Waited for.
    Ended(ChildEnd),
}

/// Stops and waits for a sampled program.
pub struct SampleControl {
    /// Its process.
    pub pid: u32,
    /// What it is.
    pub program: Arc<SampledProgram>,
    /// Shared with the collecting thread.
    pub collector: Arc<CollectorState>,
}

impl ProgramControl for SampleControl {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn stop(&self) {
        if self.collector.stop.swap(true, Ordering::Relaxed) {
            return;
        }
        if let SampledProgram::Child(_) = *self.program {
            self.program.signal(libc::SIGTERM);
            let (program, pid) = (Arc::clone(&self.program), self.pid);
            std::thread::spawn(move || {
                let until = Instant::now() + PATIENCE;
                while Instant::now() < until && child_state(pid) == ChildState::Running {
                    std::thread::sleep(Duration::from_millis(20));
                }
                program.signal(libc::SIGKILL);
            });
        }
    }

    fn wait(&self) -> Result<ChildEnd, CaptureError> {
        self.program
            .wait()
            .map_err(|source| CaptureError::Io { what: format!("waiting for process {}", self.pid), source })
    }
}

impl SampledProgram {
    /// Sends a signal to a child that has not been waited for: its pid is then surely its own.
    fn signal(&self, signal: i32) {
        if let SampledProgram::Child(state) = self {
            if let ChildHandle::Running(child) = &*lock(state) {
                // SAFETY: no memory is involved.
                unsafe { libc::kill(child.id() as libc::pid_t, signal) };
            }
        }
    }

    fn wait(&self) -> io::Result<ChildEnd> {
        // Polled, so that the lock is free for `signal` meanwhile.
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(end) = self.poll()? {
                return Ok(end);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    fn poll(&self) -> io::Result<Option<ChildEnd>> {
        let SampledProgram::Child(state) = self else { return Ok(Some(ChildEnd::Detached)) };
        let mut state = lock(state);
        let end = match &mut *state {
            ChildHandle::Ended(end) => return Ok(Some(*end)),
            ChildHandle::Running(child) => child.try_wait()?,
        };
        let end = end.map(|status| match (status.code(), status.signal()) {
            (Some(code), _) => ChildEnd::Code(code),
            (None, signal) => ChildEnd::Signal(signal.unwrap_or(0)),
        });
        if let Some(end) = end {
            *state = ChildHandle::Ended(end);
        }
        Ok(end)
    }
}

/// The state is whole also where a holder of the lock panicked.
fn lock(state: &Mutex<ChildHandle>) -> MutexGuard<'_, ChildHandle> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    /// A shell that runs this and has said something.
    fn running(script: &str) -> SampleControl {
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let (pid, program) = (child.id(), SampledProgram::Child(Mutex::new(ChildHandle::Running(child))));
        SampleControl { pid, program: Arc::new(program), collector: Arc::default() }
    }

    #[test]
    fn a_program_that_is_stopped_has_time_to_end() {
        let control = running("trap 'sleep 0.1; exit 5' TERM; echo; while :; do :; done");
        assert!(control.program.poll().unwrap().is_none());
        assert!(!control.collector.stop.load(Ordering::Relaxed));
        control.stop();
        control.stop();
        assert!(control.collector.stop.load(Ordering::Relaxed));
        // The end is kept.
        for _ in 0..2 {
            assert_eq!(control.wait().unwrap(), ChildEnd::Code(5));
        }
        assert_eq!(child_state(control.pid()), ChildState::Gone);
    }

    #[test]
    fn an_end_by_a_signal_is_told() {
        assert_eq!(running("echo; kill -9 $$").wait().unwrap(), ChildEnd::Signal(9));
    }

    #[test]
    fn a_process_that_is_not_ours_is_let_go() {
        let mut child = Command::new("sleep").arg("5").spawn().unwrap();
        let control =
            SampleControl { pid: child.id(), program: Arc::new(SampledProgram::Attached), collector: Arc::default() };
        control.stop();
        assert_eq!((control.pid(), control.wait().unwrap()), (child.id(), ChildEnd::Detached));
        assert_eq!(child_state(child.id()), ChildState::Running);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
