//! The range of what huge pages gain in run time, against all overlaps that it is to cover.

use lookaside_engine::{Cost, IntervalCounts, Outcome, Side};
use lookaside_machine::Machine;
use lookaside_techniques::huge_gain::{
    Denominator, GainEvidence, GainPosition, HugeGain, MeasuredGain, PredictedGain, TimeRatio, WALKS_AT_ONCE,
};
use lookaside_techniques::{Remedy, RemedyKind};
use proptest::prelude::*;

fn of_parts(walks: f64, hits: f64, of: f64) -> PredictedGain {
    PredictedGain::of_parts(walks, hits, of, Denominator::UserTime).expect("numbers")
}

/// Of a model at 1 GHz, without a native run.
fn gain(remedies: &[Remedy], measured: Option<MeasuredGain>) -> HugeGain {
    let machine = Machine { clock_mhz: 1000.0, ..lookaside_machine::preset("skylake").expect("a preset") };
    let outcome = outcome();
    let evidence = GainEvidence {
        remedies,
        outcome: &outcome,
        machine: &machine,
        native: None,
        saved: Err("not run"),
        faults: None,
    };
    HugeGain::new(&evidence, measured)
}

/// A ratio that is not there is that of no time left.
fn or_endless(ratio: Option<f64>) -> f64 {
    ratio.unwrap_or(f64::INFINITY)
}

/// Seconds saved or spent in walks and in hits, of so many seconds.
fn parts() -> impl Strategy<Value = (f64, f64, f64)> {
    (-50.0..50.0f64, -20.0..20.0f64, 0.1..60.0f64)
}

