//! Why a move cannot be timed.

/// Why there is no experiment; one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MigrateError(pub(crate) String);
