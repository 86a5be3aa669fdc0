//! Replacement policies: which way of a set is the victim. LRU, FIFO, tree-PLRU, random, SRRIP (`SEMANTICS.md`
//! §9).

use lookaside_machine::Replacement;
use lookaside_stats::SplitMix64;

use crate::lru_ring::LruRing;
use crate::plru_tree::UnevenTree;
use crate::prefetch::prefetch;

/// Replacement state of all sets of one array.
#[derive(Clone, Debug)]
pub(crate) struct ReplacementPolicy {
    ways: u32,
    state: PolicyState,
}

#[derive(Clone, Debug)]
enum PolicyState {
    /// LRU of at most 16 ways: one word a set, nibble 0 = the most recent way. Invalid ways are at the
    /// old end, the lowest-numbered last, so that the victim is always the last nibble.
    Nibbles(Vec<u64>),
    /// LRU of more ways: a ring a set through a sentinel slot, in the same order.
    Ring(LruRing),
    /// The next victim of each set.
    Fifo(Vec<u32>),
    /// `words` words a set: bit n is tree node n in heap order, the root being 1.
    Tree { bits: Vec<u64>, words: usize },
    /// A word a set, where the ways are no power of two.
    Uneven { bits: Vec<u64>, tree: UnevenTree },
    /// One generator for all sets.
    Random(SplitMix64),
    /// `words` words a set: two bits a way, how far off its next use is taken to be; the farthest goes.
    Intervals { bits: Vec<u64>, words: usize },
}

/// Ways whose intervals a word holds.
const INTERVAL_WAYS: u32 = 32;
/// 1 in every interval.
const INTERVAL_ONES: u64 = 0x5555_5555_5555_5555;
/// The interval of a way that was filled; a hit makes it 0, and a way of [`FARTHEST`] goes.
const LONG: u64 = 2;
const FARTHEST: u64 = 3;

/// Ways that the nibbles of a word can number.
const NIBBLE_WAYS: u32 = 16;
/// 1 in every nibble.
const ONES: u64 = 0x1111_1111_1111_1111;

impl ReplacementPolicy {
    pub(crate) fn new(replacement: Replacement, sets: usize, ways: u32, rng: SplitMix64) -> Self {
        let state = match replacement {
            Replacement::Lru if ways <= NIBBLE_WAYS => PolicyState::Nibbles(vec![first_order(ways); sets]),
            Replacement::Lru => PolicyState::Ring(LruRing::new(sets, ways)),
            Replacement::Fifo => PolicyState::Fifo(vec![0; sets]),
            Replacement::TreePlru if !ways.is_power_of_two() => {
                PolicyState::Uneven { bits: vec![0; sets], tree: UnevenTree::new(ways) }
            }
            Replacement::TreePlru => {
                let words = (ways as usize).div_ceil(64);
                PolicyState::Tree { bits: vec![0; sets * words], words }
            }
            Replacement::Random => PolicyState::Random(rng),
            Replacement::Srrip => {
                let words = ways.div_ceil(INTERVAL_WAYS) as usize;
                PolicyState::Intervals { bits: vec![0; sets * words], words }
            }
        };
        Self { ways, state }
    }

    /// Brings a set's state nearer to the processor, where it is one word in a long list.
    #[inline(always)]
    pub(crate) fn prefetch(&self, set: usize) {
        if let PolicyState::Nibbles(order) = &self.state {
            prefetch(order, set);
        }
    }

    /// A hit in this way.
    #[inline(always)]
    pub(crate) fn touch(&mut self, set: usize, way: u32) {
        match &mut self.state {
            PolicyState::Nibbles(order) => order[set] = to_front(order[set], way),
            PolicyState::Ring(ring) => ring.move_to_front(set, way),
            PolicyState::Tree { bits, words } => {
                point_away(&mut bits[set * *words..(set + 1) * *words], self.ways, way)
            }
            PolicyState::Uneven { bits, tree } => bits[set] = tree.touched(bits[set], way),
            PolicyState::Intervals { bits, words } => {
                set_interval(&mut bits[set * *words..(set + 1) * *words], way, 0);
            }
            PolicyState::Fifo(_) | PolicyState::Random(_) => {}
        }
    }

