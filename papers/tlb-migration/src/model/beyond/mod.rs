//! Beyond the paper: what its chapter 9 leaves to future work. A predictor, the best cap, recorded programs, a periodic task.

mod caps;
mod jitter;
mod phases;
mod sets;

use std::num::NonZeroU32;

use lookaside_harness::{in_parallel, Effort, Finding, Ours, Series, BACKGROUND};
use lookaside_machine::Machine;

use super::Result;
use crate::interface::Version;
use crate::machines::{
    Along, Predictor, Program, Schedule, TaskSet, TaskSetCounts, ENTRY_WALKS, GEM5_MEMORY_CYCLES, MIGRATION_LINES,
};

/// Entries of the TLB: no cap.
const UNCAPPED: u32 = 64;
/// Cycles of entering save and restore, whatever goes along: fitted on the paper's benchmark, which flushes all caches before.
const ENTERING_CYCLES: u64 = (MIGRATION_LINES + 2 * ENTRY_WALKS) * GEM5_MEMORY_CYCLES;
/// The predictor that rows speak of where they name no other.
const USUAL: (u32, u8) = (1024, 2);

/// Nothing goes along.
const NOTHING: Along = Along { version: Version::V4, cap: None, predictor: None };

/// Rows and curves.
type BeyondRows = (Vec<(&'static str, Finding)>, Vec<Series>);

/// All of it.
pub(super) fn run(machine: &Machine, effort: Effort, progress: &mut dyn FnMut(&str)) -> Result<BeyondRows> {
    progress("beyond the paper: recorded programs");
    let most = match effort {
        Effort::Usual => usize::MAX,
        Effort::Quick => 12_000,
    };
    let programs: Result<Vec<Program>> =
        BACKGROUND.iter().map(|sample| Ok(Program::read(&mut sample.open()?, most)?)).collect();
    let programs = programs?;
    let mut told = phases::run(machine)?;
    let (rows, series) = sets::run(machine, &programs)?;
    told.0.extend(rows);
    told.1.extend(series);
    progress("beyond the paper: caps");
    let (rows, series) = caps::run(machine, &programs)?;
    told.0.extend(rows);
    told.1.extend(series);
    progress("beyond the paper: a periodic task");
    told.0.extend(jitter::run(machine, &programs, effort)?);
    Ok(told)
}

/// By version 4, so many entries.
fn capped(cap: u32) -> Along {
    Along { cap: Some(cap), ..NOTHING }
}

/// By version 4, those younger than so many periods of so many lookups.
fn young((period, younger_than): (u32, u8)) -> Along {
    let period_lookups = NonZeroU32::new(period).unwrap_or(NonZeroU32::MIN);
    Along { predictor: Some(Predictor { period_lookups, younger_than }), ..capped(UNCAPPED) }
}

/// Programs that run beside each other.
struct Set<'a> {
    programs: &'a [Program],
    one_process: bool,
    schedule: Schedule,
}

impl Set<'_> {
    /// What it took with each of these.
    fn run(&self, machine: &Machine, alongs: &[Along]) -> Result<Vec<TaskSetCounts>> {
        let one = |along: &Along| TaskSet::new(machine, self.programs, self.one_process, along)?.run(&self.schedule);
        Ok(in_parallel(alongs, one).into_iter().collect::<std::result::Result<_, _>>()?)
    }
}

/// Cycles that a move gains, against nothing that goes along.
fn gain_a_move(without: &TaskSetCounts, with: &TaskSetCounts) -> f64 {
    (without.cycles as f64 - with.cycles as f64) / with.moves.max(1) as f64
}

/// Of the entries that were restored, those that were used before they were put out.
fn useful(came: &TaskSetCounts) -> String {
    let of = came.restored;
    if of.entries == 0 {
        return "none restored".into();
    }
    format!(
        "{:.0} % of {:.1} a move",
        100.0 * of.used as f64 / of.entries as f64,
        of.entries as f64 / came.moves.max(1) as f64
    )
}

/// With a sign, and commas at the thousands.
fn signed(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let sign = match digits.as_str() {
        "0" => "",
        _ if value < 0.0 => "-",
        _ => "+",
    };
    format!("{sign}{}", grouped(&digits))
}

/// Commas at the thousands.
fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn told(found: String, note: impl Into<String>) -> Finding {
    Finding { ours: Ours::Claim { found, holds: true }, note: note.into() }
}

fn curve(name: String, x: &str, y: &str, points: Vec<(f64, f64)>) -> Series {
    Series { name, x: x.into(), y: y.into(), points, intervals: Vec::new(), labels: Vec::new() }
}
