//! What a machine *is*: TLB levels, set-index functions, walk caches, data caches, page-table
//! formats, costs. One TOML schema; presets are data in `presets/*.toml`.
//!
//! ```
//! let zen3 = lookaside_machine::preset("ryzen-5900x")?;
//! assert_eq!(zen3.tlbs[1].entries, 2048);
//! let bigger = zen3.with_overrides(&["tlb.l2d.entries=4096".into()])?;
//! assert_eq!(bigger.tlbs[1].sets(), 256);
//! # Ok::<(), lookaside_machine::MachineError>(())
//! ```

mod array;
mod check;
mod check_cache_order;
mod check_timing;
mod cpu;
mod defaults;
mod error;
mod format;
mod index;
#[cfg(feature = "schemas")]
mod json_schema;
mod load;
mod origins;
mod overrides;
mod partition;
mod presets;
mod schema;
mod timing;
mod toml_word;
mod tree;
mod units;
mod value_groups;
mod violation;

pub use array::{FilledBy, Full, Replacement, Serves, SharedBy, Tag, Ways};
pub use cpu::{nearest_preset, CpuId};
pub use error::MachineError;
pub use format::{PageSize, TableFormat, TableLevel};
pub use index::IndexFn;
pub use load::{load, parse, to_toml};
pub use origins::{Origin, Origins};
pub use partition::{ColorLevel, Partition, Partitions, Share, BOOKKEEPING, MAX_COLOR_LEVELS, MAX_COLOR_SETS};
pub use presets::{preset, presets, Preset};
pub use schema::*;
pub use timing::{PageFaultCost, Quartiles, RandomReads, ReadCosts, SequentialReads, Timing};
pub use tree::{tree_least_depth, tree_left_ways, MAX_UNEVEN_TREE_WAYS};
