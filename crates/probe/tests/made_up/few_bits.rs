//! Few addresses (`ulimit -v`, a small address space): page numbers of 14 to 16 bits. Levels are found as they are, or
//! are not determined; nothing wrong is confirmed.

use crate::sim::{Array, Costs, Noise, Sim};
use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{first_level, gf2, second_level, ChainBench, Finding, Geometry};
use lookaside_stats::SplitMix64;

fn array(rng: &mut SplitMix64, sets_log2: u32, ways: u32, bits: u32) -> Array {
    let masks = loop {
        let rows: Vec<u64> = (0..sets_log2).map(|_| rng.next_u64() & ((1 << bits) - 1)).collect();
        if gf2::reduce(&rows).len() == sets_log2 as usize {
            break rows;
        }
    };
    let replacement = [Replacement::Lru, Replacement::Fifo, Replacement::Random][rng.index(3)];
    Array { sets: 1 << sets_log2, ways, masks, replacement }
}

/// Whether it is confirmed, and then right.
fn is_right(found: &Finding<Geometry>, array: &Array) -> Option<bool> {
    let found = found.value()?;
    let same = (found.sets, found.ways) == (array.sets, array.ways);
    Some(same && gf2::reduce(&found.masks) == gf2::reduce(&array.masks))
}

#[test]
fn nothing_wrong_is_confirmed() {
    let costs = Costs { hit: 4.0, second: 6.0, walk: 35.0 };
    let noise = Noise { sigma: 0.005, bias: 0.002, outliers: 0.03, interrupts: 0.01, grain: 26.0 };
    let (mut right, mut all) = (0, 0);
    for seed in 0..5 {
        let mut rng = SplitMix64::new(seed);
        let bits = 14 + rng.index(3) as u32;
        let arrays = [array(&mut rng, 4, 4, bits), array(&mut rng, 6 + seed as u32 % 3, 12, bits)];
        let mut sim = Sim::new(&arrays, bits, costs, noise, seed);
        let mut bench = ChainBench::new(&mut sim, PageSize::K4, seed, &|| None);
        let first = first_level(&mut bench).expect("nothing halts it");
        let mut found = vec![is_right(&first.geometry, &arrays[0])];
        if let (Some(geometry), Some(level)) = (first.geometry.value(), &first.level) {
            let second = second_level(&mut bench, geometry, level).expect("nothing halts it");
            found.push(is_right(&second.geometry, &arrays[1]));
        }
        assert!(!found.contains(&Some(false)), "seed {seed}, {bits} bits: {arrays:x?} is taken for another");
        all += 2;
        right += found.iter().filter(|right| **right == Some(true)).count();
    }
    println!("{right} of {all} levels");
    assert!(2 * right > all, "{right} of {all} levels");
}
