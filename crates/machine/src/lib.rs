//! What a machine *is*: TLB levels, set-index functions, walk caches, data caches, page-table
//! formats, costs. One TOML schema; presets are data in `presets/*.toml`.

mod format;
mod index;
mod schema;
pub mod units;

pub use format::{PageSize, TableFormat, TableLevel};
pub use index::IndexFn;
pub use schema::*;
