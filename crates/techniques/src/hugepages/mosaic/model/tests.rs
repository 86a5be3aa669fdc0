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

/// Mosaics of windows of 9, 8, … cycles, each run `rounds` times, and taking what `seconds` says of the share and round.
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
