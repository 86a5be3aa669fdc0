//! A native run of the hand-made hash join, and a replay of its visits. The numbers are invented, but fit each other.
#![allow(dead_code)] // each user takes what it needs

use lookaside_techniques::huge_gain::GainEvidence;
use lookaside_techniques::Analysis;
use lookaside_timing::{FaultBill, FaultCosts, NativeClock, ReplayRound, ReplayTimes, SavedSeconds};

/// What the prediction is made from: nine of eleven seconds at visits that a replay made, or the model alone.
pub fn evidence(analysis: &Analysis) -> GainEvidence<'_> {
    let costs = analysis.replay.as_ref().map(|replay| replay.faults);
    let native = analysis.native.as_ref();
    GainEvidence {
        remedies: &analysis.remedies,
        outcome: &analysis.outcome,
        machine: &analysis.machine,
        native,
        saved: match native {
            Some(_) => Ok(SavedSeconds { least: 1.41, best: 1.98, most: 2.33 }),
            None => Err("the program ran under the recorder only (--once)"),
        },
        faults: native
            .map(|clock| FaultBill::new(766_000, 1_510, (clock.minor_faults, clock.system_seconds), costs.as_ref())),
    }
}

/// The program's own clock.
pub fn clock() -> NativeClock {
    NativeClock {
        user_seconds: 11.2,
        system_seconds: 1.63,
        wall_seconds: 12.9,
        minor_faults: 771_204,
        major_faults: 0,
        switches: 40,
        threads_at_a_time: 1.0,
        samples: 11_180,
        period_ns: 1_000_000,
        places: Vec::new(),
    }
}

/// Seven rounds alike.
pub fn replay() -> ReplayTimes {
    ReplayTimes {
        held_rounds: vec![
            ReplayRound {
                chained_small: 0.111,
                chained_huge: 0.0912,
                free_small: 0.0061,
                free_huge: 0.0052,
                instructions_alone: 0.0011,
            };
            7
        ],
        other_rounds: Vec::new(),
        timed_visits: 600_000,
        represented_visits: 600_000.0,
        represented_cost: 1.0,
        windows: 8,
        held_scatter: None,
        other_scatter: None,
        program_scatter: None,
        huge_bytes: 1_510 << 21,
        faults: FaultCosts { again_microseconds: [0.64, 104.0], fresh_microseconds: [0.7, 121.0] },
        seconds: 4.2,
    }
}
