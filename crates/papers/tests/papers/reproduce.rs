//! The side-by-side of PT-Baker's Figure 4.2, of TLB coloring, of TLB lockdown, of fast address-space switching and of TLB migration, row by row; and the errors.

use std::sync::OnceLock;

use lookaside_papers::*;

fn pt_baker() -> &'static Reproduction {
    static ONCE: OnceLock<Reproduction> = OnceLock::new();
    ONCE.get_or_init(|| reproduce("pt-baker", Effort::Quick, &mut |_| {}).unwrap())
}

fn tlb_coloring() -> &'static Reproduction {
    static ONCE: OnceLock<Reproduction> = OnceLock::new();
    ONCE.get_or_init(|| reproduce("tlb-coloring", Effort::Quick, &mut |_| {}).unwrap())
}

fn tlb_lockdown() -> &'static Reproduction {
    static ONCE: OnceLock<Reproduction> = OnceLock::new();
    ONCE.get_or_init(|| reproduce("tlb-lockdown", Effort::Quick, &mut |_| {}).unwrap())
}

fn fast_switching() -> &'static Reproduction {
    static ONCE: OnceLock<Reproduction> = OnceLock::new();
    ONCE.get_or_init(|| reproduce("fast-address-space-switching", Effort::Quick, &mut |_| {}).unwrap())
}

fn tlb_migration() -> &'static Reproduction {
    static ONCE: OnceLock<Reproduction> = OnceLock::new();
    ONCE.get_or_init(|| reproduce("tlb-migration", Effort::Quick, &mut |_| {}).unwrap())
}

fn row<'a>(r: &'a Reproduction, what: &str) -> &'a Row {
    r.rows.iter().find(|row| row.what.contains(what)).unwrap_or_else(|| panic!("no row {what:?}"))
}

fn value(row: &Row) -> f64 {
    match row.ours {
        Some(Ours::Value(value)) => value,
        ref other => panic!("{}: {other:?}", row.what),
    }
}

#[test]
fn figure_4_2_comes_out_as_worked_out_by_hand() {
    let r = pt_baker();
    // 64 fully associative LRU entries hold 64 pages, and none of 65 in a circle.
    let l1 = row(r, "the array's pages alone");
    assert_eq!((value(l1), l1.verdict), (65.0, Verdict::Differs));
    // One entry is the stack page's.
    let stack = row(r, "one stack page");
    assert_eq!((value(stack), stack.verdict), (64.0, Verdict::Fitted));
    // 128 sets of 16 ways hold 2048 pages spread evenly; one page more overflows one set.
    let begin = row(r, "misses begin");
    assert_eq!((value(begin), begin.verdict), (2049.0, Verdict::Fitted));
    // 2048 + 4 × 127 + 1 = 2557 is the first size with 17 pages in every set; 99 % of accesses miss a little sooner:
    // with k of 128 sets of 20 pages thrashing, 20k of 2048 + 4k, k = 126.6 of 128.
    let full = row(r, "thrashed in full");
    assert_eq!(full.verdict, Verdict::Holds);
    assert!((2549.0..=2557.0).contains(&value(full)), "{}", value(full));
    assert_eq!(row(r, "why 2560").verdict, Verdict::Holds);
    assert_eq!(row(r, "how coalescing").verdict, Verdict::Differs);
    // Its tag is an input, so it can't count; but the claim is computed. Alone: 16 sets of 20 pages in circles, 320 of 2112.
    let threads = row(r, "two hardware threads");
    assert_eq!(threads.verdict, Verdict::Fitted);
    let Some(Ours::Claim { holds: true, found }) = &threads.ours else { panic!("{threads:?}") };
    assert!(found.starts_with("0.152 "), "{found}");
    assert_eq!(row(r, "does a prefetch").verdict, Verdict::NotReproduced);
    // The curves rise from none to all.
    for series in &r.series[..2] {
        assert!(series.points.len() > 200 && series.points.windows(2).all(|w| w[0].0 < w[1].0));
        assert_eq!((series.points[0].1, series.points.last().unwrap().1), (0.0, 1.0), "{}", series.name);
    }
    // The same again, to the bit; and as JSON.
    assert_eq!(&reproduce("pt-baker", Effort::Quick, &mut |_| {}).unwrap(), r);
    let json = serde_json::to_value(r).unwrap();
    assert_eq!(json["rows"][2]["published"], 64.0);
    assert_eq!(json["rows"][2]["verdict"], "differs");
}

