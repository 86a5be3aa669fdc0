//! docs/reference/tlb-interfaces.md against the tables.

use lookaside_tlb_migration::layout::RegisterLayout;
use lookaside_tlb_migration::packed_diagram;
use lookaside_tlb_migration::tables::*;

const BOOK: &str = include_str!("../../../../docs/reference/tlb-interfaces.md");

/// The section of a layout, as the book has it.
fn section<F: Copy + PartialEq>(layout: &RegisterLayout<F>) -> String {
    format!(
        "{} ({}, {} bits):\n\n```text\n{}```\n\n{}",
        layout.name,
        layout.source,
        layout.bits(),
        layout.diagram(),
        layout.table()
    )
}

#[test]
fn the_book_s_diagrams_are_the_tables() {
    let sections = [
        section(&A7_OPERATION),
        section(&CORTEX_A7),
        section(&V1),
        section(&V2),
        section(&V3),
        format!("```text\n{}```\n", packed_diagram()),
    ];
    for section in &sections {
        assert!(BOOK.contains(section), "tlb-interfaces.md lacks\n{section}");
    }
    assert_eq!(BOOK.matches("```text\n").count(), sections.len(), "tlb-interfaces.md has a diagram of no table");
}
