//! Seconds saved.

use serde::{Deserialize, Serialize};

/// Seconds saved, with an interval; negative: spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SavedSeconds {
    /// Lower end of the interval.
    pub least: f64,
    /// The best guess.
    pub best: f64,
    /// Upper end of the interval.
    pub most: f64,
}
