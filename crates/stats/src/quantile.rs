//! Medians and quantiles.

/// The median: the middle value in ascending order, or the mean of the two middle ones where their number is even;
/// `None` of no values.
///
/// The same for integers and for floating-point numbers. It is the [`quantile`] at one half.
pub fn median<T: Number>(values: impl IntoIterator<Item = T>) -> Option<f64> {
    quantile(values, 0.5)
}

/// The quantile below which a `share` (0 to 1; what is outside is taken for the nearer end) of the values lies; `None`
/// of no values.
///
/// With `n` values in ascending order, numbered from 0, it is the value number `share * (n - 1)`; between two numbers,
/// the straight line between their values (Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996,
/// definition 7; the default of R and NumPy).
pub fn quantile<T: Number>(values: impl IntoIterator<Item = T>, share: f64) -> Option<f64> {
    quantiles(values, [share]).map(|[quantile]| quantile)
}

/// The [`quantile`]s of the same values at several shares.
pub fn quantiles<T: Number, const N: usize>(values: impl IntoIterator<Item = T>, shares: [f64; N]) -> Option<[f64; N]> {
    let mut values: Vec<f64> = values.into_iter().map(Number::to_f64).collect();
    (!values.is_empty()).then(|| shares.map(|share| quantile_in(&mut values, share)))
}

/// The value at the [`quantile`] of a share, or where that lies between two values the lower of them; `None` of no
/// values. One of the samples, where a mean of two would not do.
pub fn quantile_sample<T: Number>(values: impl IntoIterator<Item = T>, share: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().map(Number::to_f64).collect();
    let at = rank(share, values.len()) as usize;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// Where the quantile of a share lies among so many values in ascending order.
fn rank(share: f64, values: usize) -> f64 {
    share.clamp(0.0, 1.0) * values.saturating_sub(1) as f64
}

/// The quantile of at least one value; the order of the values is lost.
pub(crate) fn quantile_in(values: &mut [f64], share: f64) -> f64 {
    let at = rank(share, values.len());
    let between = at.fract();
    let (_, &mut lower, above) = values.select_nth_unstable_by(at as usize, f64::total_cmp);
    match above.iter().copied().min_by(f64::total_cmp) {
        Some(upper) if between > 0.0 => (1.0 - between) * lower + between * upper,
        _ => lower,
    }
}

/// A number that has a median.
pub trait Number: Copy {
    /// As floating point; an integer above 2^53 is rounded.
    fn to_f64(self) -> f64;
}

impl Number for f64 {
    fn to_f64(self) -> f64 {
        self
    }
}

impl Number for i32 {
    fn to_f64(self) -> f64 {
        self.into()
    }
}

impl Number for u32 {
    fn to_f64(self) -> f64 {
        self.into()
    }
}

impl Number for u64 {
    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl Number for usize {
    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl<T: Number> Number for &T {
    fn to_f64(self) -> f64 {
        (*self).to_f64()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The median by its definition.
    fn naive_median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        let upper = values.len() / 2;
        match values.len() % 2 {
            0 => (values[upper - 1] + values[upper]) / 2.0,
            _ => values[upper],
        }
    }

    #[test]
    fn medians_by_definition() {
        assert_eq!(median::<f64>([]), None);
        assert_eq!(median([3.0]), Some(3.0));
        assert_eq!(median([4.0, 1.0]), Some(2.5));
        assert_eq!(median([9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median([9.0, 1.0, 5.0, 6.0]), Some(5.5));
        assert_eq!(median([9u64, 1, 5, 6]), Some(5.5), "of integers as of others");
        assert_eq!(median([1.0, f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
    }

    #[test]
    fn quantiles_by_definition() {
        assert_eq!(quantiles::<f64, 1>([], [0.5]), None);
        assert_eq!(quantiles([7], [0.0, 0.3, 1.0]), Some([7.0; 3]));
        assert_eq!(quantiles([40, 10, 20, 30, 50], [0.0, 0.25, 0.5, 0.9, 1.0]), Some([10.0, 20.0, 30.0, 46.0, 50.0]));
        assert_eq!(quantile_sample::<f64>([], 0.5), None);
        assert_eq!(
            [0.0, 0.25, 0.5, 1.0].map(|share| quantile_sample([4, 2, 3, 1], share)),
            [1.0, 1.0, 2.0, 4.0].map(Some)
        );
        assert_eq!(quantile([1, 2], -0.5), Some(1.0), "nothing lies below the least");
        assert_eq!(quantile([1, 2], 1.5), Some(2.0));
        assert_eq!(quantile([1.0, f64::INFINITY], 0.0), Some(1.0), "no part of what is not between");
    }

    proptest! {
        #[test]
        fn a_median_is_the_naive_one(values in proptest::collection::vec(-1e9f64..1e9, 1..60)) {
            prop_assert_eq!(median(&values), Some(naive_median(values)));
        }

        #[test]
        fn a_median_of_integers_is_the_naive_one(values in proptest::collection::vec(0u64..1 << 52, 1..60)) {
            let naive = naive_median(values.iter().map(|&value| value as f64).collect());
            prop_assert_eq!(median(values), Some(naive));
        }

        #[test]
        fn a_median_parts_the_values(values in proptest::collection::vec(-1e9f64..1e9, 1..60)) {
            let middle = median(&values).expect("a median");
            let below = values.iter().filter(|&&v| v < middle).count();
            let above = values.iter().filter(|&&v| v > middle).count();
            prop_assert!(2 * below <= values.len() && 2 * above <= values.len());
        }

        #[test]
        fn a_quantile_lies_on_the_line_between_its_neighbours(
            values in proptest::collection::vec(-1e9f64..1e9, 1..60), share in 0f64..=1.0,
        ) {
            let found = quantile(&values, share).expect("a quantile");
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let at = share * (sorted.len() - 1) as f64;
            let (lower, upper) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
            let line = lower + (at - at.floor()) * (upper - lower);
            prop_assert!((found - line).abs() <= 1e-6, "{} is not {}", found, line);
            prop_assert_eq!(quantile_sample(&sorted, share), Some(lower));
        }
    }
}
