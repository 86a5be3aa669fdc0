//! SVG of any chart, and its legend.

use super::{bars, heat, lines, points, Chart, Plot};
use crate::html::Esc;

/// The chart as well-formed SVG in an HTML element; nothing if there is nothing to draw.
pub fn svg(chart: &Chart) -> String {
    match &chart.plot {
        Plot::Lines(plot) => lines::draw(plot, &chart.spoken()),
        Plot::Bars(plot) => bars::draw(plot),
        Plot::Points(plot) => points::draw(plot, &chart.spoken()),
        Plot::Heat(plot) => heat::draw(plot, &chart.spoken()),
    }
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
