use lookaside_harness::{Ours, PaperRow, RowVerdict};

use super::settings::{ways, HelperPlace, HelperSetting};
use super::times::SettingTimes;
use super::*;

/// Medians' ratio, with an interval of half a percent to each side.
fn judge(above: &[f64], below: &[f64]) -> Option<RatioInterval> {
    let value = median(above)? / median(below)?;
    let (low, high) = (value - 0.005, value + 0.005);
    Some(RatioInterval { value, low, high, significant: above.len() >= 5 && (low > 1.0 || high < 1.0) })
}

/// A machine on which a setting improves by so many percent; `None` = it can't be.
fn machine(rounds: usize, gain: impl Fn(&HelperSetting) -> Option<f64>) -> SweepTimes {
    let times = |percent: f64| vec![100.0 / (1.0 + percent / 100.0); rounds];
    let came = |way: HelperSetting| {
        let came =
            gain(&way).map(|percent| SettingTimes { ns_per_read: times(percent), helper_cpu_share: vec![0.5; rounds] });
        (way, came.ok_or_else(|| "no such CPU here".to_string()))
    };
    SweepTimes {
        how: vec!["made up".into()],
        base: times(0.0),
        again: times(0.1),
        ways: ways().into_iter().map(came).collect(),
        rounds_wanted: 15,
        ended: None,
    }
}

fn reproduction() -> Reproduction {
    Reproduction { paper: "pt-baker".into(), measured: true, ..Reproduction::default() }
}

fn added(swept: &SweepTimes) -> Reproduction {
    let mut found = reproduction();
    add(&mut found, Ok(swept), &judge);
    found
}

fn row<'a>(found: &'a Reproduction, place: &str, what: &str) -> &'a PaperRow {
    let row = found.rows.iter().find(|row| row.place.contains(place) && row.what.contains(what));
    row.unwrap_or_else(|| panic!("no row {place} {what}"))
}

/// As the paper tells of its own: the kernel ahead and insensitive, a stride of 8 best, the sibling a little worse.
fn paper(way: &HelperSetting) -> Option<f64> {
    let slow = f64::from(way.sleep_microseconds).ln_1p() + f64::from(way.nops).ln_1p();
    let gain = match way.level {
        HelperLevel::User => 20.0 - 1.5 * slow - (f64::from(way.stride_pages).log2() - 3.0).abs(),
        HelperLevel::Kernel => 30.0 - 0.5 * slow,
    };
    Some(match (way.place, way.level) {
        (HelperPlace::OtherCore, _) => gain,
        (HelperPlace::Sibling, HelperLevel::User) => gain - 5.0,
        (HelperPlace::Sibling, HelperLevel::Kernel) => gain - 2.0,
        (HelperPlace::Same, _) => -20.0,
    })
}

#[test]
fn a_machine_that_does_as_the_paper_says_holds() {
    let found = added(&machine(9, paper));
    let verdicts: Vec<RowVerdict> = found.rows.iter().map(|row| row.verdict).collect();
    let [holds, other, none] = [RowVerdict::Holds, RowVerdict::AnotherMachine, RowVerdict::NotReproduced];
    assert_eq!(verdicts, [holds, other, other, holds, holds, holds, none, holds], "{:#?}", found.rows);
    assert_eq!(row(&found, "6.1", "by the user level").ours, Some(Ours::Value(20.0)));
    assert_eq!(row(&found, "6.1", "the same by the kernel").ours, Some(Ours::Value(30.0)));
    assert!(row(&found, "6.10", "").note.contains("scan reads all entries"), "{:?}", row(&found, "6.10", ""));
    assert_eq!(found.halted, None);
    assert!(found.assumptions.last().is_some_and(|line| line.contains("9 of 15 rounds; control")));
}

#[test]
fn a_machine_that_does_not_differs() {
    let found = added(&machine(9, |way| {
        Some(match (way.level, way.place) {
            (HelperLevel::User, HelperPlace::Sibling) => 40.0,
            (HelperLevel::User, _) => 30.0 - f64::from(way.stride_pages).log2(),
            (HelperLevel::Kernel, HelperPlace::Sibling) => 1.0,
            (HelperLevel::Kernel, _) => 20.0 - 5.0 * f64::from(u8::from(way.sleep_microseconds > 1000)),
        })
    }));
    for (place, what) in [("4.4.1", ""), ("6.1", "which way"), ("6.8", "kernel"), ("6.8", "user"), ("6.11", "")] {
        assert_eq!(row(&found, place, what).verdict, RowVerdict::Differs, "{place} {what}: {found:#?}");
    }
    let stride = row(&found, "4.4.1", "");
    assert!(
        matches!(&stride.ours, Some(Ours::Claim { found, .. }) if found.starts_with("better than 8")),
        "{stride:?}"
    );
}

