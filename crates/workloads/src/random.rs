//! The one random generator of this crate.

/// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit word of state, every value once a period of 2^64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed; any value will do.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// As drawing so many words.
    #[inline]
    pub fn skip(&mut self, words: u64) {
        self.0 = self.0.wrapping_add(words.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }

    /// A number below `bound` by multiply-shift: the bias is below `bound / 2^64`. 0 for a bound of 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Puts a list in a random order (Fisher and Yates): each with the same probability.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in 1..list.len() {
            let other = self.below(i as u64 + 1) as usize;
            list.swap(i, other);
        }
    }

    /// A number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// A seeded bijection on `0..n`: a 4-round Feistel network on the next even number of bits, walked until it
/// falls below `n` (under four steps on average).
#[derive(Clone, Debug)]
pub(crate) struct Shuffle {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Shuffle {
    pub(crate) fn new(n: u64, seed: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let mut random = Random::new(seed);
        Self { n, half_bits: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| random.next_u64()) }
    }

    /// Where `i` (below `n`) goes.
    #[inline]
    pub(crate) fn apply(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = i;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (Random::new(right ^ key).next_u64() & mask));
            }
            x = left << self.half_bits | right;
            if x < self.n {
                return x;
            }
        }
    }

    /// What goes to `i` (below `n`).
    #[inline]
    pub(crate) fn invert(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = i;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for key in self.keys.into_iter().rev() {
                (left, right) = (right ^ (Random::new(left ^ key).next_u64() & mask), left);
            }
            x = left << self.half_bits | right;
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_of_splitmix() {
        // From the reference C code (prng.di.unimi.it/splitmix64.c) with state 0 and 1234567.
        assert_eq!(Random::new(0).next_u64(), 0xE220_A839_7B1D_CDAF);
        let mut random = Random::new(1_234_567);
        assert_eq!([random.next_u64(), random.next_u64()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn skipping_is_drawing() {
        for words in [0, 1, 2, 1000] {
            let (mut drawn, mut skipped) = (Random::new(7), Random::new(7));
            for _ in 0..words {
                drawn.next_u64();
            }
            skipped.skip(words);
            assert_eq!(drawn.next_u64(), skipped.next_u64(), "after {words}");
        }
    }

    #[test]
    fn shuffle_is_a_bijection() {
        for n in [1, 2, 3, 5, 64, 1000, 4097] {
            for seed in 0..3 {
                let shuffle = Shuffle::new(n, seed);
                let mut seen: Vec<u64> = (0..n).map(|i| shuffle.apply(i)).collect();
                assert!(seen.iter().zip(0..).all(|(&to, from)| shuffle.invert(to) == from), "n = {n}, seed = {seed}");
                seen.sort_unstable();
                assert!(seen.iter().copied().eq(0..n), "n = {n}, seed = {seed}");
            }
        }
    }

    #[test]
    fn below_stays_below_and_is_even() {
        let mut random = Random::new(7);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        // 5 standard deviations of a binomial with n = 100,000, p = 0.1: 474.
        assert!(counts.iter().all(|&c| c.abs_diff(10_000) < 474), "{counts:?}");
    }
}
