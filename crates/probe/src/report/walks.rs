//! What walks cost, as the probe found it.

use crate::agreed_range::MeasuredRange;
use crate::finding::Finding;
use serde::Serialize;

/// Costs of translations.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WalkCosts {
    /// Core cycles that a load takes longer whose translation misses the first level and hits the second.
    pub second_level_cycles: Finding<MeasuredRange>,
    /// Walks by where their leaf entries lie; the entries above are at hand.
    pub walks: Vec<WalkReport>,
    /// Core cycles of a walk beside reading the leaf entry.
    pub base_cycles: Finding<MeasuredRange>,
    /// First level of data cache that serves walks.
    pub first_cache_level: Finding<u32>,
}

impl WalkCosts {
    /// What of it was looked for in vain, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let mut missing: Vec<_> = self.second_level_cycles.lacks("cost of a second-level hit").into_iter().collect();
        for walk in &self.walks {
            missing.extend(walk.cycles.lacks(&format!("cost of a walk with entries in {}", walk.place)));
        }
        missing.extend(self.base_cycles.lacks("base cost of a walk"));
        missing.extend(self.first_cache_level.lacks("first cache level of walks"));
        missing
    }

    /// Nothing, and why.
    pub fn nothing(reason: &str) -> Self {
        Self {
            second_level_cycles: Finding::not_determined(reason),
            walks: Vec::new(),
            base_cycles: Finding::not_determined(reason),
            first_cache_level: Finding::not_determined(reason),
        }
    }
}

/// What a walk costs whose leaf entries lie in one place.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WalkReport {
    /// The place.
    pub place: PteLocation,
    /// Bytes of the lines of leaf entries that were walked in a circle.
    pub table_bytes: u64,
    /// Core cycles that a load takes longer than one whose translation hits the first level; its data are hot.
    pub cycles: Finding<MeasuredRange>,
}

/// Where the leaf entries lie that a walk reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PteLocation {
    /// In the data cache of this level.
    Cache(u32),
    /// In memory.
    Memory,
}

impl std::fmt::Display for PteLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cache(level) => write!(f, "data cache {level}"),
            Self::Memory => f.write_str("memory"),
        }
    }
}
