//! Stacked bars.

use super::svg_parts::color;
use super::{BarRow, Bars};
use crate::html::Esc;
use crate::num;

/// The bars below each other.
pub(super) fn draw(plot: &Bars) -> String {
    let rows = plot.rows.iter().filter(|row| row.whole() > 0.0).map(|row| {
        format!(
            r#"<li><div class="row"><span class="name">{}</span><span class="value">{}</span></div>{}</li>"#,
            Esc(&row.label),
            Esc(&row.value),
            stacked(plot, row)
        )
    });
    format!(r#"<ul class="bars">{}</ul>"#, rows.collect::<String>())
}

/// What the parts' colours mean.
pub(super) fn legend(plot: &Bars) -> Vec<(String, String)> {
    let parts = plot.rows.iter().max_by_key(|row| row.parts.len()).map_or(&[][..], |row| &row.parts);
    parts.iter().enumerate().map(|(i, (name, _))| (class(plot, i, name), name.clone())).collect()
}

/// What hurts always has its own colour.
fn class(plot: &Bars, number: usize, name: &str) -> String {
    if name == plot.hot {
        "memory".into()
    } else {
        color(number)
    }
}

/// One bar of all shares, with a gap between them so that they can be told apart without colour.
fn stacked(plot: &Bars, row: &BarRow) -> String {
    let mut out = format!(
        r#"<svg class="bar stack" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="{}">"#,
        Esc(&row.spoken())
    );
    let mut x = 0.0;
    for (i, (name, share)) in row.shares().into_iter().enumerate() {
        let width = if share.is_finite() { (share * 1000.0).clamp(0.0, 1000.0) } else { 0.0 };
        out += &format!(
            r#"<rect class="{}" x="{x:.1}" width="{:.1}" height="10"><title>{}</title></rect>"#,
            class(plot, i, name),
            (width - 2.0).max(0.0),
            Esc(&format!("{name} {}", num::percent(share)))
        );
        x += width;
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_shares_of_their_own_bar() {
        let parts = [("l2", 1.0), ("memory", 3.0)].map(|(name, part)| (name.to_string(), part));
        let row = BarRow { label: "loads".into(), value: "4".into(), parts: parts.to_vec() };
        let plot = Bars { unit: "references".into(), rows: vec![row], hot: "memory".into() };
        let svg = draw(&plot);
        assert!(svg.contains(r#"<rect class="s1" x="0.0" width="248.0""#), "{svg}");
        assert!(svg.contains(r#"<rect class="memory" x="250.0" width="748.0""#), "{svg}");
        assert!(svg.contains("aria-label=\"l2 25.0\u{a0}% · memory 75.0\u{a0}%\""), "{svg}");
        assert_eq!(legend(&plot).len(), 2);
    }
}
