//! A seeded permutation of any number of elements that takes no memory.

use lookaside_stats::SplitMix64;

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
        let mut random = SplitMix64::new(seed);
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
                (left, right) = (right, left ^ (SplitMix64::new(right ^ key).next_u64() & mask));
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
                (left, right) = (right ^ (SplitMix64::new(left ^ key).next_u64() & mask), left);
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
}
