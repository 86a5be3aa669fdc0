//! Data caches and memory, as the probe found them.

use crate::agreed_range::MeasuredRange;
use crate::finding::Finding;
use serde::Serialize;

/// Frames at random fill sets unevenly: half of the steps may miss with so much less than all that fits.
pub(crate) const UNEVEN: f64 = 1.1;

/// Data caches and memory.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CacheReports {
    /// Bytes of a line of the first level.
    pub line_bytes: Finding<u64>,
    /// Levels, first level first.
    pub levels: Vec<CacheReport>,
    /// Core cycles from load to use where no cache has the line.
    pub memory_cycles: Finding<MeasuredRange>,
    /// Least footprint that memory served in every pass, in bytes.
    pub memory_from: Option<u64>,
    /// Latency by footprint, one curve a pass.
    pub curves: Vec<Vec<LatencyPoint>>,
}

impl CacheReports {
    /// What of it was looked for in vain, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let mut missing: Vec<_> = self.line_bytes.lacks("line size").into_iter().collect();
        for level in &self.levels {
            let name = |what: &str| format!("{what} of data cache {}", level.level);
            missing.extend(level.cycles.lacks(&name("latency")));
            missing.extend(level.bytes.lacks(&name("size")));
            missing.extend(level.ways.lacks(&name("ways")));
            missing.extend(level.shape.lacks(&name("shape")));
        }
        missing.extend(self.memory_cycles.lacks("memory latency"));
        missing
    }

    /// Nothing, and why.
    pub fn nothing(reason: &str) -> Self {
        Self {
            line_bytes: Finding::not_determined(reason),
            levels: Vec::new(),
            memory_cycles: Finding::not_determined(reason),
            memory_from: None,
            curves: Vec::new(),
        }
    }
}

/// One level of data cache.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CacheReport {
    /// 1 is the first.
    pub level: u32,
    /// Core cycles from load to use of a hit.
    pub cycles: Finding<MeasuredRange>,
    /// Bytes that fit: from the largest footprint that surely does to a tenth more than the one of whose steps half
    /// miss. What
    /// other programs (and other virtual machines) take of a shared cache is not in it.
    pub bytes: Finding<MeasuredRange>,
    /// Ways of a set; of the first and the second level.
    pub ways: Finding<u32>,
    /// Exact size, ways and sets.
    pub shape: Finding<CacheShape>,
}

/// Size and shape of a data cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CacheShape {
    /// Bytes: sets times ways times line.
    pub bytes: u64,
    /// Ways of a set.
    pub ways: u32,
    /// Sets.
    pub sets: u32,
}

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LatencyPoint {
    /// Footprint.
    pub bytes: u64,
    /// Core cycles from load to use.
    pub cycles: f64,
}
