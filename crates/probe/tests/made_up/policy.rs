//! Replacement policies against machines that are made up.
//!
//! The geometry is given, as [`lookaside_probe::first_level`] would find it: here it is only about policies. Any number
//! of machines is run by `LOOKASIDE_PROBE_MACHINES=400 cargo test -p lookaside-probe --test made_up policy:: --
//! --nocapture`.

use std::collections::BTreeMap;

use crate::odd::{self, Odd, Rule};
use crate::sim::{Array, Costs, Noise, Recorded, Sim};
use lookaside_machine::{PageSize, Replacement, MAX_UNEVEN_TREE_WAYS};
use lookaside_probe::{
    gf2, is_modelled_tree, policy, ChainBench, CoreUse, Finding, FirstLevelFlood, Geometry, LevelMeter, TlbPolicy,
    Trial,
};
use lookaside_stats::SplitMix64;

/// Machines in CI, under each kind of noise.
const MACHINES: u64 = 12;
/// Threads that probe.
const THREADS: u64 = 2;
/// Levels whose policy must be found under assumed noise, and under recorded noise.
const FLOOR_PERCENT: usize = 80;
/// See [`FLOOR_PERCENT`].
const RECORDED_FLOOR_PERCENT: usize = 40;

const POLICIES: [Replacement; 4] = [Replacement::Lru, Replacement::Fifo, Replacement::Random, Replacement::TreePlru];

fn between(rng: &mut SplitMix64, low: u32, high: u32) -> u32 {
    low + rng.index((high - low + 1) as usize) as u32
}

/// Linear, folded or any index.
fn masks(rng: &mut SplitMix64, rank: u32, bits: u32) -> Vec<u64> {
    match rng.index(3) {
        0 => (0..rank).map(|bit| 1 << bit).collect(),
        1 => (0..rank).map(|bit| 1 << bit | 1 << (bit + rank)).collect(),
        _ => loop {
            let rows: Vec<u64> = (0..rank).map(|_| rng.next_u64() & ((1 << bits) - 1)).collect();
            if gf2::reduce(&rows).len() == rank as usize {
                return rows;
            }
        },
    }
}

fn array(rng: &mut SplitMix64, sets_log2: u32, ways: u32, bits: u32) -> Array {
    let replacement = match POLICIES[rng.index(4)] {
        Replacement::TreePlru if ways > MAX_UNEVEN_TREE_WAYS && !ways.is_power_of_two() => POLICIES[rng.index(3)],
        policy => policy,
    };
    Array { sets: 1 << sets_log2, ways, masks: masks(rng, sets_log2, bits), replacement }
}

/// Ways, half of the time a power of two: where trees have one shape.
fn ways(rng: &mut SplitMix64, low: u32, high: u32) -> u32 {
    match rng.index(2) {
        0 => between(rng, low, high),
        _ => 1 << between(rng, low.ilog2(), high.ilog2()),
    }
}

/// One level, or two.
fn arrays(rng: &mut SplitMix64, bits: u32) -> Vec<Array> {
    let first = match rng.index(3) {
        0 => (0, ways(rng, 8, 128)),
        _ => (between(rng, 2, 4), ways(rng, 2, 8)),
    };
    match rng.index(3) {
        0 => {
            let (sets, ways) = (between(rng, 2, 8), ways(rng, 2, 32));
            vec![array(rng, sets, ways, bits)]
        }
        1 => vec![array(rng, first.0, first.1, bits)],
        _ => loop {
            let (sets, ways) = (between(rng, 4, 8), ways(rng, 2, 32));
            if ways << sets >= 16 * (first.1 << first.0) {
                return vec![array(rng, first.0, first.1, bits), array(rng, sets, ways, bits)];
            }
        },
    }
}

/// Assumed: nothing here was fitted to a real machine's times.
fn noise(rng: &mut SplitMix64) -> Noise {
    let mut up_to = |most: f64| most * rng.index(1000) as f64 / 1000.0;
    Noise {
        sigma: up_to(0.01),
        bias: up_to(0.003),
        outliers: up_to(0.1),
        interrupts: up_to(0.02),
        grain: up_to(26.0).max(1.0),
    }
}

fn geometry(array: &Array) -> Geometry {
    let masks = gf2::reduce(&array.masks);
    Geometry { entries: array.sets * array.ways, ways: array.ways, sets: array.sets, masks }
}

