//! A machine on which others are so busy that times say next to nothing: a search for a level finds out nothing, and
//! ends.

use crate::sim::{Array, Costs, Noise, Sim};
use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{first_level, first_level_of_stores, ChainBench};

#[test]
fn times_that_say_nothing_end_the_search() {
    let costs = Costs { hit: 4.0, second: 6.0, walk: 35.0 };
    let arrays = [Array::linear(4, 4, Replacement::Lru), Array::linear(7, 12, Replacement::Lru)];
    for seed in 0..10 {
        // A chain may be off by more than its own time: it then seems to take less than nothing.
        let noise = Noise { sigma: 0.3, bias: 0.3 * (seed % 5) as f64, outliers: 0.3, interrupts: 0.5, grain: 26.0 };
        let mut sim = Sim::new(&arrays, 12, costs, noise, seed);
        let mut bench = ChainBench::new(&mut sim, PageSize::K4, seed, &|| None);
        first_level(&mut bench).expect("nothing halts it");
        first_level_of_stores(&mut bench).expect("nothing halts it");
    }
}
