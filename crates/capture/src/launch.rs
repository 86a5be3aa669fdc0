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

/// The command that `request` asks an exact backend to start, and its program's file; an error where no exact backend
/// can.
pub(crate) fn check<'a>(
    request: &'a RecordRequest,
    backend: &'static str,
) -> Result<(&'a [OsString], ProgramFile), CaptureError> {
    let refused = |reason: String| Err(CaptureError::Backend { backend, reason });
    let RecordTarget::Command(command) = &request.target else {
        return refused("can't watch a process that is already running; use --backend sample".into());
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
        // SAFETY: between fork and exec only fcntl is called, which is async-signal-safe; the files are open until
        // after the spawn.
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
            // Its children, which SIGTERM to the program need not have reached; a pid that is another program's by now
            // is left alone.
            for process in processes.live() {
                if lookaside_host::Process::of(process).exe().is_ok_and(|exe| executables.contains(&exe)) {
                    kill(process, libc::SIGKILL);
                }
            }
        });
    }

    fn wait(&self) -> Result<ChildEnd, CaptureError> {
        let failed = |source| CaptureError::Io { what: format!("waiting for process {}", self.pid), source };
        // Without the lock, so that `stop` can be called meanwhile; without reaping, so that the pid stays the
        // program's.
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
    // SAFETY: kill(2) takes numbers only; the caller holds a process that has not been reaped, or one that it has just
    // looked at.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use lookaside_trace::FilterWindow;

    use super::*;

    #[test]
    fn a_filter_beyond_the_recorders_tables_is_refused() {
        let said = |filter_log2_classes, pages, log2_classes, class_pages| {
            let request = RecordRequest {
                filter_log2_classes,
                filter_window: FilterWindow { pages, log2_classes, class_pages },
                ..RecordRequest::sampling(RecordTarget::Command(vec!["sh".into()]), 0)
            };
            let checked = check(&request, "valgrind");
            checked.map(|(command, _)| assert_eq!(command, ["sh"])).err().map(|error| error.to_string())
        };
        // Without a window, nothing is asked of its classes' pages.
        for (classes, pages, window_classes, class_pages) in
            [(0, 0, 0, 0), (12, 0, 0, 0), (0, 64, 12, 64), (0, 1, 0, 1), (0, 0, 0, 65)]
        {
            assert_eq!(said(classes, pages, window_classes, class_pages), None);
        }
        let refused = |reason: &str| Some(format!("backend valgrind: {reason}"));
        assert_eq!(said(13, 0, 0, 0), refused("2^13 filter classes, the most is 2^12"));
        assert_eq!(said(0, 1, 14, 1), refused("2^14 filter classes, the most is 2^12"));
        assert_eq!(said(0, 65, 0, 1), refused("a filter window of 65 pages, the most is 64"));
        assert_eq!(said(0, 64, 0, 0), refused("0 pages of a class in a filter window, it can be 1 to 64"));
        assert_eq!(said(0, 1, 0, 65), refused("65 pages of a class in a filter window, it can be 1 to 64"));
        let running = RecordRequest::sampling(RecordTarget::Pid(1), 0);
        let error = check(&running, "qemu").err().map(|error| error.to_string());
        let reason = "can't watch a process that is already running; use --backend sample";
        assert_eq!(error, Some(format!("backend qemu: {reason}")));
    }

    #[test]
    fn a_recorder_inherits_a_pipe_that_is_no_smaller_than_others() {
        let (_, plain) = rustix::pipe::pipe().expect("a pipe");
        let bytes = |pipe: &OwnedFd| rustix::pipe::fcntl_getpipe_size(pipe).expect("its size");
        let pipe = RecorderPipe::new().expect("a pipe");
        assert!(bytes(&pipe.writer) >= bytes(&plain));
        let file: OwnedFd = File::open("/dev/null").expect("a file").into();
        let (into, other) = (pipe.writer.as_raw_fd(), file.as_raw_fd());
        let mut recorder = Command::new("sh");
        recorder.args(["-c", &format!("test -e /dev/fd/{other} && printf said >/dev/fd/{into}; exit 7")]);
        let (reader, child) = pipe.spawn(recorder, &[&file]).expect("a shell");
        let program = LaunchedProgram::new(child, LiveProcesses::default(), vec![], vec![]);
        let mut said = String::new();
        File::from(reader).read_to_string(&mut said).expect("it ends");
        assert_eq!((&*said, program.wait().expect("its end")), ("said", ChildEnd::Code(7)));
        let none = RecorderPipe::new().expect("a pipe").spawn(Command::new("/no/such/program"), &[]);
        assert!(none.is_err_and(|error| error.to_string().starts_with("starting /no/such/program: ")));
    }

    #[test]
    fn a_program_is_asked_to_end_and_its_end_is_told_as_often_as_it_is_asked_for() {
        let mut sleep = Command::new("sleep");
        let child = sleep.arg("5").spawn().expect("sleep");
        let pid = child.id();
        let program = LaunchedProgram::new(child, LiveProcesses::default(), vec![], vec![]);
        assert_eq!(program.pid(), pid);
        let ends = std::thread::scope(|scope| {
            let waiting = [(); 2].map(|()| scope.spawn(|| program.wait().expect("its end")));
            program.stop();
            program.stop();
            waiting.map(|wait| wait.join().expect("no panic"))
        });
        assert_eq!(ends, [ChildEnd::Signal(libc::SIGTERM); 2]);
        assert_eq!(program.wait().expect("its end"), ChildEnd::Signal(libc::SIGTERM));
    }
}
