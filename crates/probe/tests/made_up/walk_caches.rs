//! Walk caches of made-up machines: found right, or not determined.

use crate::sim_hierarchy::{Shape, Sim, Upper};
use lookaside_probe::{
    walk_caches, CacheReport, CacheReports, CacheShape, Finding, Geometry, KnownLevels, LatencyBench, MeasuredRange,
    WalkCacheSize, WalkCaches,
};
use lookaside_stats::SplitMix64;

fn seen(at: f64) -> Finding<MeasuredRange> {
    Finding::confirmed(MeasuredRange { low: at, high: at, passes: 2 }, Vec::new())
}

/// A machine of the kind that there is, with such entries above the leaf's.
fn machine(rng: &mut SplitMix64, upper: Option<Upper>) -> Shape {
    let mut pick = |list: &[u64]| list[rng.index(list.len())];
    let (second_ways, base) = (pick(&[8, 12]) as usize, pick(&[12, 20, 34]) as f64);
    Shape {
        line: 64,
        caches: vec![(64, pick(&[8, 12]) as usize, 4.0), (1024, 8, 14.0), (4096, 16, 45.0)],
        memory: 300.0,
        first: pick(&[32, 64]) as usize,
        second: (pick(&[64, 128]), second_ways, 7.0),
        base,
        first_cache_level: pick(&[1, 1, 2]) as usize,
        lru: pick(&[0, 1, 1]) == 1,
        noise: (0.005 * pick(&[0, 1, 2]) as f64, 0.02 * pick(&[0, 1]) as f64),
        neighbour: 0,
        area: 16 << 20,
        coalesce: 1,
        nested: upper.as_ref().is_some_and(|upper| upper.stage > 0.0),
        second_cache: None,
        folded: false,
        upper,
        gigantic: None,
    }
}

fn probe(shape: &Shape, seed: u64) -> WalkCaches {
    let mut sim = Sim::new(shape.clone(), seed);
    let (sets, ways, cycles) = shape.caches[0];
    let bytes = sets * ways as u64 * shape.line;
    let first_cache = CacheShape { bytes, ways: ways as u32, sets: sets as u32 };
    let level = CacheReport {
        level: 1,
        cycles: seen(cycles),
        bytes: seen(bytes as f64),
        shape: Finding::confirmed(first_cache, Vec::new()),
        ways: Finding::not_asked(),
    };
    let caches = CacheReports {
        line_bytes: Finding::confirmed(shape.line, Vec::new()),
        levels: vec![level],
        memory_cycles: seen(shape.memory),
        memory_from: None,
        curves: Vec::new(),
    };
    let first = Geometry { entries: shape.first as u32, ways: shape.first as u32, sets: 1, masks: Vec::new() };
    let (sets, ways, _) = shape.second;
    let masks = (0..sets.ilog2()).map(|bit| 1 << bit).collect();
    let second = Geometry { entries: sets as u32 * ways as u32, ways: ways as u32, sets: sets as u32, masks };
    let halt = || None;
    let mut field = LatencyBench::new(&mut sim, seed, &halt);
    walk_caches(&mut field, KnownLevels { first: &first, second: &second, caches: &caches }).expect("nobody halts")
}

/// Whether it is right; fails if it is wrong.
fn right(finding: &Finding<WalkCacheSize>, (sets, ways): (u64, usize), what: &str) -> bool {
    let Some(held) = finding.value() else { return false };
    let entries = (sets * ways as u64) as u32;
    let least = (f64::from(held.at_least) * 0.95) as u32;
    assert!((least..=held.at_most).contains(&entries), "{what}: {held:?}");
    if let Some(shape) = held.shape {
        assert_eq!(shape, (ways as u32, sets as u32), "{what}: {held:?}");
    }
    true
}

#[test]
fn made_up_walk_caches_are_found_right_or_not_at_all() {
    let (mut found, mut all, mut said) = ([0, 0], 0, Vec::new());
    for seed in 0..6 {
        let mut rng = SplitMix64::new(seed);
        let mut pick = |list: &[(u64, usize)]| list[rng.index(list.len())];
        let low = pick(&[(1, 16), (1, 32), (8, 4), (16, 4), (512, 6), (1, 64)]);
        let middle = pick(&[(1, 4), (1, 16), (1, 32)]);
        let high = pick(&[(1, 2), (1, 16)]);
        let stage = pick(&[(0, 0), (20, 0)]).0 as f64;
        let shape = machine(&mut rng, Some(Upper { caches: vec![low, middle, high], stage }));
        let caches = probe(&shape, seed);
        let what = format!("seed {seed}, {shape:?}");
        for (level, truth) in [low, middle].into_iter().enumerate() {
            let entries = &caches.levels[level].entries;
            found[level] += usize::from(right(entries, truth, &what));
            said.push(format!("seed {seed}, {truth:?}: {entries:?}"));
        }
        all += 1;
    }
    assert!(found[0] * 3 >= 2 * all && found[1] * 3 >= all, "{found:?} of {all}: {said:#?}");
}

#[test]
fn where_there_are_none_none_are_found() {
    for seed in 10..13 {
        let mut rng = SplitMix64::new(seed);
        let stage = 10.0 * (seed % 3) as f64;
        // All are read each time; or all are always at hand.
        let upper = (seed != 12).then(|| Upper { caches: vec![(1, 0), (1, 0), (1, 0)], stage });
        let shape = machine(&mut rng, upper);
        for level in probe(&shape, seed).levels {
            assert!(level.entries.is_missing(), "seed {seed}, {shape:?}: {level:?}");
        }
    }
}