    /// The way that a fill uses, touched; `invalid` finds the lowest-numbered invalid way, if any.
    #[inline(always)]
    pub(crate) fn replace(&mut self, set: usize, invalid: impl FnOnce() -> Option<u32>) -> u32 {
        let ways = self.ways;
        match &mut self.state {
            PolicyState::Nibbles(order) => {
                let order = &mut order[set];
                let way = *order >> (4 * (ways - 1)) & 15;
                // All nibbles of ways move up by one, the last goes to the front.
                let all = u64::MAX >> (64 - 4 * ways);
                *order = *order & !all | *order << 4 & all | way;
                way as u32
            }
            PolicyState::Ring(ring) => {
                let way = ring.last(set);
                ring.move_to_front(set, way);
                way
            }
            PolicyState::Fifo(next) => invalid().unwrap_or_else(|| {
                let way = next[set];
                next[set] = if way + 1 == ways { 0 } else { way + 1 };
                way
            }),
            PolicyState::Tree { bits, words } => {
                let bits = &mut bits[set * *words..(set + 1) * *words];
                let way = invalid().unwrap_or_else(|| pointed_at(bits, ways));
                point_away(bits, ways, way);
                way
            }
            PolicyState::Uneven { bits, tree } => {
                let bits = &mut bits[set];
                let way = invalid().unwrap_or_else(|| tree.victim(*bits));
                *bits = tree.touched(*bits, way);
                way
            }
            PolicyState::Random(rng) => invalid().unwrap_or_else(|| rng.below_u32(ways)),
            PolicyState::Intervals { bits, words } => {
                let bits = &mut bits[set * *words..(set + 1) * *words];
                let way = invalid().unwrap_or_else(|| farthest(bits, ways));
                set_interval(bits, way, LONG);
                way
            }
        }
    }

    /// Puts a valid way behind `depth` others of its set in the order of use, or behind all `valid` ones that there are,
    /// if it stands before that. Only LRU of many ways has such a list; elsewhere nothing happens.
    pub(crate) fn set_back(&mut self, set: usize, way: u32, depth: u32, valid: u32) {
        if let PolicyState::Ring(ring) = &mut self.state {
            ring.set_back(set, way, depth.min(valid.saturating_sub(1)));
        }
    }

    /// This way is invalid now; `is_valid` tells of the others.
    pub(crate) fn invalidated(&mut self, set: usize, way: u32, is_valid: impl Fn(u32) -> bool) {
        match &mut self.state {
            PolicyState::Nibbles(order) => {
                let mut position = position_of(order[set], way);
                while position + 1 < self.ways {
                    let next = (order[set] >> (4 * (position + 1)) & 15) as u32;
                    if !is_valid(next) && next < way {
                        break;
                    }
                    order[set] = swap_with_next(order[set], position);
                    position += 1;
                }
            }
            PolicyState::Ring(ring) => ring.move_to_back(set, way, is_valid),
            PolicyState::Fifo(_)
            | PolicyState::Tree { .. }
            | PolicyState::Uneven { .. }
            | PolicyState::Random(_)
            | PolicyState::Intervals { .. } => {}
        }
    }
}

/// No way is valid: the highest-numbered is in front, way 0 goes first.
fn first_order(ways: u32) -> u64 {
    (0..ways).fold(0, |order, way| order | u64::from(way) << (4 * (ways - 1 - way)))
        | (ways..NIBBLE_WAYS).fold(0, |order, way| order | u64::from(way) << (4 * way))
}

/// Position of the nibble that holds `way`: the lowest zero nibble of the XOR.
#[inline]
fn position_of(order: u64, way: u32) -> u32 {
    let x = order ^ (ONES * u64::from(way));
    let zero = x.wrapping_sub(ONES) & !x & (ONES << 3);
    zero.trailing_zeros() / 4
}

/// Moves `way` to nibble 0; those before it move up by one.
#[inline]
fn to_front(order: u64, way: u32) -> u64 {
    let shift = 4 * position_of(order, way);
    let newer = (1u64 << shift) - 1;
    let kept = order & !(newer << 4 | 15);
    kept | (order & newer) << 4 | u64::from(way)
}

