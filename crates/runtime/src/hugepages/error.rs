//! Why no huge pages can be made.

use crate::bake::BakeError;

/// Why nothing can be done: in a line, what, where, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HugePageError {
    /// Bad input, no permission, or something that the system lacks.
    #[error("{0}")]
    Bad(String),
}

impl From<BakeError> for HugePageError {
    fn from(e: BakeError) -> Self {
        Self::Bad(e.to_string())
    }
}
