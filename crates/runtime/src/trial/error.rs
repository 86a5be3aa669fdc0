//! Why there is no trial.

use crate::bake::BakeError;
use crate::hugepages::HugePageError;

/// In a line: what, where, what to do.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// Bad input, no permission, or something that the system lacks.
    #[error("{0}")]
    Bad(String),
}

impl From<HugePageError> for TrialError {
    fn from(e: HugePageError) -> Self {
        Self::Bad(e.to_string())
    }
}

impl From<BakeError> for TrialError {
    fn from(e: BakeError) -> Self {
        Self::Bad(e.to_string())
    }
}
