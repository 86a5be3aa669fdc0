//! Geometry, set index and replacement of the TLB levels.

pub(crate) mod busy_core;
pub(crate) mod confirm;
pub(crate) mod core_use;
pub(crate) mod first_level_flood;
pub(crate) mod geometry;
pub(crate) mod given_geometry;
pub(crate) mod level_meter;
pub(crate) mod near_vectors;
pub(crate) mod one_set;
pub(crate) mod policy;
pub(crate) mod search;
pub(crate) mod set_capacity;
pub(crate) mod set_index;

pub use core_use::CoreUse;
pub use first_level_flood::FirstLevelFlood;
pub use geometry::{FoundLevel, Geometry};
pub use given_geometry::{given_first_level, given_second_level};
pub use level_meter::LevelMeter;
pub use policy::{is_modelled_tree, policy, Prediction, TlbPolicy, Trial, TrialRole};
pub use search::{first_level, first_level_of_stores, second_level};
