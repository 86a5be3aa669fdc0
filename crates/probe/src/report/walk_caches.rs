//! Walk caches, as the probe found them.

use crate::agreed_range::MeasuredRange;
use crate::finding::Finding;
use serde::Serialize;

/// Walk caches, level 2 first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WalkCaches {
    /// By level of tables.
    pub levels: Vec<WalkCacheReport>,
}

impl WalkCaches {
    /// Nothing, and why.
    pub fn nothing(reason: &str) -> Self {
        let level = |table_level| WalkCacheReport {
            table_level,
            entries: Finding::not_determined(reason),
            miss_cycles: Finding::not_determined(reason),
            passes_differ: false,
            curves: Vec::new(),
        };
        Self { levels: vec![level(2), level(3)] }
    }

    /// What of it was looked for in vain, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let of =
            |level: &WalkCacheReport| level.entries.lacks(&format!("walk cache of table level {}", level.table_level));
        self.levels.iter().filter_map(of).collect()
    }
}

/// What was found of one level of tables.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WalkCacheReport {
    /// 2 = entries that point to leaf tables (on x86-64 page-directory entries), 3 = those above.
    pub table_level: u32,
    /// Entries.
    pub entries: Finding<WalkCacheSize>,
    /// Core cycles that a walk takes longer which does not find its entry there.
    pub miss_cycles: Finding<MeasuredRange>,
    /// Some pass found entries, and no two found as many: another attempt may.
    pub passes_differ: bool,
    /// Cost by number of regions, of all series that were measured.
    pub curves: Vec<Vec<CountCost>>,
}

/// Entries of one level of tables that are at hand for walks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WalkCacheSize {
    /// So many surely are.
    pub at_least: u32,
    /// And not more than that.
    pub at_most: u32,
    /// Ways and sets, where they could be told; one set = fully associative.
    pub shape: Option<(u32, u32)>,
}

impl std::fmt::Display for WalkCacheSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.at_most {
            most if most == self.at_least => write!(f, "{most} entries")?,
            most => write!(f, "{} to {most} entries", self.at_least)?,
        }
        match self.shape {
            Some((_, 1)) => f.write_str(", fully associative"),
            Some((ways, sets)) => write!(f, ", {sets} sets of {ways} ways"),
            None => Ok(()),
        }
    }
}

/// What one number costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CountCost {
    /// How many.
    pub count: u32,
    /// Core cycles a step more than with the fewest.
    pub cycles: f64,
    /// By how much measurements of it differ.
    pub spread: f64,
}
