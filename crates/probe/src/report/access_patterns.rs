//! What loads far apart and in a row cost, as the probe found it.

use crate::agreed_range::MeasuredRange;
use crate::finding::Finding;
use serde::Serialize;

/// What was found of loads far apart and in a row.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct AccessPatternCosts {
    /// Core cycles from load to use of lines all over memory, their translations at hand in the second level.
    pub random_memory_cycles: Finding<MeasuredRange>,
    /// Core cycles of a line of an ascending walk that a cache after the second serves.
    pub stream_cache_cycles: Finding<MeasuredRange>,
    /// Core cycles of a line of an ascending walk that memory serves.
    pub stream_memory_cycles: Finding<MeasuredRange>,
    /// Core cycles that an ascending walk takes longer a page where the page's translation is in no TLB. Its data are
    /// in the first cache.
    pub stream_walk_cycles: Finding<MeasuredRange>,
    /// Whether a 2 MiB page is held as one translation; not so in a virtual machine whose host has small pages below
    /// it.
    pub huge_pages_are_whole: Finding<bool>,
    /// Bytes of memory that the system reports.
    pub memory_bytes: Option<u64>,
}

impl AccessPatternCosts {
    /// Nothing, for a reason.
    pub(crate) fn nothing(reason: &str) -> Self {
        Self {
            random_memory_cycles: Finding::not_determined(reason),
            stream_cache_cycles: Finding::not_determined(reason),
            stream_memory_cycles: Finding::not_determined(reason),
            stream_walk_cycles: Finding::not_determined(reason),
            huge_pages_are_whole: Finding::not_determined(reason),
            memory_bytes: None,
        }
    }

    /// What of it was looked for in vain, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let figures = [
            ("memory under random loads", &self.random_memory_cycles),
            ("ascending walks through caches", &self.stream_cache_cycles),
            ("ascending walks through memory", &self.stream_memory_cycles),
            ("page-table walks of ascending walks", &self.stream_walk_cycles),
        ];
        let mut missing: Vec<_> = figures.into_iter().filter_map(|(what, f)| f.lacks(what)).collect();
        missing.extend(self.huge_pages_are_whole.lacks("how huge pages are held"));
        missing
    }
}
