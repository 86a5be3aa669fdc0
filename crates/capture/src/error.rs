//! Why a program can't be recorded.

use thiserror::Error;

/// Why a program can't be recorded: what failed, and what to do.
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
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
}
