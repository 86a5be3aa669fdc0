//! Measures what else fills and evicts TLB entries: prefetch instructions, stores, the system, other CPUs.
//!
//! Each question is put twice, with fresh pages, and answered only if both answers are the same.

mod context_switches;
mod eviction_bench;
mod fills;
pub(crate) mod measure;
mod other_cpus;
mod repeat;
mod set_evictions;
mod stores;
mod tlb_sharing;

pub use crate::report::effects::{
    EntryOwnership, FillLevel, LevelEvictions, LostEntries, MissesPerAccess, NeighbourCpu, NeighbourEvictions,
    PrefetchFill, SetEvictions, SharingMeasurement, StoreEntries, SwitchLosses, TlbEffects, TlbSharing,
};
pub use measure::measure_effects;
pub use tlb_sharing::measure_sharing;
