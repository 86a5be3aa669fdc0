//! Documents as terminals and pages show them.

use lookaside_report::{html, terminal, Document, Style};

/// Text for a terminal of so many columns, with plain blanks; no line is longer.
pub fn text(document: &Document, width: usize) -> String {
    let style = Style { width, ..Style::default() };
    let text = terminal::render(document, &style).replace('\u{a0}', " ");
    assert!(text.lines().all(|line| line.chars().count() <= style.columns()), "{text}");
    text
}

/// The text without its line breaks, spaces run together.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The page, which is well-formed and has no number that is none.
pub fn page(document: &Document) -> String {
    let page = html::render(document);
    words(&page);
    assert!(!page.contains("NaN") && !page.contains("inf%"), "{page}");
    page
}

/// The words of a page, spaces run together.
pub fn words(page: &str) -> String {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(page, options).expect("well-formed");
    let body = document.descendants().find(|node| node.has_tag_name("body")).expect("a body");
    let texts = body.descendants().filter(|node| node.is_text()).filter_map(|node| node.text());
    flat(&texts.collect::<Vec<_>>().join(" ")).replace('\u{a0}', " ")
}
