//! Starts the program under a recorder that writes into a pipe; stops it and waits for it. Valgrind and QEMU use it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::pipe::PipeFlags;
use tempfile::TempDir;

use crate::error::CaptureError;
use crate::program::{inspect_program, ProgramFile};
use crate::recording::{ChildEnd, ProgramControl};
use crate::request::{RecordRequest, RecordTarget};
use crate::wire::{LiveProcesses, MAX_LOG2_CLASSES, MAX_WINDOW};

/// Time between SIGTERM and SIGKILL in [`ProgramControl::stop`].
const GRACE: Duration = Duration::from_secs(2);
/// Bytes of the pipe: the most that ordinary users get.
const PIPE_BYTES: usize = 1 << 20;

/// The command that `request` asks an exact backend to start, and its program's file; an error where no exact backend can.
pub(crate) fn check<'a>(
    request: &'a RecordRequest,
    backend: &'static str,
) -> Result<(&'a [OsString], ProgramFile), CaptureError> {
    let refused = |reason: String| Err(CaptureError::Backend { backend, reason });
    let RecordTarget::Command(command) = &request.target else {
        return refused("can't watch a process that runs already; use --backend sample".into());
    };
    let window = request.filter_window;
    let classes = request.filter_log2_classes.max(window.log2_classes);
    if classes > MAX_LOG2_CLASSES {
        return refused(format!("2^{classes} filter classes, the most is 2^{MAX_LOG2_CLASSES}"));
    }
    if window.pages > MAX_WINDOW {
        return refused(format!("a filter window of {} pages, the most is {MAX_WINDOW}", window.pages));
    }
    if window.pages > 0 && !(1..=MAX_WINDOW).contains(&window.class_pages) {
        let of_class = window.class_pages;
        return refused(format!("{of_class} pages of a class in a filter window, it can be 1 to {MAX_WINDOW}"));
    }
    Ok((command, inspect_program(command)?))
}

/// The pipe that a recorder writes into.
pub(crate) struct RecorderPipe {
    /// Ours.
    pub(crate) reader: OwnedFd,
    /// The recorder's; inherited under the same number.
    pub(crate) writer: OwnedFd,
}

impl RecorderPipe {
    pub(crate) fn new() -> Result<RecorderPipe, CaptureError> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| CaptureError::Io { what: "making a pipe".into(), source: error.into() })?;
        // A smaller pipe is slower and no less right.
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES);
        Ok(RecorderPipe { reader, writer })
    }

    /// Starts the recorder, which inherits the pipe and `files`; gives our end of the pipe.
    pub(crate) fn spawn(self, mut recorder: Command, files: &[&OwnedFd]) -> Result<(OwnedFd, Child), CaptureError> {
        let inherited: Vec<RawFd> = [&[&self.writer], files].concat().iter().map(|file| file.as_raw_fd()).collect();
        // SAFETY: between fork and exec only fcntl is called, which is async-signal-safe; the files are open until after the spawn.
        unsafe {
            recorder.pre_exec(move || {
                for &file in &inherited {
                    if libc::fcntl(file, libc::F_SETFD, 0) == -1 {
                        return Err(io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
        let child = recorder.spawn().map_err(|source| CaptureError::Io {
            what: format!("starting {}", recorder.get_program().to_string_lossy()),
            source,
        })?;
        Ok((self.reader, child))
    }
}

/// A program that runs under a recorder.
pub(crate) struct LaunchedProgram {
    pid: u32,
    state: Arc<Mutex<RecorderProcess>>,
    processes: LiveProcesses,
    /// What its processes run: the tool or the emulator. Nothing else is ever killed.
    executables: Vec<PathBuf>,
    /// Folders that the recorder needs; removed after the recording.
    _folders: Vec<TempDir>,
}

struct RecorderProcess {
    child: Child,
    end: Option<ChildEnd>,
    stopping: bool,
}

impl LaunchedProgram {
    /// `processes`: those of the reader of its pipe; `executables`: what they run under the recorder.
    pub(crate) fn new(
        child: Child,
        processes: LiveProcesses,
        executables: Vec<PathBuf>,
        folders: Vec<TempDir>,
    ) -> LaunchedProgram {
        let state = Arc::new(Mutex::new(RecorderProcess { child, end: None, stopping: false }));
        let pid = lock(&state).child.id();
        LaunchedProgram { pid, state, processes, executables, _folders: folders }
    }
}

impl ProgramControl for LaunchedProgram {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn stop(&self) {
        let mut state = lock(&self.state);
        if std::mem::replace(&mut state.stopping, true) {
            return;
        }
        if state.end.is_none() {
            kill(self.pid, libc::SIGTERM);
        }
        drop(state);
        let (pid, state) = (self.pid, Arc::clone(&self.state));
        let (processes, executables) = (self.processes.clone(), self.executables.clone());
        std::thread::spawn(move || {
            std::thread::sleep(GRACE);
            if lock(&state).end.is_none() {
                kill(pid, libc::SIGKILL);
            }
            // Its children, which SIGTERM to the program need not have reached; a pid that is another program's by now is left alone.
            for process in processes.live() {
                if lookaside_host::Process::of(process).exe().is_ok_and(|exe| executables.contains(&exe)) {
                    kill(process, libc::SIGKILL);
                }
            }
        });
    }

    fn wait(&self) -> Result<ChildEnd, CaptureError> {
        let failed = |source| CaptureError::Io { what: format!("waiting for process {}", self.pid), source };
        // Without the lock, so that `stop` can be called meanwhile; without reaping, so that the pid stays the program's.
        loop {
            if let Some(end) = lock(&self.state).end {
                return Ok(end);
            }
            let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
            let pid = rustix::process::Pid::from_raw(self.pid as i32)
                .ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
            match rustix::process::waitid(rustix::process::WaitId::Pid(pid), options) {
                Err(rustix::io::Errno::INTR) => {}
                // ECHILD: another thread has reaped it, and its end is known by the time of the next look.
                Ok(_) | Err(rustix::io::Errno::CHILD) => break,
                Err(error) => return Err(failed(error.into())),
            }
        }
        let mut state = lock(&self.state);
        if let Some(end) = state.end {
            return Ok(end);
        }
        let status = state.child.wait().map_err(failed)?;
        let end = match status.signal() {
            Some(signal) => ChildEnd::Signal(signal),
            None => ChildEnd::Code(status.code().unwrap_or(0)),
        };
        state.end = Some(end);
        Ok(end)
    }
}

fn lock(state: &Mutex<RecorderProcess>) -> MutexGuard<'_, RecorderProcess> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill(pid: u32, signal: i32) {
    // SAFETY: kill(2) takes numbers only; the caller holds a process that has not been reaped, or one that it has just looked at.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}
