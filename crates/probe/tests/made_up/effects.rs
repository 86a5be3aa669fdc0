//! What else fills and empties the levels, on made-up machines: the right answer or none, never a wrong one.

use std::cell::Cell;

use crate::sim::{Array, Costs, Habits, Noise, Other, Sim};
use lookaside_machine::{preset, PageSize, Replacement, Serves, SwitchAction};
use lookaside_probe::effects::{measure_effects, EntryOwnership, FillLevel, StoreEntries, TlbEffects};
use lookaside_probe::{gf2, ChainBench, Geometry, Halt, OtherCpu, ProbeReport, TlbLevels};
use lookaside_stats::SplitMix64;

const BITS: u32 = 26;

fn array(masks: Vec<u64>, ways: u32, replacement: Replacement) -> Array {
    Array { sets: 1 << masks.len(), ways, masks, replacement }
}

fn geometry(array: &Array) -> Geometry {
    Geometry { entries: array.sets * array.ways, ways: array.ways, sets: array.sets, masks: gf2::reduce(&array.masks) }
}

/// A small Zen 4: the first level without sets; and a small Golden Cove, with them.
fn machines() -> [[Array; 2]; 2] {
    let folded = |bits: u32| (0..bits).map(|bit| 1 << bit | 1 << (bit + bits)).collect::<Vec<u64>>();
    let linear = |bits: u32| (0..bits).map(|bit| 1 << bit).collect::<Vec<u64>>();
    [
        [array(Vec::new(), 40, Replacement::Lru), array(folded(6), 8, Replacement::Lru)],
        [array(linear(3), 6, Replacement::Lru), array(linear(6), 10, Replacement::Lru)],
    ]
}

/// What is found on a machine of these habits.
fn found(arrays: &[Array; 2], habits: Habits, seed: u64) -> TlbEffects {
    let costs = Costs { hit: 4.0, second: 5.0, walk: 33.0 };
    let noise = Noise { sigma: 0.0, bias: 0.0, outliers: 0.0, interrupts: 0.0, grain: 26.0 };
    let mut sim = Sim::new(arrays, BITS, costs, noise, seed);
    sim.habits = habits;
    let levels = TlbLevels { first: geometry(&arrays[0]), second: Some(geometry(&arrays[1])) };
    let mut bench = ChainBench::new(&mut sim, PageSize::K4, seed, &|| None);
    let mut found = TlbEffects::not_asked();
    measure_effects(&mut bench, &levels, &mut found).expect("nothing halts it");
    found
}

/// Pages of the system, all bits at random but those of the set of the second level.
fn system_pages(second: &Array, sets: &[u64], rng: &mut SplitMix64) -> Vec<u64> {
    let page = |set: u64, rng: &mut SplitMix64| loop {
        let page = rng.next_u64() & ((1 << BITS) - 1);
        if gf2::apply(&gf2::reduce(&second.masks), page) == set {
            return page;
        }
    };
    sets.iter().map(|&set| page(set, rng)).collect()
}

#[test]
fn what_fills_and_empties_the_levels_is_told() {
    let cpu = |number, sibling| OtherCpu { number, sibling };
    // The third takes entries, though the system says that it is no sibling.
    let cpus =
        vec![(cpu(7, None), Other::Apart), (cpu(3, Some(true)), Other::Apart), (cpu(9, Some(false)), Other::Tagged)];
    for (i, arrays) in machines().iter().enumerate() {
        for (prefetch_fills, stores_shared) in [(true, i == 0), (false, i == 1)] {
            let (switch_flushes, prefetch_faults) = (prefetch_fills, u64::from(prefetch_fills && i == 1));
            let cpus = if prefetch_fills { cpus.clone() } else { Vec::new() };
            let own = array(vec![0b1001, 0b10], 4, Replacement::Lru);
            let stores = (!stores_shared).then(|| own.clone());
            let habits = Habits { prefetch_fills, stores, switch_flushes, prefetch_faults, cpus, ..Habits::default() };
            let found = found(arrays, habits, i as u64);
            let fill = if prefetch_fills { FillLevel::L1 } else { FillLevel::Nothing };
            for prefetch in &found.prefetches {
                assert_eq!(prefetch.fills.value(), Some(&fill), "{i}: {prefetch:?}");
                assert_eq!(prefetch.faults.value(), Some(&(2048 * prefetch_faults)), "{i}: {prefetch:?}");
            }
            let stores = if stores_shared { StoreEntries::Shared } else { StoreEntries::Apart };
            assert_eq!(found.stores.value(), Some(&stores), "{i}: {:?}", found.stores);
            let entries = geometry(if stores_shared { &arrays[0] } else { &own });
            assert_eq!(found.store_level.value(), Some(&entries), "{i}: {:?}", found.store_level);

            let kept = found.process_switch.value().expect("an easy machine");
            assert!((kept.stlb.share() - f64::from(u8::from(switch_flushes))).abs() < 0.1, "{i}: {kept:?}");
            for other in [&found.thread_switch, &found.system_call] {
                let kept = other.value().expect("an easy machine");
                assert!(kept.l1.share() < 0.15 && kept.stlb.share() < 0.1, "{i}: {other:?}");
            }

            let neighbours = found.neighbours.clone().expect("they were looked at");
            let order: Vec<usize> = neighbours.iter().map(|neighbour| neighbour.cpu).collect();
            assert_eq!(order, if prefetch_fills { vec![3, 7, 9] } else { Vec::new() }, "siblings first");
            for neighbour in &neighbours {
                let takes = neighbour.takes.value().expect("an easy machine");
                assert_eq!((takes.l1, takes.stlb), (neighbour.cpu == 9, neighbour.cpu == 9), "{i}: {neighbour:?}");
                let entries = neighbour.sharing.value().map(|sharing| sharing.entries);
                let expected = [(3, Some(EntryOwnership::Apart)), (7, None), (9, Some(EntryOwnership::Tagged))];
                assert!(expected.contains(&(neighbour.cpu, entries)), "{i}: {neighbour:?}");
            }

            // The description says so too, and is possible.
            let report = ProbeReport { effects: Some(found), ..ProbeReport::default() };
            let machine = report.machine(&preset("ryzen-5900x").expect("a preset"));
            machine.check().expect("a possible machine");
            let takes_stores = machine.tlbs.iter().filter(|tlb| tlb.level == 1 && tlb.serves.contains(&Serves::Store));
            let small: Vec<_> = takes_stores.filter(|tlb| tlb.page_sizes.contains(&PageSize::K4)).collect();
            assert_eq!(small.len(), 1);
            let of_loads = small[0].serves.contains(&Serves::Load);
            assert_eq!((of_loads, small[0].entries == 16), (stores_shared, !stores_shared), "{:?}", small[0]);
            assert_eq!(machine.context_switch.action == SwitchAction::Nothing, !switch_flushes);
        }
    }
}

