//! By how much one of two lists of pairs is larger: Hodges and Lehmann's estimate, with the interval that belongs to
//! Wilcoxon's signed-rank test.

use serde::{Deserialize, Serialize};

/// Pairs up to which the distribution of the rank sum is computed; above, the normal one stands for it (Wilcoxon's
/// approximation errs by less than 0.001 of probability there).
const EXACT_PAIRS: usize = 200;

/// A shift with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Shift {
    /// The median of the means of all two differences.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

/// The shift of paired differences, and the interval that holds the true one in a part `confidence` of cases (above 0,
/// below 1). The differences must be drawn from distributions that are symmetric about it, as they are where chance
/// decides which of a pair comes first; what they look like otherwise does not matter, nor does a wild one among them.
///
/// `None` if there are too few differences for that confidence (eight for 99 %), or one is not finite.
///
/// Source: Hollander and Wolfe, Nonparametric Statistical Methods, 1999, sections 3.2 and 3.3.
///
/// ```
/// let differences = [0.11, 0.08, 0.12, 0.09, 0.10, 0.07, 0.13, 0.95];
/// let shift = lookaside_stats::paired_shift(&differences, 0.99).expect("eight pairs");
/// assert!((0.1..0.12).contains(&shift.value), "the wild one hardly counts");
/// assert_eq!((shift.low, shift.high), (0.07, 0.95));
/// assert_eq!(lookaside_stats::paired_shift(&differences[..7], 0.99), None);
/// ```
pub fn paired_shift(differences: &[f64], confidence: f64) -> Option<Shift> {
    if !differences.iter().all(|difference| difference.is_finite()) {
        return None;
    }
    let outside = largest_rank_sum(differences.len(), (1.0 - confidence) / 2.0)?;
    let mut means = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (at, first) in differences.iter().enumerate() {
        means.extend(differences[at..].iter().map(|second| first / 2.0 + second / 2.0));
    }
    means.sort_unstable_by(f64::total_cmp);
    let value = crate::median(means.iter().copied())?;
    let (low, high) = (*means.get(outside)?, *means.get(means.len().checked_sub(outside + 1)?)?);
    Some(Shift { value, low, high })
}

/// The largest rank sum of so many pairs that is not exceeded with a probability of `tail` or less where nothing
/// differs; `None` if a sum of 0 is more probable.
fn largest_rank_sum(pairs: usize, tail: f64) -> Option<usize> {
    if pairs > EXACT_PAIRS {
        let n = pairs as f64;
        let (mean, deviation) = (n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt());
        return Some((mean - normal_quantile(tail) * deviation - 0.5).max(0.0) as usize);
    }
    let sums = pairs * (pairs + 1) / 2;
    // Each rank is in the sum or not, with the same probability.
    let mut probability = vec![0.0; sums + 1];
    probability[0] = 1.0;
    for rank in 1..=pairs {
        for sum in (0..=sums).rev() {
            let with = if sum >= rank { probability[sum - rank] } else { 0.0 };
            probability[sum] = probability[sum] / 2.0 + with / 2.0;
        }
    }
    let mut below = 0.0;
    let beyond = probability.iter().position(|each| {
        below += each;
        below > tail
    });
    beyond?.checked_sub(1)
}

/// The distance from the mean, in standard deviations, beyond which `tail` of a normal distribution lies on one side:
/// for tails below a half (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.23; errs by less than
/// 0.0005).
fn normal_quantile(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SplitMix64;

    /// Counted over all signs, one by one.
    fn naive_largest(pairs: usize, tail: f64) -> Option<usize> {
        let sum = |signs: u32| (1..=pairs).filter(|rank| signs >> (rank - 1) & 1 == 1).sum::<usize>();
        let all: Vec<usize> = (0..1u32 << pairs).map(sum).collect();
        let at_most = |sum: usize| all.iter().filter(|&&each| each <= sum).count() as f64 / all.len() as f64;
        (0..=pairs * (pairs + 1) / 2).take_while(|&sum| at_most(sum) <= tail).last()
    }

    #[test]
    fn rank_sums_are_those_of_all_signs() {
        for pairs in 1..=14 {
            for tail in [0.005, 0.025, 0.05] {
                assert_eq!(largest_rank_sum(pairs, tail), naive_largest(pairs, tail), "{pairs} pairs, {tail}");
            }
        }
        // Hollander and Wolfe, table A.4: of 10 pairs P(T+ <= 3) = 0.005, P(T+ <= 8) = 0.024.
        assert_eq!((largest_rank_sum(10, 0.0051), largest_rank_sum(10, 0.025)), (Some(3), Some(8)));
    }

    #[test]
    fn the_normal_distribution_goes_on_where_the_exact_one_ends() {
        for tail in [0.005, 0.025] {
            let exact = largest_rank_sum(EXACT_PAIRS, tail).expect("many") as f64;
            let n = EXACT_PAIRS as f64;
            let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
            let normal = n * (n + 1.0) / 4.0 - normal_quantile(tail) * deviation;
            assert!((exact - normal).abs() < 0.02 * deviation, "{exact} {normal}");
            assert!(largest_rank_sum(EXACT_PAIRS + 1, tail).expect("more") >= exact as usize);
        }
        assert!((normal_quantile(0.025) - 1.95996).abs() < 5e-4 && (normal_quantile(0.005) - 2.57583).abs() < 5e-4);
    }

    /// Differences whose spread is anything but normal.
    fn differences(rng: &mut SplitMix64, pairs: usize, shift: f64) -> Vec<f64> {
        let one = |rng: &mut SplitMix64| {
            let size = rng.unit().powi(4) * 10.0;
            shift + if rng.below(2) == 0 { size } else { -size }
        };
        (0..pairs).map(|_| one(rng)).collect()
    }

    /// Of 2,000 intervals of 99 %, 20 miss; five standard deviations of a binomial are 22.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut rng = SplitMix64::new(11);
        for (pairs, confidence, most) in [(8, 0.99, 42), (20, 0.99, 42), (20, 0.95, 149)] {
            let missed = (0..2000)
                .filter(|_| {
                    let shift = paired_shift(&differences(&mut rng, pairs, 3.0), confidence).expect("enough");
                    !(shift.low..=shift.high).contains(&3.0)
                })
                .count();
            assert!(missed <= most, "{pairs} pairs at {confidence}: {missed} of 2000 missed");
        }
    }

    proptest! {
        #[test]
        fn the_shift_moves_with_the_differences(seed in any::<u64>(), pairs in 8usize..40, by in -5.0..5.0f64) {
            let list = differences(&mut SplitMix64::new(seed), pairs, 0.0);
            let moved: Vec<f64> = list.iter().map(|each| each + by).collect();
            let (first, second) = (paired_shift(&list, 0.99).unwrap(), paired_shift(&moved, 0.99).unwrap());
            for (a, b) in [(first.value, second.value), (first.low, second.low), (first.high, second.high)] {
                prop_assert!((a + by - b).abs() < 1e-9);
            }
            prop_assert!(first.low <= first.value && first.value <= first.high);
        }
    }

    #[test]
    fn too_few_pairs_have_no_interval() {
        assert_eq!((0..12).find(|&pairs| paired_shift(&vec![1.0; pairs], 0.99).is_some()), Some(8));
        assert_eq!(paired_shift(&[f64::NAN; 20], 0.99), None);
    }
}
