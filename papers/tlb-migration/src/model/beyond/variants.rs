//! What goes along in each variant, programs that run beside each other with it, and how its gains are written.

use std::num::NonZeroU32;

use lookaside_harness::{in_parallel, ModelResult, Ours, PaperCurve, RowFinding};
use lookaside_machine::Machine;

use crate::interface::Version;
use crate::machines::{
    Along, MigratingTasks, MigrationCounts, MoveSchedule, Predictor, ProgramSteps, ENTRY_WALKS, GEM5_MEMORY_CYCLES,
    MIGRATION_LINES,
};

/// Entries of the TLB: no cap.
pub(super) const UNCAPPED: u32 = 64;
/// Cycles of entering save and restore, whatever goes along: fitted on the paper's benchmark, which flushes all caches
/// before.
pub(super) const ENTERING_CYCLES: u64 = (MIGRATION_LINES + 2 * ENTRY_WALKS) * GEM5_MEMORY_CYCLES;
/// The predictor that rows speak of where they name no other.
pub(super) const USUAL: (u32, u8) = (1024, 2);

/// Nothing goes along.
pub(super) const NOTHING: Along = Along { version: Version::V4, cap: None, predictor: None };

/// Rows and curves.
pub(super) type BeyondRows = (Vec<(&'static str, RowFinding)>, Vec<PaperCurve>);

/// By version 4, so many entries.
pub(super) fn capped(cap: u32) -> Along {
    Along { cap: Some(cap), ..NOTHING }
}

/// By version 4, those younger than so many periods of so many lookups.
pub(super) fn young((period, younger_than): (u32, u8)) -> Along {
    let period_lookups = NonZeroU32::new(period).unwrap_or(NonZeroU32::MIN);
    Along { predictor: Some(Predictor { period_lookups, younger_than }), ..capped(UNCAPPED) }
}

/// Programs that run beside each other.
pub(super) struct ProgramSet<'a> {
    pub(super) programs: &'a [ProgramSteps],
    pub(super) one_process: bool,
    pub(super) schedule: MoveSchedule,
}

impl ProgramSet<'_> {
    /// What it took with each of these.
    pub(super) fn run(&self, machine: &Machine, alongs: &[Along]) -> ModelResult<Vec<MigrationCounts>> {
        let one =
            |along: &Along| MigratingTasks::new(machine, self.programs, self.one_process, along)?.run(&self.schedule);
        Ok(in_parallel(alongs, one).into_iter().collect::<Result<_, _>>()?)
    }
}

/// Cycles that a move gains, against nothing that goes along.
pub(super) fn gain_a_move(without: &MigrationCounts, with: &MigrationCounts) -> f64 {
    (without.cycles as f64 - with.cycles as f64) / with.moves.max(1) as f64
}

/// Of the entries that were restored, those that were used before they were put out.
pub(super) fn useful(came: &MigrationCounts) -> String {
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
pub(super) fn signed(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let sign = match digits.as_str() {
        "0" => "",
        _ if value < 0.0 => "-",
        _ => "+",
    };
    format!("{sign}{}", grouped(&digits))
}

/// Commas at the thousands.
pub(super) fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(super) fn told(found: String, note: impl Into<String>) -> RowFinding {
    RowFinding { ours: Ours::Claim { found, holds: true }, note: note.into() }
}

pub(super) fn curve(name: String, x: &str, y: &str, points: Vec<(f64, f64)>) -> PaperCurve {
    PaperCurve { name, x: x.into(), y: y.into(), points, intervals: Vec::new(), labels: Vec::new() }
}