#[test]
fn disturbed_sets_are_named() {
    let mut rng = SplitMix64::new(4);
    let (called, switched, interrupted) = ([3, 17], [5, 6, 40], [63; 4]);
    for (i, arrays) in machines().iter().enumerate() {
        let pages = |sets: &[u64], rng: &mut SplitMix64| system_pages(&arrays[1], sets, rng);
        let habits = Habits {
            system_call: pages(&called, &mut rng),
            switch: pages(&switched, &mut rng),
            // Two or three interrupts in a wait, each by four pages of one set.
            interrupt: pages(&interrupted, &mut rng),
            interrupts_per_tick: 1e-6 / 2.0,
            ..Habits::default()
        };
        let found = found(arrays, habits, i as u64);
        let level = found.disturbed.iter().find(|level| level.level == 2).expect("it has sets");
        for (finding, sets) in [
            (&level.per_system_call, &called[..]),
            (&level.per_context_switch, &switched[..]),
            (&level.per_second, &interrupted[..1]),
        ] {
            let found = finding.value().unwrap_or_else(|| panic!("{i}: {finding:?}"));
            let disturbed: Vec<u64> = (0..64).filter(|&set| found.by_set[set as usize] > 0.0).collect();
            assert_eq!(disturbed, sets, "{i}: {finding:?}");
        }
        let first = usize::from(i == 1);
        assert_eq!(found.disturbed.len(), 1 + first, "levels with sets");
    }
    // Nothing disturbs: nothing is named.
    let found = found(&machines()[1], Habits::default(), 8);
    for level in &found.disturbed {
        for finding in [&level.per_system_call, &level.per_context_switch, &level.per_second] {
            let disturbed = finding.value().map_or(0, |found| found.disturbed_sets());
            assert_eq!(disturbed, 0, "{finding:?}");
        }
    }
}

#[test]
fn what_is_known_when_it_is_halted_stays() {
    let arrays = &machines()[1];
    let costs = Costs { hit: 4.0, second: 5.0, walk: 33.0 };
    let noise = Noise { sigma: 0.0, bias: 0.0, outliers: 0.0, interrupts: 0.0, grain: 26.0 };
    let levels = TlbLevels { first: geometry(&arrays[0]), second: Some(geometry(&arrays[1])) };
    for most in [0, 5, 40] {
        let mut sim = Sim::new(arrays, BITS, costs, noise, 1);
        let asked = Cell::new(0);
        let halt = || {
            asked.set(asked.get() + 1);
            (asked.get() > most).then_some(Halt::TimeUp)
        };
        let mut bench = ChainBench::new(&mut sim, PageSize::K4, 1, &halt);
        let mut found = TlbEffects::not_asked();
        assert_eq!(measure_effects(&mut bench, &levels, &mut found), Err(Halt::TimeUp));
        assert_eq!(asked.get(), most + 1, "it goes on");
        assert_eq!(found.stores.value().is_some(), most == 40);
        assert!(found.store_level.is_unasked());
        assert!(found.process_switch.is_unasked());
    }
}
