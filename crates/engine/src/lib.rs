//! What a machine *does* with an access stream: TLB lookups, fills, page walks through caches, for cores and address
//! spaces, with a small OS model. `SEMANTICS.md` beside this crate has every rule in words.
//!
//! [`Setup`] says which machine, OS and what-if; [`Engine`] runs blocks of accesses and yields an [`Outcome`].
//! [`run_source`] does that for a whole trace, and [`curve`] counts the misses of every TLB size in one pass.
//!
//! ```
//! use lookaside_engine::{Engine, Setup};
//! use lookaside_trace::{Block, Kind};
//!
//! let mut engine = Engine::new(Setup::new(lookaside_machine::preset("skylake")?))?;
//! let mut block = Block { process: 1, thread: 1, ..Block::default() };
//! (0..100).for_each(|page| block.push(Kind::Load, page << 12));
//! engine.run(&block);
//! assert_eq!(engine.outcome().data.cost.walks, 100, "each page is new");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The path of an access
//! `run_block.rs` cuts a block at its events (`events.rs`). `access.rs` is the scalar path, one access by every rule:
//! TLB arrays (`tlb_lookup.rs`, `tlb.rs`), the page walk (`walker.rs`), data caches (`data_cache.rs`), the rows that are
//! charged (`rows.rs`). `batch_path.rs` takes many accesses through the same hardware stage by stage; its counts are
//! those of the scalar path. `plan.rs` is the machine made ready to run, `engine.rs` the state of a run, and
//! `summary.rs` makes the outcome of the counts.

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
mod batch_tally;
mod cache_requests;
mod chunks;
mod classes;
mod context;
mod counts;
pub mod curve;
mod data_cache;
mod directories;
mod directory_walk;
mod engine;
mod error;
mod events;
mod fasthash;
mod filter;
mod hardware;
mod interval_state;
mod intervals;
mod lanes;
mod leaving_pages;
mod list_lookup;
mod lookup;
mod lru;
mod lru_set;
mod model_queue;
pub mod os;
mod outcome;
mod pages;
mod plan;
mod plan_build;
mod plan_check;
mod plru;
mod prefetch;
mod reclaim;
mod replacement;
mod routing;
mod row_groups;
mod rows;
mod run;
mod run_block;
mod set_index;
mod settle;
mod setup;
mod space;
mod stages;
mod store;
mod streams;
mod summary;
mod table_memo;
mod tags;
mod tlb;
mod tlb_levels;
mod trace_hook;
mod virtual_cache;
mod walk_cost;
mod walker;
mod walks;
mod window;

pub use background::{BackgroundCounts, ModelClock};
pub use engine::Engine;
pub use error::SetupError;
pub use filter::Filter;
pub use outcome::*;
pub use run::{run_many, run_many_watched, run_source, RunEnd, RunResult};
pub use setup::*;
pub use trace_hook::{AccessResult, Reference};
pub use virtual_cache::{LineUse, StandaloneTlb, VirtualCache};
