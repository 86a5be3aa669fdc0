//! Errors of the miss counters.

use crate::metal::MetalError;

/// Most accesses of a sequence: each 256 of them take a foreign page for their list.
pub const MOST_TIMED: usize = 4096;

/// Why there is no counter, or no count.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CounterError {
    /// The machine refuses.
    #[error(transparent)]
    Metal(#[from] MetalError),
    /// Nothing to count, or too much.
    #[error("a sequence has 1 to {MOST_TIMED} timed accesses, not {0}")]
    Length(usize),
    /// Known hits and misses take the same time: another machine than the description says, or a noisy one.
    #[error("{0} cannot be told apart here: {1}")]
    Indistinct(&'static str, String),
}