fn swap_with_next(order: u64, position: u32) -> u64 {
    let difference = (order >> (4 * position) ^ order >> (4 * position + 4)) & 15;
    order ^ difference << (4 * position) ^ difference << (4 * position + 4)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assoc::{ArrayShape, Assoc};
    use lookaside_machine::tree_least_depth;
    use proptest::prelude::*;

    /// One set; each letter is an access. Gives the ways' letters after the last, `.` = invalid.
    fn play(replacement: Replacement, ways: usize, accesses: &str) -> String {
        let shape = ArrayShape { sets: 1, ways, replacement, repeated_keys: false };
        let mut assoc = Assoc::new(shape, SplitMix64::new(7));
        for letter in accesses.bytes().map(u64::from) {
            if letter == u64::from(b'!') {
                assoc.invalidate(|_, key| key == u64::from(b'B'));
            } else if !assoc.access(0, letter) {
                assoc.fill(0, letter);
            }
        }
        assoc.keys().iter().map(|&key| if key == crate::assoc::EMPTY_KEY { '.' } else { key as u8 as char }).collect()
    }

    #[test]
    fn lru_by_hand() {
        assert_eq!(play(Replacement::Lru, 4, "ABC"), "ABC.");
        assert_eq!(play(Replacement::Lru, 4, "ABCDE"), "EBCD");
        assert_eq!(play(Replacement::Lru, 4, "ABCDAE"), "AECD");
        assert_eq!(play(Replacement::Lru, 4, "ABCDABCDDCE"), "EBCD");
        // B (way 1) is invalidated, so F takes its way, then G the least recent, A.
        assert_eq!(play(Replacement::Lru, 4, "ABCD!F"), "AFCD");
        assert_eq!(play(Replacement::Lru, 4, "ABCD!FG"), "GFCD");
    }

    #[test]
    fn lru_of_many_ways_is_the_same_lru() {
        let accesses = "ABCDEFGHIJKLMNOPQRSTABU!VWXC";
        let by_ring = play(Replacement::Lru, 20, accesses);
        // By hand: A–T fill ways 0–19, A and B are touched, U takes C's way; B's way is invalidated and V
        // takes it; W, X, C take the ways of D, E, F.
        assert_eq!(by_ring, "AVUWXCGHIJKLMNOPQRST");
    }

    #[test]
    fn fifo_by_hand() {
        assert_eq!(play(Replacement::Fifo, 4, "ABCDAAE"), "EBCD");
        assert_eq!(play(Replacement::Fifo, 4, "ABCDEF"), "EFCD");
        // The invalid way is used first and the pointer stays.
        assert_eq!(play(Replacement::Fifo, 4, "ABCD!EF"), "FECD");
    }

    #[test]
    fn tree_plru_by_hand() {
        // After A–D the root and both leaves point left: A's way goes, then (root right, its node left) C's.
        assert_eq!(play(Replacement::TreePlru, 4, "ABCDE"), "EBCD");
        assert_eq!(play(Replacement::TreePlru, 4, "ABCDEF"), "EBFD");
        // A hit of A turns root and left node away from it: C goes, though A and B are older. LRU would take B.
        assert_eq!(play(Replacement::TreePlru, 4, "ABCDAE"), "ABED");
        assert_eq!(play(Replacement::TreePlru, 2, "ABAC"), "AC");
        // Three ways are two and one. After C all point left: A's way goes, then (root right) C's, then (root left, its
        // node right) B's.
        assert_eq!(play(Replacement::TreePlru, 3, "ABCD"), "DBC");
        assert_eq!(play(Replacement::TreePlru, 3, "ABCDE"), "DBE");
        assert_eq!(play(Replacement::TreePlru, 3, "ABCDEF"), "DFE");
        // Twelve are six and six, each of these four and two: M and N take way 0 and 6, of the fours; then it is the
        // twos' turn (4 and 10), then the fours' other halves' (2 and 8).
        assert_eq!(play(Replacement::TreePlru, 12, "ABCDEFGHIJKLMNOPQR"), "MBQDOFNHRJPL");
    }

    proptest! {
        /// As `filter.rs` says: of the pages used last a tree keeps one more than its shallowest way has nodes above
        /// it, whatever goes in between.
        #[test]
        fn a_tree_keeps_the_pages_used_last(
            ways in prop_oneof![1..=16usize, 1..=64usize],
            steps in proptest::collection::vec((any::<u16>(), 0..40u8), 0..600),
        ) {
            let shape = ArrayShape { sets: 1, ways, replacement: Replacement::TreePlru, repeated_keys: false };
            let keeps = tree_least_depth(ways as u32) as usize + 1;
            let mut assoc = Assoc::new(shape, SplitMix64::new(0));
            // Keys, and whether they are valid.
            let mut last: Vec<(u64, bool)> = Vec::new();
            for (key, what) in steps {
                // Few more than there is room for.
                let key = u64::from(key) % (ways as u64 + 3);
                if what == 0 {
                    assoc.invalidate(|_, other| other == key);
                    last.iter_mut().filter(|(other, _)| *other == key).for_each(|(_, is_valid)| *is_valid = false);
                    continue;
                }
                last.retain(|(other, _)| *other != key);
                last.push((key, true));
                assoc.access_or_fill(0, key);
                for (kept, _) in last.iter().rev().take(keeps).filter(|(_, is_valid)| *is_valid) {
                    prop_assert!(assoc.find(0, *kept).is_some(), "{} of {:?} is gone", kept, last);
                }
            }
        }
    }

    #[test]
    fn a_tree_need_not_keep_more() {
        for log2_ways in 0..=6 {
            let ways = 1 << log2_ways;
            let shape = ArrayShape { sets: 1, ways, replacement: Replacement::TreePlru, repeated_keys: false };
            let mut assoc = Assoc::new(shape, SplitMix64::new(0));
            // A key in each way; then way 0, its neighbour, and one of each subtree beside it.
            let others = (0..log2_ways).map(|level| 1 << level);
            for key in (0..ways as u64).chain([0]).chain(others).chain([ways as u64]) {
                assoc.access_or_fill(0, key);
            }
            assert_eq!(assoc.find(0, 0), None, "{ways} ways");
        }
    }

    #[test]
    fn srrip_by_hand() {
        // All are filled at 2: A's way is the first of those moved on to 3.
        assert_eq!(play(Replacement::Srrip, 4, "ABCDE"), "EBCD");
        // A was hit (0): all move on by one, B's is the first of 3, and A (1) outlives the scan E F G.
        assert_eq!(play(Replacement::Srrip, 4, "ABCDAEFG"), "AEFG");
        // H finds A 1, the others 2: all move on, and E, F and G go one after the other. Then all are 2, and A goes.
        assert_eq!(play(Replacement::Srrip, 4, "ABCDAEFGHIJ"), "AHIJ");
        assert_eq!(play(Replacement::Srrip, 4, "ABCDAEFGHIJK"), "KHIJ");
        // The invalid way is used first.
        assert_eq!(play(Replacement::Srrip, 4, "ABCD!EF"), "FECD");
        // More ways than a word has intervals.
        let many: String = ('C'..='q').collect();
        assert_eq!(play(Replacement::Srrip, 47, &format!("{many}C~")), many.replacen('D', "~", 1));
    }

    #[test]
    fn random_is_its_generator() {
        let mut rng = SplitMix64::new(7);
        let mut ways: Vec<char> = "ABCD".chars().collect();
        for letter in "EFGH".chars() {
            ways[rng.below_u32(4) as usize] = letter;
        }
        assert_eq!(play(Replacement::Random, 4, "ABCDEFGH"), ways.into_iter().collect::<String>());
    }

    #[test]
    fn nibbles_and_ring_agree() {
        for ways in [1u32, 2, 3, 8, 12, 16] {
            let mut nibbles = ReplacementPolicy::new(Replacement::Lru, 1, ways, SplitMix64::new(0));
            let mut ring = ReplacementPolicy { ways, state: PolicyState::Ring(LruRing::new(1, ways)) };
            let mut valid = vec![false; ways as usize];
            let mut rng = SplitMix64::new(u64::from(ways));
            for _ in 0..2000 {
                let way = rng.below_u32(ways);
                match rng.below_u32(4) {
                    0 if valid[way as usize] => {
                        valid[way as usize] = false;
                        nibbles.invalidated(0, way, |w| valid[w as usize]);
                        ring.invalidated(0, way, |w| valid[w as usize]);
                    }
                    1 if valid[way as usize] => {
                        nibbles.touch(0, way);
                        ring.touch(0, way);
                    }
                    _ => {
                        let victim = nibbles.replace(0, || None);
                        assert_eq!(victim, ring.replace(0, || None));
                        let lowest_invalid = valid.iter().position(|v| !v);
                        assert!(lowest_invalid.is_none_or(|lowest| lowest as u32 == victim));
                        valid[victim as usize] = true;
                    }
                }
            }
        }
    }
}
