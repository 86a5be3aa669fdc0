//! The seeded generator.

/// Increment of the state: 2^64 over the golden ratio, made odd.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The SplitMix64 generator (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014): one word of
/// state, each 64-bit number once a period of 2^64. Recorded and modelled results depend on its sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator of a seed; every seed is good.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        finalise(self.0)
    }

    /// Leaves out so many numbers, in constant time.
    #[inline]
    pub const fn skip(&mut self, numbers: u64) {
        self.0 = self.0.wrapping_add(numbers.wrapping_mul(GOLDEN_GAMMA));
    }

    /// A number below `bound`, by multiplying and shifting: the bias is below `bound / 2^64`. 0 for a bound of 0.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// A number below `bound`, by the high half of the next 64 bits: [`below`](Self::below) in 64-bit arithmetic, and
    /// at most one less.
    #[inline]
    pub const fn below_u32(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * bound as u64) >> 32) as u32
    }

    /// An index of a list of so many elements; 0 for an empty one.
    #[inline]
    pub const fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Puts a list into a random order (Fisher and Yates): each with the same probability.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in 1..list.len() {
            list.swap(i, self.index(i + 1));
        }
    }
}

/// The finaliser of SplitMix64: a bijection on 64-bit numbers that spreads each bit over all.
#[inline]
pub const fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_published_sequence() {
        // From the reference C code (prng.di.unimi.it/splitmix64.c) with state 0 and 1234567.
        assert_eq!(SplitMix64::new(0).next_u64(), 0xe220_a839_7b1d_cdaf);
        let mut rng = SplitMix64::new(1_234_567);
        let got: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_below_a_bound_are_even() {
        let mut rng = SplitMix64::new(7);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        // 5 standard deviations of a binomial with n = 100,000, p = 0.1: 474.
        assert!(counts.iter().all(|&c| c.abs_diff(10_000) < 474), "{counts:?}");
    }

    #[test]
    fn all_orders_are_as_likely() {
        let mut rng = SplitMix64::new(3);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..24_000 {
            let mut list = [0, 1, 2, 3];
            rng.shuffle(&mut list);
            *counts.entry(list).or_insert(0u32) += 1;
        }
        // 5 standard deviations of a binomial with n = 24,000, p = 1/24: 155.
        assert!(counts.len() == 24 && counts.values().all(|&c| c.abs_diff(1000) < 155), "{counts:?}");
    }

    proptest! {
        #[test]
        fn skipping_is_drawing(seed in any::<u64>(), numbers in 0u64..1000) {
            let (mut drawn, mut skipped) = (SplitMix64::new(seed), SplitMix64::new(seed));
            for _ in 0..numbers {
                drawn.next_u64();
            }
            skipped.skip(numbers);
            prop_assert_eq!(drawn, skipped);
        }

        /// Both are the next number's share of the bound, rounded down; one knows only half of its bits.
        #[test]
        fn numbers_below_a_bound_are_shares_of_it(seed in any::<u64>(), bound in 1u32..) {
            let word = u128::from(SplitMix64::new(seed).next_u64());
            let below = SplitMix64::new(seed).below(bound.into());
            prop_assert_eq!(u128::from(below), word * u128::from(bound) / (1 << 64));
            let coarse = u64::from(SplitMix64::new(seed).below_u32(bound));
            prop_assert!(coarse <= below && below - coarse <= 1 && coarse < u64::from(bound));
        }

        #[test]
        fn units_are_below_one(seed in any::<u64>()) {
            prop_assert!((0.0..1.0).contains(&SplitMix64::new(seed).unit()));
        }

        #[test]
        fn a_shuffled_list_holds_the_same(len in 0usize..40, seed in any::<u64>()) {
            let mut list: Vec<usize> = (0..len).collect();
            SplitMix64::new(seed).shuffle(&mut list);
            list.sort_unstable();
            prop_assert_eq!(list, (0..len).collect::<Vec<_>>());
        }

        #[test]
        fn the_finaliser_can_be_undone(z in any::<u64>()) {
            // x ^ x >> s is undone by doing it again with the bits that are known so far; the factors have inverses
            // modulo 2^64, found by Newton's iteration.
            let unshift = |y: u64, s: u32| (0..64 / s).fold(y, |x, _| y ^ x >> s);
            let inverse = |odd: u64| (0..6).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))));
            let mut back = unshift(finalise(z), 31).wrapping_mul(inverse(0x94d0_49bb_1331_11eb));
            back = unshift(back, 27).wrapping_mul(inverse(0xbf58_476d_1ce4_e5b9));
            prop_assert_eq!(unshift(back, 30), z);
        }
    }
}
