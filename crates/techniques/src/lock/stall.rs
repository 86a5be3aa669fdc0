//! What waiting for translation costs a run, split as the Cortex-A9's counters split it.

use lookaside_engine::{Outcome, Setup};
use lookaside_machine::Serves;
use serde::{Deserialize, Serialize};

/// Stall cycles of the data side or of the fetch side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SideStall {
    /// Of accesses that missed the first level and hit a later one (Cortex-A9: micro TLB miss stall).
    pub micro_cycles: f64,
    /// Of accesses that missed all levels: walks (Cortex-A9: main TLB miss stall).
    pub main_cycles: f64,
}

/// Translation cycles beyond a first-level hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StallCycles {
    /// Loads and stores.
    pub data: SideStall,
    /// Instruction fetches.
    pub fetch: SideStall,
}

impl StallCycles {
    /// Of a run on a setup whose first-level hits are free.
    pub fn of(outcome: &Outcome) -> Self {
        let side = |side: &lookaside_engine::Side| SideStall {
            micro_cycles: side.cost.tlb_hit_cycles,
            main_cycles: side.cost.walk_cycles,
        };
        Self { data: side(&outcome.data), fetch: side(&outcome.fetch) }
    }

    /// All of it.
    pub fn cycles(&self) -> f64 {
        self.data.micro_cycles + self.data.main_cycles + self.fetch.micro_cycles + self.fetch.main_cycles
    }

    /// The mean of several; 0 of none.
    pub fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| match all.len() {
            0 => 0.0,
            n => all.iter().map(of).sum::<f64>() / n as f64,
        };
        Self {
            data: SideStall { micro_cycles: mean(|s| s.data.micro_cycles), main_cycles: mean(|s| s.data.main_cycles) },
            fetch: SideStall {
                micro_cycles: mean(|s| s.fetch.micro_cycles),
                main_cycles: mean(|s| s.fetch.main_cycles),
            },
        }
    }
}

/// Makes first-level hits free, so that what the engine counts as translation is what stalls beyond them. Hits' cycles
/// decide nothing in the engine, so all other counts stay. An access that no array of the first level serves stalls
/// from its first array on.
pub(crate) fn count_stalls_alone(setup: &mut Setup) {
    let serves = [Serves::Load, Serves::Store, Serves::Fetch];
    let tlbs = &mut setup.machine.tlbs;
    let first = serves.map(|kind| tlbs.iter().filter(|tlb| tlb.serves.contains(&kind)).map(|tlb| tlb.level).min());
    for tlb in tlbs {
        let is_first = |(kind, level): (&Serves, &Option<u32>)| tlb.serves.contains(kind) && *level == Some(tlb.level);
        if serves.iter().zip(&first).any(is_first) {
            tlb.hit_cycles = 0.0;
        }
    }
}
