//! The hold on a sampled program.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::collect::{child_state, ChildState, Shared};
use crate::{CaptureError, ChildEnd, Control};

/// Between SIGTERM and SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whom it holds.
pub enum Program {
    /// A process that is not ours.
    Attached,
    /// Our child.
    Child(Mutex<State>),
}

/// How a child fares.
pub enum State {
    /// Not waited for yet.
    Running(Child),
    /// Waited for.
    Ended(ChildEnd),
}

/// The hold.
pub struct SampleControl {
    /// Its process.
    pub pid: u32,
    /// What it is.
    pub program: Arc<Program>,
    /// To tell the collecting thread.
    pub shared: Arc<Shared>,
}

impl Control for SampleControl {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn stop(&self) {
        if self.shared.stop.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Program::Child(_) = *self.program {
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

impl Program {
    /// Sends a signal to a child that has not been waited for: its pid is then surely its own.
    fn signal(&self, signal: i32) {
        if let Program::Child(state) = self {
            if let State::Running(child) = &*lock(state) {
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
        let Program::Child(state) = self else { return Ok(Some(ChildEnd::Detached)) };
        let mut state = lock(state);
        let end = match &mut *state {
            State::Ended(end) => return Ok(Some(*end)),
            State::Running(child) => child.try_wait()?,
        };
        let end = end.map(|status| match (status.code(), status.signal()) {
            (Some(code), _) => ChildEnd::Code(code),
            (None, signal) => ChildEnd::Signal(signal.unwrap_or(0)),
        });
        if let Some(end) = end {
            *state = State::Ended(end);
        }
        Ok(end)
    }
}

/// The state is whole also where a holder of the lock panicked.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
