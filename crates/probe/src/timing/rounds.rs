//! Figures that take turns: one of each in every round, so that whatever disturbs falls on all of them.

use lookaside_machine::Quartiles;
use lookaside_stats::quantiles;

/// Rounds that a figure has at least; of fewer, quartiles say nothing.
pub(super) const LEAST_ROUNDS: usize = 3;

/// Quartiles of a figure over the rounds; `None` of too few, or where they are no times that can be.
pub(super) fn quartiles(figures: &[f64]) -> Option<Quartiles> {
    let [lower, median, upper] = quantiles(figures.iter().copied(), [0.25, 0.5, 0.75])?;
    let can_be = lower > 0.0 && upper.is_finite();
    (figures.len() >= LEAST_ROUNDS && can_be).then(|| Quartiles::from([lower, median, upper].map(to_four_digits)))
}

/// More digits mean nothing.
fn to_four_digits(figure: f64) -> f64 {
    let unit = 10f64.powf(figure.abs().log10().floor() - 3.0);
    // By a whole number where the unit is a part of one, lest the rounded figure have a long tail.
    if unit < 1.0 {
        let parts = (1.0 / unit).round();
        (figure * parts).round() / parts
    } else {
        (figure / unit).round() * unit
    }
}

/// Quartiles of one figure divided by another, round by round; `None` where one of them is not surely above 0.
pub(super) fn ratio(over: &[f64], under: &[f64]) -> Option<Quartiles> {
    quartiles(over).and(quartiles(under))?;
    // A round in which the figure below is no more than 0 has an unbounded ratio: it counts as one above all others.
    let of = |(&over, &under): (&f64, &f64)| if under > 0.0 { over / under } else { f64::INFINITY };
    let ratios: Vec<f64> = over.iter().zip(under).map(of).collect();
    quartiles(&ratios)
}

/// Differences round by round.
pub(super) fn differences(of: &[f64], less: &[f64]) -> Vec<f64> {
    of.iter().zip(less).map(|(of, less)| of - less).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_need_rounds_and_times_that_can_be() {
        let found = quartiles(&[3.0, 1.0, 2.0, 5.0, 4.0]).expect("five rounds");
        assert_eq!((found.lower, found.median, found.upper), (2.0, 3.0, 4.0));
        assert_eq!(quartiles(&[1.0, 1.0]), None);
        assert_eq!(quartiles(&[0.0, 0.0, 1.0]), None);
        assert_eq!(quartiles(&[1.0, f64::INFINITY, f64::INFINITY]), None);
    }

    #[test]
    fn figures_have_four_digits() {
        let rounded = [18.65973644057914, 0.01234567, 21_987_654_321.0, 2499.6, 1.0].map(to_four_digits);
        assert_eq!(rounded, [18.66, 0.01235, 21_990_000_000.0, 2500.0, 1.0]);
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        let found = ratio(&[10.0, 20.0, 30.0], &[1.0, 2.0, 3.0]).expect("three rounds");
        assert_eq!((found.lower, found.median, found.upper), (10.0, 10.0, 10.0));
        // A difference that is 0 give or take the noise has no ratio.
        assert_eq!(ratio(&[10.0; 4], &[-1.0, 1.0, -1.0, 1.0]), None);
        // Nor where the upper quartile lies between a ratio and none.
        assert_eq!(ratio(&[10.0; 4], &[1.0, 1.0, 1.0, -0.1]), None);
        // One odd round of nine is beyond the quartiles.
        let mut under = [2.0; 9];
        under[3] = -0.5;
        assert_eq!(ratio(&[8.0; 9], &under).map(|found| found.median), Some(4.0));
    }
}
