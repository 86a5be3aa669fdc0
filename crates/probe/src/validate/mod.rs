//! Checks a machine description against the machine: a fixed set of access patterns, run on the metal and in the
//! engine, and how far the two differ.
//!
//! In nearly all of them each access waits for the one before it, on the metal by its address (see
//! [`crate::WordSequence`]): what is compared is latency, which the model adds up. Random reads are compared also where
//! none waits, and beside a stream on another CPU, by what the description's `[timing]` says of overlap and load.

mod access_pattern;
mod compare;
mod last_level_cache;
mod model;
mod scaled_costs;
mod validation;

pub use access_pattern::{patterns, AccessPattern, PatternFamily};
pub use compare::{validate, ValidationOptions};
pub use model::{model, ModelledCycles, WORD};
pub use validation::{
    ErrorSummary, OmittedPattern, PairedRun, SharedCache, Validation, ValidationRow, MEDIAN_BOUND_PERCENT,
    WORST_BOUND_PERCENT,
};
