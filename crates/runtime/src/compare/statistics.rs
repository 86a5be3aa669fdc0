//! Medians, and how sure their ratio is.

use serde::Serialize;

/// Resamples of a bootstrap: the ends of its interval then vary by a few percent of its width from seed to seed (Efron and
/// Tibshirani, An Introduction to the Bootstrap, 1993, section 14.3: a thousand at least).
pub const RESAMPLES: usize = 10_000;
/// Rounds below which nothing is called significant: with four, the interval between the least and the greatest run holds the
/// median in only 1 − 2·½⁴ = 87.5 % of cases, whatever is resampled.
pub const LEAST_ROUNDS: usize = 5;

/// A ratio of medians with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Of the medians.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

/// Seeded numbers (SplitMix64; Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n` (at least 1).
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.draw()) * n as u128) >> 64) as usize
    }

    /// A random order of `0..n`.
    pub(crate) fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

/// The middle value, or the mean of both middle ones; `None` of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    (!sorted.is_empty()).then(|| median_in(&mut sorted))
}

/// The same of at least one value, whose order is lost.
fn median_in(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if !odd => (lower + upper) / 2.0,
        _ => upper,
    }
}

/// Ratio of the medians of two lists, above by below, whose values of the same index were taken in the same round; with the
/// percentile interval over `resamples` draws of whole rounds, so that what slows down a whole round counts on both sides.
/// `None` if there is none: no round, or a value that is not positive.
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

/// What `of` makes of the medians of lists whose values of the same index were taken in the same round, with the percentile interval
/// over `resamples` draws of whole rounds. `of` is given as many medians as there are lists. `None` if there is none: no list, no round,
/// lists of different lengths, or a value that is not finite.
pub fn figure(lists: &[&[f64]], of: impl Fn(&[f64]) -> f64, seed: u64, resamples: usize) -> Option<Figure> {
    let rounds = lists.first()?.len();
    let whole = |list: &&[f64]| list.len() == rounds && list.iter().all(|value| value.is_finite());
    if rounds == 0 || resamples == 0 || !lists.iter().all(whole) {
        return None;
    }
    let mut medians = lists.iter().map(|list| median(list)).collect::<Option<Vec<f64>>>()?;
    let value = of(&medians);
    let mut rng = Rng(seed);
    let mut drawn = vec![vec![0.0; rounds]; lists.len()];
    let mut found: Vec<f64> = (0..resamples)
        .map(|_| {
            for at in 0..rounds {
                let round = rng.below(rounds);
                drawn.iter_mut().zip(lists).for_each(|(drawn, list)| drawn[at] = list[round]);
            }
            medians.iter_mut().zip(&mut drawn).for_each(|(median, drawn)| *median = median_in(drawn));
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
