//! Why there is no heap.

/// Why there is no heap, or no stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeapError {
    /// What was asked for can't be had.
    #[error("{0}")]
    Asked(String),
    /// The system refused.
    #[error("{0}")]
    System(String),
}
