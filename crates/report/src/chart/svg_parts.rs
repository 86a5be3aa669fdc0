//! What the kinds of charts draw alike: the inner drawing, colours, the grid.

use super::axis::Range;
use crate::html::Esc;

/// Units of the inner drawing in both directions.
pub(super) const UNITS: f64 = 1000.0;

/// Lines and parts that have a colour of their own.
const COLORS: usize = 5;

/// Paths in [`UNITS`], stretched to the chart.
pub(super) fn stretched(paths: &str) -> String {
    format!(
        r#"<svg width="100%" height="100%" viewBox="0 0 {UNITS} {UNITS}" preserveAspectRatio="none" overflow="visible">{paths}</svg>"#
    )
}

/// The class of a line or part by its number.
pub(super) fn color(number: usize) -> String {
    format!("s{}", number % COLORS + 1)
}

/// Lines across at the named numbers of a vertical axis.
pub(super) fn grid_across(range: &Range, most: usize, gap: i32) -> String {
    let line = |(at, name): (f64, String)| {
        format!(
            r#"<line class="grid" x1="0" x2="100%" y1="{0:.2}%" y2="{0:.2}%"/><text x="-{gap}" y="{0:.2}%" dy="4" text-anchor="end">{1}</text>"#,
            (1.0 - at) * 100.0,
            Esc(&name)
        )
    };
    range.ticks(most).into_iter().map(line).collect()
}

/// Lines up at these shares of the width, each with its name.
pub(super) fn grid_up(ticks: &[(f64, String)]) -> String {
    let line = |(at, name): &(f64, String)| {
        format!(
            r#"<line class="grid" x1="{0:.2}%" x2="{0:.2}%" y1="0" y2="100%"/><text x="{0:.2}%" y="100%" dy="16" text-anchor="middle">{1}</text>"#,
            at * 100.0,
            Esc(name)
        )
    };
    ticks.iter().map(line).collect()
}
