//! Rows of a side-by-side, as the papers' tests look at them.

use lookaside_harness::{Ours, PaperRow, Reproduction};

/// The first row whose text holds this.
pub fn row<'a>(r: &'a Reproduction, what: &str) -> &'a PaperRow {
    r.rows.iter().find(|row| row.what.contains(what)).unwrap_or_else(|| panic!("no row {what:?}"))
}

/// Its number.
pub fn value(row: &PaperRow) -> f64 {
    match row.ours {
        Some(Ours::Value(value)) => value,
        ref other => panic!("{}: {other:?}", row.what),
    }
}
