//! SVG of any chart, and what the kinds of charts share: the inner drawing, the grid, legends.

use super::axis::Range;
use super::{bars, heat, lines, points, Chart, Plot};
use crate::html::Esc;

/// Units of the inner drawing in both directions.
pub(super) const UNITS: f64 = 1000.0;

/// Lines and parts that have a colour of their own.
const COLORS: usize = 5;

/// The chart as well-formed SVG in an HTML element; nothing if there is nothing to draw.
pub fn svg(chart: &Chart) -> String {
    match &chart.plot {
        Plot::Lines(plot) => lines::draw(plot, &chart.spoken()),
        Plot::Bars(plot) => bars::draw(plot),
        Plot::Points(plot) => points::draw(plot, &chart.spoken()),
        Plot::Heat(plot) => heat::draw(plot, &chart.spoken()),
    }
}

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

/// A square in a legend.
fn swatch(class: &str) -> String {
    format!(r#"<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="{class}" width="10" height="10"/></svg>"#)
}

/// What the colours of a chart mean; nothing where it has one line or none with a name.
pub(crate) fn legend(chart: &Chart) -> String {
    let items = match &chart.plot {
        Plot::Lines(plot) => lines::legend(plot),
        Plot::Bars(plot) => bars::legend(plot),
        Plot::Points(_) => Vec::new(),
        Plot::Heat(plot) => heat::legend(plot),
    };
    if items.is_empty() {
        return String::new();
    }
    let items = items.iter().map(|(class, words)| format!("<li>{}{}</li>", swatch(class), Esc(words)));
    format!("<ul class=\"legend\">{}</ul>", items.collect::<String>())
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
