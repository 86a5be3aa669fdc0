//! Machines that a window of the pages used last is exact for.

use lookaside_engine::{Filter, Outcome, PagePolicy, Setup, WalkModel};
use lookaside_machine::{Full, IndexFn, PageSize, Replacement, Serves, Tlb, Ways};
use lookaside_trace::FilterWindow;
use proptest::prelude::*;

use crate::recorder::RecorderOptions;

/// Lets the machine's first level be what windows are exact for: a small LRU array for data and one for fetches. There
/// are no data caches, which see every access.
pub fn suited(setup: Setup, entries: u32) -> Setup {
    let array =
        LevelArray { entries, ways: Ways::Full(Full::Full), index: IndexFn::Linear, replacement: Replacement::Lru };
    with_arrays(setup, &[vec![Serves::Load, Serves::Store], vec![Serves::Fetch]], &[array.clone(), array])
}

/// The window of one class.
pub fn of(pages: u32) -> FilterWindow {
    FilterWindow { pages, log2_classes: 0, class_pages: pages }
}

/// An array of the first level.
#[derive(Clone, Debug)]
struct LevelArray {
    entries: u32,
    ways: Ways,
    index: IndexFn,
    replacement: Replacement,
}

/// Arrays of the first level, and which accesses each serves.
#[derive(Clone, Debug)]
pub struct FirstLevel {
    serves: Vec<Vec<Serves>>,
    arrays: Vec<LevelArray>,
}

/// Any first level of sets, or now and then of none.
pub fn level() -> impl Strategy<Value = FirstLevel> {
    let (load, store, fetch) = (Serves::Load, Serves::Store, Serves::Fetch);
    let serves = prop_oneof![
        3 => Just(vec![vec![load, store], vec![fetch]]),
        2 => Just(vec![vec![load], vec![store], vec![fetch]]),
        1 => Just(vec![vec![load, store, fetch]]),
    ];
    (serves, proptest::collection::vec(array(), 3))
        .prop_map(|(serves, mut arrays)| {
            arrays.truncate(serves.len());
            FirstLevel { serves, arrays }
        })
        .prop_filter("sets", |level| level.arrays.iter().any(|array| array.ways.sets(array.entries) > 1))
}

fn array() -> impl Strategy<Value = LevelArray> {
    let full = (2..12u32).prop_map(|entries| LevelArray {
        entries,
        ways: Ways::Full(Full::Full),
        index: IndexFn::Linear,
        replacement: Replacement::Lru,
    });
    let of_sets = (any::<bool>(), 1..13u32, 1..7u32, 1..=5u32, 1..=5u32, any::<u64>()).prop_map(
        |(is_tree, tree_ways, ways, log2_sets, plain, word)| {
            let ways = if is_tree { tree_ways } else { ways };
            LevelArray {
                entries: ways << log2_sets,
                ways: Ways::Count(ways),
                index: IndexFn::Masks(masks(log2_sets, plain.min(log2_sets), word)),
                replacement: if is_tree { Replacement::TreePlru } else { Replacement::Lru },
            }
        },
    );
    prop_oneof![1 => full, 5 => of_sets]
}

/// Masks whose sums give the lowest `plain` bits of a page number, and beside them any.
fn masks(log2_sets: u32, plain: u32, word: u64) -> Vec<u64> {
    let mut masks: Vec<u64> = (0..log2_sets).map(|bit| 1 << bit).collect();
    for bit in plain..log2_sets {
        masks[bit as usize] |= (word >> (3 * bit) & 7) << (log2_sets + bit - plain);
    }
    for bit in 1..log2_sets as usize {
        if word >> (40 + bit) & 1 == 1 {
            masks[bit] ^= masks[bit - 1];
        }
    }
    masks
}

/// Lets the machine's first level be of these arrays.
pub fn with_sets(mut setup: Setup, level: &FirstLevel) -> Setup {
    setup.os.pages = PagePolicy::Base;
    with_arrays(setup, &level.serves, &level.arrays)
}

fn with_arrays(mut setup: Setup, serves: &[Vec<Serves>], arrays: &[LevelArray]) -> Setup {
    let machine = &mut setup.machine;
    let mut model = machine.tlbs[0].clone();
    if !model.page_sizes.contains(&PageSize::K4) {
        model.page_sizes.insert(0, PageSize::K4);
    }
    let first = serves.iter().zip(arrays).enumerate().map(|(number, (serves, array))| Tlb {
        name: if number == 0 { model.name.clone() } else { format!("first{number}") },
        serves: serves.clone(),
        entries: array.entries,
        ways: array.ways,
        index: array.index.clone(),
        replacement: array.replacement,
        coalesce_pages: 1,
        directory_entries: false,
        ..model.clone()
    });
    machine.tlbs = first.chain(machine.tlbs.iter().filter(|tlb| tlb.level > 1).cloned()).collect();
    machine.caches.clear();
    machine.walker.first_cache_level = 1;
    setup.locks.retain(|lock| setup.machine.tlbs.iter().any(|tlb| tlb.name == lock.tlb));
    if matches!(setup.walks, WalkModel::AlwaysAt(_)) {
        setup.walks = WalkModel::Full;
    }
    setup
}

/// The filter's window, or a smaller one.
pub fn at_most(filter: &Filter, (pages, classes, of_class): (u32, u32, u32)) -> RecorderOptions {
    let most = filter.window;
    let some = |words: u32, most: u32| if words.is_multiple_of(3) { 1 + words / 3 % most } else { most };
    let window = FilterWindow {
        pages: some(pages, most.pages),
        log2_classes: some(classes, most.log2_classes),
        class_pages: some(of_class, most.class_pages),
    };
    RecorderOptions { window, stores_apart: filter.stores_apart, unified: filter.unified }
}

/// Repeats count as the kind of the access that brought their page in.
pub fn whatever_kind(mut outcome: Outcome, unified: bool) -> Outcome {
    (outcome.loads, outcome.stores) = (outcome.loads + outcome.stores, 0);
    if unified {
        outcome.loads += std::mem::take(&mut outcome.instructions);
        outcome.data.accesses += std::mem::take(&mut outcome.fetch.accesses);
        outcome.data.cost.tlb_hit_cycles += std::mem::take(&mut outcome.fetch.cost.tlb_hit_cycles);
    }
    outcome
}

/// Repeats that come as an event are never a locked entry's hits; credited to the access that they repeat, they may be.
pub fn whatever_lock(outcome: &mut Outcome) {
    outcome.tlbs.iter_mut().for_each(|tlb| tlb.locked_hits = 0);
}
