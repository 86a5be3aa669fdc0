//! The side-by-side of the model, row by row.

#[path = "../../harness/tests/support/rows.rs"]
mod rows;

use std::sync::OnceLock;

use lookaside_harness::{Effort, Ours, Reproduction, RowVerdict};
use lookaside_tlb_lockdown::PAPER;
use rows::{row, value};

fn reproduced() -> Reproduction {
    PAPER.reproduce(Effort::Quick, &mut |_| {}).unwrap()
}

fn found() -> &'static Reproduction {
    static ONCE: OnceLock<Reproduction> = OnceLock::new();
    ONCE.get_or_init(reproduced)
}

/// What does not depend on how large the inputs are, or how many the runs.
#[test]
fn locks_save_walks_in_every_program_and_time_of_lookups_only_as_fitted() {
    let r = found();
    assert_eq!(r.machine, "cortex-a9");
    for program in ["basicmath", "qsort", "susan"] {
        for cores in ["one core", "four cores"] {
            let of = |what: &str| value(row(r, &format!("{program}, {cores}: decrease of {what}")));
            assert!(of("main data") > 0.0, "{program}, {cores}");
            assert!(of("micro data") > 0.0, "{program}, {cores}");
        }
    }
    let fitted = r.rows.iter().filter(|row| row.verdict == RowVerdict::Fitted).count();
    assert_eq!(fitted, 4, "three inputs' sizes, and one decrease by which lockable entries answer sooner");
    // Without that, what walked before now hits, and micro stall rises.
    let hits = row(r, "only lookups that hit");
    assert_eq!(hits.verdict, RowVerdict::Beyond);
    let Some(Ours::Claim { found, .. }) = &hits.ours else { panic!("{hits:?}") };
    assert_eq!(found.matches(" -").count(), 6, "{found}");
    let why = row(r, "why");
    assert_eq!(why.verdict, RowVerdict::Holds, "{why:?}");
    assert_eq!(&reproduced(), r, "the same again, to the bit");
}
