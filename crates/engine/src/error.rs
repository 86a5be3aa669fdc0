//! Why a setup cannot be run.

use thiserror::Error;

/// Why a setup cannot be run.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The machine is impossible.
    #[error(transparent)]
    Machine(#[from] lookaside_machine::MachineError),
    /// A part of the setup beside the machine is.
    #[error("{at}: {reason}")]
    Setup {
        /// Which part, as `locks[3]`.
        at: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
}
