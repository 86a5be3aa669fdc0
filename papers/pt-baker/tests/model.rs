//! The side-by-side of the model, row by row.

#[path = "../../harness/tests/support/rows.rs"]
mod rows;

use std::sync::OnceLock;

use lookaside_harness::{Effort, Ours, Reproduction, RowVerdict};
use lookaside_pt_baker::PAPER;
use rows::{row, value};

fn reproduced() -> Reproduction {
    PAPER.reproduce(Effort::Quick, &mut |_| {}).unwrap()
}

fn found() -> &'static Reproduction {
    static ONCE: OnceLock<Reproduction> = OnceLock::new();
    ONCE.get_or_init(reproduced)
}

#[test]
fn figure_4_2_comes_out_as_worked_out_by_hand() {
    let r = found();
    // 64 fully associative LRU entries hold 64 pages, and none of 65 in a circle.
    let l1 = row(r, "the array's pages alone");
    assert_eq!((value(l1), l1.verdict), (65.0, RowVerdict::Differs));
    // One entry is the stack page's.
    let stack = row(r, "one stack page");
    assert_eq!((value(stack), stack.verdict), (64.0, RowVerdict::Fitted));
    // 128 sets of 16 ways hold 2048 pages spread evenly; one page more overflows one set.
    let begin = row(r, "misses begin");
    assert_eq!((value(begin), begin.verdict), (2049.0, RowVerdict::Fitted));
    // 2048 + 4 × 127 + 1 = 2557 is the first size with 17 pages in every set; 99 % of accesses miss a little sooner:
    // with k of 128 sets of 20 pages thrashing, 20k of 2048 + 4k, k = 126.6 of 128.
    let full = row(r, "thrashed in full");
    assert_eq!(full.verdict, RowVerdict::Holds);
    assert!((2549.0..=2557.0).contains(&value(full)), "{}", value(full));
    assert_eq!(row(r, "why 2560").verdict, RowVerdict::Holds);
    assert_eq!(row(r, "how coalescing").verdict, RowVerdict::Differs);
    // Its tag is an input, so it can't count; but the claim is computed. Alone: 16 sets of 20 pages in circles, 320 of
    // 2112.
    let threads = row(r, "two hardware threads");
    assert_eq!(threads.verdict, RowVerdict::Fitted);
    let Some(Ours::Claim { holds: true, found }) = &threads.ours else { panic!("{threads:?}") };
    assert!(found.starts_with("0.152 "), "{found}");
    assert_eq!(row(r, "does a prefetch").verdict, RowVerdict::NotReproduced);
    // The curves rise from none to all.
    for series in &r.series[..2] {
        assert!(series.points.len() > 200 && series.points.windows(2).all(|w| w[0].0 < w[1].0));
        assert_eq!((series.points[0].1, series.points.last().unwrap().1), (0.0, 1.0), "{}", series.name);
    }
    // The same again, to the bit; and as JSON.
    assert_eq!(&reproduced(), r);
    let json = serde_json::to_value(r).unwrap();
    assert_eq!(json["rows"][2]["published"], 64.0);
    assert_eq!(json["rows"][2]["verdict"], "differs");
}

/// What does not depend on how small it is made. The values themselves are for the usual size.
#[test]
fn baking_is_modelled_for_all_programs() {
    let r = found();
    // Tables that fit are kept warm by either way.
    for (what, least) in [("fall by up to, user level", 30.0), ("the same, kernel level", 45.0)] {
        let found = value(row(r, what));
        assert!((least..=100.0).contains(&found), "{what}: {found}");
    }
    // Shares of one program add up.
    let parts = ["by L2 (5.1", "by L3 (13.7", "by memory (1.1"].map(|what| {
        let of = r.rows.iter().find(|row| row.what.contains(what)).unwrap_or_else(|| panic!("no row {what:?}"));
        value(of)
    });
    assert!((parts.iter().sum::<f64>() - 100.0).abs() < 0.2, "{parts:?}");
    // Two walks through as many levels take more references than one.
    assert!(value(row(r, "virtual over native")) > 1.0);
    let curves = &r.series[2..];
    assert_eq!(curves.len(), 4);
    for curve in curves {
        assert!(curve.points.len() == 5 && curve.points.windows(2).all(|w| w[0].0 < w[1].0), "{curve:?}");
        assert!(curve.points.iter().all(|point| point.1.is_finite()));
    }
    // What was told beside the machine stands there.
    assert!(r.assumptions.iter().any(|a| a.contains("1/512")), "{:?}", r.assumptions);
}
