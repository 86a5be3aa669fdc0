//! The side-by-side of the model, row by row.

#[path = "../../harness/tests/support/rows.rs"]
mod rows;

use std::sync::OnceLock;

use lookaside_fast_address_space_switching::PAPER;
use lookaside_harness::{Effort, Reproduction, RowVerdict};
use rows::{row, value};

fn reproduced() -> Reproduction {
    PAPER.reproduce(Effort::Quick, &mut |_| {}).unwrap()
}

fn found() -> &'static Reproduction {
    static ONCE: OnceLock<Reproduction> = OnceLock::new();
    ONCE.get_or_init(reproduced)
}

/// What does not depend on how often it is run.
#[test]
fn domains_in_place_of_flushes() {
    let r = found();
    assert_eq!(r.machine, "sa1100");
    // A switch without a flush is an order of magnitude cheaper; beyond the domains that there are, less so, but never
    // dearer.
    for what in ["pipe: ratio", "fifo: ratio"] {
        assert!(value(row(r, what)) > 10.0, "{what}");
    }
    assert!(value(row(r, "cost in the fast kernel")) < 100.0);
    for what in ["quite independent", "less pronounced", "no case where", "stays well below"] {
        let claim =
            r.rows.iter().find(|row| row.published.to_string().contains(what)).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(claim.verdict, RowVerdict::Holds, "{claim:?}");
    }
    assert_eq!(value(row(r, "rises faster from")), 15.0, "16 processes, and 15 domains");
    // Five numbers, a ratio of two of them; and that a UNIX socket's round trip is two of a pipe's: both values and
    // their ratio.
    assert_eq!(r.rows.iter().filter(|row| row.verdict == RowVerdict::Fitted).count(), 9);
    // A pipe's bandwidth is no row that anything was fitted on.
    for what in ["bandwidth, pipe: original", "bandwidth, unix: original"] {
        assert_eq!(row(r, what).verdict, RowVerdict::Holds, "{what}");
    }
    // What a process leaves is unmapped area by area, each with a flush of all code in the original kernel.
    for what in ["fork: saved", "exec: saved"] {
        assert_eq!(row(r, what).verdict, RowVerdict::Holds, "{what}");
    }
    // Neither kernel's programs are short of TLB entries: what they call of the library is a few lines of code.
    assert!(value(row(r, "improvement by sharing TLB entries, at most")) < 23.0);
    // The flush and the lines that have to come again: 2 switches a round trip, 75,000 cycles each at the worst.
    let pipe = value(row(r, "latency, pipe: original"));
    assert!((10.0..2.0 * 375.0).contains(&pipe), "{pipe}");
    assert_eq!(&reproduced(), r, "the same again, to the bit");
}