proptest! {
    /// The naive twin: each share of both parts that may show as time, on a grid with its corners.
    #[test]
    fn the_ends_are_those_of_all_overlaps((walks, hits, of) in parts()) {
        let found = of_parts(walks, hits, of);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for walk_step in 0..=10 {
            for hit_step in 0..=10 {
                let walks_shown = (1.0 + (WALKS_AT_ONCE - 1.0) * f64::from(walk_step) / 10.0) / WALKS_AT_ONCE;
                let saved = walks * walks_shown + hits * f64::from(hit_step) / 10.0;
                (least, most) = (least.min(saved), most.max(saved));
                let ratio = if saved < of { of / (of - saved) } else { f64::INFINITY };
                prop_assert!(ratio >= or_endless(found.least_ratio) * (1.0 - 1e-6), "{ratio} {found:?}");
                prop_assert!(ratio <= or_endless(found.most_ratio) * (1.0 + 1e-6), "{ratio} {found:?}");
            }
        }
        prop_assert!((found.least_saved_seconds - least).abs() < 1e-9 && (found.most_saved_seconds - most).abs() < 1e-9);
    }

    #[test]
    fn more_saved_is_never_less_gained((walks, hits, of) in parts(), more in 0.0..9.0f64) {
        let before = of_parts(walks, hits, of);
        for after in [of_parts(walks + more, hits, of), of_parts(walks, hits + more, of)] {
            prop_assert!(or_endless(after.least_ratio) >= or_endless(before.least_ratio));
            prop_assert!(or_endless(after.most_ratio) >= or_endless(before.most_ratio));
        }
    }

    #[test]
    fn the_same_saving_is_less_of_a_longer_run(walks in 0.0..50.0f64, hits in 0.0..20.0f64, of in 0.1..60.0f64, more in 0.0..9.0f64) {
        let (short, long) = (of_parts(walks, hits, of), of_parts(walks, hits, of + more));
        prop_assert!(or_endless(long.least_ratio) <= or_endless(short.least_ratio));
        prop_assert!(or_endless(long.most_ratio) <= or_endless(short.most_ratio));
        // What saves makes nothing slower; what only costs, nothing faster.
        prop_assert!(or_endless(long.least_ratio) >= 1.0);
        let costs = of_parts(-walks, -hits, of);
        prop_assert!(or_endless(costs.most_ratio) <= 1.0 && costs.least_saved_seconds == -walks - hits);
    }

    /// A second more or less in all times alike is no other ratio.
    #[test]
    fn ratios_have_no_unit((walks, hits, of) in parts(), unit in 0.001..1000.0f64) {
        let (one, other) = (of_parts(walks, hits, of), of_parts(walks * unit, hits * unit, of * unit));
        for (a, b) in [(one.least_ratio, other.least_ratio), (one.most_ratio, other.most_ratio)] {
            // Where all is nearly saved the last digits count.
            if let (Some(a), Some(b)) = (a, b) {
                prop_assert!(a > 1e6 || (a / b - 1.0).abs() < 1e-6, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_ratio_lies_where_it_lies((walks, hits, of) in parts(), ratio in 0.01..20.0f64) {
        let found = of_parts(walks, hits, of);
        let wanted = match ratio {
            ratio if ratio < or_endless(found.least_ratio) => GainPosition::Below,
            ratio if ratio > or_endless(found.most_ratio) => GainPosition::Above,
            _ => GainPosition::Within,
        };
        prop_assert_eq!(found.place(ratio), wanted);
    }
}

#[test]
fn an_example_by_hand() {
    // 6 s of walks and 1 s of hits in 10 s: 1 s or 7 s are saved.
    let found = of_parts(6.0, 1.0, 10.0);
    assert_eq!((found.least_saved_seconds, found.most_saved_seconds), (1.0, 7.0));
    assert!((found.least_ratio.expect("one") - 10.0 / 9.0).abs() < 1e-12);
    assert!((found.most_ratio.expect("one") - 10.0 / 3.0).abs() < 1e-12);
    // The best guess is the middle.
    assert_eq!((found.saved_seconds, found.ratio), (4.0, Some(10.0 / 6.0)));
    let at_ends = [found.least_ratio, found.most_ratio].map(|end| found.place(end.expect("one")));
    assert_eq!(at_ends, [GainPosition::Within; 2]);
    // Saving all of it leaves no time to divide by.
    assert_eq!(of_parts(0.0, 10.0, 10.0).most_ratio, None);
    // More than there is: no upper end, and nothing lies above it.
    let endless = of_parts(12.0, 0.0, 10.0);
    assert_eq!((endless.most_ratio, endless.place(1e9)), (None, GainPosition::Within));
    assert_eq!(of_parts(90.0, 0.0, 10.0).place(5.0), GainPosition::Below);
    for (walks, hits, of) in [
        (f64::NAN, 0.0, 1.0),
        (0.0, f64::NAN, 1.0),
        (1.0, 1.0, 0.0),
        (1.0, 1.0, f64::INFINITY),
        (f64::MAX, f64::MAX, 1.0),
    ] {
        assert_eq!(PredictedGain::of_parts(walks, hits, of, Denominator::UserTime), None);
    }
}

/// 900 M of 1 G modelled cycles are translation, 300 M of them hits.
fn outcome() -> Outcome {
    let cost = Cost { tlb_hit_cycles: 300e6, walk_cycles: 600e6, ..Cost::default() };
    let data = Side { accesses: 100_000_000, cost, ..Side::default() };
    Outcome { data, ..Outcome::default() }
}

/// Huge pages leave no hits and a tenth of the walks, over this share of the run.
fn huge(share: f64) -> Remedy {
    Remedy {
        kind: RemedyKind::HugeEverywhere,
        what: "huge pages (2M) everywhere".into(),
        translation_cycles: 60e6 * share,
        base_translation_cycles: 900e6 * share,
        walk_cycles: 60e6 * share,
        base_walk_cycles: 600e6 * share,
        walks: 1,
        base_walks: 10,
        base_modelled_cycles: 1e9 * share,
        saved_share: 84.0 / 90.0,
        least_saved_share: Some(84.0 / 90.0),
        most_saved_share: Some(84.0 / 90.0),
        windows: 0,
        accesses: 1,
        accesses_share: share,
        approximate: false,
        how: String::new(),
        caveat: String::new(),
        bloat_bytes: None,
    }
}

#[test]
fn a_row_over_a_part_of_the_run_is_scaled_to_all_of_it() {
    let whole = PredictedGain::new(&[huge(1.0)], &outcome(), 1000.0, None).expect("a prediction");
    // 540 M cycles of walks and 300 M of hits at 1 GHz, of a second.
    assert_eq!((whole.of, whole.of_seconds), (Denominator::ModelledTime, 1.0));
    assert!((whole.least_saved_seconds - 0.09).abs() < 1e-12 && (whole.most_saved_seconds - 0.84).abs() < 1e-12);
    let part = PredictedGain::new(&[huge(0.25)], &outcome(), 1000.0, None).expect("a prediction");
    assert!((part.most_saved_seconds - 0.84).abs() < 1e-12 && part.of_seconds == 1.0);
    // The run's own time is the denominator where it is known.
    let timed = PredictedGain::new(&[huge(1.0)], &outcome(), 1000.0, Some(4.0)).expect("a prediction");
    assert_eq!(
        (timed.of, timed.of_seconds, timed.most_saved_seconds),
        (Denominator::UserTime, 4.0, whole.most_saved_seconds)
    );
    assert!((timed.most_ratio.expect("one") - 4.0 / 3.16).abs() < 1e-12);
    // A run's intervals stand for its CPU time.
    let interval = IntervalCounts { cpu_ns: 3_000_000_000, ..IntervalCounts::default() };
    let intervals = Outcome { intervals: vec![interval], ..outcome() };
    let of_run = PredictedGain::new(&[huge(1.0)], &intervals, 1000.0, None).expect("a prediction");
    assert_eq!((of_run.of, of_run.of_seconds), (Denominator::CpuTimeOfIntervals, 3.0));
    assert!((of_run.most_saved_seconds - 3.0 * whole.most_saved_seconds).abs() < 1e-12);
    assert!((of_run.most_ratio.expect("one") - whole.most_ratio.expect("one")).abs() < 1e-12);
    // No row, no cost, no clock: no prediction.
    let other = Remedy { kind: RemedyKind::LargerTlb, ..huge(1.0) };
    assert_eq!(PredictedGain::new(&[other], &outcome(), 1000.0, None), None);
    assert_eq!(PredictedGain::new(&[huge(0.0)], &outcome(), 1000.0, None), None);
    assert_eq!(PredictedGain::new(&[huge(1.0)], &outcome(), 0.0, None), None);
}

#[test]
fn what_was_measured_gives_denominator_and_place() {
    let time = |ratio: f64| TimeRatio {
        base_seconds: 4.0,
        huge_seconds: 4.0 / ratio,
        ratio,
        low: ratio,
        high: ratio,
        significant: true,
    };
    let measured = |user| MeasuredGain { rounds: 5, cpu: None, user, wall: None, huge_share: None };
    let with = |user| gain(&[huge(1.0)], Some(measured(user)));
    // 0.09 s to 0.84 s of 4 s: 1.023 to 1.266.
    let places = [1.0, 1.1, 1.3].map(|ratio| with(Some(time(ratio))).place);
    assert_eq!(places, [Some(GainPosition::Below), Some(GainPosition::Within), Some(GainPosition::Above)]);
    assert_eq!(with(Some(time(1.1))).predicted.expect("one").of, Denominator::UserTime);
    // Without a time that could be counted the model's own stands in, and nothing is put beside it.
    let untimed = with(None);
    assert_eq!((untimed.place, untimed.predicted.expect("one").of), (None, Denominator::ModelledTime));
    let nothing = gain(&[], None);
    assert_eq!((nothing.predicted, nothing.measured, nothing.place), (None, None, None));
}