/// What does not depend on how small it is made. The values themselves are for the usual size.
#[test]
fn baking_is_modelled_for_all_programs() {
    let r = pt_baker();
    // Tables that fit are kept warm by either way, and better by the kernel's.
    for (what, least) in [("fall by up to, user level", 30.0), ("the same, kernel level", 45.0)] {
        let found = value(row(r, what));
        assert!((least..=100.0).contains(&found), "{what}: {found}");
    }
    assert!(value(row(r, "the same, kernel level")) > value(row(r, "fall by up to, user level")));
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

/// Worked out by hand from the schedule and four LRU ways: these must hold, and to the number.
#[test]
fn tasks_that_share_a_set_miss_as_in_figure_6_2() {
    let r = tlb_coloring();
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
        assert_eq!((value(row), row.verdict), (expected, Verdict::Holds), "{what}");
    }
    for what in ["T1's jobs in the same set", "T1's jobs with different sets, from", "sets that the system uses"] {
        assert_eq!(row(r, what).verdict, Verdict::Holds, "{what}");
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
    let r = tlb_coloring();
    let colored = r.rows.iter().filter(|row| row.what.contains("tlb_malloc: misses"));
    assert_eq!(colored.map(|row| (value(row), row.verdict)).collect::<Vec<_>>(), [(0.0, Verdict::Holds); 9]);
    assert_eq!(r.rows.iter().filter(|row| row.what.contains("10 runs") && row.verdict == Verdict::Holds).count(), 2);
    let malloc = r.rows.iter().filter(|row| row.what.contains("pages, malloc: misses"));
    assert!(malloc.clone().count() == 4 && malloc.map(value).all(|misses| misses > 1.0));
    for what in ["L1 DTLB miss penalty", "a circle through five pages", "16 of 32 pages, malloc: misses of T1"] {
        assert_eq!(row(r, what).verdict, Verdict::Fitted, "{what}");
    }
    assert_eq!(value(row(r, "L1 DTLB miss penalty")), 7.5);
    assert_eq!(&reproduce("tlb-coloring", Effort::Quick, &mut |_| {}).unwrap(), r, "the same again, to the bit");
}

/// What does not depend on how large the inputs are, or how many the runs.
#[test]
fn locks_save_walks_in_every_program_and_time_of_lookups_only_as_fitted() {
    let r = tlb_lockdown();
    assert_eq!(r.machine, "cortex-a9");
    for program in ["basicmath", "qsort", "susan"] {
        for cores in ["one core", "four cores"] {
            let of = |what: &str| value(row(r, &format!("{program}, {cores}: decrease of {what}")));
            assert!(of("main data") > 0.0, "{program}, {cores}");
            assert!(of("micro data") > 0.0, "{program}, {cores}");
        }
    }
    let fitted = r.rows.iter().filter(|row| row.verdict == Verdict::Fitted).count();
    assert_eq!(fitted, 4, "three inputs' sizes, and one decrease by which lockable entries answer sooner");
    // Without that, what walked before now hits, and micro stall rises.
    let hits = row(r, "only lookups that hit");
    assert_eq!(hits.verdict, Verdict::Beyond);
    let Some(Ours::Claim { found, .. }) = &hits.ours else { panic!("{hits:?}") };
    assert_eq!(found.matches(" -").count(), 6, "{found}");
    let why = row(r, "why");
    assert_eq!(why.verdict, Verdict::Holds, "{why:?}");
    assert_eq!(&reproduce("tlb-lockdown", Effort::Quick, &mut |_| {}).unwrap(), r, "the same again, to the bit");
}

/// What does not depend on how often it is run.
#[test]
fn domains_in_place_of_flushes() {
    let r = fast_switching();
    assert_eq!(r.machine, "sa1100");
    // A switch without a flush is an order of magnitude cheaper; beyond the domains that there are, less so, but never dearer.
    for what in ["pipe: ratio", "fifo: ratio"] {
        assert!(value(row(r, what)) > 10.0, "{what}");
    }
    assert!(value(row(r, "cost in the fast kernel")) < 100.0);
    for what in ["quite independent", "less pronounced", "no case where", "stays well below"] {
        let claim =
            r.rows.iter().find(|row| row.published.to_string().contains(what)).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(claim.verdict, Verdict::Holds, "{claim:?}");
    }
    assert_eq!(value(row(r, "rises faster from")), 15.0, "16 processes, and 15 domains");
    // Five numbers, a ratio of two of them; and that a UNIX socket's round trip is two of a pipe's: both values and their ratio.
    assert_eq!(r.rows.iter().filter(|row| row.verdict == Verdict::Fitted).count(), 9);
    // A pipe's bandwidth is no row that anything was fitted on.
    for what in ["bandwidth, pipe: original", "bandwidth, unix: original"] {
        assert_eq!(row(r, what).verdict, Verdict::Holds, "{what}");
    }
    // What a process leaves is unmapped area by area, each with a flush of all code in the original kernel.
    for what in ["fork: saved", "exec: saved"] {
        assert_eq!(row(r, what).verdict, Verdict::Holds, "{what}");
    }
    // Neither kernel's programs are short of TLB entries: what they call of the library is a few lines of code.
    assert!(value(row(r, "improvement by sharing TLB entries, at most")) < 23.0);
    // The flush and the lines that have to come again: 2 switches a round trip, 75,000 cycles each at the worst.
    let pipe = value(row(r, "latency, pipe: original"));
    assert!((10.0..2.0 * 375.0).contains(&pipe), "{pipe}");
    assert_eq!(
        &reproduce("fast-address-space-switching", Effort::Quick, &mut |_| {}).unwrap(),
        r,
        "the same again, to the bit"
    );
}

/// The model has little that is random: what is repeated less often is nearly the same.
#[test]
fn a_thread_takes_its_translations_along() {
    let r = tlb_migration();
    assert_eq!(r.machine, "cortex-a7, gem5-armv7");
    assert_eq!(r.rows.len(), 586);
    // Thirteen are ours alone.
    let beyond = r.rows.iter().filter(|row| row.verdict == Verdict::Beyond);
    assert!(beyond.clone().all(|row| row.place == "Chapter 9, beyond the paper" && !row.note.is_empty()));
    assert_eq!(beyond.count(), 13);
    // Ten constants on twelve rows: one of them has three.
    assert_eq!(r.rows.iter().filter(|row| row.verdict == Verdict::Fitted).count(), 12);
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
        assert_eq!((value(row), row.verdict), (misses, Verdict::Holds));
    }
    for what in
        ["two at a time", "overall speedup", "pages from which on", "which of eight runs", "where migration pays"]
    {
        let claim = r.rows.iter().rev().find(|row| row.what.contains(what)).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(claim.verdict, Verdict::Holds, "{claim:?}");
    }
    assert_eq!(value(row(r, "pages that gain most")), 56.0);
    // The paper's puzzles stay, and say so.
    for what in ["the pattern repeats", "five, six and seven pages", "restoring by V4 and by V3"] {
        let puzzle = row(r, what);
        assert!(puzzle.verdict == Verdict::Differs && !puzzle.note.is_empty(), "{puzzle:?}");
    }
    assert_eq!(&reproduce("tlb-migration", Effort::Quick, &mut |_| {}).unwrap(), r, "the same again, to the bit");
}

#[test]
fn every_row_that_does_not_count_or_hold_says_why() {
    let all = [pt_baker(), tlb_coloring(), tlb_lockdown(), fast_switching(), tlb_migration()];
    for row in all.into_iter().flat_map(|of| &of.rows) {
        assert!(row.verdict == Verdict::Holds || !row.note.is_empty(), "{row:?}");
        assert_eq!(row.ours.is_none(), row.verdict == Verdict::NotReproduced);
    }
}

#[test]
fn unknown_papers_are_told_which_there_are() {
    let error = reproduce("pt-bakery", Effort::Quick, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(
        error,
        "pt-bakery: no paper has this name; the papers are pt-baker (available), tlb-coloring (available), \
         fast-address-space-switching (available), tlb-lockdown (available), tlb-migration (available)"
    );
}
