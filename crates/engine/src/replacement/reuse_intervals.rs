//! SRRIP: how far off each way's next use is taken to be; the farthest goes (Jaleel et al., "High Performance Cache
//! Replacement Using Re-Reference Interval Prediction (RRIP)", ISCA 2010).

use super::set_policy::SetPolicy;

/// Ways whose intervals a word holds.
const INTERVAL_WAYS: u32 = 32;
/// 1 in every interval.
const INTERVAL_ONES: u64 = 0x5555_5555_5555_5555;
/// The interval of a way that was filled; a hit makes it 0, and a way of [`FARTHEST`] goes.
const LONG: u64 = 2;
const FARTHEST: u64 = 3;

/// `words` words a set: two bits a way.
#[derive(Clone, Debug)]
pub(crate) struct ReuseIntervals {
    bits: Vec<u64>,
    words: usize,
    ways: u32,
}

impl ReuseIntervals {
    pub(super) fn new(sets: usize, ways: u32) -> Self {
        let words = ways.div_ceil(INTERVAL_WAYS) as usize;
        Self { bits: vec![0; sets * words], words, ways }
    }

    #[inline(always)]
    fn of(&mut self, set: usize) -> &mut [u64] {
        &mut self.bits[set * self.words..(set + 1) * self.words]
    }
}

impl SetPolicy for ReuseIntervals {
    #[inline(always)]
    fn touch(&mut self, set: usize, way: u32) {
        set_interval(self.of(set), way, 0);
    }

    #[inline(always)]
    fn replace(&mut self, set: usize, invalid: impl FnOnce() -> Option<u32>) -> u32 {
        let ways = self.ways;
        let bits = self.of(set);
        let way = invalid().unwrap_or_else(|| farthest(bits, ways));
        set_interval(bits, way, LONG);
        way
    }
}

fn set_interval(bits: &mut [u64], way: u32, interval: u64) {
    let (word, shift) = ((way / INTERVAL_WAYS) as usize, 2 * (way % INTERVAL_WAYS));
    bits[word] = bits[word] & !(FARTHEST << shift) | interval << shift;
}

/// The first way of the farthest interval, after all have been moved on until there is one.
fn farthest(bits: &mut [u64], ways: u32) -> u32 {
    loop {
        for (at, word) in bits.iter().enumerate() {
            let found = word & word >> 1 & ones_of(at, ways);
            if found != 0 {
                return INTERVAL_WAYS * at as u32 + found.trailing_zeros() / 2;
            }
        }
        // None is 3, so none runs over into the next.
        bits.iter_mut().enumerate().for_each(|(at, word)| *word += ones_of(at, ways));
    }
}

/// 1 in the interval of each way that a word holds.
fn ones_of(word: usize, ways: u32) -> u64 {
    let its_ways = (ways - INTERVAL_WAYS * word as u32).min(INTERVAL_WAYS);
    INTERVAL_ONES & u64::MAX >> (64 - 2 * its_ways)
}
