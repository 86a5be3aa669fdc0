use proptest::prelude::*;

use super::{figure, ratio, Figure, RESAMPLES};
use crate::{median, SplitMix64};

#[test]
fn what_has_no_ratio() {
    assert_eq!(ratio(&[], &[], 1, 100), None);
    assert_eq!(ratio(&[1.0], &[0.0], 1, 100), None);
    assert_eq!(ratio(&[-1.0], &[1.0], 1, 100), None);
    assert_eq!(ratio(&[1.0], &[f64::NAN], 1, 100), None);
}

#[test]
fn a_plain_difference_is_significant_from_five_rounds_on() {
    let (slow, fast) = ([2.0, 2.1, 1.9, 2.05, 2.02], [1.0, 1.1, 0.9, 1.05, 1.02]);
    let found = ratio(&slow, &fast, 7, RESAMPLES).expect("a ratio");
    assert_eq!(found.value, 2.02 / 1.02);
    assert!(found.significant && 1.8 < found.low && found.high < 2.2, "{found:?}");
    assert!(!ratio(&slow[..4], &fast[..4], 7, RESAMPLES).expect("a ratio").significant);
    let other_way = ratio(&fast, &slow, 7, RESAMPLES).expect("a ratio");
    assert!(other_way.significant && other_way.high < 1.0);
}

#[test]
fn a_slow_round_counts_on_both_sides() {
    // Rounds differ tenfold, the variants by two percent in each: all resamples agree where rounds stay whole.
    let base: Vec<f64> = (1..=9).map(f64::from).collect();
    let other: Vec<f64> = base.iter().map(|v| v * 1.02).collect();
    let found = ratio(&other, &base, 3, RESAMPLES).expect("a ratio");
    assert!(found.significant && (found.low - 1.02).abs() < 1e-9 && (found.high - 1.02).abs() < 1e-9, "{found:?}");
}

/// The interval of one run against itself, and of a list without spread.
#[test]
fn no_spread_no_width() {
    let found = ratio(&[5.0; 8], &[5.0; 8], 1, 1000).expect("a ratio");
    assert_eq!((found.value, found.low, found.high, found.significant), (1.0, 1.0, 1.0, false));
}

#[test]
fn a_ratio_is_the_figure_of_two_medians() {
    let (slow, fast) = ([2.0, 2.1, 1.9, 2.05, 2.02, 3.5], [1.0, 1.1, 0.9, 1.05, 1.02, 1.0]);
    let of_two = figure(&[&slow, &fast], |m| m[0] / m[1], 7, 1000).expect("a figure");
    let found = ratio(&slow, &fast, 7, 1000).expect("a ratio");
    assert_eq!((of_two.value, of_two.low, of_two.high), (found.value, found.low, found.high));
}

#[test]
fn what_all_rounds_have_in_common_cancels_in_a_difference() {
    // Rounds differ tenfold; the lists by 3 in each, where zero and less may be.
    let base: Vec<f64> = (-4..=4).map(f64::from).collect();
    let more: Vec<f64> = base.iter().map(|v| v + 3.0).collect();
    let found = figure(&[&more, &base], |m| m[0] - m[1], 5, 1000);
    assert_eq!(found, Some(Figure { value: 3.0, low: 3.0, high: 3.0 }));
    let one = figure(&[&base], |m| m[0], 5, 1000).expect("a figure");
    assert!(one.value == 0.0 && -4.0 <= one.low && one.low < 0.0 && 0.0 < one.high && one.high <= 4.0, "{one:?}");
}

#[test]
fn what_has_no_figure() {
    assert_eq!(figure(&[], |_| 1.0, 1, 100), None);
    assert_eq!(figure(&[&[]], |m| m[0], 1, 100), None);
    assert_eq!(figure(&[&[1.0, 2.0], &[1.0]], |m| m[0], 1, 100), None);
    assert_eq!(figure(&[&[1.0, f64::NAN]], |m| m[0], 1, 100), None);
    assert_eq!(figure(&[&[1.0]], |m| m[0], 1, 0), None);
}

