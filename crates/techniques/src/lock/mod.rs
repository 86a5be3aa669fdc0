//! TLB lockdown: which pages to pin in the few entries that a lock may fill, and what that saves in the model.
//!
//! Song, Park, Kim, "Investigation on TLB Miss Impact through TLB Lockdown in Multi-core Systems" (2022) lock the four
//! data pages that a profiled run accesses most. [`histogram`] counts what that choice needs, and misses; [`select`]
//! has it and three others; [`plan`] puts them side by side, as a file ([`file`](mod@file)). Base pages only.

pub mod bench;
pub mod exhaustive;
pub mod file;
pub mod histogram;
pub mod layout;
pub mod maps;
pub mod miss_stream;
pub mod native;
pub mod plan;
pub mod planner;
pub mod profile;
pub mod reason;
mod region_matching;
pub mod regions;
pub mod select;
pub mod stall;
pub mod target;
#[cfg(test)]
mod tests;
