//! Whether huge pages will help: the range that is predicted, and what was measured.

use lookaside_techniques::Analysis;

use crate::gain;
use lookaside_report::text;
use lookaside_report::{Line, Paint};

/// What stands before the first sentence, and as much room before the others.
const LABEL: &str = "huge pages ";

/// A paragraph a sentence; nothing where nothing is known.
pub fn lines(analysis: &Analysis, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for said in gain::said(analysis) {
        for part in text::wrap(&text::clean(&said.words), width - LABEL.len()) {
            let label = if lines.is_empty() { LABEL.to_string() } else { " ".repeat(LABEL.len()) };
            lines.push(Line::of(Paint::Dim, label).with(said.paint, part));
        }
    }
    lines
}