/// What the policy of an array is called. A tree of two ways is LRU.
fn called(array: &Array) -> TlbPolicy {
    match array.replacement {
        Replacement::TreePlru if array.ways == 2 => TlbPolicy::Lru,
        Replacement::Lru => TlbPolicy::Lru,
        Replacement::Fifo => TlbPolicy::Fifo,
        Replacement::Random => TlbPolicy::Random,
        Replacement::TreePlru => TlbPolicy::TreePlru,
        Replacement::Srrip => panic!("of data caches alone"),
    }
}

/// A level as an instrument, whose costs are known to within a tenth.
fn level(rng: &mut SplitMix64, arrays: &[Array], at: usize, costs: Costs, bits: u32) -> LevelMeter {
    let mut about = |ticks: f64| ticks * (0.9 + 0.2 * rng.index(1000) as f64 / 1000.0);
    let above = (at > 0).then(|| {
        let flood = if matches!(arrays[0].replacement, Replacement::Lru | Replacement::Fifo) { 1.25 } else { 4.0 };
        FirstLevelFlood::new(gf2::reduce(&arrays[0].masks), arrays[0].ways, flood, bits)
    });
    LevelMeter {
        hit_ticks: about(costs.hit),
        miss_ticks: about(if at + 1 == arrays.len() { costs.walk } else { costs.second }),
        above_ticks: if at > 0 { about(costs.second) } else { 0.0 },
        above,
        core: CoreUse::Own,
        lanes: Vec::new(),
    }
}

/// What became of the levels of the machine that this seed makes: level, array, what was found, and whether it is a
/// tree as the model has it.
fn found(seed: u64, recorded: bool) -> Vec<(usize, Array, Finding<TlbPolicy>, bool)> {
    let mut rng = SplitMix64::new(seed);
    let bits = between(&mut rng, 20, 33);
    let arrays = arrays(&mut rng, bits);
    let costs = Costs {
        hit: between(&mut rng, 3, 5).into(),
        second: between(&mut rng, 5, 8).into(),
        walk: between(&mut rng, 20, 60).into(),
    };
    let noise = noise(&mut rng);
    let mut sim = Sim::new(&arrays, bits, costs, noise, seed);
    sim.recorded = recorded.then(|| Recorded::draw(&mut rng));
    let mut bench = ChainBench::new(&mut sim, PageSize::K4, seed, &|| None);
    let mut all = Vec::new();
    for (at, array) in arrays.iter().enumerate() {
        let level = level(&mut rng, &arrays, at, costs, bits);
        let (finding, trials) = policy(&mut bench, &level, &geometry(array)).expect("nothing halts it");
        let is_tree = finding.value() == Some(&TlbPolicy::TreePlru) && is_modelled_tree(&trials, array.ways).is_ok();
        if finding.value() != Some(&called(array)) {
            println!("seed {seed} level {}: {arrays:x?} {noise:?} {costs:?} {finding:?}", at + 1);
        }
        all.push((at, array.clone(), finding, is_tree));
    }
    all
}

