//! The digital twin: a fixed set of access patterns, run on the metal and in the engine with the description of that
//! machine, and how far the two differ.
//!
//! Beside `crates/cli` the one room that may use both the model (machine, trace, engine, workloads) and the metal
//! (probe): it holds them against each other and has no part in either.
//!
//! Each access waits for the one before it, on the metal by its address (see [`lookaside_probe::Sequence`]): what is
//! compared is latency, which the model adds up, and not what a processor overlaps.

mod compare;
mod last_cache;
mod model;
mod pattern;
mod validation;

pub use compare::{validate, Options};
pub use model::{model, Modelled};
pub use pattern::{patterns, Family, Pattern, WORD};
pub use validation::{
    LeftOut, PairedRun, Row, SharedCache, Summary, Validation, MEDIAN_BOUND_PERCENT, WORST_BOUND_PERCENT,
};
