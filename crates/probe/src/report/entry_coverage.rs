//! What TLB entries cover, as the probe found it.

use crate::agreed_range::MeasuredRange;
use crate::finding::Finding;
use serde::Serialize;

/// Coalescing, entries of huge pages, and the second stage.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct EntryCoverage {
    /// By level.
    pub levels: Vec<LevelCoverage>,
    /// Whether a hypervisor says that this is a virtual machine.
    pub is_guest: Option<bool>,
    /// Core cycles that a walk takes longer if the same frames are mapped by small pages and not by huge ones, where
    /// entries are those of small pages in both cases: so the huge ones' are made by a second stage that maps small
    /// pages, and the first stage's table of small pages is read beside it.
    pub second_stage_cycles: Finding<MeasuredRange>,
}

impl EntryCoverage {
    /// Nothing, and why.
    pub fn nothing(reason: &str) -> Self {
        Self { levels: Vec::new(), is_guest: None, second_stage_cycles: Finding::not_determined(reason) }
    }

    /// What of it was looked for in vain, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let of = |level: &LevelCoverage| {
            let small = level.small.lacks(&format!("coalescing of level {}", level.level));
            small.into_iter().chain(level.huge.lacks(&format!("huge pages of level {}", level.level)))
        };
        let stage = self.second_stage_cycles.lacks("second stage of translation");
        self.levels.iter().flat_map(of).chain(stage).collect()
    }
}

/// What entries of one level cover.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LevelCoverage {
    /// 1 or 2.
    pub level: u32,
    /// Most contiguous small pages that an entry covers, up to 16; 1 = none are coalesced.
    pub small: Finding<u32>,
    /// Small pages' worth of a huge page that an entry covers, 16 standing for that many or more; 1 = a huge page takes
    /// entries like small ones.
    pub huge: Finding<u32>,
}
