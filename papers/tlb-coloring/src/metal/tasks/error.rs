//! Why a set of tasks cannot be run.

use lookaside_host::HostError;
use lookaside_probe::MetalError;

/// Why there is no experiment; one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TaskRunError(pub(crate) String);

impl From<MetalError> for TaskRunError {
    fn from(error: MetalError) -> Self {
        Self(error.to_string())
    }
}

impl From<HostError> for TaskRunError {
    fn from(error: HostError) -> Self {
        Self(error.to_string())
    }
}