/// The interval by its definition: draw rounds, take the medians of what was drawn, and leave out 2.5 % at each end.
fn naive_figure(lists: [&[f64]; 2], of: fn(f64, f64) -> f64, seed: u64, resamples: usize) -> Figure {
    let mut rng = SplitMix64::new(seed);
    let medians =
        |rounds: &[usize]| lists.map(|list| median(rounds.iter().map(|&round| list[round])).expect("a median"));
    let mut resampled: Vec<f64> = Vec::new();
    for _ in 0..resamples {
        let rounds: Vec<usize> = lists[0].iter().map(|_| rng.index(lists[0].len())).collect();
        let [above, below] = medians(&rounds);
        resampled.push(of(above, below));
    }
    resampled.sort_by(f64::total_cmp);
    for _ in 0..resamples / 40 {
        resampled.remove(0);
        resampled.pop();
    }
    let [above, below] = medians(&(0..lists[0].len()).collect::<Vec<_>>());
    let (low, high) = (resampled[0], resampled[resampled.len() - 1]);
    Figure { value: of(above, below), low, high }
}

/// A number in 0..1.
fn unit(rng: &mut SplitMix64) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Deviation of a run from its median, in units of its spread; all three have median 0.
fn deviation(rng: &mut SplitMix64, shape: u8) -> f64 {
    match shape {
        // Normal (Box and Muller).
        0 => (-2.0 * unit(rng).ln()).sqrt() * (std::f64::consts::TAU * unit(rng)).cos(),
        // Exponential: as run times are, with a long tail above.
        1 => -unit(rng).ln() - std::f64::consts::LN_2,
        // Mostly quiet, one run in eight disturbed.
        _ if rng.below(8) == 0 => 8.0 * unit(rng),
        _ => {
            // The median of the mixture is 0 if 4/7 of the quiet runs lie below.
            let u = unit(rng);
            if u < 4.0 / 7.0 {
                u / (4.0 / 7.0) - 1.0
            } else {
                (u - 4.0 / 7.0) / (3.0 / 7.0)
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Of many comparisons with a known ratio, the intervals hold it about as often as they say.
    #[test]
    fn intervals_hold_the_true_ratio(
        rounds in 5usize..25, shape in 0u8..3, spread in 0.001f64..0.1, true_ratio in 0.5f64..2.0, seed in any::<u64>(),
    ) {
        const COMPARISONS: usize = 200;
        let mut rng = SplitMix64::new(seed);
        let mut held = 0;
        for comparison in 0..COMPARISONS {
            let mut runs = |median: f64| -> Vec<f64> {
                (0..rounds).map(|_| median * (1.0 + spread * deviation(&mut rng, shape))).collect()
            };
            let (above, below) = (runs(true_ratio), runs(1.0));
            let found = ratio(&above, &below, comparison as u64, 200).expect("a ratio");
            held += usize::from(found.low <= true_ratio && true_ratio <= found.high);
        }
        // 95 % of 200 are 190, with a standard deviation of 3.1.
        prop_assert!(held >= 174, "{held} of {COMPARISONS} with {rounds} rounds of shape {shape}");
    }

    /// Same seed, same interval; and the interval holds its own ratio's resamples, in order.
    #[test]
    fn intervals_are_ordered_and_repeat(
        pairs in proptest::collection::vec((0.01f64..100.0, 0.01f64..100.0), 1..30), seed in any::<u64>(),
    ) {
        let (above, below): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let found = ratio(&above, &below, seed, 500).expect("a ratio");
        prop_assert!(found.low <= found.high);
        prop_assert_eq!(Some(found), ratio(&above, &below, seed, 500));
        let spread = |values: &[f64]| {
            (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max))
        };
        let ((a, b), (c, d)) = (spread(&above), spread(&below));
        prop_assert!(a / d <= found.low && found.high <= b / c);
    }
    #[test]
    fn a_figure_is_the_naive_one(
        pairs in proptest::collection::vec((0.01f64..100.0, 0.01f64..100.0), 1..20), seed in any::<u64>(),
        resamples in 1usize..200,
    ) {
        let (above, below): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let found = figure(&[&above, &below], |m| m[0] - m[1], seed, resamples);
        prop_assert_eq!(found, Some(naive_figure([&above, &below], |a, b| a - b, seed, resamples)));
    }
}
