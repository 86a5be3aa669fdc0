//! A row of "what would help": the model run again with one thing changed.

use serde::{Deserialize, Serialize};

/// What is changed in a row of "what would help".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RemedyKind {
    /// Huge pages wherever a mapping holds one.
    HugeEverywhere,
    /// Huge pages in the 2 MiB windows that cost most.
    HugeWhereHot,
    /// Huge pages for code: the executable and its libraries.
    HugeCode,
    /// Pages of 1 GiB wherever a mapping holds one.
    HugeGigabyte,
    /// A baker's helper beside the program.
    Baked,
    /// Twice the entries of the last TLB level.
    LargerTlb,
    /// All walk references served by the last cache.
    WalksHitLastCache,
    /// The dearest pages locked in the TLB.
    LockedPages,
    /// Huge pages wherever a mapping holds one, and on the host of the virtual machine.
    HugeOnHost,
    /// One stage of translation: no virtual machine.
    OneStage,
}

/// One row of "what would help": the model run again with one thing changed. Where it was counted in windows, cycles and
/// walks are estimates for the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Remedy {
    /// What kind of change.
    pub kind: RemedyKind,
    /// What, as `huge pages everywhere`, `twice the STLB (l2d: 2048 → 4096 entries)`.
    pub what: String,
    /// Translation cycles with it.
    pub translation_cycles: f64,
    /// Translation cycles without it.
    pub base_translation_cycles: f64,
    /// Of those with it, cycles of walks; the rest are hits beyond the first TLB level.
    pub walk_cycles: f64,
    /// Of those without it, cycles of walks.
    pub base_walk_cycles: f64,
    /// Walks with it, both sides.
    pub walks: u64,
    /// Walks without it.
    pub base_walks: u64,
    /// All modelled cycles without it: the denominator of a saving.
    pub base_modelled_cycles: f64,
    /// Translation cycles that it saves, as a share of those without it: 1 = all; negative = it costs.
    pub saved_share: f64,
    /// Lower end of the 95 % interval of that, of the whole run; `saved_share` itself where all accesses were run.
    /// `None` = can't be told: one window has all the cost, or is the only one.
    pub least_saved_share: Option<f64>,
    /// Upper end of it.
    pub most_saved_share: Option<f64>,
    /// Windows of the run that were counted; 0 = it was run whole.
    pub windows: u32,
    /// Accesses that the comparison ran over.
    pub accesses: u64,
    /// Of all recorded accesses, the share that it ran over (1 = all).
    pub accesses_share: f64,
    /// The recorder left out accesses that this run would have told apart: its numbers are near.
    pub approximate: bool,
    /// How to get it, as a command or a setting; empty = not to be had on this machine.
    pub how: String,
    /// What it does not say (hardware change, zeroing not counted, …).
    pub caveat: String,
    /// Bytes that it adds to the resident memory; `None` = none, or not known.
    #[serde(default)]
    pub bloat_bytes: Option<u64>,
}
