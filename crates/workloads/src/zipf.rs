//! Zipf's distribution, exactly, for any number of ranks, without a table.

use lookaside_stats::SplitMix64;

/// Ranks `1..=n`, rank k with probability `k^-s / sum`. Rejection-inversion after Hörmann and Derflinger,
/// "Rejection-inversion to generate variates from monotone discrete distributions" (1996): exact, and under
/// 1.3 tries a draw whatever n and s.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    s: f64,
    /// `H(1.5) - 1`: lower end of the inverted range; the upper is `H(n + 0.5)`.
    low: f64,
    high: f64,
    /// A draw this close above its rank needs no test.
    sure: f64,
}

impl Zipf {
    /// `n` ranks (0 counts as 1) with exponent `s` (below 0 or not a number counts as 0: even).
    pub fn new(n: u64, s: f64) -> Self {
        let (n, s) = (n.max(1), if s > 0.0 { s } else { 0.0 });
        let mut zipf = Self { n, s, low: 0.0, high: 0.0, sure: 0.0 };
        zipf.low = zipf.h(1.5) - 1.0;
        zipf.high = zipf.h(n as f64 + 0.5);
        zipf.sure = 2.0 - zipf.h_inverse(zipf.h(2.5) - 2f64.powf(-s));
        zipf
    }

    /// Ranks.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> u64 {
        self.n
    }

    /// A rank, `1..=n`.
    #[inline]
    pub fn sample(&self, random: &mut SplitMix64) -> u64 {
        loop {
            // u in (low, high]
            let u = self.high + random.unit() * (self.low - self.high);
            let x = self.h_inverse(u);
            let k = x.round().clamp(1.0, self.n as f64);
            if k - x <= self.sure || u >= self.h(k + 0.5) - k.powf(-self.s) {
                return k as u64;
            }
        }
    }

    /// Integral of `x^-s`: `(x^(1-s) - 1) / (1-s)`, or `ln x` at s = 1; stable near it.
    fn h(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over(log * (1.0 - self.s)) * log
    }

    fn h_inverse(&self, y: f64) -> f64 {
        // Rounding may push the argument of ln_1p a hair below -1.
        let t = (y * (1.0 - self.s)).max(-1.0);
        (ln1p_over(t) * y).exp()
    }
}

/// `(e^x - 1) / x`, 1 at 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0 * (1.0 + x / 3.0)
    }
}

/// `ln(1 + x) / x`, 1 at 0.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x * (0.5 - x / 3.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Observed counts against the exact probabilities, by chi-square.
    #[test]
    fn ranks_have_their_exact_shares() {
        let draws = 400_000;
        for (n, s) in [(1, 1.0), (2, 0.5), (10, 0.0), (20, 0.99), (20, 1.0), (50, 1.3), (30, 2.5)] {
            let zipf = Zipf::new(n, s);
            let mut random = SplitMix64::new(n ^ 99);
            let mut counts = vec![0u64; n as usize];
            for _ in 0..draws {
                counts[zipf.sample(&mut random) as usize - 1] += 1;
            }
            let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-s)).collect();
            let sum: f64 = weights.iter().sum();
            let chi: f64 = weights
                .iter()
                .zip(&counts)
                .map(|(w, &c)| {
                    let expected = w / sum * f64::from(draws);
                    (c as f64 - expected).powi(2) / expected
                })
                .sum();
            let freedom = (n - 1) as f64;
            // Mean + 4 standard deviations of the chi-square distribution.
            assert!(chi <= freedom + 4.0 * (2.0 * freedom).sqrt(), "n = {n}, s = {s}: chi-square {chi}");
        }
    }

    #[test]
    fn big_and_odd_parameters_stay_in_range() {
        let mut random = SplitMix64::new(3);
        for (n, s) in [(0, 1.0), (u64::MAX, 0.99), (1 << 40, 0.0), (7, f64::NAN), (7, -1.0), (1000, 40.0)] {
            let zipf = Zipf::new(n, s);
            for _ in 0..1000 {
                let k = zipf.sample(&mut random);
                assert!((1..=n.max(1)).contains(&k), "n = {n}, s = {s}: {k}");
            }
        }
    }
}
