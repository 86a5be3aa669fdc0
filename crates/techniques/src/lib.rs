//! What can be *done about* translation cost, computed in the model.
//!
//! [`Profile`] takes a source of blocks through the base model; [`remedies`] says what would help; [`huge_gain`] turns
//! that into run time for huge pages; [`names`] turns addresses into the tables of an [`Analysis`]. Each technique has
//! a module: [`bake`] is PT-Baker beside a program, [`color`] TLB coloring of real-time tasks, [`lock`] TLB lockdown,
//! [`hugepages`] its heir: huge pages where a profile says. [`plan`] has what their plans have in common.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use lookaside_engine::Setup;
//! use lookaside_techniques::names::Unnamed;
//! use lookaside_techniques::{Profile, WantedRemedies};
//! use lookaside_workloads::{PatternStream, UniformPages};
//!
//! let base = Setup::new(lookaside_machine::preset("skylake")?);
//! let mut program = PatternStream::new(UniformPages::new(16 << 10, 1), 100_000);
//! let mut profile = Profile::record(&mut program, &base, &mut |_| ())?;
//! let (wanted, stop) = (WantedRemedies::default(), AtomicBool::new(false));
//! let remedies = profile.remedies(&base, (&Unnamed, wanted), &stop, &mut Vec::new())?;
//! assert!(remedies[0].translation_cycles < remedies[0].base_translation_cycles);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allocator;
mod analysis;
pub mod bake;
pub mod color;
mod cost_curve;
mod gain_evidence;
pub mod heat;
pub mod huge_gain;
pub mod hugepages;
mod interval_estimate;
pub mod lock;
mod mosaic_gain;
pub mod names;
pub mod plan;
mod predicted_gain;
pub mod profile;
mod recent_pages;
mod recent_uses;
pub mod remedies;
mod remedy;
mod rerun;
pub mod sampled;
mod sampled_accesses;
mod slice;
mod spool;
mod touch_order;
pub mod translation_share;
mod verdict;
pub mod visits;
mod waits;
pub mod window;
mod window_plan;

pub use analysis::*;
pub use interval_estimate::IntervalEstimate;
pub use names::Namer;
pub use profile::{Profile, ProfileError, ProfiledVisits, WantedRemedies};
pub use remedy::{Remedy, RemedyKind};
pub use verdict::HugePageVerdict;
