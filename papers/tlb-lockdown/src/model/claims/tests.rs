//! Rows of made-up counts.

use super::*;
use crate::model::lockdown_bench::CoreSetting;

/// A run of these data misses, of which so many walk for 100 cycles each, and so many hit locked entries.
fn came(missed: u64, walks: u64, locked: u64) -> TaskCounts {
    let data = TlbSideCounts { missed, locked, walks, walk_cycles: 100.0 * walks as f64 };
    let fetch = TlbSideCounts { missed: 2, locked: 0, walks: 1, walk_cycles: 50.0 };
    TaskCounts { data, fetch, waited_cycles: 3.0 * walks as f64 }
}

/// Two runs of each kind. basicmath has 10 misses in the mean, susan 20, qsort 30; 4 of each walk, and 4, 2 and 3 fewer
/// if the most accessed pages are locked. Four cores have twice the misses, but half of that is their maintenance.
fn study() -> LockdownRuns {
    let mut study = LockdownRuns { main_hit_cycles: 4.0, busy_cycles: vec![1e7; 3], ..LockdownRuns::default() };
    for (task, (missed, fewer)) in [(10, 4), (30, 3), (20, 2)].into_iter().enumerate() {
        for cores in [CoreSetting::One, CoreSetting::Four, CoreSetting::FourApart] {
            let missed = match cores {
                CoreSetting::One => missed,
                CoreSetting::Four => 2 * missed,
                CoreSetting::FourApart => missed + missed / 10,
            };
            for (locked, walks) in Locked::ALL.into_iter().zip([4, 4 - fewer, 3]) {
                let hits = if locked == Locked::Nothing { 0 } else { 5 };
                let runs = vec![came(missed - 1, walks, hits), came(missed + 1, walks, hits)];
                for round_robin in [false, true] {
                    study.runs.insert((task, RunKind { cores, locked, round_robin }), runs.clone());
                }
            }
        }
    }
    study
}

fn ours(id: &str) -> Ours {
    findings(&study()).into_iter().find(|finding| finding.0 == id).unwrap_or_else(|| panic!("no {id}")).1.ours
}

fn number(id: &str) -> f64 {
    match ours(id) {
        Ours::Value(value) => value,
        claim => panic!("{id}: {claim:?}"),
    }
}

fn said(id: &str) -> (String, bool) {
    match ours(id) {
        Ours::Claim { found, holds } => (found, holds),
        value => panic!("{id}: {value:?}"),
    }
}

#[test]
fn decreases_are_means_less_means() {
    // As many lookups of 4 cycles, five of which take none in the end; walks of 100 cycles.
    assert_eq!((number("t2-micro-basicmath"), number("t2-main-basicmath")), (20.0, 400.0));
    assert_eq!((number("t2-micro-qsort"), number("t2-main-qsort")), (20.0, 300.0));
    assert_eq!((number("t3-micro-susan"), number("t3-main-susan")), (20.0, 200.0));
    // In percent of 40, 120 and 80 cycles; of 400 each.
    assert_eq!((number("single-micro-least"), number("single-micro-most")), (16.7, 50.0));
    assert_eq!((number("single-main-least"), number("single-main-most")), (50.0, 100.0));
    // Of 80, 240 and 160.
    assert_eq!((number("multi-micro-least"), number("multi-micro-most")), (8.3, 25.0));
}

#[test]
fn orders_and_claims_are_judged() {
    assert!(!said("order-single").1 && !said("order-multi").1);
    // basicmath, susan, qsort would be 400, 200, 300.
    assert!(!said("order-main").1);
    assert!(said("main-more").1 && said("stalls-order").1);
    assert!(said("worst").1);
    // 440, 520 and 480 cycles on one core; 480, 640 and 560 on four; 444, 532 and 488 without maintenance.
    assert_eq!(number("multi-more"), 16.3);
    let (why, holds) = said("multi-why");
    assert!(holds && why.starts_with("16.3 % more, 1.6 % of it without"), "{why}");
}

#[test]
fn shares_are_of_the_run() {
    // Of ten million cycles: 440 and 520 of data, and of fetches two lookups and a walk of 50.
    assert_eq!((number("share-basicmath"), number("share-qsort")), (0.0044, 0.0052));
    assert_eq!(number("share-basicmath"), number("share-basicmath-fraction"));
    assert_eq!(number("cycles-qsort"), 10.0);
}

#[test]
fn lockable_entries_answer_as_much_sooner_as_the_fitted_row_says() {
    // Five hits are too few for the published decrease: entries would have to answer at once.
    assert_eq!(said("fit-cycles").0, "0.00 of 4");
    let mut study = study();
    let kind = RunKind { cores: CoreSetting::One, locked: Locked::MostAccessed, round_robin: false };
    study.runs.insert((FITTED_TASK, kind), vec![came(5000, 1, 2000), came(5000, 1, 2011)]);
    assert_eq!(study.lookup().sooner_cycles, 2.0);
    // 20 misses of each, and 5 hits in lockable entries; and with nothing locked none is sooner.
    let four = study.pairs(CoreSetting::Four)[0];
    assert_eq!((four.0.micro, four.1.micro, four.0.micro - four.1.micro), (80.0, 70.0, 10.0));
}

#[test]
fn what_is_beyond_the_paper_is_told() {
    // (10 - 4) hits of 4 cycles, then (10 - 0).
    assert_eq!(said("hits").0, "basicmath -16, qsort -12, susan -8; basicmath -16, qsort -12, susan -8");
    assert_eq!(said("waiting").0, "basicmath 12, qsort 9, susan 6; basicmath 12, qsort 9, susan 6");
    // One walk less: 100 cycles; and five lookups that take no time.
    assert!(said("gain-single").0.starts_with("basicmath 120 against 420 of 440, qsort 120 against 320 of 520"));
    assert_eq!(said("worst-single").0, "basicmath 444, 24, 324, qsort 524, 204, 404, susan 484, 264, 364");
    assert!(said("round-robin").0.starts_with("basicmath 400 of 400 (100.0 %)"));
    assert_eq!(series(&study()).len(), 18);
}
