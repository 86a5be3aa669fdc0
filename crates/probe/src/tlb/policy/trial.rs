//! Replacement policies, and measured sequences that tell them apart.

use crate::tlb::policy::sequence::{Prediction, TrialSequence};
use serde::Serialize;

/// How a set chooses the entry that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TlbPolicy {
    /// The one used longest ago.
    Lru,
    /// Where a tree of bits points at, which use turns away; over any number of ways.
    TreePlru,
    /// The one filled longest ago.
    Fifo,
    /// Any.
    Random,
    /// By a rule that is none of these: what it does was measured twice alike, and none of these does it.
    NoneOfThese,
}

impl std::fmt::Display for TlbPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Lru => "LRU",
            Self::TreePlru => "tree-PLRU",
            Self::Fifo => "FIFO",
            Self::Random => "random",
            Self::NoneOfThese => "none of LRU, tree-PLRU, FIFO and random",
        })
    }
}

/// What a sequence was measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TrialRole {
    /// To propose a policy.
    Proposes,
    /// To confirm it.
    Confirms,
    /// As the shortest that was found to tell the confirmed policy from all others.
    Telling,
}

/// A sequence that was measured, and what each rule would have done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Trial {
    /// What for.
    pub role: TrialRole,
    /// Pages 0 to `reset`, exclusive, of one set are walked in order first, ...
    pub reset: usize,
    /// ... then these pages, ...
    pub history: Vec<usize>,
    /// ... and these are looked for; all of it again and again.
    pub looks: Vec<usize>,
    /// Misses of `looks`, measured (the median): their time over that of as many hits in their place, in parts of
    /// what as many new pages take there. Pages that outlive the next reset, since they were looked for, make it less
    /// than 0.
    pub misses: f64,
    /// Between the quartiles of the measurements, in misses.
    pub spread: f64,
    /// What a prediction may be off by, in misses.
    pub allowed: f64,
    /// Misses by rule.
    pub predicted: Vec<(String, Prediction)>,
}

impl Trial {
    /// Accesses after the reset.
    pub(super) fn len(&self) -> usize {
        self.history.len() + self.looks.len()
    }

    pub(super) fn sequence(&self) -> TrialSequence {
        let pages = self.history.iter().chain(&self.looks).copied().collect();
        TrialSequence { reset: self.reset, pages, looks: self.looks.len() }
    }

    /// How far a rule is off, in parts of what is allowed.
    pub(super) fn off(&self, rule: usize) -> f64 {
        self.predicted[rule].1.distance(self.misses) / self.allowed
    }
}

/// ... and so much of the misses themselves: one may cost more than another.
pub(super) const WITHIN: f64 = 0.05;

/// One of so many trials may be off.
pub(super) const DISTURBED: usize = 16;
