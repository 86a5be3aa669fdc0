//! What to probe: the steps, what each needs of others, and how much time it may take.

use std::time::Duration;

use serde::Serialize;

/// What to do.
#[derive(Clone, Debug, Default)]
pub struct ProbeOptions {
    /// The only step wanted; `None` = all.
    pub only: Option<ProbeStep>,
    /// Leave out what takes long: policies, effects, data caches, walks, loads far apart, timing.
    pub quick: bool,
    /// A step that is left out, too: where the time is too short for all.
    pub without: Option<ProbeStep>,
    /// Chooses pages and orders; the same seed makes the same experiments.
    pub seed: u64,
    /// How long it may take, shared out among the steps; `None` = as long as it needs.
    pub time: Option<Duration>,
}

impl ProbeOptions {
    /// Whether a step is to be done: the one that is asked for and what that needs, or all.
    pub fn wants(&self, step: ProbeStep) -> bool {
        match self.only {
            None => !(self.quick && step.is_slow()) && self.without != Some(step),
            Some(only) => only == step || only.needs().contains(&step),
        }
    }
}

/// A part of the probe that can be asked for alone. Each does what it needs of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeStep {
    /// The first level: entries, ways, sets, index.
    L1,
    /// The second level.
    L2,
    /// Replacement policies of the levels.
    Policy,
    /// What else fills and empties the levels: prefetches, stores, the system, other CPUs.
    Effects,
    /// Hardware counters, where there are some.
    Counters,
    /// Data caches and memory.
    Caches,
    /// What walks cost by where their tables lie.
    Walks,
    /// How many entries above the leaf's are at hand for walks, and what one costs that is not.
    WalkCaches,
    /// What one entry covers: contiguous pages, huge pages; a second stage of translation.
    Covers,
    /// What loads cost that lie far apart, and in a row.
    Spread,
    /// The levels for 2 MiB and 1 GiB pages.
    Large,
    /// What reads, page faults and streams take in nanoseconds.
    Timing,
}

impl ProbeStep {
    /// All, in the order in which they are done.
    pub(crate) const ALL: [ProbeStep; 12] = [
        Self::Timing,
        Self::L1,
        Self::L2,
        Self::Policy,
        Self::Effects,
        Self::Counters,
        Self::Caches,
        Self::Walks,
        Self::WalkCaches,
        Self::Covers,
        Self::Spread,
        Self::Large,
    ];

    /// Parts that each have a share of the time.
    pub(crate) fn parts(self) -> usize {
        if matches!(self, Self::Policy | Self::Large) {
            2
        } else {
            1
        }
    }

    /// How much of the time a part may take, beside the others' weights: by what they take on the development machine
    /// where neighbours are busy.
    pub(crate) fn weight(self) -> u32 {
        match self {
            Self::L1 => 4,
            Self::Timing => 8,
            // Beside a neighbour that takes its entries; else it needs a tenth of that.
            Self::L2 => 16,
            Self::Policy | Self::Walks | Self::WalkCaches => 2,
            Self::Caches | Self::Effects | Self::Spread => 3,
            Self::Counters | Self::Covers | Self::Large => 1,
        }
    }

    /// The steps without whose results it cannot be done.
    pub(crate) fn needs(self) -> &'static [ProbeStep] {
        match self {
            Self::L1 | Self::Caches | Self::Timing => &[],
            Self::L2 => &[Self::L1],
            Self::Policy | Self::Counters | Self::Effects => &[Self::L1, Self::L2],
            Self::Walks | Self::WalkCaches => &[Self::L1, Self::L2, Self::Caches],
            Self::Covers | Self::Spread => &[Self::L1, Self::L2, Self::Caches, Self::Walks],
            Self::Large => &[Self::L1, Self::L2, Self::Caches, Self::Walks, Self::Covers],
        }
    }

    /// Left out by [`ProbeOptions::quick`].
    fn is_slow(self) -> bool {
        !matches!(self, Self::L1 | Self::L2 | Self::Counters)
    }
}
