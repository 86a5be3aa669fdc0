//! Geometry, set index and replacement of the TLB levels.

mod conflict;
mod geometry;
mod given;
mod index;
mod level;
mod policy;
mod shared;
mod validate;

pub(crate) use conflict::choose;
pub use geometry::{first_level, first_level_of_stores, second_level, FoundLevel, Geometry};
pub use given::{given_first_level, given_second_level};
pub use level::{Above, Level};
pub use policy::{is_modelled_tree, policy, Policy, Prediction, Role, Trial};
pub use shared::Core;
pub(crate) use validate::outgrown;
