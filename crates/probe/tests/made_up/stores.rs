//! Stores that have a first level of their own: found by chains of updates as it is, or not determined.

use crate::sim::{Array, Costs, Noise, Sim};
use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{first_level_of_stores, gf2, until_two_agree, ChainBench};
use lookaside_stats::SplitMix64;

/// Machines tried.
const MACHINES: u64 = 40;

#[test]
fn entries_of_stores_are_found() {
    let costs = Costs { hit: 4.0, second: 7.0, walk: 35.0 };
    let noise = Noise { sigma: 0.005, bias: 0.001, outliers: 0.03, interrupts: 0.01, grain: 26.0 };
    let mut right = 0;
    for seed in 0..MACHINES {
        let mut rng = SplitMix64::new(seed);
        let policy = [Replacement::Lru, Replacement::Fifo, Replacement::Random][rng.index(3)];
        let (sets, ways) = if rng.index(2) == 0 { (0, 8 + rng.index(40) as u32) } else { (2 + rng.index(3) as u32, 4) };
        let stores = Array::linear(sets, ways, policy);
        // Loads have more, as on the cores that have both.
        let loads = Array::linear(4, 6, Replacement::Lru);
        let mut sim = Sim::new(&[loads, Array::linear(7, 12, Replacement::Lru)], 24, costs, noise, seed);
        sim.habits.stores = Some(stores.clone());
        let mut bench = ChainBench::new(&mut sim, PageSize::K4, seed, &|| None);
        let (found, _) = until_two_agree(&mut bench, first_level_of_stores).expect("nothing halts it");
        match found.geometry.value() {
            Some(found) => {
                assert_eq!((found.sets, found.ways), (stores.sets, stores.ways), "seed {seed}");
                assert_eq!(gf2::reduce(&found.masks), gf2::reduce(&stores.masks), "seed {seed}");
                right += 1;
            }
            None => println!("seed {seed}: {stores:x?}: {:?}", found.geometry),
        }
    }
    println!("{right} of {MACHINES}");
    assert!(10 * right >= 9 * MACHINES, "{right} of {MACHINES}");
}
