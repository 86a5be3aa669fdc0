//! The best cap on saved entries.

use lookaside_harness::{ModelResult, PaperCurve, BACKGROUND};
use lookaside_machine::Machine;

use super::sets::schedule;
use super::variants::{capped, curve, gain_a_move, signed, told, BeyondRows, ProgramSet, NOTHING, UNCAPPED};
use crate::machines::{MoveSchedule, Moves, ProgramSteps, STRIDE_68K, USER_LOOP};

/// Caps that are tried: this, twice this, and so on, to [`UNCAPPED`].
const FINE: u32 = 4;
const COARSE: u32 = 8;
/// Pages of Table A.17, but for one.
const PAGES: [u32; 8] = [8, 16, 24, 32, 40, 48, 56, 64];
/// Runs over the pages: as in section 8.2 one on each core.
const RUNS: u32 = 4;

pub(super) fn run(machine: &Machine, programs: &[ProgramSteps]) -> ModelResult<BeyondRows> {
    let (mut found, mut series) = (Vec::new(), Vec::new());
    for pages in PAGES {
        let round = (0..RUNS).flat_map(|_| (0..pages).map(|page| page * STRIDE_68K));
        let program = [ProgramSteps::over(round, USER_LOOP as u32)];
        let flushed = MoveSchedule {
            times: 1,
            slice_accesses: pages,
            turn_slices: 1,
            move_slices: 1,
            moves: Moves::Running,
            flushes: true,
        };
        let (best, all) =
            sweep(machine, &ProgramSet { programs: &program, one_process: true, schedule: flushed }, FINE)?;
        found.push(format!("{pages} pages: {best}"));
        series.push(plot(format!("{pages} pages, 68 KiB apart, caches flushed"), all));
    }
    let mut rows = vec![(
        "b-cap-pages",
        told(
            found.join("; "),
            "cycles gained (+) or lost (-) a move, V4, caches flushed before each: best of 4, 8, … 64, and without a cap (64 entries). Pages as section 8.2's, without \
             its stack",
        ),
    )];
    for (id, flushes) in [("b-cap-programs", false), ("b-cap-flushed", true)] {
        let mut found = Vec::new();
        for (sample, program) in BACKGROUND.iter().zip(programs) {
            // Three of it on four cores: no one comes back to a core that nobody used since.
            let three = [program; 3].map(ProgramSteps::clone);
            let set = ProgramSet { programs: &three, one_process: false, schedule: schedule(Moves::Running, flushes) };
            let (best, all) = sweep(machine, &set, COARSE)?;
            found.push(format!("{}: {best}", sample.name));
            let caches = if flushes { "flushed" } else { "kept" };
            series.push(plot(format!("{}, caches {caches}", sample.name), all));
        }
        rows.push((
            id,
            told(
                found.join("; "),
                "cycles gained (+) or lost (-) a move, V4; best of 8, 16, … 64, and without a cap. Three processes of the program on four cores, one moved each ms while it runs",
            ),
        ));
    }
    Ok((rows, series))
}

/// In words, and by cap.
fn sweep(machine: &Machine, set: &ProgramSet, step: u32) -> ModelResult<(String, Vec<(f64, f64)>)> {
    let caps = || (1..=UNCAPPED / step).map(|n| n * step);
    let came = set.run(machine, &[NOTHING].into_iter().chain(caps().map(capped)).collect::<Vec<_>>())?;
    let gains: Vec<(u32, f64)> = caps().zip(came[1..].iter().map(|with| gain_a_move(&came[0], with))).collect();
    let uncapped = gains.iter().find(|of| of.0 == UNCAPPED).map_or(f64::NAN, |of| of.1);
    // Of equals the lowest.
    let best = gains.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).copied().unwrap_or((UNCAPPED, f64::NAN));
    let words = match best {
        (_, gain) if gain <= 0.0 => {
            format!("none pays: {} at {}, {} without a cap", signed(gain), best.0, signed(uncapped))
        }
        (cap, gain) => format!("{cap} {}, {} without a cap", signed(gain), signed(uncapped)),
    };
    Ok((words, gains.into_iter().map(|(cap, gain)| (cap.into(), gain)).collect()))
}

fn plot(name: String, points: Vec<(f64, f64)>) -> PaperCurve {
    curve(format!("Beyond the paper: cap, {name}"), "most entries", "cycles gained a move", points)
}
