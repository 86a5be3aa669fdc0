//! The answer in one value: what huge pages gain of the program's user time, nothing, or that nobody can tell.

use lookaside_machine::Machine;
use serde::{Deserialize, Serialize};

use crate::gain_evidence::GainEvidence;
use crate::predicted_gain::{times_as_fast, PredictedGain, PredictionBasis};

/// What huge pages would do for the program's user time. Page faults are a bill beside it
/// ([`lookaside_timing::FaultBill`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum HugePageVerdict {
    /// It becomes faster, or slower.
    Changes {
        /// User seconds with small pages ÷ with huge ones: the best guess.
        ratio: f64,
        /// Lower end of the interval.
        least: f64,
        /// Upper end of it.
        most: f64,
    },
    /// Nothing worth the trouble, of page faults neither.
    Nothing {
        /// The ratio is this at the most.
        most: f64,
    },
    /// It can't be told.
    Unknown {
        /// Why, and what would tell.
        why: String,
    },
}

/// A ratio up to this is nothing to gain.
const NOTHING: f64 = 1.01;
/// An interval that is wider than this, and reaches down to nothing, says nothing.
const WIDEST: f64 = 0.2;

impl HugePageVerdict {
    /// By what there is.
    pub(crate) fn new(evidence: &GainEvidence, predicted: Option<&PredictedGain>) -> Self {
        let unknown = |why: &str| Self::Unknown { why: why.into() };
        let Some(native) = evidence.native else {
            return unknown(evidence.saved.err().unwrap_or("the program did not run natively"));
        };
        let cpu = native.cpu_seconds();
        if cpu <= 0.0 {
            return unknown("the program took no CPU time that could be counted");
        }
        let Some(user) = predicted.filter(|predicted| predicted.basis == PredictionBasis::Replay) else {
            // Without replays: all walks at the worst, and every second in the kernel.
            let bound = walks_at_worst(evidence) + native.system_seconds;
            return match times_as_fast(bound, cpu) {
                Some(most) if most < NOTHING => Self::Nothing { most },
                _ => unknown(evidence.saved.err().unwrap_or("nothing was replayed")),
            };
        };
        let faults = evidence.faults.and_then(|bill| bill.saved).map_or(native.system_seconds, |saved| saved.most);
        Self::of(user, times_as_fast(faults, cpu).is_some_and(|most| most < NOTHING))
    }

    fn of(user: &PredictedGain, no_faults: bool) -> Self {
        let PredictedGain { least_ratio: Some(least), ratio: Some(ratio), most_ratio: Some(most), .. } = *user else {
            return Self::Unknown {
                why: "the model saves more than the run took: the runs do not fit together".into(),
            };
        };
        match () {
            () if no_faults && ratio > 2.0 - NOTHING && most < NOTHING => Self::Nothing { most },
            () if least < NOTHING && most > 2.0 - NOTHING && most - least > WIDEST => {
                Self::Unknown { why: format!("between {least:.2} and {most:.2} times as fast") }
            }
            () => Self::Changes { ratio, least, most },
        }
    }
}

/// Seconds that data walks take at most: each reads every table of both stages, each from memory.
fn walks_at_worst(evidence: &GainEvidence) -> f64 {
    let Machine { page_table, memory, clock_mhz, .. } = evidence.machine;
    // Each guest table is found by a walk of the host's (AMD64 manual, volume 2, section 15.25: nested paging): at most
    // 24 reads with four levels each.
    let levels = page_table.format.levels().len() as f64;
    let reads = (levels + 1.0) * (levels + 1.0) - 1.0;
    let cost = &evidence.outcome.data.cost;
    (cost.walks as f64 * reads * memory.cycles + cost.tlb_hit_cycles) / (clock_mhz * 1e6)
}

#[cfg(test)]
mod tests;
