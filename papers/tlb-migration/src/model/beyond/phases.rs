//! A program of phases: pages that are used once, then a few on and on. What a predictor is for.

use lookaside_harness::ModelResult;
use lookaside_machine::Machine;

use super::variants::{capped, gain_a_move, signed, told, useful, young, BeyondRows, ProgramSet, NOTHING, UNCAPPED};
use crate::machines::{MoveSchedule, Moves, ProgramSteps, STRIDE_68K, USER_LOOP};

/// Phases, each ended by a move.
const PHASES: u32 = 16;
/// Pages of each that are used once.
const ONCE: u32 = 40;
/// Pages that all use on and on, and how often.
const HOT: u32 = 16;
const TIMES: u32 = 20;

pub(super) fn run(machine: &Machine) -> ModelResult<BeyondRows> {
    let phase = |phase: u32| {
        let once = (0..ONCE).map(move |page| HOT + phase % 2 * ONCE + page);
        once.chain((0..TIMES).flat_map(|_| 0..HOT))
    };
    let pages = (0..PHASES).flat_map(|n| phase(n).collect::<Vec<_>>());
    // Hot pages come first after a move, so that what is restored is used at once or not at all.
    let pages = (0..HOT).chain(pages).map(|page| page * STRIDE_68K);
    let programs = [ProgramSteps::over(pages, USER_LOOP as u32)];
    let mut found = Vec::new();
    for flushes in [true, false] {
        let schedule = MoveSchedule {
            times: 1,
            slice_accesses: ONCE + TIMES * HOT,
            turn_slices: 1,
            move_slices: 1,
            moves: Moves::Running,
            flushes,
        };
        let set = ProgramSet { programs: &programs, one_process: true, schedule };
        let came = set.run(machine, &[NOTHING, capped(UNCAPPED), young((64, 2)), capped(24)])?;
        let of = |with: usize| format!("{} ({})", signed(gain_a_move(&came[0], &came[with])), useful(&came[with]));
        found.push(format!(
            "caches {}: all {}, younger than 2 periods of 64 lookups {}, the 24 used last {}",
            if flushes { "flushed" } else { "kept" },
            of(1),
            of(2),
            of(3)
        ));
    }
    let note = format!(
        "cycles gained (+) or lost (-) a move, V4; useful: restored and used before it is put out. {PHASES} phases of {ONCE} pages once, then {HOT} pages {TIMES} times, \
         68 KiB apart; each is followed by a move"
    );
    Ok((vec![("b-age-phases", told(found.join("; "), note))], Vec::new()))
}
