//! What else fills and empties the TLBs, as the probe found it.

use crate::finding::Finding;
use crate::metal::single_shot::PrefetchHint;
use crate::tlb::geometry::Geometry;
use serde::Serialize;

/// All of them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TlbEffects {
    /// What prefetch instructions do.
    pub prefetches: Vec<PrefetchFill>,
    /// Whether stores use the entries of loads.
    pub stores: Finding<StoreEntries>,
    /// Entries, ways, sets and index of the first level that stores use, by atomic additions of zero, which load and
    /// store.
    pub store_level: Finding<Geometry>,
    /// What is lost by a switch to another process and back.
    pub process_switch: Finding<SwitchLosses>,
    /// By a switch to another thread of the process and back.
    pub thread_switch: Finding<SwitchLosses>,
    /// By a system call that does next to nothing.
    pub system_call: Finding<SwitchLosses>,
    /// Whether threads on other CPUs take entries; `None` = not looked at, empty = there is no other CPU.
    pub neighbours: Option<Vec<NeighbourCpu>>,
    /// Evictions by set, for each level that has sets.
    pub disturbed: Vec<LevelEvictions>,
}

impl TlbEffects {
    /// Nothing was looked at.
    pub fn not_asked() -> Self {
        let prefetch = |hint| PrefetchFill { hint, fills: Finding::not_asked(), faults: Finding::not_asked() };
        Self {
            prefetches: PrefetchHint::ALL.map(prefetch).into(),
            stores: Finding::not_asked(),
            store_level: Finding::not_asked(),
            process_switch: Finding::not_asked(),
            thread_switch: Finding::not_asked(),
            system_call: Finding::not_asked(),
            neighbours: None,
            disturbed: Vec::new(),
        }
    }

    /// Nothing is known, for this reason.
    pub(crate) fn unknown(reason: &str) -> Self {
        let mut all = Self::not_asked();
        all.explain(reason);
        all
    }

    /// Why what was not looked at was not.
    pub(crate) fn explain(&mut self, reason: &str) {
        for prefetch in &mut self.prefetches {
            explain(&mut prefetch.fills, reason);
            explain(&mut prefetch.faults, reason);
        }
        explain(&mut self.stores, reason);
        if self.stores.value() == Some(&StoreEntries::Apart) {
            explain(&mut self.store_level, reason);
        }
        for kept in [&mut self.process_switch, &mut self.thread_switch, &mut self.system_call] {
            explain(kept, reason);
        }
        for neighbour in self.neighbours.iter_mut().flatten() {
            explain(&mut neighbour.takes, reason);
        }
        for level in &mut self.disturbed {
            for finding in [&mut level.per_system_call, &mut level.per_context_switch, &mut level.per_second] {
                explain(finding, reason);
            }
        }
    }

    /// What was looked for in vain: what, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let mut missing = Vec::new();
        for prefetch in &self.prefetches {
            missing.extend(prefetch.fills.lacks(&format!("what prefetch {} fills", prefetch.hint.word())));
            missing.extend(prefetch.faults.lacks(&format!("whether prefetch {} faults", prefetch.hint.word())));
        }
        missing.extend(self.stores.lacks("whether stores use the entries of loads"));
        missing.extend(self.store_level.lacks("entries of stores"));
        missing.extend(self.process_switch.lacks("entries lost by a process switch"));
        missing.extend(self.thread_switch.lacks("entries lost by a thread switch"));
        missing.extend(self.system_call.lacks("entries lost by a system call"));
        for neighbour in self.neighbours.iter().flatten() {
            missing.extend(neighbour.takes.lacks(&format!("whether CPU {} takes entries", neighbour.cpu)));
            missing.extend(neighbour.sharing.lacks(&format!("whether CPU {} shares entries", neighbour.cpu)));
        }
        for level in &self.disturbed {
            let what = |by: &str| format!("evictions of level {} by set and {by}", level.level);
            missing.extend(level.per_system_call.lacks(&what("system call")));
            missing.extend(level.per_context_switch.lacks(&what("context switch")));
            missing.extend(level.per_second.lacks(&what("second")));
        }
        missing
    }
}

fn explain<T>(finding: &mut Finding<T>, reason: &str) {
    if finding.is_unasked() {
        *finding = Finding::not_determined(reason);
    }
}

/// What a prefetch instruction does.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PrefetchFill {
    /// Which one.
    pub hint: PrefetchHint,
    /// What it leaves in the TLBs where the page was in none; anything means that it walks.
    pub fills: Finding<FillLevel>,
    /// Page faults of 2048 prefetches of pages without a frame.
    pub faults: Finding<u64>,
}

