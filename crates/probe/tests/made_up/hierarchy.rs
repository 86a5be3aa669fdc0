//! Data caches, memory and walks of made-up machines: found right, or not determined.

use crate::sim_hierarchy::{Shape, Sim};
use lookaside_probe::{
    caches, covers, walks, CacheReports, EntryCoverage, Finding, Geometry, KnownLevels, LatencyBench, MeasuredRange,
    PteLocation, WalkCosts,
};
use lookaside_stats::SplitMix64;

/// A machine of the kind that there is.
fn machine(seed: u64) -> Shape {
    let mut rng = SplitMix64::new(seed);
    let mut pick = |list: &[u64]| list[rng.index(list.len())];
    let line = pick(&[64, 64, 64, 128]);
    let ways = pick(&[4, 8, 12]);
    let first = (4096 / line * pick(&[1, 1, 2]), ways as usize, pick(&[3, 4, 5]) as f64);
    let second = ((256 << 10) / line / 8 * pick(&[1, 2]), pick(&[8, 10, 16]) as usize, pick(&[12, 14, 17]) as f64);
    let third = ((2 << 20) / line / 16 * pick(&[1, 2]), 16, pick(&[38, 45, 70]) as f64);
    let caches = if pick(&[0, 1, 1, 1]) == 1 { vec![first, second, third] } else { vec![first, second] };
    Shape {
        line,
        caches,
        memory: pick(&[200, 310, 480]) as f64,
        first: pick(&[32, 48, 64, 72]) as usize,
        second: (pick(&[64, 128]), pick(&[8, 12]) as usize, pick(&[5, 7, 9]) as f64),
        base: pick(&[12, 20, 34]) as f64,
        first_cache_level: pick(&[1, 2]) as usize,
        lru: pick(&[0, 1]) == 1,
        noise: (0.01 * pick(&[0, 1, 2]) as f64, 0.02 * pick(&[0, 1, 3]) as f64),
        neighbour: pick(&[0, 0, 50]),
        area: 16 << 20,
        coalesce: pick(&[1, 1, 2, 4]),
        nested: pick(&[0, 1]) == 1,
        second_cache: None,
        folded: false,
        upper: None,
        gigantic: None,
    }
}

fn probe(shape: &Shape, seed: u64) -> (CacheReports, WalkCosts, EntryCoverage) {
    let mut sim = Sim::new(shape.clone(), seed);
    let halt = || None;
    let mut field = LatencyBench::new(&mut sim, seed, &halt);
    let caches = caches(&mut field, Some(0.3)).expect("nobody halts");
    let first = Geometry { entries: shape.first as u32, ways: shape.first as u32, sets: 1, masks: Vec::new() };
    let (sets, ways, _) = shape.second;
    let masks: Vec<u64> = (0..sets.ilog2()).map(|bit| 1 << bit).collect();
    let second = Geometry { entries: sets as u32 * ways as u32, ways: ways as u32, sets: sets as u32, masks };
    let known = KnownLevels { first: &first, second: &second, caches: &caches };
    let walks = walks(&mut field, known).expect("nobody halts");
    let covers = covers(&mut field, known, &walks).expect("nobody halts");
    (caches, walks, covers)
}

/// Counts a finding that is right, and fails for one that is wrong.
fn right(counts: &mut (u32, u32), what: &str, finding: &Finding<MeasuredRange>, truth: f64, share: f64, more: f64) {
    match finding.value() {
        Some(seen) => {
            let (low, high) = (seen.low * (1.0 - share) - more, seen.high * (1.0 + share) + more);
            assert!((low..=high).contains(&truth), "{what}: {seen:?}, and it is {truth}");
            counts.0 += 1;
        }
        None => counts.1 += 1,
    }
}

#[test]
fn made_up_hierarchies_are_found_right_or_not_at_all() {
    let mut counts = (0, 0);
    for seed in 0..10 {
        let shape = machine(seed);
        let (caches, walks, covers) = probe(&shape, seed);
        let what = |name: &str| format!("seed {seed}, {name}, {shape:?}");
        if let Some(&line) = caches.line_bytes.value() {
            assert_eq!(line, shape.line, "{}", what("line"));
        }
        assert!(caches.levels.len() <= shape.caches.len(), "{}", what("levels"));
        for (level, &(sets, ways, cycles)) in caches.levels.iter().zip(&shape.caches) {
            let name = format!("cache {}", level.level);
            right(&mut counts, &what(&name), &level.cycles, cycles, 0.12, 0.5);
            let bytes = (sets * ways as u64 * shape.line) as f64;
            // What a neighbour takes of the last is not in it.
            let last = level.level as usize == shape.caches.len();
            let taken = if last && shape.neighbour > 0 { 0.15 } else { 0.0 };
            right(&mut counts, &what(&format!("{name} size")), &level.bytes, bytes, taken, 0.0);
            if let Some(found) = level.shape.value() {
                let truth = (bytes as u64, ways as u32, sets as u32);
                assert_eq!((found.bytes, found.ways, found.sets), truth, "{}", what(&name));
                counts.0 += 1;
            }
        }
        right(&mut counts, &what("memory"), &caches.memory_cycles, shape.memory, 0.05, 0.5);
        right(&mut counts, &what("second"), &walks.second_level_cycles, shape.second.2, 0.12, 0.7);
        for walk in &walks.walks {
            let entry = match walk.place {
                PteLocation::Cache(1) if shape.first_cache_level == 2 => shape.caches[1].2,
                PteLocation::Cache(level) => shape.caches[level as usize - 1].2,
                PteLocation::Memory => shape.memory,
            };
            right(&mut counts, &what(&walk.place.to_string()), &walk.cycles, shape.base + entry, 0.12, 1.5);
        }
        right(&mut counts, &what("base"), &walks.base_cycles, shape.base, 0.12, 1.5);
        for level in &covers.levels {
            let huge = if shape.nested { 1 } else { 16 };
            for (finding, truth) in [(&level.small, shape.coalesce as u32), (&level.huge, huge)] {
                match finding.value() {
                    Some(&pages) => assert_eq!(pages, truth, "{}", what(&format!("{level:?}"))),
                    None => counts.1 += 1,
                }
                counts.0 += u32::from(finding.value().is_some());
            }
        }
        assert!(shape.nested || covers.second_stage_cycles.value().is_none(), "{}", what(&format!("{covers:?}")));
        if let Some(&level) = walks.first_cache_level.value() {
            assert_eq!(level as usize, shape.first_cache_level, "{}", what("first cache level"));
            counts.0 += 1;
        }
    }

    // Small areas, to be quick: what needs larger ones (16 pages an entry) is not determined; nor is a walk's base that
    // only entries in the second cache tell, and what needs it.
    assert!(counts.0 > 3 * counts.1, "{counts:?} found and not determined");
}
