//! What replays of a recording's visits took.

use serde::{Deserialize, Serialize};

use crate::faults::FaultCosts;

/// Seconds of CPU that the windows' timed visits took in one round, each way; each window counted by its weight, so
/// that the sum stands for the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ReplayRound {
    /// Each address depending on the word read before, small pages.
    pub chained_small: f64,
    /// The same, huge pages.
    pub chained_huge: f64,
    /// No address depending on another, and as many instructions from one visit to the next as in the program, small
    /// pages.
    pub free_small: f64,
    /// The same, huge pages.
    pub free_huge: f64,
    /// The instructions alone, without the visits.
    #[serde(default)]
    pub instructions_alone: f64,
}

/// A replay: rounds over the same visits, in turns with small pages in two kinds of frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ReplayTimes {
    /// Rounds with small pages in frames as scattered as those of the native run; where that may not be seen in those
    /// that the kernel gave out first before the recording. In order of time.
    pub held_rounds: Vec<ReplayRound>,
    /// Rounds with small pages in frames as scattered as those that a program got before the recording; where that may
    /// not be seen in those that came afterwards, rather side by side.
    pub other_rounds: Vec<ReplayRound>,
    /// Page visits that were timed in each; a short stretch is passed over several times.
    pub timed_visits: u64,
    /// Page visits that a round stands for: each window's by its weight.
    pub represented_visits: f64,
    /// Share of the run's modelled translation cycles that a round stands for: about 1.
    pub represented_cost: f64,
    /// Stretches of the recording that they came from.
    pub windows: u32,
    /// Bytes of memory that huge pages backed.
    pub huge_bytes: u64,
    /// How scattered the held frames were: blocks of eight frames side by side that they lay in ÷ the fewest, from 1 to
    /// 8; `None` = that may not be seen.
    #[serde(default)]
    pub held_scatter: Option<f64>,
    /// The same of the frames of `other_rounds`.
    #[serde(default)]
    pub other_scatter: Option<f64>,
    /// The same of the native run's anonymous memory, when it had most.
    #[serde(default)]
    pub program_scatter: Option<f64>,
    /// What the first touches of the replay's memory took.
    pub faults: FaultCosts,
    /// Seconds that the replay took in all.
    pub seconds: f64,
}

impl ReplayRound {
    /// The times in the order of the fields.
    pub fn times(&self) -> [f64; 5] {
        [self.chained_small, self.chained_huge, self.free_small, self.free_huge, self.instructions_alone]
    }

    /// Each time so many times.
    pub fn times_factor(&self, factor: f64) -> Self {
        Self {
            chained_small: self.chained_small * factor,
            chained_huge: self.chained_huge * factor,
            free_small: self.free_small * factor,
            free_huge: self.free_huge * factor,
            instructions_alone: self.instructions_alone * factor,
        }
    }
}

impl std::iter::Sum for ReplayRound {
    fn sum<I: Iterator<Item = Self>>(rounds: I) -> Self {
        rounds.fold(Self::default(), |sum, round| Self {
            chained_small: sum.chained_small + round.chained_small,
            chained_huge: sum.chained_huge + round.chained_huge,
            free_small: sum.free_small + round.free_small,
            free_huge: sum.free_huge + round.free_huge,
            instructions_alone: sum.instructions_alone + round.instructions_alone,
        })
    }
}
