//! How sure a ratio of medians is, or another figure made of medians: the bootstrap.

use serde::{Deserialize, Serialize};

use crate::quantile::{median, quantile_in};
use crate::SplitMix64;

/// Resamples of a bootstrap: the ends of its interval then vary by a few percent of its width from seed to seed (Efron
/// and Tibshirani, An Introduction to the Bootstrap, 1993, section 14.3: a thousand at least).
pub const RESAMPLES: usize = 10_000;
/// Rounds below which nothing is called significant: with four, the interval between the least and the greatest run
/// holds the median in only 1 − 2·½⁴ = 87.5 % of cases, whatever is resampled.
pub const LEAST_ROUNDS: usize = 5;

/// A ratio of medians with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// Ratio of the medians.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// There are rounds enough, and the interval does not hold 1.
    pub significant: bool,
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Figure {
    /// Of the medians.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

/// Ratio of the medians of two lists, above by below, whose values of the same index were taken in the same round; with
/// the percentile interval over `resamples` draws of whole rounds, so that what slows down a whole round counts on both
/// sides. `None` if there is none: no round, or a value that is not positive.
pub fn ratio(above: &[f64], below: &[f64], seed: u64, resamples: usize) -> Option<Ratio> {
    let rounds = above.len().min(below.len());
    let positive = |values: &[f64]| values.iter().all(|&v| v > 0.0 && v.is_finite());
    if rounds == 0 || resamples == 0 || !positive(above) || !positive(below) {
        return None;
    }
    let Figure { value, low, high } =
        figure(&[&above[..rounds], &below[..rounds]], |medians| medians[0] / medians[1], seed, resamples)?;
    let significant = rounds >= LEAST_ROUNDS && (low > 1.0 || high < 1.0);
    Some(Ratio { value, low, high, significant })
}

/// What `of` makes of the medians of lists whose values of the same index were taken in the same round, with the
/// percentile interval over `resamples` draws of whole rounds. `of` is given as many medians as there are lists. `None`
/// if there is none: no list, no round, lists of different lengths, or a value that is not finite.
pub fn figure(lists: &[&[f64]], of: impl Fn(&[f64]) -> f64, seed: u64, resamples: usize) -> Option<Figure> {
    let rounds = lists.first()?.len();
    let whole = |list: &&[f64]| list.len() == rounds && list.iter().all(|value| value.is_finite());
    if rounds == 0 || resamples == 0 || !lists.iter().all(whole) {
        return None;
    }
    let mut medians = lists.iter().map(|list| median(*list)).collect::<Option<Vec<f64>>>()?;
    let value = of(&medians);
    let mut rng = SplitMix64::new(seed);
    let mut drawn = vec![vec![0.0; rounds]; lists.len()];
    let mut found: Vec<f64> = (0..resamples)
        .map(|_| {
            for at in 0..rounds {
                let round = rng.index(rounds);
                drawn.iter_mut().zip(lists).for_each(|(drawn, list)| drawn[at] = list[round]);
            }
            medians.iter_mut().zip(&mut drawn).for_each(|(median, drawn)| *median = quantile_in(drawn, 0.5));
            of(&medians)
        })
        .collect();
    found.sort_unstable_by(f64::total_cmp);
    // 2.5 % of the resamples lie outside at each end.
    let outside = resamples / 40;
    Some(Figure { value, low: found[outside], high: found[resamples - 1 - outside] })
}

#[cfg(test)]
mod tests;
