//! The geometry of a TLB level (entries, ways, sets, index), and a level with it.

use crate::finding::Finding;
use crate::tlb::level_meter::LevelMeter;
use serde::Serialize;

/// Geometry of one TLB level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Geometry {
    /// Entries: `sets * ways`.
    pub entries: u32,
    /// Ways of a set.
    pub ways: u32,
    /// Sets; 1 = fully associative.
    pub sets: u32,
    /// Masks of the set index in reduced form, of page-number bits from the page size on.
    pub masks: Vec<u64>,
}

/// One level as it was found.
#[derive(Clone, Debug, Serialize)]
pub struct FoundLevel {
    /// Its geometry.
    pub geometry: Finding<Geometry>,
    /// Ticks that a miss of this level adds, while the next serves it.
    pub miss_ticks: f64,
    /// What turns times into its misses.
    #[serde(skip)]
    pub level: Option<LevelMeter>,
}

impl FoundLevel {
    /// Its geometry, and what turns times into its misses, if both are known.
    pub(crate) fn known(&self) -> Option<(&Geometry, &LevelMeter)> {
        self.geometry.value().zip(self.level.as_ref())
    }

    /// None, and why.
    pub fn nothing(reason: impl Into<String>) -> Self {
        Self { geometry: Finding::not_determined(reason), miss_ticks: 0.0, level: None }
    }
}
