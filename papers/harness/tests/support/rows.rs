//! Rows of a side-by-side, as the papers' tests look at them.

use lookaside_harness::{Ours, Reproduction, Row};

/// The first row whose text holds this.
pub fn row<'a>(r: &'a Reproduction, what: &str) -> &'a Row {
    r.rows.iter().find(|row| row.what.contains(what)).unwrap_or_else(|| panic!("no row {what:?}"))
}

/// Its number.
pub fn value(row: &Row) -> f64 {
    match row.ours {
        Some(Ours::Value(value)) => value,
        ref other => panic!("{}: {other:?}", row.what),
    }
}
