use lookaside_trace::{Block, Kind};

use super::*;

/// By nested loops over both tables; and the accesses by what the chains say.
#[test]
fn matches_are_those_of_nested_loops_and_accesses_those_of_the_chains() {
    for (bytes, seed) in [(5_000, 1), (20_000, 2), (60_000, 3)] {
        let mut join = HashJoin::new(&WorkloadSpec { seed, rounds: 2, ..WorkloadSpec::new(bytes) }).expect("memory");
        let (rows, outer) = (join.rows.to_vec(), join.outer.to_vec());
        assert!(rows.len() >= join.buckets.len() && rows.len() <= join.buckets.len() * 9 / 4, "{bytes} bytes");

        let (mut matches, mut sum) = (0u64, 0u64);
        for &key in &outer {
            for row in rows.iter().filter(|row| row.key == key) {
                matches += 1;
                sum = sum.wrapping_add(row.payload);
            }
        }

        let [at_buckets, at_rows, at_outer] = [0, 1, 2].map(|i: usize| join.room.regions()[i].stream_start);
        let mut expected = Vec::new();
        for (i, &key) in outer.iter().enumerate() {
            let bucket = bucket(key, join.buckets.len() as u64);
            expected.extend([at_outer + 8 * i as u64, at_buckets + 8 * bucket]);
            // The chain of a bucket: its rows, the last one first.
            for (j, row) in rows.iter().enumerate().rev() {
                if super::bucket(row.key, join.buckets.len() as u64) == bucket {
                    expected.push(at_rows + 32 * j as u64);
                }
            }
        }

        let mut block = Block::default();
        while join.step(&mut block) {}
        assert_eq!((join.matches, join.sum), (2 * matches, sum.wrapping_mul(2)));
        assert_eq!(join.done, 2 * outer.len() as u64);
        assert!(matches > 0 && block.kind.iter().all(|&kind| kind == Kind::Load));
        assert_eq!(block.addr, [expected.clone(), expected].concat());
        assert!(!join.step(&mut block), "the end stays the end");
    }
}

#[test]
fn buckets_are_in_range_and_even() {
    assert_eq!(bucket(u64::MAX, 1), 0);
    let mut counts = [0u32; 64];
    for key in 0..64_000 {
        counts[bucket(key, 64) as usize] += 1;
    }
    // 1000 each; successive keys are spread more evenly than random ones.
    assert!(counts.iter().all(|&count| count.abs_diff(1000) < 30), "{counts:?}");
}
