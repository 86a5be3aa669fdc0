//! What a machine *does* with an access stream: lookups, fills, walks through caches, cores, address
//! spaces, and a small OS model. See `SEMANTICS.md` beside this crate for every rule in words.
//!
//! `Engine` runs blocks and yields an [`Outcome`]; [`Setup`] says which machine, OS and what-if.

mod filter;
pub mod os;
mod outcome;
mod setup;

pub use filter::Filter;
pub use outcome::*;
pub use setup::*;
