//! What a machine *does* with an access stream: lookups, fills, walks through caches, cores, address
//! spaces, and a small OS model. See `SEMANTICS.md` beside this crate for every rule in words.
//!
//! [`Engine`] runs blocks and yields an [`Outcome`]; [`Setup`] says which machine, OS and what-if.

mod apart;
mod ask;
mod assoc;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_rows;
mod batch;
mod counts;
pub mod curve;
mod directories;
mod engine;
mod fast;
mod fasthash;
mod filter;
mod group;
mod happen;
mod ids;
mod ladder;
mod lanes;
mod levels;
mod lru;
mod order;
pub mod os;
mod outcome;
mod pages;
mod parts;
mod places;
mod plan;
mod plan_check;
mod plru;
mod replacement;
mod residents;
mod rows;
mod run;
mod set_index;
mod setup;
mod slots;
mod space;
mod store;
mod streams;
mod summary;
mod tags;
mod tally;
mod tlb;
mod tlb_stages;
mod trace_hook;
mod uneven;
mod virtual_cache;
mod walk_stages;
mod walker;
mod window;

pub use apart::{Apart, Clock};
pub use engine::Engine;
pub use filter::Filter;
pub use outcome::*;
pub use plan_check::SetupError;
pub use run::{run_many, run_source, End, Ran};
pub use setup::*;
pub use trace_hook::{AccessResult, Reference};
pub use virtual_cache::{LineUse, LoneTlb, VirtualCache};
