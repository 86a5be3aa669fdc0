//! Why visits can't be replayed.

use thiserror::Error;

/// Why visits can't be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// There is not one.
    #[error("there are no page visits to replay")]
    NoVisits,
    /// The memory that they want.
    #[error("replaying the program's accesses takes {wanted_mib} MiB of memory, and {} MiB are to be had", .available_bytes >> 20)]
    Memory {
        /// What a single window takes, in MiB.
        wanted_mib: u64,
        /// What there is.
        available_bytes: u64,
    },
    /// The system refused memory.
    #[error("memory to replay the program's accesses in: {0}")]
    Mapping(String),
    /// There are no huge pages.
    #[error("the system gave {got} of {wanted} MiB of huge pages")]
    NoHugePages {
        /// MiB that are huge.
        got: u64,
        /// MiB that were asked for.
        wanted: u64,
    },
    /// It was interrupted.
    #[error("interrupted")]
    Stopped,
}
