//! What each result says: a module a result.
//!
//! ```
//! use lookaside_machine::preset;
//! use lookaside_report::{terminal, Style};
//! use lookaside_views::machine;
//!
//! let skylake = preset("skylake").expect("a preset");
//! let text = terminal::render(&machine::view(&skylake), &Style { width: 100, ..Style::default() });
//! assert!(text.starts_with("skylake"));
//! ```

pub mod analysis;
pub mod autopilot;
pub mod bake_model;
pub mod baked;
pub mod color;
pub mod comparison;
pub mod hugepages;
pub mod hugepages_code;
pub mod hugepages_code_plan;
pub mod hugepages_live;
pub mod json;
pub mod lock;
pub mod machine;
mod native_location;
pub mod openmetrics;
pub mod openmetrics_top;
pub mod probe;
pub mod simulate;
pub mod top;
pub mod trace;
pub mod trial;
pub mod validation;
pub mod workload;
