//! Recorded programs as task sets, on four cores.

use lookaside_harness::{ModelResult, RowFinding};
use lookaside_machine::Machine;

use super::variants::{
    capped, gain_a_move, grouped, signed, told, useful, young, BeyondRows, ProgramSet, ENTERING_CYCLES, NOTHING,
    UNCAPPED, USUAL,
};
use crate::interface::Version;
use crate::machines::{Along, MigrationCounts, MoveSchedule, Moves, ProgramSteps};

/// Some 0.1 ms; turns of 3 ms, as Linux's with two tasks, and moves of 1 ms, far more often than Linux's.
const SLICE_ACCESSES: u32 = 10_000;
const TURN_SLICES: u32 = 36;
const MOVE_SLICES: u32 = 12;
/// How often each program runs: moves enough for a mean.
const TIMES: u32 = 4;
/// Where a thread's pages begin, in MiB.
const FIRST_TABLE: u32 = 0x400;
/// Predictors that are tried: lookups of a period, and younger than so many.
const PREDICTORS: [(u32, u8); 9] =
    [(256, 1), (256, 2), (256, 4), (1024, 1), (1024, 2), (1024, 4), (8192, 1), (8192, 2), (8192, 4)];

/// How they run.
pub(super) fn schedule(moves: Moves, flushes: bool) -> MoveSchedule {
    MoveSchedule {
        times: TIMES,
        slice_accesses: SLICE_ACCESSES,
        turn_slices: TURN_SLICES,
        move_slices: MOVE_SLICES,
        moves,
        flushes,
    }
}

pub(super) fn run(machine: &Machine, programs: &[ProgramSteps]) -> ModelResult<BeyondRows> {
    let six = [programs, programs].concat();
    let (mut threads, mut next) = (Vec::new(), FIRST_TABLE);
    for program in &six {
        let (thread, behind) = program.moved_to(next);
        threads.push(thread);
        next = behind;
    }
    let sets = [
        ("b-set-waiting", &six[..], false, Moves::Waiting, false),
        ("b-set-threads", &threads[..], true, Moves::Waiting, false),
        ("b-set-running", programs, false, Moves::Running, false),
        ("b-set-flushed", programs, false, Moves::Running, true),
    ];
    let variants = [
        ("V3", Along { version: Version::V3, ..capped(UNCAPPED) }),
        ("V4", capped(UNCAPPED)),
        ("V4 predicted", young(USUAL)),
        ("V4 capped at 8", capped(8)),
        ("at 16", capped(16)),
        ("at 32", capped(32)),
    ];
    let mut rows = Vec::new();
    for (id, programs, one_process, moves, flushes) in sets {
        let set = ProgramSet { programs, one_process, schedule: schedule(moves, flushes) };
        let alongs: Vec<Along> = [NOTHING].into_iter().chain(variants.map(|of| of.1)).collect();
        let came = set.run(machine, &alongs)?;
        rows.push((id, set_row(&came, &variants.map(|of| of.0))));
        if id == "b-set-running" {
            rows.extend(predictors(machine, &set, &came[0], &came[2])?);
        }
    }
    Ok((rows, Vec::new()))
}

fn set_row(came: &[MigrationCounts], names: &[&str]) -> RowFinding {
    let without = &came[0];
    let walks = |of: &MigrationCounts| (without.walks as f64 - of.walks as f64) / of.moves.max(1) as f64;
    let found: Vec<String> = names
        .iter()
        .zip(&came[1..])
        .map(|(name, with)| {
            let part = 100.0 * (without.cycles as f64 - with.cycles as f64) / without.cycles as f64;
            format!("{name} {} ({part:+.2} %, {:.1} walks saved)", signed(gain_a_move(without, with)), walks(with))
        })
        .collect();
    let note = format!(
        "cycles gained (+) or lost (-) a move, and of all; {} cycles of all cores without, {} moves. Entering save and restore takes {} cycles of each whose task ran since the last \
         (fitted where all caches are flushed)",
        grouped(&without.cycles.to_string()),
        without.moves,
        grouped(&ENTERING_CYCLES.to_string()),
    );
    told(found.join(", "), note)
}

/// Useful share and time by predictor.
fn predictors(
    machine: &Machine,
    set: &ProgramSet,
    without: &MigrationCounts,
    all: &MigrationCounts,
) -> ModelResult<Vec<(&'static str, RowFinding)>> {
    let came = set.run(machine, &PREDICTORS.map(young))?;
    let by = |value: &dyn Fn(&MigrationCounts) -> String| -> String {
        let of =
            PREDICTORS.iter().zip(&came).map(|((period, younger), came)| format!("{period}/{younger} {}", value(came)));
        of.collect::<Vec<_>>().join(", ")
    };
    let gained = |with: &MigrationCounts| signed(gain_a_move(without, with));
    Ok(vec![
        (
            "b-age-share",
            told(
                format!("all {}; {}", useful(all), by(&useful)),
                "period in lookups / younger than so many periods: restored and used before it is put out, of the program's entries restored",
            ),
        ),
        (
            "b-age-time",
            told(format!("all {}; {}", gained(all), by(&gained)), "cycles gained (+) or lost (-) a move, the same task set"),
        ),
    ])
}
