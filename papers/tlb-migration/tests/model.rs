//! The side-by-side of the model, row by row.

#[path = "../../harness/tests/support/rows.rs"]
mod rows;

use std::sync::OnceLock;

use lookaside_harness::{Effort, Reproduction, RowVerdict};
use lookaside_tlb_migration::PAPER;
use rows::{row, value};

fn reproduced() -> Reproduction {
    PAPER.reproduce(Effort::Quick, &mut |_| {}).unwrap()
}

fn found() -> &'static Reproduction {
    static ONCE: OnceLock<Reproduction> = OnceLock::new();
    ONCE.get_or_init(reproduced)
}

/// The model has little that is random: what is repeated less often is nearly the same.
#[test]
fn a_thread_takes_its_translations_along() {
    let r = found();
    assert_eq!(r.machine, "cortex-a7, gem5-armv7");
    assert_eq!(r.rows.len(), 586);
    // Thirteen are ours alone.
    let beyond = r.rows.iter().filter(|row| row.verdict == RowVerdict::Beyond);
    assert!(beyond.clone().all(|row| row.place == "Chapter 9, beyond the paper" && !row.note.is_empty()));
    assert_eq!(beyond.count(), 13);
    // Ten constants on twelve rows: one of them has three.
    assert_eq!(r.rows.iter().filter(|row| row.verdict == RowVerdict::Fitted).count(), 12);
    let counted = r.counted().count();
    assert_eq!(counted, 561);
    assert!(r.holding() * 100 >= counted * 85, "{} of {counted}", r.holding());
    // Worked out by hand: 10 cycles an entry and 3.
    for (entries, cycles) in [("1 entry", 13.0), ("2 entries", 23.0), ("32 entries", 323.0), ("64 entries", 643.0)] {
        assert_eq!(value(row(r, &format!("reading {entries} of the TLB"))), cycles);
    }
    // All lines: pages, first level, second level.
    for (pages, misses) in [("1 page", 3.0), ("12 pages", 14.0), ("17 pages", 20.0), ("64 pages", 23.0)] {
        let row = row(r, &format!("pld of consecutive pages, {pages}: cache misses"));
        assert_eq!((value(row), row.verdict), (misses, RowVerdict::Holds));
    }
    for what in
        ["two at a time", "overall speedup", "pages from which on", "which of eight runs", "where migration pays"]
    {
        let claim = r.rows.iter().rev().find(|row| row.what.contains(what)).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(claim.verdict, RowVerdict::Holds, "{claim:?}");
    }
    assert_eq!(value(row(r, "pages that gain most")), 56.0);
    // The paper's puzzles stay, and say so.
    for what in ["the pattern repeats", "five, six and seven pages", "restoring by V4 and by V3"] {
        let puzzle = row(r, what);
        assert!(puzzle.verdict == RowVerdict::Differs && !puzzle.note.is_empty(), "{puzzle:?}");
    }
    assert_eq!(&reproduced(), r, "the same again, to the bit");
}
