//! Whether huge pages will help: the range that is predicted, and what was measured.

use lookaside_techniques::Analysis;

use crate::gain;
use crate::line::{Line, Paint};
use crate::text;

/// Columns of the labels.
const LABELS: usize = 10;

/// A heading and the facts below it; nothing where nothing is known.
pub fn lines(analysis: &Analysis, width: usize) -> Vec<Line> {
    let said = gain::said(analysis);
    if said.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::of(Paint::Dim, "WILL HUGE PAGES HELP")];
    for fact in said {
        for (i, part) in text::wrap(&text::clean(&fact.words), width - LABELS).into_iter().enumerate() {
            let label = if i == 0 { fact.label } else { "" };
            lines.push(Line::of(Paint::Dim, format!("{label:<LABELS$}")).with(fact.paint, part));
        }
    }
    lines
}
