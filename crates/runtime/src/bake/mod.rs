//! The baker: a thread that touches the page-table entries of memory regions again and again, so that walks of the
//! program's own threads find them in a cache (PT-Baker, chapter 4).
//!
//! ```
//! use lookaside_runtime::bake::{BakedRegion, Baker, Settings};
//!
//! let data = vec![1u8; 8 << 20];
//! let settings: Settings = "prefetch:t0,stride=8,sleep=100us".parse()?;
//! let baker = Baker::start(&settings, &[BakedRegion::of(&data)])?;
//! // ... the program's work ...
//! let stats = baker.stop();
//! assert!(stats.touches >= stats.rounds);
//! # Ok::<(), lookaside_runtime::bake::BakeError>(())
//! ```

mod address_range;
mod auto;
mod baker;
mod clock;
mod control;
mod counters;
mod cpu_demand;
mod error;
pub mod freestanding;
mod helper_loop;
mod helper_status;
mod helper_thread;
mod kernel;
mod kernel_tables;
mod module;
mod pace;
mod perf;
mod place;
mod pm_scan;
mod preload_settings;
mod process;
mod process_bakers;
mod rank;
mod region;
mod region_pages;
mod settings;
mod small_pages;
mod stats;
mod status_file;
mod status_line;
mod survey;
mod ticks;
mod touch;

pub use baker::Baker;
pub use counters::HelperState;
pub use error::BakeError;
pub use helper_status::HelperStatus;
pub use place::beside;
pub use preload_settings::PreloadSettings;
pub use process::{family, mappings, members, named, BakeableMapping, Identity};
pub use process_bakers::{ProcessBakers, ProcessRank, ProcessReport, ProcessSelection};
pub use rank::Ranking;
pub use region::{BakedRegion, Target, PAGE_BYTES};
pub use settings::{BakeBackend, Hint, Placement, Settings};
pub use stats::BakeStats;
pub use survey::{Survey, Surveyed};
