//! How sure a ratio of sums over windows of a run is: the jackknife.

use crate::bootstrap::Figure;

/// Student's t that 97.5 % lie below, by degrees of freedom from 1 on (NIST/SEMATECH e-Handbook of Statistical Methods,
/// section 1.3.6.7.2). Beyond, the last one stands: its interval is too wide by a fifteenth at most.
const T_975: [f64; 15] =
    [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131];

/// Sum of the first numbers ÷ sum of the second ones, over windows of a run that stand for all of it, with the 95 %
/// interval by leaving out each window in turn (Cochran, Sampling Techniques, 3rd edition, 1977, section 6.17; Shao and
/// Tu, The Jackknife and Bootstrap, 1995, section 1.3).
///
/// `None` if there is no such interval: fewer than two windows, a number that is not finite, or a window without which
/// nothing is left to divide by.
///
/// ```
/// use lookaside_stats::ratio_of_sums;
///
/// // Cycles saved, of so many, in four windows.
/// let saved = ratio_of_sums(&[(9.0, 10.0), (18.0, 20.0), (8.0, 10.0), (10.0, 10.0)]).expect("four windows");
/// assert_eq!(saved.value, 0.9);
/// assert!(0.7 < saved.low && saved.low < 0.9 && 0.9 < saved.high && saved.high < 1.1);
/// ```
pub fn ratio_of_sums(windows: &[(f64, f64)]) -> Option<Figure> {
    let last = windows.len().checked_sub(2)?;
    let (above, below) = windows.iter().fold((0.0, 0.0), |sum, window| (sum.0 + window.0, sum.1 + window.1));
    let without: Vec<f64> = windows.iter().map(|window| (above - window.0) / (below - window.1)).collect();
    let value = above / below;
    if !value.is_finite() || !without.iter().all(|ratio| ratio.is_finite()) {
        return None;
    }
    let count = windows.len() as f64;
    let mean = without.iter().sum::<f64>() / count;
    let squares: f64 = without.iter().map(|ratio| (ratio - mean) * (ratio - mean)).sum();
    let reach = T_975[last.min(T_975.len() - 1)] * (squares * (count - 1.0) / count).sqrt();
    Some(Figure { value, low: value - reach, high: value + reach })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_equal_denominators_it_is_the_interval_of_a_mean() {
        // Values 1, 2, 3, 4: mean 2.5, variance of the mean 5/12.
        let interval = ratio_of_sums(&[1.0, 2.0, 3.0, 4.0].map(|value| (value, 1.0))).expect("an interval");
        let reach = 3.182 * (5.0f64 / 12.0).sqrt();
        assert!((interval.low - (2.5 - reach)).abs() < 1e-12 && (interval.high - (2.5 + reach)).abs() < 1e-12);
    }

    #[test]
    fn where_nothing_can_be_said_there_is_none() {
        assert_eq!(ratio_of_sums(&[]), None);
        assert_eq!(ratio_of_sums(&[(1.0, 2.0)]), None);
        assert_eq!(ratio_of_sums(&[(1.0, 2.0), (0.0, 0.0)]), None);
        assert_eq!(ratio_of_sums(&[(0.0, 0.0), (0.0, 0.0)]), None);
        assert_eq!(ratio_of_sums(&[(f64::NAN, 1.0), (1.0, 1.0), (1.0, 1.0)]), None);
    }

    proptest! {
        /// Around the ratio; of no width where all windows have the same; no matter in which order.
        #[test]
        fn it_lies_around_the_ratio(
            windows in prop::collection::vec((0.0f64..1e6, 1.0f64..1e6), 2..40), share in 0.0f64..1.0,
        ) {
            let interval = ratio_of_sums(&windows).expect("positive denominators");
            prop_assert!(interval.low <= interval.value && interval.value <= interval.high);
            let backwards: Vec<_> = windows.iter().rev().copied().collect();
            let again = ratio_of_sums(&backwards).expect("the same");
            prop_assert!((interval.low - again.low).abs() <= 1e-6 * interval.high.abs().max(1.0));
            let same: Vec<_> = windows.iter().map(|(_, below)| (share * below, *below)).collect();
            let same = ratio_of_sums(&same).expect("the same denominators");
            prop_assert!(same.high - same.low < 1e-6 && (same.value - share).abs() < 1e-9);
        }
    }
}
