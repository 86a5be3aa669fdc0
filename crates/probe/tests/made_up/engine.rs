//! The TLBs of the machines that tests make up are the engine's: the same misses, to the access.

use crate::sim::{Array, Tlbs};
use lookaside_engine::{Detail, Engine, Setup, WalkModel};
use lookaside_machine::{
    preset, Full, IndexFn, Machine, Memory, PageSize, PageTable, Replacement, Serves, Tag, Tlb, Topology, Walker, Ways,
    MAX_UNEVEN_TREE_WAYS,
};
use lookaside_probe::gf2;
use lookaside_trace::{Block, Kind};
use proptest::prelude::*;

fn machine(arrays: &[Array]) -> Machine {
    let tlb = |(i, array): (usize, &Array)| Tlb {
        name: format!("l{}", i + 1),
        level: i as u32 + 1,
        serves: vec![Serves::Load, Serves::Store],
        page_sizes: vec![PageSize::K4],
        entries: array.sets * array.ways,
        ways: if array.sets == 1 { Ways::Full(Full::Full) } else { Ways::Count(array.ways) },
        index: IndexFn::Masks(array.masks.clone()),
        replacement: array.replacement,
        tags: vec![Tag::Asid],
        lockable_entries: 0,
        coalesce_pages: 1,
        directory_entries: false,
        hit_cycles: 0.0,
        shared_by: Default::default(),
    };
    let like = preset("skylake").expect("a preset");
    Machine {
        name: "sim".into(),
        description: String::new(),
        sources: Vec::new(),
        clock_mhz: 1000.0,
        topology: Topology::default(),
        page_table: PageTable { format: like.page_table.format, host: None },
        walker: Walker::default(),
        tlbs: arrays.iter().enumerate().map(tlb).collect(),
        walk_caches: Vec::new(),
        caches: Vec::new(),
        memory: Memory { cycles: 100.0, bytes_per_second: None },
        context_switch: Default::default(),
        stream: None,
        disturbances: Vec::new(),
        timing: None,
        origins: Default::default(),
        not_determined: Vec::new(),
    }
}

/// Misses of the first level and of all after each of these chains, walked so many times.
fn by_engine(arrays: &[Array], seed: u64, chains: &[(Vec<u64>, usize)]) -> Vec<(u64, u64)> {
    let mut setup = Setup::new(machine(arrays));
    setup.detail = Detail::Totals;
    setup.walks = WalkModel::CountOnly;
    setup.seed = seed;
    let mut engine = Engine::new(setup).expect("a possible machine");
    let walked = |(pages, rounds): &(Vec<u64>, usize)| {
        let mut block = Block { process: 1, thread: 1, ..Block::default() };
        for page in pages.iter().cycle().take(pages.len() * rounds) {
            block.push(Kind::Load, page << 12);
        }
        engine.run(&block);
        let cost = engine.outcome().data.cost;
        (cost.l1_misses, cost.walks)
    };
    chains.iter().map(walked).collect()
}

fn array(most_entries: u32) -> impl Strategy<Value = Array> {
    let replacement =
        prop::sample::select(vec![Replacement::Lru, Replacement::Fifo, Replacement::Random, Replacement::TreePlru]);
    let rows = prop::collection::vec(1u64..1 << 12, 0..6);
    (replacement, rows, 1..=most_entries).prop_map(move |(replacement, rows, entries)| {
        let masks = gf2::reduce(&rows);
        let ways = (entries >> masks.len()).clamp(1, 128);
        let has_tree = ways <= MAX_UNEVEN_TREE_WAYS || ways.is_power_of_two();
        let ways = if replacement == Replacement::TreePlru && !has_tree { 1 << ways.ilog2() } else { ways };
        Array { sets: 1 << masks.len(), ways, masks, replacement }
    })
}

/// Chains that fit and that do not, and pages that come once.
fn chains() -> impl Strategy<Value = Vec<(Vec<u64>, usize)>> {
    let near = prop::collection::vec(0u64..1 << 7, 1..150);
    let far = prop::collection::vec(0u64..1 << 33, 1..40);
    prop::collection::vec((prop_oneof![near, far], 1usize..6), 1..12)
}

proptest! {
    #[test]
    fn misses_are_the_engines(one in array(64), two in array(512), levels in 1usize..3, seed: u64, chains in chains()) {
        let arrays = &[one, two][..levels];
        let mut tlbs = Tlbs::new(arrays, seed);
        let walked = chains.iter().map(|(pages, rounds)| {
            tlbs.walk(pages, *rounds);
            tlbs.misses()
        });
        let walked: Vec<_> = walked.collect();
        prop_assert_eq!(walked, by_engine(arrays, seed, &chains));
    }
}
