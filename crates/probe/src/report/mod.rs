//! What the probe found, as data: the whole report, and the parts that each step fills in.

pub(crate) mod access_patterns;
pub(crate) mod caches;
pub(crate) mod effects;
pub(crate) mod entry_coverage;
pub(crate) mod levels;
mod merge;
pub(crate) mod page_sizes;
pub(crate) mod timing;
pub(crate) mod walk_caches;
pub(crate) mod walks;

use crate::claims::claim::CheckedClaim;
use crate::finding::Finding;
use crate::pmu::proven_events::TriedEvent;
use crate::report::access_patterns::AccessPatternCosts;
use crate::report::caches::CacheReports;
use crate::report::effects::TlbEffects;
use crate::report::entry_coverage::EntryCoverage;
use crate::report::page_sizes::{GiganticPages, LargePages};
use crate::report::timing::TimingReport;
use crate::report::walk_caches::{WalkCacheReport, WalkCaches};
use crate::report::walks::WalkCosts;
use lookaside_machine::Origins;
use serde::Serialize;

use crate::report::levels::LevelReport;

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProbeReport {
    /// Seed of the experiments.
    pub seed: u64,
    /// Core cycles in a tick of the timer, by a chain of dependent additions.
    pub cycles_per_tick: f64,
    /// The CPU measured, where there is one.
    pub cpu: Option<usize>,
    /// What limits what can be found here.
    pub remarks: Vec<String>,
    /// Ticks of the timer in a second, where that is known.
    pub ticks_per_second: Option<f64>,
    /// Levels, first level first.
    pub levels: Vec<LevelReport>,
    /// Data caches and memory; `None` = not asked for.
    pub caches: Option<CacheReports>,
    /// Costs of translations by where their tables lie; `None` = not asked for.
    pub walks: Option<WalkCosts>,
    /// Entries above the leaf's that are at hand for walks; `None` = not asked for.
    pub walk_caches: Option<WalkCaches>,
    /// What entries cover, and the second stage; `None` = not asked for.
    pub covers: Option<EntryCoverage>,
    /// What else fills and empties the levels; `None` = not asked for.
    pub effects: Option<TlbEffects>,
    /// Loads far apart and in a row; `None` = not asked for.
    pub spread: Option<AccessPatternCosts>,
    /// The levels for 2 MiB pages; `None` = not asked for.
    pub large: Option<LargePages>,
    /// The levels for 1 GiB pages; `None` = not asked for.
    pub gigantic: Option<GiganticPages>,
    /// What reads, page faults and streams take in nanoseconds; `None` = not asked for.
    pub timing: Option<TimingReport>,
    /// Measurements in all.
    pub measurements: u64,
    /// Hardware counters that were tried; not asked for otherwise than by
    /// [`ProbeStep::Counters`](crate::ProbeStep::Counters), since all else is found
    /// without.
    pub counters: Finding<Vec<TriedEvent>>,
    /// What CPUID and sysfs say, beside what was measured: see [`ProbeReport::compare`].
    pub claims: Vec<CheckedClaim>,
    /// Where the values of the description are from that is made of it ([`ProbeReport::machine`]), once it is made.
    pub origins: Option<Origins>,
    /// Why it ended before its end; `None` = it did not.
    pub halted: Option<String>,
}

impl ProbeReport {
    /// Nanoseconds of a core cycle, where the timer's rate is known.
    pub(crate) fn ns_a_cycle(&self) -> Option<f64> {
        self.ticks_per_second.map(|ticks| 1e9 / (ticks * self.cycles_per_tick))
    }

    /// What was asked for and is not determined: what, and why. Empty = all is known; the command's exit code is by
    /// this. Every new finding has its line here.
    pub fn missing(&self) -> Vec<(String, String)> {
        let mut missing = Vec::new();
        for level in &self.levels {
            missing.extend(level.geometry.lacks(&format!("geometry of level {}", level.level)));
            missing.extend(level.miss_cycles.lacks(&format!("cost of a miss of level {}", level.level)));
            missing.extend(level.policy.lacks(&format!("replacement of level {}", level.level)));
        }
        missing.extend(self.effects.iter().flat_map(TlbEffects::missing));
        missing.extend(self.counters.lacks("hardware counters"));
        missing.extend(self.caches.iter().flat_map(CacheReports::missing));
        missing.extend(self.walks.iter().flat_map(WalkCosts::missing));
        missing.extend(self.walk_caches.iter().flat_map(WalkCaches::missing));
        missing.extend(self.covers.iter().flat_map(EntryCoverage::missing));
        missing.extend(self.spread.iter().flat_map(AccessPatternCosts::missing));
        missing.extend(self.large.iter().flat_map(LargePages::missing));
        missing.extend(self.gigantic.iter().flat_map(GiganticPages::missing));
        missing.extend(self.timing.iter().flat_map(TimingReport::missing));
        missing.extend(self.halted.iter().map(|why| ("all that was asked for".into(), why.clone())));
        missing
    }
}

impl ProbeReport {
    /// The geometry of a level of the TLB was found. Without that a description made of the report is a preset.
    pub fn measured_a_level(&self) -> bool {
        self.levels.iter().any(|level| level.geometry.value().is_some())
    }

    /// Of the levels that were asked for, geometry and what a miss costs are known, and where they were asked for what
    /// a walk takes beside its references, whether a second stage splits huge pages, and how many directory entries are
    /// at hand, unless passes found none: what a model of translation rests on.
    pub fn is_whole(&self) -> bool {
        let known =
            self.levels.iter().all(|level| level.geometry.value().is_some() && level.miss_cycles.value().is_some());
        known
            && self.walks.as_ref().is_none_or(|walks| walks.base_cycles.value().is_some())
            && self.spread.as_ref().is_none_or(|spread| !spread.huge_pages_are_whole.is_missing())
            && self.walk_caches.as_ref().is_none_or(|caches| !caches.levels.iter().any(is_open))
    }
}

/// Entries that point to leaf tables: found, differently by each pass.
fn is_open(level: &WalkCacheReport) -> bool {
    level.table_level == 2 && level.passes_differ
}
