//! Documents as terminals and pages show them.

use lookaside_report::{html, terminal, Document, Style};

use crate::html::words;

/// Text for a terminal of so many columns, with plain blanks; no line is longer.
pub fn text(document: &Document, width: usize) -> String {
    let text = terminal::render(document, &Style { width, ..Style::default() }).replace('\u{a0}', " ");
    assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    text
}

/// The words of the page, which is well-formed.
pub fn page(document: &Document) -> String {
    words(&html::render(document)).replace('\u{a0}', " ")
}
