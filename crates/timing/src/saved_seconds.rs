//! Seconds saved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Seconds saved, with an interval; negative: spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SavedSeconds {
    /// Lower end of the interval.
    pub least: f64,
    /// The best guess.
    pub best: f64,
    /// Upper end of the interval.
    pub most: f64,
}
