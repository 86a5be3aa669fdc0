//! Threads on other CPUs of made-up machines: whether they use the entries of this one is told, by timing and by a
//! counter.

use crate::sim::{Array, Costs, Habits, Noise, Other, Sim};
use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::effects::{measure_sharing, EntryOwnership, TlbSharing};
use lookaside_probe::{ChainBench, CountedMisses, Finding, Geometry, OtherCpu, PmuEvent, TlbLevels};

const CPU: usize = 3;

/// What is found on a machine of these arrays, beside a thread that does this.
fn found(arrays: &[Array; 2], other: Other, counter: Option<&PmuEvent>, seed: u64) -> Finding<TlbSharing> {
    let costs = Costs { hit: 4.0, second: 6.0, walk: 30.0 };
    // The grain of Zen's timer.
    let noise = Noise { sigma: 0.005, bias: 0.001, outliers: 0.03, interrupts: 0.005, grain: 26.0 };
    let mut metal = Sim::new(arrays, 28, costs, noise, seed);
    let cpu = OtherCpu { number: CPU, sibling: Some(true) };
    metal.habits = Habits { cpus: vec![(cpu, other)], ..Habits::default() };
    let [first, second] = arrays.each_ref().map(|array| Geometry {
        entries: array.sets * array.ways,
        ways: array.ways,
        sets: array.sets,
        masks: array.masks.clone(),
    });
    let levels = TlbLevels { first, second: Some(second) };
    let mut bench = ChainBench::new(&mut metal, PageSize::K4, seed, &|| None);
    measure_sharing(&mut bench, &levels, CPU, counter).expect("nothing halts it")
}

/// A small one of the thesis's kind, one with a folded index, and one that replaces at random.
fn machines() -> [[Array; 2]; 3] {
    let folded = |sets_log2: u32, ways, replacement| Array {
        sets: 1 << sets_log2,
        ways,
        masks: (0..sets_log2).map(|bit| 1 << bit | 1 << (bit + sets_log2)).collect(),
        replacement,
    };
    [
        [Array::linear(0, 16, Replacement::Lru), Array::linear(5, 16, Replacement::Lru)],
        [Array::linear(2, 4, Replacement::Lru), folded(5, 8, Replacement::TreePlru)],
        [Array::linear(2, 4, Replacement::Lru), folded(6, 6, Replacement::Random)],
    ]
}

const ANSWERS: [(Other, EntryOwnership); 4] = [
    (Other::Apart, EntryOwnership::Apart),
    (Other::Tagged, EntryOwnership::Tagged),
    (Other::Shared, EntryOwnership::Shared),
    (Other::Halves, EntryOwnership::Partitioned),
];

#[test]
fn whose_the_entries_are_is_told_by_timing() {
    for (i, arrays) in machines().iter().enumerate() {
        for (other, entries) in ANSWERS {
            let found = found(arrays, other, None, 1 + i as u64);
            let sharing = found.value().unwrap_or_else(|| panic!("machine {i}, {other:?}: {found:?}"));
            assert_eq!((sharing.entries, sharing.counter), (entries, None), "machine {i}, {other:?}: {found:?}");
        }
    }
}

#[test]
fn and_by_a_counter() {
    let walks = PmuEvent { name: "walks", code: 1, counts: CountedMisses::Walks, source: "this test" };
    for (i, arrays) in machines().iter().enumerate() {
        for (other, entries) in ANSWERS {
            let found = found(arrays, other, Some(&walks), 1 + i as u64);
            let sharing = found.value().unwrap_or_else(|| panic!("machine {i}, {other:?}: {found:?}"));
            assert_eq!(
                (sharing.entries, sharing.counter),
                (entries, Some("walks")),
                "machine {i}, {other:?}: {found:?}"
            );
        }
    }
}
