//! Tree pseudo-LRU over a power of two of ways.

use super::set_policy::SetPolicy;

/// `words` words a set: bit n is tree node n in heap order, the root being 1. A bit that is set = the victim is on the
/// right.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    bits: Vec<u64>,
    words: usize,
    ways: u32,
}

impl Tree {
    pub(super) fn new(sets: usize, ways: u32) -> Self {
        let words = (ways as usize).div_ceil(64);
        Self { bits: vec![0; sets * words], words, ways }
    }

    #[inline(always)]
    fn of(&mut self, set: usize) -> &mut [u64] {
        &mut self.bits[set * self.words..(set + 1) * self.words]
    }
}

impl SetPolicy for Tree {
    #[inline(always)]
    fn touch(&mut self, set: usize, way: u32) {
        let ways = self.ways;
        point_away(self.of(set), ways, way);
    }

    #[inline(always)]
    fn replace(&mut self, set: usize, invalid: impl FnOnce() -> Option<u32>) -> u32 {
        let ways = self.ways;
        let bits = self.of(set);
        let way = invalid().unwrap_or_else(|| pointed_at(bits, ways));
        point_away(bits, ways, way);
        way
    }
}

/// Makes every node on the way's path point away from it (bit 0 = the victim is on the left).
fn point_away(bits: &mut [u64], ways: u32, way: u32) {
    let mut node = 1u32;
    for level in (0..ways.trailing_zeros()).rev() {
        let right = way >> level & 1;
        let word = &mut bits[node as usize / 64];
        let bit = 1u64 << (node % 64);
        *word = if right == 0 { *word | bit } else { *word & !bit };
        node = 2 * node + right;
    }
}

fn pointed_at(bits: &[u64], ways: u32) -> u32 {
    let mut node = 1u32;
    while node < ways {
        node = 2 * node + (bits[node as usize / 64] >> (node % 64) & 1) as u32;
    }
    node - ways
}
