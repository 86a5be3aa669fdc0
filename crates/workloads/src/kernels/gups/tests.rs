use std::collections::HashMap;

use lookaside_trace::{Block, Source};

use super::*;
use crate::{Gups, PatternStream};

/// The table by a map of what was changed; HPCC's own check is that the same updates again restore it.
#[test]
fn updates_are_those_of_a_map_and_undo_themselves() {
    let spec = WorkloadSpec { seed: 7, rounds: 100, ..WorkloadSpec::new(5000) }; // 512 words, 3200 updates
    let mut gups = GupsTable::new(&spec).expect("memory");
    let start = gups.x;
    let mut expected: HashMap<u64, u64> = HashMap::new();
    let mut x = start;
    for _ in 0..3200 {
        let carry = if x & 1 << 63 == 0 { 0 } else { 7 };
        x = x.wrapping_mul(2) ^ carry;
        *expected.entry(x % 512).or_insert(x % 512) ^= x;
    }
    let mut block = Block::default();
    while gups.step(&mut block) {}
    assert_eq!((gups.table.len(), gups.done), (512, 3200));
    for (i, &word) in gups.table.iter().enumerate() {
        assert_eq!(word, expected.get(&(i as u64)).copied().unwrap_or(i as u64), "word {i}");
    }
    let changed = gups.table.iter().enumerate().filter(|(i, &word)| word != *i as u64).count();
    assert!(changed > 450, "{changed} words changed");
    (gups.x, gups.done) = (start, 0);
    while gups.step(&mut crate::observer::Unseen) {}
    assert!(gups.table.iter().enumerate().all(|(i, &word)| word == i as u64));
}

/// The pattern without memory makes the same accesses.
#[test]
fn accesses_are_the_patterns() {
    let mut gups = GupsTable::new(&WorkloadSpec::new(1 << 16)).expect("memory");
    let mut seen = Block::default();
    while gups.step(&mut seen) {}
    let mut pattern = PatternStream::new(Gups::new(1 << 16, 1), gups.done);
    let mut expected = Block::default();
    assert!(pattern.next_block(&mut expected).expect("a block"));
    assert_eq!((seen.addr, seen.kind), (expected.addr, expected.kind));
}
