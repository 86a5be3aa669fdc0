//! The book shows what the program prints.

use std::collections::BTreeSet;

/// What stands left in the lines of a report, before a gap: letters and spaces alone.
fn labels(report: &str) -> BTreeSet<&str> {
    let label = |line| str::split_once(line, "  ").map(|(label, _)| label);
    let words =
        |label: &&str| label.starts_with(char::is_alphabetic) && label.chars().all(|c| c.is_alphabetic() || c == ' ');
    report.lines().filter_map(label).filter(words).collect()
}

/// The book's report is of a real run, with figures that no other run has; its lines are those that are printed today.
#[test]
fn the_report_in_the_book_has_the_lines_that_are_printed() {
    let book = include_str!("../../../../docs/reference/analyze-report.md");
    let report =
        book.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a report in the book");
    let printed = labels(include_str!("../golden/exact-100.txt"));
    let shown = labels(report);
    assert!(shown.len() >= 8, "{shown:?}");
    assert!(shown.is_subset(&printed), "docs/reference/analyze-report.md shows {shown:?}, exact-100.txt {printed:?}");
}
