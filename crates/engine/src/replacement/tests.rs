//! Policies by hand, and against each other.

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
        let mut nibbles = UseOrder::new(1, ways);
        let mut ring = UseList::new(1, ways);
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
