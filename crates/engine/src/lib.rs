//! What a machine *does* with an access stream: lookups, fills, walks through caches, cores, address
//! spaces, and a small OS model. See `SEMANTICS.md` beside this crate for every rule in words.
//!
//! [`Engine`] runs blocks and yields an [`Outcome`]; [`Setup`] says which machine, OS and what-if.

mod access;
mod asid;
mod assoc;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_rows;
mod background;
mod batch;
mod batch_counts;
mod batch_path;
mod batch_tally;
mod batch_tlbs;
mod batch_walks;
mod chunks;
mod classes;
mod context;
mod counts;
pub mod curve;
mod directories;
mod directory_walk;
mod engine;
mod error;
mod events;
mod fasthash;
mod filter;
mod hardware;
mod lanes;
mod leaving_pages;
mod list_lookup;
mod lookup;
mod lru;
mod lru_set;
pub mod os;
mod outcome;
mod pages;
mod plan;
mod plan_build;
mod plan_check;
mod plru;
mod plru_tree;
mod prefetch;
mod reclaim;
mod replacement;
mod routing;
mod row_groups;
mod rows;
mod run;
mod run_block;
mod set_index;
mod setup;
mod space;
mod stages;
mod store;
mod streams;
mod summary;
mod table_memo;
mod tags;
mod tlb;
mod tlb_lookup;
mod trace_hook;
mod virtual_cache;
mod walker;
mod window;

pub use background::{BackgroundCounts, ModelClock};
pub use engine::Engine;
pub use error::SetupError;
pub use filter::Filter;
pub use outcome::*;
pub use run::{run_many, run_source, RunEnd, RunResult};
pub use setup::*;
pub use trace_hook::{AccessResult, Reference};
pub use virtual_cache::{LineUse, StandaloneTlb, VirtualCache};
