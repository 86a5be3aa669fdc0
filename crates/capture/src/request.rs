//! What to record and what comes back.

use std::ffi::OsString;

use lookaside_trace::{FilterWindow, Granularity, Source};
use thiserror::Error;

/// A way of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Exact: our Valgrind tool.
    Valgrind,
    /// Exact, foreign ISAs: our plugin in QEMU's user-mode emulator.
    Qemu,
    /// Clock sampling at native speed.
    Sample,
}

/// Whom to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program to start, with its arguments.
    Command(Vec<OsString>),
    /// A process that runs already (sampling only).
    Pid(u32),
}

/// What to record, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whom.
    pub target: Target,
    /// How; `None` = the best that is installed and fits the program.
    pub backend: Option<Backend>,
    /// `Byte` = everything; `Line`, `Page` = repeats of a line or page left out and counted.
    pub granularity: Granularity,
    /// See [`lookaside_trace::TraceInfo::filter_log2_classes`].
    pub filter_log2_classes: u32,
    /// Windows in place of the above. Valgrind only, page granularity only: elsewhere the above holds.
    pub filter_window: FilterWindow,
    /// See [`lookaside_trace::TraceInfo::filter_stores_apart`].
    pub filter_stores_apart: bool,
    /// Loads, stores and fetches go through one filter (machines with a unified first level).
    pub filter_unified: bool,
    /// Record instruction fetches too.
    pub fetches: bool,
    /// Samples per second of each thread's CPU time (sampling only).
    pub sample_hz: u32,
}

/// A running recording.
pub struct Recording {
    /// What the program does; ends when the program has ended (all its processes).
    pub source: Box<dyn Source + Send>,
    /// The program.
    pub control: Box<dyn Control>,
    /// How it is recorded.
    pub backend: Backend,
    /// What a reader must know: why this backend, what it leaves out, what would add it.
    pub notes: Vec<String>,
}

/// Hold on the recorded program. Its output and signals pass through untouched.
pub trait Control: Send + Sync {
    /// Process id of the program.
    fn pid(&self) -> u32;

    /// Asks it to end (SIGTERM, then SIGKILL after two seconds); for an attached process: detaches only.
    fn stop(&self);

    /// Waits for it and says how it ended. Call after the source has ended.
    ///
    /// # Errors
    /// Where the program could not be waited for.
    fn wait(&self) -> Result<ChildEnd, CaptureError>;
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEnd {
    /// Exit code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// Not ours to wait for (attached); it still runs.
    Detached,
}

/// Why there is no recording: what, where, what to do.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The program can't be started.
    #[error("{program}: {reason}")]
    Program {
        /// As given.
        program: String,
        /// Why, and what to do.
        reason: String,
        /// Exit code in the shell's custom: 127 not found, 126 not executable.
        code: i32,
    },
    /// The backend isn't there or doesn't fit.
    #[error("backend {backend}: {reason}")]
    Backend {
        /// `valgrind`, `qemu`, `sample`.
        backend: &'static str,
        /// Why, and the line that installs it.
        reason: String,
    },
    /// The system said no.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// The system's word.
        source: std::io::Error,
    },
}
