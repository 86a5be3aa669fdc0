//! The TLB levels for 2 MiB and 1 GiB pages, as the probe found them.

use crate::finding::Finding;
use crate::report::levels::LevelReport;
use lookaside_machine::PageSize;
use serde::Serialize;

/// TLB levels for pages larger than the smallest.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LargePages {
    /// Size of the pages.
    pub page_size: PageSize,
    /// How many could be had at once: entries beyond that are not seen.
    pub pages: usize,
    /// Levels, first level first.
    pub levels: Vec<LevelReport>,
}

impl LargePages {
    /// What of it was looked for in vain, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        self.levels.iter().filter_map(lacks_geometry).collect()
    }
}

/// TLB levels for 1 GiB pages, by one page of the system's pool.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct GiganticPages {
    /// Why there is none, and what to do; `None` = there is one.
    pub lacks: Option<String>,
    /// The part of such a page that an entry of each level covers: `1G`, `2M`, or `4K`, a small page or what is
    /// coalesced.
    pub parts: Vec<Finding<PageSize>>,
    /// Levels, first level first.
    pub levels: Vec<LevelReport>,
}

impl GiganticPages {
    /// What of it was looked for in vain, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let what = |level: usize| format!("what an entry of level {level} covers of a 1G page");
        let parts = (1..).zip(&self.parts).filter_map(|(level, part)| part.lacks(&what(level)));
        parts.chain(self.levels.iter().filter_map(lacks_geometry)).collect()
    }
}

fn lacks_geometry(level: &LevelReport) -> Option<(String, String)> {
    level.geometry.lacks(&format!("geometry of level {} for {} pages", level.level, level.page_size))
}
