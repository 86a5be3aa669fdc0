//! Measures data caches, memory, and what page-table walks cost by where their table entries lie.

mod access_patterns;
mod caches;
mod capacity_step;
mod entry_coverage;
pub(crate) mod gigantic_coverage;
mod known_levels;
mod l1_cache;
mod l2_cache;
pub(crate) mod latency_bench;
mod latency_curve;
mod line_size;
pub(crate) mod measure;
mod stlb_thrash;
mod walk_caches;
mod walk_costs;

pub use caches::caches;
pub use entry_coverage::covers;
pub use known_levels::KnownLevels;
pub use l1_cache::first_cache;
pub use latency_bench::LatencyBench;
pub use latency_curve::curve;
pub use line_size::line_bytes;
pub use walk_caches::walk_caches;
pub use walk_costs::walks;
