//! Measures a real machine's translation hardware by timing alone.
//!
//! The measuring is behind one trait, [`Metal`]; everything else infers from its times, and is tested on machines that
//! are made up ([`Metal`] over the engine, with noise).

mod bench;
mod conflict;
mod describe;
mod finding;
mod geometry;
pub mod gf2;
mod index;
mod level;
mod metal;
mod policy;
mod rng;
mod run;
mod validate;

pub use bench::{Bench, Halt};
pub use finding::Finding;
pub use geometry::{first_level, second_level, FoundLevel, Geometry};
pub use level::{Above, Level};
pub use metal::{Chain, Host, Metal, MetalError};
pub use policy::{policy, Trial};
pub use rng::Rng;
pub use run::{probe, LevelReport, Options, Report, Seen, Step};
