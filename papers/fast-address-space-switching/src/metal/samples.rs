//! What a measurement of a ring gives.

use schemars::JsonSchema;
use serde::Serialize;

/// What a measurement came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RingSample {
    /// Nanoseconds of a step: a participant's turn.
    pub step_ns: f64,
    /// Switches from a participant to anybody, beside the one that hands over the token, for each thousand steps.
    pub extra_switches_per_kilo_step: f64,
    /// Switches from a participant that did not wait, for each thousand steps.
    pub involuntary_per_kilo_step: f64,
    /// Of compartments.
    pub keys: Option<KeyUse>,
}

/// What happened to protection keys.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct KeyUse {
    /// Keys taken from another compartment, for each thousand steps.
    pub recycled_per_kilo_step: f64,
    /// Calls of pkey_mprotect, for each thousand steps.
    pub protect_calls_per_kilo_step: f64,
}
