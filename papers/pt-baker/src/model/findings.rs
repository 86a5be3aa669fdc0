//! How findings are written.

use lookaside_harness::{Ours, RowFinding};

/// By the id of a row.
pub(super) type Findings = Vec<(&'static str, RowFinding)>;

/// Below this improvement, in percent, there is none.
pub(super) const NONE: f64 = 1.0;

/// A number, to a tenth.
pub(super) fn value(value: f64, note: String) -> RowFinding {
    // What windows and seeds leave of it.
    RowFinding { ours: Ours::Value((value * 10.0).round() / 10.0), note }
}

/// Whether a claim holds, and by what.
pub(super) fn claim(holds: bool, found: String, note: &str) -> RowFinding {
    RowFinding { ours: Ours::Claim { found, holds }, note: note.into() }
}
