//! Hash maps for small integer keys on hot paths: one multiplication a word, no defence against
//! chosen keys (a trace can make a run slow, not wrong).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map keyed by integers.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;
/// A set of integers.
pub(crate) type FastSet<K> = HashSet<K, BuildHasherDefault<FastHasher>>;

/// 2^64 over the golden ratio: spreads neighbouring keys (Knuth, vol. 3, §6.4).
pub(crate) const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hash of one word, its best bits on top.
#[inline]
pub(crate) fn spread(word: u64) -> u64 {
    (word ^ (word >> 32)).wrapping_mul(MULTIPLIER)
}

/// Folds words by rotate, XOR, multiply.
#[derive(Default)]
pub(crate) struct FastHasher(u64);

impl Hasher for FastHasher {
    #[inline]
    fn finish(&self) -> u64 {
        // hashbrown takes the bucket from the low bits and the tag from the high ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}
