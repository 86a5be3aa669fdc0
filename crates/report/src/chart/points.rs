//! Values with intervals around a reference, a row each.

use super::axis::Range;
use super::svg_parts::grid_up;
use super::{PointRow, Points};
use crate::html::Esc;
use crate::text;

/// Height of a row, CSS pixels.
const ROW: u32 = 30;

/// Columns of a row's name.
const NAME_COLUMNS: usize = 26;

/// The chart; nothing if there is nothing to draw.
pub(super) fn draw(plot: &Points, spoken: &str) -> String {
    let Some(range) = plot.range() else { return String::new() };
    let mut out = format!(
        r#"<div class="chart compared"><svg height="{}" role="img" aria-label="{}">{}"#,
        plot.rows.len() as u32 * ROW,
        Esc(spoken),
        grid_up(&range.ticks(6))
    );
    if let Some(reference) = plot.reference {
        let at = range.at(reference) * 100.0;
        out += &format!(r#"<line class="level" x1="{at:.2}%" x2="{at:.2}%" y1="0" y2="100%"/>"#);
    }
    for (y, row) in (0..).map(|i: u32| i * ROW + ROW / 2).zip(&plot.rows) {
        let name = text::cut_middle(&text::clean(&row.label), NAME_COLUMNS);
        out += &format!(r#"<text class="name" x="-8" y="{y}" dy="4" text-anchor="end">{}</text>"#, Esc(&name));
        out += &marks(row, &range, y);
    }
    out + "</svg></div>"
}

fn marks(row: &PointRow, range: &Range, y: u32) -> String {
    let mut out = String::new();
    for (value, words) in row.singles.iter().filter(|(value, _)| value.is_finite()) {
        out += &format!(
            r#"<circle class="ring" cx="{:.2}%" cy="{y}" r="3.5"><title>{}</title></circle>"#,
            range.at(*value) * 100.0,
            Esc(words)
        );
    }
    if let Some(middle) = row.middle.filter(|middle| middle.is_finite()) {
        let at = range.at(middle) * 100.0;
        let (top, bottom) = (y - ROW / 3, y + ROW / 3);
        out += &format!(r#"<line class="spread" x1="{at:.2}%" x2="{at:.2}%" y1="{top}" y2="{bottom}"/>"#);
    }
    let Some(point) = row.value.as_ref().filter(|point| point.y.is_finite()) else { return out };
    if let Some((low, high)) = point.interval {
        let [low, high] = [low, high].map(|end| range.at(end) * 100.0);
        out += &format!(r#"<line class="spread" x1="{low:.2}%" x2="{high:.2}%" y1="{y}" y2="{y}"/>"#);
    }
    out + &format!(
        r#"<circle class="dot" cx="{:.2}%" cy="{y}" r="4"><title>{}</title></circle>"#,
        range.at(point.y) * 100.0,
        Esc(&format!("{}: {}", row.label, point.value_in_words()))
    )
}
