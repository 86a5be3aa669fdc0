//! What a helper does at the moment.

use serde::{Deserialize, Serialize};

/// What a helper in its own program is doing, beside its statistics, preloaded or started by the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct HelperStatus {
    /// What it was asked for, such as `auto,share=0.5`.
    pub bake: String,
    /// How it touches; `auto` chose it.
    pub backend: String,
    /// What it is doing, such as `warm` or `off-hopeless`.
    pub state: String,
    /// Nanoseconds of the pause after the last round.
    pub pause_nanos: u64,
    /// Nanoseconds a touch after the usual pause, as `auto` last sensed it.
    pub after_pause_nanos: Option<f64>,
    /// Nanoseconds a touch in the round right after that one: as warm as it can be.
    pub right_after_nanos: Option<f64>,
}
