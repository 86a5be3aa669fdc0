//! Why there is no experiment, or why it ended early.

use schemars::JsonSchema;
use serde::Serialize;

/// Why there is no experiment; one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SwitchError(pub(crate) String);

/// Why it ended before its last round.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Early {
    /// It was asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// So many seconds were over.
    #[error("{0} s were over (fewer rounds, participants or sizes end in time; --time gives more)")]
    Time(u64),
    /// A measurement failed.
    #[error("{0}")]
    Failed(String),
}
