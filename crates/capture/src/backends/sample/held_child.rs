//! A child that is held between fork and exec, so that its events can be opened before its first instruction.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use crate::error::CaptureError;

/// A child held between fork and exec.
pub struct HeldChild {
    program: String,
    pid: u32,
    go: OwnedFd,
    spawning: JoinHandle<io::Result<Child>>,
}

/// How a child differs from us when it starts.
#[derive(Debug, Default)]
pub enum ChildSetup {
    /// Output, input, working directory and memory policy are ours.
    #[default]
    AsOurs,
    /// It reads this (nothing, if `None`), its output is thrown away, and it has small pages only.
    Aside(Option<File>),
}

/// Forks a child that will run `command` once told to.
pub fn prepare(command: &[OsString], setup: ChildSetup) -> Result<HeldChild, CaptureError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(CaptureError::Program { program: String::new(), reason: "no program given".into(), code: 127 });
    };
    let name = program.to_string_lossy().into_owned();
    let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
    let io_error = |source: rustix::io::Errno| CaptureError::Io { what: "pipe".into(), source: source.into() };
    let (pid_reader, pid_writer) = pipe().map_err(io_error)?;
    let (go_reader, go_writer) = pipe().map_err(io_error)?;

    let mut command = Command::new(program);
    command.args(arguments);
    let aside = matches!(setup, ChildSetup::Aside(_));
    if let ChildSetup::Aside(input) = setup {
        command.stdin(input.map_or_else(Stdio::null, Stdio::from)).stdout(Stdio::null()).stderr(Stdio::null());
    }
    let (pid_fd, go_fd, our_go) = (pid_writer.as_raw_fd(), go_reader.as_raw_fd(), go_writer.as_raw_fd());
    let wait_for_go = move || {
        let pid = std::process::id().to_ne_bytes();
        let mut go = [0u8; 1];
        // SAFETY: the descriptors are open in the child, which this closure runs in alone, and the
        // buffers live through the calls; close, write and read are async-signal-safe.
        let read = unsafe {
            // Else our own copy would keep the pipe open, and the end of the parent go unnoticed.
            libc::close(our_go);
            if aside {
                // Outlives the exec and goes to children. A kernel that refuses has no huge pages.
                libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
            }
            libc::write(pid_fd, pid.as_ptr().cast(), pid.len());
            libc::read(go_fd, go.as_mut_ptr().cast(), 1)
        };
        match read {
            1 => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
        }
    };
    // SAFETY: the closure allocates nothing and calls async-signal-safe functions only.
    unsafe { command.pre_exec(wait_for_go) };
    // `spawn` returns after exec, so it has to wait on a thread of its own.
    let spawning = std::thread::spawn(move || {
        let child = command.spawn();
        drop((pid_writer, go_reader));
        child
    });
    let mut pid = [0; 4];
    match std::fs::File::from(pid_reader).read_exact(&mut pid) {
        Ok(()) => Ok(HeldChild { program: name, pid: u32::from_ne_bytes(pid), go: go_writer, spawning }),
        Err(_) => Err(join(&name, spawning).err().unwrap_or_else(|| cannot_start(&name, &io::ErrorKind::Other.into()))),
    }
}

impl HeldChild {
    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it run its program.
    pub fn run(self) -> Result<Child, CaptureError> {
        let written = std::fs::File::from(self.go).write_all(&[1]);
        let child = join(&self.program, self.spawning)?;
        written.map(|()| child).map_err(|source| CaptureError::Io { what: "pipe".into(), source })
    }

    /// Ends it without running its program.
    pub fn cancel(self) {
        drop(self.go);
        // The child reports the cancellation as its failure to start, and std reaps it.
        drop(self.spawning.join());
    }
}

fn join(program: &str, spawning: JoinHandle<io::Result<Child>>) -> Result<Child, CaptureError> {
    match spawning.join() {
        Ok(child) => child.map_err(|error| cannot_start(program, &error)),
        Err(_) => Err(cannot_start(program, &io::ErrorKind::Other.into())),
    }
}

fn cannot_start(program: &str, error: &io::Error) -> CaptureError {
    let (reason, code) = match error.kind() {
        io::ErrorKind::NotFound => ("not found: check the name and PATH".to_owned(), 127),
        io::ErrorKind::PermissionDenied => ("not executable: check its permissions".to_owned(), 126),
        _ if error.raw_os_error() == Some(libc::ENOEXEC) => {
            ("not a program that this system runs: wants an ELF file or a script with #!".to_owned(), 126)
        }
        _ => (format!("cannot be started: {error}"), 126),
    };
    CaptureError::Program { program: program.to_owned(), reason, code }
}

#[cfg(test)]
mod tests {
    use super::super::child_state::{child_state, ChildState};
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn runs_only_when_told() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let command = words(&["touch", mark.to_str().unwrap()]);
        let cancelled = prepare(&command, ChildSetup::AsOurs).unwrap();
        let pid = cancelled.pid();
        cancelled.cancel();
        assert!(!mark.exists());
        assert_eq!(child_state(pid), ChildState::Gone, "nothing of it is left");
        let waiting = prepare(&command, ChildSetup::AsOurs).unwrap();
        let pid = waiting.pid();
        assert!(!mark.exists());
        let mut child = waiting.run().unwrap();
        assert_eq!(child.id(), pid);
        assert!(child.wait().unwrap().success() && mark.exists());
    }

    #[test]
    fn says_why_it_cannot_start() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "x").unwrap();
        for (program, expected) in [("/nonexistent/program", 127), (plain.to_str().unwrap(), 126)] {
            match prepare(&words(&[program]), ChildSetup::AsOurs).and_then(|waiting| waiting.run().map(drop)) {
                Err(CaptureError::Program { code, program: named, .. }) => {
                    assert_eq!((code, named.as_str()), (expected, program))
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(prepare(&[], ChildSetup::AsOurs), Err(CaptureError::Program { code: 127, .. })));
    }

    #[test]
    fn a_refusal_to_start_says_what_to_look_at() {
        for (error, code, word) in [
            (libc::ENOENT, 127, "check the name and PATH"),
            (libc::EACCES, 126, "check its permissions"),
            (libc::ENOEXEC, 126, "wants an ELF file or a script with #!"),
            (libc::ENOMEM, 126, "cannot be started: "),
        ] {
            let error = io::Error::from_raw_os_error(error);
            match cannot_start("name", &error) {
                CaptureError::Program { program, reason, code: told } => {
                    assert_eq!((program.as_str(), told), ("name", code));
                    assert!(reason.contains(word), "{reason}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
