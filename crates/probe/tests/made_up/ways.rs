//! Ways of made-up second-level caches: found right, or not determined.

use crate::sim_hierarchy::{Policy, Shape, Sim};
use lookaside_probe::{caches, CacheReports, LatencyBench};
use lookaside_stats::SplitMix64;

/// A machine of the kind that there is. `LOOKASIDE_WAYS_MACHINES` tries so many, from seed `LOOKASIDE_WAYS_FROM` on.
fn machine(seed: u64) -> Shape {
    let mut rng = SplitMix64::new(seed);
    let mut pick = |list: &[u64]| list[rng.index(list.len())];
    let first = (64, pick(&[4, 8, 8, 12]) as usize, pick(&[3, 4, 5]) as f64);
    let policy = [Policy::Lru, Policy::Fifo, Policy::Random, Policy::TreePlru][pick(&[0, 1, 2, 3]) as usize];
    let ways = match policy {
        Policy::TreePlru => pick(&[8, 16]),
        _ => pick(&[6, 8, 10, 12, 16, 20]),
    };
    let second = (pick(&[1024, 2048]), ways as usize, pick(&[12, 14, 17]) as f64);
    let third = (8192, 16, pick(&[38, 45, 70]) as f64);
    Shape {
        line: 64,
        caches: if pick(&[0, 1, 1]) == 1 { vec![first, second, third] } else { vec![first, second] },
        memory: pick(&[200, 310]) as f64,
        first: 64,
        second: (128, 12, 7.0),
        base: 20.0,
        first_cache_level: 2,
        lru: pick(&[0, 1]) == 1,
        noise: (0.003 * pick(&[0, 1, 2]) as f64, 0.02 * pick(&[0, 1, 3]) as f64),
        neighbour: 0,
        area: 16 << 20,
        coalesce: 1,
        nested: false,
        second_cache: Some(policy),
        folded: pick(&[0, 1]) == 1,
        upper: None,
        gigantic: None,
    }
}

fn probe(shape: &Shape, seed: u64) -> CacheReports {
    let mut sim = Sim::new(shape.clone(), seed);
    let mut field = LatencyBench::new(&mut sim, seed, &|| None);
    caches(&mut field, Some(0.3)).expect("nobody halts")
}

#[test]
fn ways_of_made_up_second_levels_are_found_right_or_not_at_all() {
    let machines = std::env::var("LOOKASIDE_WAYS_MACHINES").map_or(4, |text| text.parse().expect("a number"));
    let from: u64 = std::env::var("LOOKASIDE_WAYS_FROM").map_or(4, |text| text.parse().expect("a number"));
    let (mut ways, mut shapes) = (0, 0);
    for seed in from..from + machines {
        let shape = machine(seed);
        let caches = probe(&shape, seed);
        let truth = shape.caches[1];
        let Some(level) = caches.levels.get(1) else { continue };
        let what = || format!("seed {seed}: {:?} {:?} {:?}, {shape:?}", level.bytes, level.ways, level.shape);
        if let Some(&found) = level.ways.value() {
            assert_eq!(found as usize, truth.1, "{}", what());
            ways += 1;
        }
        if let Some(found) = level.shape.value() {
            assert_eq!((u64::from(found.sets), found.ways as usize), (truth.0, truth.1), "{}", what());
            shapes += 1;
        } else {
            println!("{}", what());
        }
    }
    println!("{ways} ways and {shapes} shapes of {machines}");
    assert!(4 * ways >= 3 * machines && 3 * shapes >= 2 * machines, "{ways} ways, {shapes} shapes of {machines}");
}
