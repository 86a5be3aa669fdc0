//! Measures a real machine's translation hardware without a PMU: by timing, and by the bits that walks set in page tables.
//!
//! The measuring is behind one trait, [`Metal`]; everything else infers from its times and counts, and is tested on machines that
//! are made up ([`Metal`] over the engine, with noise).

mod again;
mod bench;
mod budget;
mod claims;
pub mod counter;
mod describe;
pub mod effects;
mod evidence;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod ffi;
mod finding;
pub mod gf2;
mod hierarchy;
mod merge;
mod metal;
mod passes;
mod pick;
mod pmu;
#[cfg(target_os = "linux")]
mod referenced;
mod run;
mod sizes;
mod tlb;

pub use again::{probe_again, Attempts};
pub use bench::{Bench, Halt};
pub use claims::{stated_by_cpuid, stated_by_sysfs, stated_here, Claim, Leaf, Part, Shape, Stated};
pub use evidence::{End, Recorder, PAGES_UP_TO_BYTES, SAMPLES_UP_TO_BYTES};
pub use finding::Finding;
pub use hierarchy::*;
pub use metal::{
    available_bytes, Act, Area, Chain, Cpu, Hint, Host, Metal, MetalError, Paired, Round, Sequence, Shot, Steps, Touch,
    Walk, MOST_ACTS, SPARSE_STEP,
};
pub use passes::twice;
pub use pick::Levels;
pub use pmu::{counters, usable, Counted, Counts, Event, Known, Proof, SetCount, EVENTS};
#[cfg(target_os = "linux")]
pub use referenced::{put_out, Referenced};
pub use run::{probe, LevelReport, Options, Report, Seen, Step};
pub use sizes::{gigantic_levels, GiganticPages, LargePages};
pub use tlb::{
    first_level, first_level_of_stores, given_first_level, given_second_level, is_modelled_tree, policy, second_level,
    Above, Core, FoundLevel, Geometry, Level, Policy, Prediction, Role, Trial,
};