#[test]
fn what_the_machine_lacks_is_the_reason_of_its_rows() {
    let found = added(&machine(9, |way| paper(way).filter(|_| way.place != HelperPlace::Sibling)));
    for level in ["kernel", "user"] {
        let smt = row(&found, "6.8", level);
        assert!(smt.verdict == RowVerdict::NotReproduced && smt.note.contains("no such CPU here"), "{smt:?}");
    }
    assert_eq!(row(&found, "6.11", "").verdict, RowVerdict::Holds);
    let placement: Vec<_> = found.series.iter().filter(|series| series.name.contains("6.8")).collect();
    assert_eq!(placement.len(), 2);
    assert!(placement.iter().all(|series| series.labels == ["another core", "same CPU"]), "{placement:?}");
    // No kernel level at all.
    let found = added(&machine(9, |way| paper(way).filter(|_| way.level == HelperLevel::User)));
    for (place, what) in [("6.1", "which way"), ("6.1", "the same by the kernel"), ("6.8", "kernel"), ("6.11", "")] {
        assert_eq!(row(&found, place, what).verdict, RowVerdict::NotReproduced, "{place} {what}");
    }
    assert_eq!(row(&found, "4.4.1", "").verdict, RowVerdict::Holds);
}

#[test]
fn what_is_not_clear_is_not_judged() {
    let found = added(&machine(9, |way| Some(if way.level == HelperLevel::User { 0.2 } else { 0.4 })));
    for row in found.rows.iter().filter(|row| row.verdict != RowVerdict::AnotherMachine) {
        assert!(row.verdict == RowVerdict::NotReproduced && !row.note.is_empty(), "{row:?}");
    }
    // The same medians as where all holds, but intervals that hold 1.
    let unsure = |above: &[f64], below: &[f64]| {
        judge(above, below).map(|j| RatioInterval { low: 0.5, high: 2.0, significant: false, ..j })
    };
    let mut found = reproduction();
    add(&mut found, Ok(&machine(9, paper)), &unsure);
    for row in found.rows.iter().filter(|row| row.verdict != RowVerdict::AnotherMachine) {
        assert!(row.verdict == RowVerdict::NotReproduced && !row.note.is_empty(), "{row:?}");
    }
    // Runs without a helper differ among themselves.
    let swept = machine(9, paper);
    let found = added(&SweepTimes { again: swept.base.iter().map(|ns| ns * 1.05).collect(), ..swept });
    assert!(found
        .rows
        .iter()
        .all(|row| row.verdict == RowVerdict::NotReproduced && row.note.contains("differ by -4.8 %")));
    // Both the same: neither is ahead.
    let found = added(&machine(9, |_| Some(20.0)));
    assert!(row(&found, "6.1", "which way").note.starts_with("they do not differ clearly"));
    assert!(row(&found, "6.8", "user").note.starts_with("they do not differ clearly"));
}

#[test]
fn few_rounds_are_shown_and_not_judged() {
    for rounds in [0, 4] {
        let found = added(&SweepTimes { ended: Some("interrupted".into()), ..machine(rounds, paper) });
        assert_eq!(found.halted.as_deref(), Some("interrupted"));
        assert!(found.rows.iter().all(|row| row.verdict == RowVerdict::NotReproduced));
        assert!(found.rows[0].note.contains(&format!("interrupted after {rounds} rounds, 5 are needed")));
        assert_eq!(found.series.is_empty(), rounds == 0);
    }
    // Enough of them, though not all that were planned.
    let found = added(&SweepTimes { ended: Some("time is up".into()), ..machine(5, paper) });
    assert!(found.halted.is_none() && row(&found, "6.11", "").verdict == RowVerdict::Holds);
    let mut found = reproduction();
    add(&mut found, Err("too little memory"), &judge);
    assert!(found.rows.len() == 8 && found.rows.iter().all(|row| row.note == "too little memory"));
}

#[test]
fn every_setting_is_measured_once_and_every_curve_ascends() {
    let all = ways();
    assert!(all.iter().enumerate().all(|(i, way)| !all[..i].contains(way)), "{all:?}");
    let found = added(&machine(5, paper));
    // NOPs and stride of the user level, sleep, placement and cost of both.
    assert_eq!(found.series.len(), 8);
    for series in &found.series {
        assert!(series.points.windows(2).all(|pair| pair[0].0 < pair[1].0), "{series:?}");
        let inside = |((_, y), (low, high)): (&(f64, f64), &(f64, f64))| low < y && y < high;
        assert!(series.points.iter().zip(&series.intervals).all(inside), "{series:?}");
    }
}
