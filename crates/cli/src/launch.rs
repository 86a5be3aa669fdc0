//! Starting a program with a technique applied from within, by a preloaded library, or from outside, by this process.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use rustix::io::Errno;
use rustix::process::{kill_process, waitid, Pid, Signal, WaitId, WaitIdOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::iterator::SignalsInfo;
use signal_hook::low_level::siginfo::Cause;

use lookaside_cli::exit::Failure;

/// A program that is about to be started. One that `lookaside` itself is, with another technique, keeps what is set
/// here already.
pub struct Launch {
    pub command: Command,
    name: String,
}

impl Launch {
    /// The program and its arguments.
    pub fn of(words: &[OsString]) -> Self {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        Self { command, name: words[0].to_string_lossy().into_owned() }
    }

    /// Loads one library more into it.
    pub fn preload(&mut self, library: &Path) {
        let mut preloads = std::env::var_os("LD_PRELOAD").unwrap_or_default();
        if !preloads.is_empty() {
            preloads.push(":");
        }
        preloads.push(library);
        self.command.env("LD_PRELOAD", preloads);
    }

    /// Becomes the program; gives why not.
    pub fn replace_this_process(mut self) -> Failure {
        let error = self.command.exec();
        self.not_started(&error)
    }

    /// Runs it, and prints what its processes wrote at their exits into the file that `variable` names.
    pub fn with_statistics(mut self, variable: &str, summary: fn(&str) -> String) -> Result<u8, Failure> {
        let lines = tempfile::NamedTempFile::new()
            .map_err(|e| Failure::bad(format_args!("--stats: no temporary file (TMPDIR): {e}")))?;
        self.command.env(variable, lines.path());
        let status = self.start()?.wait()?;
        eprint!("{}", summary(&std::fs::read_to_string(lines.path())?));
        Ok(code(status))
    }

    /// Runs it with something beside it, which is ended when the program has ended, while its number is still its own.
    pub fn beside<E: FnOnce()>(mut self, begin: impl FnOnce(u32) -> std::io::Result<E>) -> Result<u8, Failure> {
        let mut child = self.start()?;
        let end = begin(child.id())?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while pid.is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), ended), Err(Errno::INTR))) {}
        end();
        Ok(code(child.wait()?))
    }

    /// Starts it, and nothing more: signals are the caller's.
    pub fn spawn(&mut self) -> Result<Child, Failure> {
        self.command.spawn().map_err(|e| self.not_started(&e))
    }

    fn start(&mut self) -> Result<Child, Failure> {
        let child = self.spawn()?;
        pass_signals_on(&child)?;
        Ok(child)
    }

    fn not_started(&self, error: &std::io::Error) -> Failure {
        let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        Failure { line: format!("{}: {error}", self.name), code }
    }
}

/// The program's own, or 128 and the signal that ended it.
fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => (code & 0xff) as u8,
        (None, signal) => (128 + (signal.unwrap_or(0) & 0x7f)) as u8,
    }
}

/// Signals that others send to this process go to the program; those of the terminal reach it by themselves.
fn pass_signals_on(child: &Child) -> Result<(), Failure> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])
        .map_err(|e| Failure::bad(format_args!("signal handler: {e}")))?;
    std::thread::spawn(move || {
        for origin in signals.forever() {
            let signal = match origin.signal {
                SIGINT => Signal::INT,
                SIGQUIT => Signal::QUIT,
                SIGHUP => Signal::HUP,
                _ => Signal::TERM,
            };
            if let (Some(pid), true) = (pid, origin.cause != Cause::Kernel) {
                let _ = kill_process(pid, signal); // gone already: nothing to tell
            }
        }
    });
    Ok(())
}
