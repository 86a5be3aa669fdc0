//! The side-by-side of the model, row by row.

#[path = "../../harness/tests/support/rows.rs"]
mod rows;

use std::sync::OnceLock;

use lookaside_harness::{Effort, Reproduction, RowVerdict};
use lookaside_tlb_coloring::PAPER;
use rows::{row, value};

fn reproduced() -> Reproduction {
    PAPER.reproduce(Effort::Quick, &mut |_| {}).unwrap()
}

fn found() -> &'static Reproduction {
    static ONCE: OnceLock<Reproduction> = OnceLock::new();
    ONCE.get_or_init(reproduced)
}

/// Worked out by hand from the schedule and four LRU ways: these must hold, and to the number.
#[test]
fn tasks_that_share_a_set_miss_as_in_figure_6_2() {
    let r = found();
    assert_eq!(r.machine, "xeon-e5-2650");
    for (what, expected) in [
        ("preemptions of a job of T2", 5.0),
        ("response time", 9.84),
        ("misses of T1's jobs 1 to 6 of each", 4.0),
        ("misses of T1's jobs 7 and 8", 0.0),
        ("T2's job in the first hyperperiod", 20.0),
        ("T2's later jobs", 24.0),
        ("different sets: misses of T1", 0.0),
        ("different sets: misses of T2", 0.0),
        ("same set less different sets", 30.0),
        ("mappings of every set by tlb_malloc", 4.0),
    ] {
        let row = row(r, what);
        assert_eq!((value(row), row.verdict), (expected, RowVerdict::Holds), "{what}");
    }
    for what in ["T1's jobs in the same set", "T1's jobs with different sets, from", "sets that the system uses"] {
        assert_eq!(row(r, what).verdict, RowVerdict::Holds, "{what}");
    }
    // T1's curve: the warm-up, then two hyperperiods.
    let curve = r.series.iter().find(|series| series.name == "Figure 6.2: T1, same set").expect("a curve");
    let misses: Vec<f64> = curve.points.iter().map(|point| point.1).collect();
    let hyperperiod = [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 0.0, 0.0];
    assert_eq!(misses, [&[4.0][..], &hyperperiod, &hyperperiod].concat());
}

/// Isolation is no average: not one miss, in any run. Inputs do not count.
#[test]
fn colored_pages_never_miss_and_mallocs_do() {
    let r = found();
    let colored = r.rows.iter().filter(|row| row.what.contains("tlb_malloc: misses"));
    assert_eq!(colored.map(|row| (value(row), row.verdict)).collect::<Vec<_>>(), [(0.0, RowVerdict::Holds); 9]);
    assert_eq!(r.rows.iter().filter(|row| row.what.contains("10 runs") && row.verdict == RowVerdict::Holds).count(), 2);
    let malloc = r.rows.iter().filter(|row| row.what.contains("pages, malloc: misses"));
    assert!(malloc.clone().count() == 4 && malloc.map(value).all(|misses| misses > 1.0));
    for what in ["L1 DTLB miss penalty", "a circle through five pages", "16 of 32 pages, malloc: misses of T1"] {
        assert_eq!(row(r, what).verdict, RowVerdict::Fitted, "{what}");
    }
    assert_eq!(value(row(r, "L1 DTLB miss penalty")), 7.5);
    assert_eq!(&reproduced(), r, "the same again, to the bit");
}
