//! Medians of repetitions, with an interval.

use lookaside_probe::Halt;
use lookaside_stats::median;

/// Repetitions of a measurement, all points interleaved, so that a disturbance of some milliseconds does not fall on
/// all repetitions of one point.
pub const REPETITIONS: usize = 11;

/// A median and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Of all values: the median lies between the 2nd and the 10th of 11 independent ones in 98.8 % of cases, whatever
/// their distribution (1 - 2 (1 + 11) / 2^11); with other numbers, nearest to that from below.
pub fn estimate(mut values: Vec<f64>) -> Estimate {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else {
        return Estimate { median: f64::NAN, low: f64::NAN, high: f64::NAN };
    };
    let cut = last / 10;
    Estimate { median: median(&values).unwrap_or(f64::NAN), low: values[cut], high: values[last - cut] }
}

/// Measures each of `points` [`REPETITIONS`] times, all of them once before any again.
///
/// # Errors
/// A measurement ended early.
pub fn interleaved<T>(
    points: &[T],
    mut measure: impl FnMut(usize, &T) -> Result<f64, Halt>,
) -> Result<Vec<Estimate>, Halt> {
    let mut values = vec![Vec::with_capacity(REPETITIONS); points.len()];
    for repetition in 0..REPETITIONS {
        for (point, values) in points.iter().zip(&mut values) {
            values.push(measure(repetition, point)?);
        }
    }
    Ok(values.into_iter().map(estimate).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outlier_on_either_side_moves_nothing() {
        let mut values: Vec<f64> = (0..11).map(f64::from).collect();
        let calm = estimate(values.clone());
        assert_eq!(calm, Estimate { median: 5.0, low: 1.0, high: 9.0 });
        (values[0], values[10]) = (-1e9, 1e9);
        assert_eq!(estimate(values), calm);
        assert_eq!(estimate(vec![1.0, 2.0]).median, 1.5);
        assert!(estimate(Vec::new()).median.is_nan());
    }
}
