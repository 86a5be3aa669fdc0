use lookaside_trace::MapSource;
use proptest::prelude::*;

use super::*;
use crate::hugepages::mosaic::layout::mosaics;
use crate::hugepages::plan::WindowRegion;
use crate::hugepages::WINDOW_BYTES;
use crate::lock::maps::ListedMapping;

/// Windows of these cycles, as they come.
fn windows(cycles: &[f64]) -> Vec<MosaicWindow> {
    let (start, end) = (0, cycles.len() as u64 * WINDOW_BYTES);
    let mapping = ListedMapping { start, end, prot: 3, source: MapSource::Heap, site: 0 };
    let window = |(at, cycles): (usize, &f64)| {
        let offset_bytes = at as u64 * WINDOW_BYTES;
        let region = WindowRegion { name: "[heap]".into(), offset_bytes, nth: 0, equals: 1, mapping: mapping.clone() };
        MosaicWindow { address: offset_bytes, region, cycles: *cycles }
    };
    cycles.iter().enumerate().map(window).collect()
}

/// Mosaics of windows of 9, 8, … cycles, each run `rounds` times, and taking what `seconds` says of the share and
/// round.
fn ran(rounds: u32, seconds: impl Fn(f64, u32) -> f64) -> (Vec<MosaicWindow>, Vec<RanMosaic>) {
    let windows = windows(&[9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    let run =
        |covered: f64| (0..rounds).map(|round| MosaicRun { user_seconds: seconds(covered, round), covered }).collect();
    let mut all = vec![RanMosaic { name: "small pages".into(), windows: 0, runs: run(0.0) }];
    for mosaic in mosaics(&windows, 1) {
        let covered = mosaic.windows.iter().map(|at| windows[*at].cycles).sum::<f64>() / 45.0;
        all.push(RanMosaic { name: mosaic.name, windows: mosaic.windows.len(), runs: run(covered) });
    }
    (windows, all)
}

#[test]
fn a_line_is_found_again() {
    let (windows, ran) = ran(5, |covered, _| 4.0 - covered);
    let gain = fit(&windows, 0.9, &ran, 1).expect("a fit");
    assert!((gain.ratio - 4.0 / 3.0).abs() < 1e-9 && gain.mean_left_out_error < 1e-9, "{gain:?}");
    assert!((gain.terms[0] - 4.0).abs() < 1e-9 && (gain.terms[1] + 1.0).abs() < 1e-9, "{gain:?}");
    // 9 + 8 of 45 cycles are less than half, 9 + 8 + 7 are more.
    assert_eq!((gain.rounds, gain.windows, gain.half_windows, gain.mosaics.len()), (5, 9, Some(3), 9));
}

#[test]
fn what_bends_is_no_line() {
    // The last quarter of the cost gains nothing more: a parabola with its lowest point there.
    let (windows, ran) = ran(3, |covered, _| 3.0 + (covered - 0.75).powi(2));
    let gain = fit(&windows, 0.9, &ran, 1).expect("a fit");
    assert_eq!(gain.terms.len(), 3);
    assert!((gain.ratio - 3.5625 / 3.0625).abs() < 1e-9 && gain.most_left_out_error < 1e-9, "{gain:?}");
    assert_eq!(gain.half_windows, Some(dearest(&windows, 0.2) as u32));
}

#[test]
fn noise_is_in_the_interval() {
    let (windows, ran) = ran(5, |covered, round| (4.0 - covered) * (1.0 + 0.02 * f64::from(round) * covered));
    let gain = fit(&windows, 0.9, &ran, 1).expect("a fit");
    assert!(gain.low < gain.ratio && gain.ratio < gain.high, "{gain:?}");
    assert!(gain.low > 1.1 && gain.high < 1.4, "{gain:?}");
}

#[test]
fn what_gains_nothing_has_no_half() {
    let (windows, ran) = ran(2, |covered, _| 4.0 + covered);
    let gain = fit(&windows, 0.9, &ran, 1).expect("a fit");
    assert!(gain.half_windows.is_none() && gain.ratio < 1.0, "{gain:?}");
}

#[test]
fn what_cannot_be_told_is_said() {
    let refused = |windows: &[MosaicWindow], ran: &[RanMosaic]| {
        let why = fit(windows, 0.9, ran, 1).expect_err("it can't be told");
        assert!(!why.contains('\n'), "{why}");
        why
    };
    let (all, some) = ran(3, |covered, _| 4.0 - covered);
    assert!(refused(&all[..1], &some[..3]).contains("too few"));
    let late = |ran: &RanMosaic| RanMosaic {
        runs: ran.runs.iter().map(|run| MosaicRun { covered: run.covered / 4.0, ..*run }).collect(),
        ..ran.clone()
    };
    assert!(refused(&all, &some.iter().map(late).collect::<Vec<_>>()).contains("more than 25 %"));
    let (all, some) = ran(3, |_, _| 0.0);
    assert!(refused(&all, &some).contains("no user time"));
}

#[test]
fn few_windows_make_few_mosaics() {
    let of =
        |cycles: &[f64]| mosaics(&windows(cycles), 1).iter().map(|mosaic| mosaic.windows.clone()).collect::<Vec<_>>();
    assert!(of(&[]).is_empty());
    assert_eq!(of(&[5.0]), [vec![0]]);
    let two = of(&[5.0, 1.0]);
    assert!(two[..2] == [vec![0, 1], vec![0]] && two.len() <= 3, "{two:?}");
}

#[test]
fn random_halves_are_halves() {
    let mosaics = mosaics(&windows(&[9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), 1);
    let sizes: Vec<(&str, usize)> = mosaics.iter().map(|mosaic| (&mosaic.name[..], mosaic.windows.len())).collect();
    let dearest = [("all windows", 9), ("dearest, 25 % of the cost", 2), ("dearest, 50 % of the cost", 3)];
    assert_eq!(sizes[..3], dearest);
    assert_eq!(sizes[3], ("dearest, 75 % of the cost", 5));
    let halves = [("random half 1a", 4), ("random half 1b", 5), ("random half 2a", 4), ("random half 2b", 5)];
    assert_eq!(sizes[4..], halves);
}

/// Mosaics with these shares covered, three runs each.
fn ran_at(shares: &[f64], seconds: impl Fn(f64, u32) -> f64) -> Vec<RanMosaic> {
    let run = |covered, round| MosaicRun { user_seconds: seconds(covered, round), covered };
    let mosaic = |&covered: &f64| RanMosaic {
        name: String::new(),
        windows: 1,
        runs: (0..3).map(|round| run(covered, round)).collect(),
    };
    shares.iter().map(mosaic).collect()
}

#[test]
fn four_mosaics_of_which_one_covers_half_are_enough_for_a_line() {
    let line = |covered: f64, _: u32| 4.0 - covered;
    let gain = fit(&windows(&[2.0, 1.0]), 0.9, &ran_at(&[0.0, 0.125, 0.25, 0.5], line), 1).expect("a fit");
    assert!(gain.terms.len() == 2 && (gain.ratio - 4.0 / 3.0).abs() < 1e-9, "{gain:?}");
    let same = fit(&windows(&[2.0, 1.0]), 0.9, &ran_at(&[0.75; 4], line), 1);
    assert_eq!(same.expect_err("no line"), "all runs had the same in huge pages");
    // Where small pages take no time there is no ratio.
    assert_eq!(ratio(&ran_at(&[0.0, 0.5, 1.0], |covered, _| covered), 2, 1), None);
}

#[test]
fn the_error_of_what_is_left_out_widens_the_interval() {
    let bent = |covered: f64, round: u32| 4.0 - covered * covered.sqrt() + 0.01 * f64::from(round) * covered;
    let ran = ran_at(&[0.0, 0.25, 0.5, 1.0], bent);
    let gain = fit(&windows(&[2.0, 1.0]), 0.9, &ran, 1).expect("a fit");
    // By hand: each of the four points, by the line through the other three.
    let points: Vec<(f64, f64)> = [0.0, 0.25, 0.5, 1.0].map(|covered| (covered, bent(covered, 1))).to_vec();
    let line = |of: &[(f64, f64)], at: f64| {
        let mean = |what: &dyn Fn(&(f64, f64)) -> f64| of.iter().map(what).sum::<f64>() / of.len() as f64;
        let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
        let slope = mean(&|point| (point.0 - x) * (point.1 - y)) / mean(&|point| (point.0 - x).powi(2));
        y + slope * (at - x)
    };
    let foretold: Vec<f64> = (0..4)
        .map(|out| {
            let others: Vec<_> = points.iter().enumerate().filter(|(at, _)| *at != out).map(|(_, of)| *of).collect();
            line(&others, points[out].0)
        })
        .collect();
    let off: Vec<f64> = points.iter().zip(&foretold).map(|((_, seconds), by)| (by / seconds - 1.0).abs()).collect();
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(gain.mosaics.iter().zip(&foretold).all(|(row, by)| near(row.left_out_seconds, *by)), "{gain:?}");
    let mean = off.iter().sum::<f64>() / 4.0;
    assert!(mean > 0.001 && near(gain.mean_left_out_error, mean), "{mean} {gain:?}");
    assert!(near(gain.most_left_out_error, off.iter().copied().fold(0.0, f64::max)), "{gain:?}");
    let of_rounds = ratio(&ran, 2, 1).expect("a ratio");
    assert!(of_rounds.low < of_rounds.high && near(gain.low, of_rounds.low * (1.0 - mean)), "{of_rounds:?} {gain:?}");
    assert!(near(gain.high, of_rounds.high * (1.0 + mean)), "{of_rounds:?} {gain:?}");
}

#[test]
fn half_is_reached_where_half_of_the_gain_is() {
    // Four seconds, of which two are saved: one less at a half of a line, at 0.3 of what bends.
    assert_eq!(half_of_gain(&[4.0, -2.0]), Some(0.5));
    assert_eq!(half_of_gain(&[4.0, -4.0, 2.0]), Some(0.3));
    assert_eq!([half_of_gain(&[4.0, 0.0]), half_of_gain(&[4.0]), half_of_gain(&[4.0, 1.0])], [None; 3]);
}

#[test]
fn shares_that_are_nearly_the_same_settle_no_line() {
    // Half of eight points lie so much further on.
    let of = |apart: f64| {
        let points: Vec<(f64, f64)> =
            (0..8).map(|i| (0.5 + apart * f64::from(i % 2), 4.0 - f64::from(i % 2))).collect();
        polynomial(&points, 2).map(|terms| value(&terms, 0.5 + apart))
    };
    assert_eq!([of(0.0), of(3e-4)], [None; 2]);
    assert!(of(1e-3).is_some_and(|seconds| (seconds - 3.0).abs() < 1e-6), "{:?}", of(1e-3));
}

/// What is off in all, squared, as a fit has to make least.
fn squares(points: &[(f64, f64)], terms: &[f64]) -> f64 {
    points.iter().map(|(x, y)| (value(terms, *x) - y).powi(2)).sum()
}

proptest! {
    /// The twin of the normal equations: no step away from what they find is better.
    #[test]
    fn nothing_near_fits_better(
        points in prop::collection::vec((0.0..1.0f64, 0.1..10.0f64), 4..12),
        terms in 2..4usize,
        step in prop::collection::vec(-1.0..1.0f64, 3),
    ) {
        let Some(found) = polynomial(&points, terms) else { return Ok(()) };
        let least = squares(&points, &found);
        for size in [1e-3, 1e-1, 10.0] {
            let other: Vec<f64> = found.iter().zip(&step).map(|(term, step)| term + size * step).collect();
            prop_assert!(squares(&points, &other) >= least * (1.0 - 1e-9) - 1e-12);
        }
    }

    /// Halves of a random half together are all windows, and each mosaic is a set.
    #[test]
    fn mosaics_are_sets_of_windows(cycles in prop::collection::vec(0.1..100.0f64, 1..40), seed in any::<u64>()) {
        let mut cycles = cycles;
        cycles.sort_by(|a, b| b.total_cmp(a));
        let made = mosaics(&windows(&cycles), seed);
        for mosaic in &made {
            prop_assert!(mosaic.windows.is_sorted_by(|a, b| a < b) && mosaic.windows.iter().all(|at| *at < cycles.len()));
        }
        for number in 1..=2 {
            let half = |which: char| made.iter().find(|mosaic| mosaic.name == format!("random half {number}{which}"));
            if let (Some(a), Some(b)) = (half('a'), half('b')) {
                let mut both = [a.windows.clone(), b.windows.clone()].concat();
                both.sort_unstable();
                prop_assert_eq!(both, (0..cycles.len()).collect::<Vec<_>>());
            }
        }
    }
}