/// Where an access leaves an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FillLevel {
    /// In the first level, and in the second.
    L1,
    /// In the second level only: the first misses.
    Stlb,
    /// Nowhere.
    Nothing,
}

/// Stores and the entries of loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StoreEntries {
    /// A load hits where a store was before, and stores put entries of loads out: one array for both.
    Shared,
    /// Neither, in the first level: an array of their own, [`super::TlbEffects::store_level`].
    Apart,
}

/// What an act leaves in the TLBs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SwitchLosses {
    /// In the first level.
    pub l1: LostEntries,
    /// In the second level.
    pub stlb: LostEntries,
}

/// Entries lost of those that were loaded right before, a mean: the least and the most that two looks saw.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LostEntries {
    /// Loaded before.
    pub of: usize,
    /// The lower.
    pub low: f64,
    /// The higher.
    pub high: f64,
}

impl LostEntries {
    pub(crate) fn new(of: usize, a: f64, b: f64) -> Self {
        Self { of, low: a.min(b), high: a.max(b) }
    }

    /// Share of the entries lost: the mean of both looks.
    pub fn share(&self) -> f64 {
        (self.low + self.high) / 2.0 / self.of.max(1) as f64
    }
}

/// What the system does to the sets of a level.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LevelEvictions {
    /// 1 or 2.
    pub level: u32,
    /// A system call that does next to nothing.
    pub per_system_call: Finding<SetEvictions>,
    /// A switch to another process and back.
    pub per_context_switch: Finding<SetEvictions>,
    /// What comes by itself while the program waits: interrupts, the hypervisor, other programs.
    pub per_second: Finding<SetEvictions>,
}

/// Evictions of each set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SetEvictions {
    /// By number of the set: bit `i` is the parity of the page number under mask `i` of the level. Beyond what the
    /// median set has; 0 = by fewer than `least`.
    pub by_set: Vec<f64>,
    /// Fewer cannot be told from none.
    pub least: f64,
    /// What the median set has. Some of it is the experiment's own: sets that are just full miss by themselves, after
    /// an act perhaps more.
    pub median_set: f64,
}

impl SetEvictions {
    /// Sets with any.
    pub fn disturbed_sets(&self) -> usize {
        self.by_set.iter().filter(|&&evictions| evictions > 0.0).count()
    }
}

/// A CPU and what a thread there does to entries here.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NeighbourCpu {
    /// Its number.
    pub cpu: usize,
    /// Whether the system says that it is a thread of the same core; `None` = it says nothing.
    pub sibling: Option<bool>,
    /// What was measured.
    pub takes: Finding<NeighbourEvictions>,
    /// Whose the second level's entries are; asked only of CPUs that the system calls threads of the same core, or that
    /// take entries.
    pub sharing: Finding<TlbSharing>,
}

/// Whether a thread that walks through more pages than the TLBs hold takes entries here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NeighbourEvictions {
    /// Of the first level.
    pub l1: bool,
    /// Of the second.
    pub stlb: bool,
}

/// What was found about the thread on another CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TlbSharing {
    /// Whose the entries are.
    pub entries: EntryOwnership,
    /// The event that was counted; `None` = misses were told by timing.
    pub counter: Option<&'static str>,
    /// What was measured, an array each.
    pub looks: Vec<SharingMeasurement>,
}

/// Whose the entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EntryOwnership {
    /// Both threads use the entries of either: a walk through the same pages costs nothing, one through others does.
    Shared,
    /// Each thread uses entries of its own, and they compete for room: the same pages cost as others do.
    Tagged,
    /// Each thread has its part of the room: there is less of it as soon as the other thread runs, whatever that does.
    Partitioned,
    /// The other thread has no effect on entries here: it has a TLB of its own.
    Apart,
}

/// Second-level misses an access of a walk through an array.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SharingMeasurement {
    /// Pages of the array.
    pub pages: usize,
    /// With nothing on the other CPU.
    pub alone: MissesPerAccess,
    /// Beside a thread that stays on one page.
    pub one_page: MissesPerAccess,
    /// Beside a thread that walks through the same pages.
    pub same_pages: MissesPerAccess,
    /// Beside a thread that walks through as many others.
    pub other_pages: MissesPerAccess,
    /// Rounds that the other thread made through its array for each of ours, the slower of the two kinds.
    pub rounds_a_round: f64,
}

/// Misses an access, over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MissesPerAccess {
    /// The median.
    pub median: f64,
    /// The second of the repetitions in order, and the last but one: 98.8 % of such intervals hold the median.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}