/// A number from the environment, or this one.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Machines under noise of a kind: none may be wrong, so many per cent of their levels have to be right.
fn policies_are_found(recorded: bool, floor_percent: usize) {
    let first = number("LOOKASIDE_PROBE_FIRST_SEED", 0);
    let machines = number("LOOKASIDE_PROBE_MACHINES", MACHINES);
    let levels: Vec<_> = std::thread::scope(|scope| {
        let part = |start| {
            let seeds = (start..first + machines).step_by(THREADS as usize);
            move || seeds.flat_map(|seed| found(seed, recorded)).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..THREADS).map(|i| scope.spawn(part(first + i))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let (mut right, mut wrong, mut shaped) = (0, 0, 0);
    let mut table: BTreeMap<(usize, String, u32), (u32, u32)> = BTreeMap::new();
    for (at, array, finding, is_tree) in &levels {
        let is_right = finding.value() == Some(&called(array));
        right += usize::from(is_right);
        wrong += usize::from(!is_right && finding.value().is_some());
        shaped += usize::from(is_right && *is_tree && !array.ways.is_power_of_two());
        let row =
            table.entry((at + 1, format!("{:?}", array.replacement), array.ways.next_power_of_two())).or_default();
        *row = (row.0 + u32::from(is_right), row.1 + 1);
    }
    for ((level, policy, ways), (right, all)) in table {
        println!("level {level} {policy} up to {ways} ways: {right} of {all}");
    }
    println!(
        "{right} of {} levels, {wrong} wrong; {shaped} trees of no power of two whose shape is known",
        levels.len()
    );
    assert_eq!(wrong, 0);
    assert!(100 * right >= floor_percent * levels.len(), "{right} of {}", levels.len());
    assert!(recorded || shaped > 0);
}

#[test]
fn policies_are_found_and_never_taken_for_another() {
    policies_are_found(false, FLOOR_PERCENT);
}

/// Each chain is off by per cents of its own there, even one that differs from another in a few pages only: little is
/// determined, but nothing wrong.
#[test]
fn policies_are_not_taken_for_another_under_recorded_noise() {
    policies_are_found(true, RECORDED_FLOOR_PERCENT);
}

/// The policy of one set-associative or fully associative level of a rule that the engine does not have.
fn odd(rule: Rule, sets_log2: u32, ways: usize, seed: u64) -> (Finding<TlbPolicy>, Vec<Trial>) {
    let masks: Vec<u64> = (0..sets_log2).map(|bit| 1 << bit).collect();
    let mut metal = Odd::new(rule, sets_log2, ways, seed);
    let geometry = Geometry { entries: (ways as u32) << sets_log2, ways: ways as u32, sets: 1 << sets_log2, masks };
    let level = LevelMeter {
        hit_ticks: odd::HIT,
        miss_ticks: odd::MISS,
        above_ticks: 0.0,
        above: None,
        core: CoreUse::Own,
        lanes: Vec::new(),
    };
    let mut bench = ChainBench::new(&mut metal, PageSize::K4, seed, &|| None);
    policy(&mut bench, &level, &geometry).expect("nothing halts it")
}

#[test]
fn other_rules_are_none_of_these() {
    let mut known = 0;
    let mut all = 0;
    for rule in [Rule::NotRecentlyUsed, Rule::Intervals, Rule::LeastRecentInsertion] {
        for (sets, ways, seed) in [(4, 4, 1), (3, 8, 2), (5, 12, 1)] {
            let (finding, trials) = odd(rule, sets, ways, seed);
            all += 1;
            match finding.value() {
                Some(TlbPolicy::NoneOfThese) => known += 1,
                Some(other) => panic!("{rule:?} of {ways} ways is taken for {other:?}: {trials:?}"),
                None => {}
            }
        }
    }
    assert!(2 * known >= all, "{known} of {all}");
}

/// Half way between LRU and FIFO the few trials that tell the two apart speak against both. (Nearer to one of them it
/// may read as that one.)
#[test]
fn what_lies_between_two_rules_is_taken_for_neither() {
    let mut known = 0;
    for (sets, ways, seed) in [(3, 8, 1), (5, 12, 2), (0, 24, 1)] {
        let (finding, trials) = odd(Rule::RarelyUsed(50), sets, ways, seed);
        match finding.value() {
            Some(TlbPolicy::NoneOfThese) => known += 1,
            Some(other) => panic!("{ways} ways: {other:?}: {trials:?}"),
            None => {}
        }
    }
    assert!(known >= 2, "{known} of 3");
}

/// What such a tree does depends on the phase that each set is in: it may also be said that nothing is known, or that
/// it is none of the rules, never that it is another of them.
#[test]
fn a_tree_of_unequal_sides_is_not_taken_for_another() {
    let mut known = 0;
    for (sets, ways) in [(4, 3), (3, 6), (5, 12), (0, 24)] {
        let (finding, trials) = odd(Rule::UnequalTree, sets, ways, 3);
        match finding.value() {
            Some(TlbPolicy::TreePlru) => {
                known += 1;
                // Three are two and one in every shape.
                assert_eq!(is_modelled_tree(&trials, ways as u32).is_ok(), ways == 3, "{ways}: {trials:?}");
            }
            Some(TlbPolicy::NoneOfThese) | None => {}
            Some(other) => panic!("{ways} ways are taken for {other:?}: {trials:?}"),
        }
    }
    assert!(known > 0);
}
