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
//! There is one, and `access.rs` is its table of contents. What a part of the hardware holds depends on nothing but what
//! came to it before, in order. So up to 256 accesses go through one part together, then those that it had not go through
//! the next (`stages.rs`), and each part is a loop over a list of keys.
//!
//! 1. `run_block.rs` cuts a block at its events, and `events.rs` does what these say.
//! 2. `access.rs` puts accesses into a batch (`batch.rs`). Those of one kind to one page, and line where data caches are
//!    asked, one after the other, are one *item* (`row_groups.rs`): all but the first find what that one left. What is
//!    known of the address is at hand by *chunk* of 2 MiB: whose page it is, its size, names in the TLBs, frame
//!    (`chunks.rs`).
//! 3. `tlb_levels.rs` asks the TLB levels. An array that misses is filled at once: what the later levels answer changes
//!    nothing about that. From the first level on that has several arrays, or entries of page directories, which walks
//!    change, one item goes all the way before the next.
//! 4. `walks.rs` asks the walk caches from where each walk begins, and lists what it reads. Nested walks, and others that
//!    are unlike the usual, go one by one (`walker.rs`).
//! 5. `cache_requests.rs` puts what walks read and the items' own lines in order and asks the data caches.
//! 6. `settle.rs` works out what each walk cost (`walk_cost.rs`), where somebody wants to know it by the walk.
//! 7. `access.rs` charges rows (`rows.rs`), and shows each access to who looks on (`trace_hook.rs`).
//! 8. `batch_tally.rs` counted how many items came to each stage. `batch_counts.rs` works out hits, misses and costs from
//!    that at the end of a run of accesses, and `summary.rs` makes the outcome.
//!
//! An array is a `store.rs`: sets in order of use (`lru.rs`), small trees (`plru.rs`), or any policy of `replacement/`
//! over slots, few (`slot_sets.rs`) or many (`assoc.rs`). A page's key is a set and a tag, the tag being its chunk's number
//! and its own within that (`tag_layout.rs`, `key_names.rs`). Lists of keys are looked up by `list_lookup.rs`, with vectors
//! where the processor has them (`avx512.rs`). `plan.rs` is the machine made ready to run, `engine.rs` the state of a run, `hardware.rs` what exists of
//! the machine.
//!
//! # Many models over one trace
//! `model_group.rs`: of those that differ in the later TLB levels alone, one asks the first level, and the others see what
//! it had not (`passed_rows.rs`). `form_group.rs`: of those of which each access asks one later array, one engine asks all
//! forms of it (`array_forms.rs`, `form_lookup.rs`), and one stack is LRU arrays of every number of ways (`way_stack.rs`).

mod access;
mod array_forms;
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
mod form_group;
mod form_lookup;
mod form_store;
mod hardware;
mod interval_state;
mod intervals;
mod key_names;
mod lanes;
mod leaving_pages;
mod list_lookup;
mod lookup;
mod lru;
mod lru_set;
mod model_group;
mod model_queue;
pub mod os;
mod outcome;
mod pages;
mod passed_rows;
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
mod slot_sets;
mod space;
mod stages;
mod store;
mod streams;
mod summary;
mod table_memo;
mod tag_layout;
mod tags;
mod tlb;
mod tlb_levels;
mod trace_hook;
mod virtual_cache;
mod walk_cost;
mod walker;
mod walks;
mod way_stack;
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
