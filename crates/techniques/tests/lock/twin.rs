//! Small machines, random programs, and the slow way to everything: a fresh engine run with all rows for each question.

use std::collections::BTreeMap;

use lookaside_engine::{Engine, LockedPage, Outcome, Setup};
use lookaside_machine::preset;
use lookaside_techniques::lock::histogram::LockPage;
use lookaside_techniques::lock::profile::LockProfile;
use lookaside_trace::{Block, Event, Kind, MapSource, MemorySource, TraceInfo};
use proptest::prelude::*;

/// Where the pages of [`programs`] lie.
pub const BASE: u64 = 0x1000_0000;

/// Seeds of a plan.
pub const SEEDS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// A Cortex-A9 so small that a dozen pages are too many.
pub fn small(replacement: &str, lockable: u32) -> Setup {
    let sets = [
        "tlb.micro-d.entries=2".to_string(),
        "tlb.micro-i.entries=2".into(),
        "tlb.micro-d.hit_cycles=1.5".into(), // which is no stall
        "tlb.main.entries=4".into(),
        format!("tlb.main.replacement={replacement}"),
        format!("tlb.main.lockable_entries={lockable}"),
        "cache.l1d-cache.size=1K".into(),
        "cache.l2.size=2K".into(),
    ];
    Setup::new(preset("cortex-a9").and_then(|machine| machine.with_overrides(&sets)).expect("a preset"))
}

/// Kind, address, repeats.
type Accessed = (Kind, u64, u32);

/// Of two processes with pages below one another's numbers, some of the kernel, with left-out repeats.
pub fn programs(pages: u64) -> impl Strategy<Value = Vec<Block>> {
    let kinds = prop_oneof![3 => Just(Kind::Load), 1 => Just(Kind::Store), 1 => Just(Kind::Fetch)];
    // A few pages are hot: the product of two numbers leans to the low ones.
    let access = (kinds, 0..pages, 0..pages, 0..12u32, 0..3u32).prop_map(move |(kind, a, b, where_to, repeat)| {
        let page = a * b / pages;
        let base = if where_to == 0 { 0xc000_0000 } else { BASE };
        (kind, base + page * 4096 + a * 64, repeat)
    });
    let block = (1..3u32, prop::collection::vec(access, 1..60));
    prop::collection::vec(block, 1..8).prop_map(|parts| {
        let of_part = |(number, (process, accesses)): (usize, (u32, Vec<Accessed>))| {
            let mut block = Block { process, thread: process, ..Block::default() };
            if number == 0 {
                let source = MapSource::File { path: "/bin/x".into(), offset: 0 };
                block.push_event(Event::Map { addr: BASE, len: 1 << 20, prot: 7, source, site: 0 });
            }
            for (kind, addr, repeat) in accesses {
                block.push(kind, addr);
                block.repeat.push(repeat);
            }
            let (addr, kind) = (block.addr[0], block.kind[0]);
            block.push_event(Event::Repeats { addr, kind, count: 3 });
            block
        };
        parts.into_iter().enumerate().map(of_part).collect()
    })
}

/// The histogram and what to try locks on.
pub fn profile(setup: &Setup, blocks: &[Block]) -> LockProfile {
    let mut source = MemorySource::new(TraceInfo::default(), blocks.to_vec());
    LockProfile::record(&mut source, setup, "main", &mut |_| ()).expect("it runs")
}

/// A plain run with pages locked.
pub fn run(setup: &Setup, blocks: &[Block], locked: &[LockPage], seed: u64) -> Outcome {
    let mut setup = setup.clone();
    setup.seed = seed;
    let lock = |page: &LockPage| LockedPage { tlb: "main".into(), process: Some(page.process), addr: page.vpn * 4096 };
    setup.locks = locked.iter().map(lock).collect();
    let mut engine = Engine::new(setup).expect("it can be run");
    blocks.iter().for_each(|block| engine.run(block));
    engine.outcome()
}

/// Stall cycles of a plain run: what its threads' rows say, which leave out hits of the first level.
pub fn stall(outcome: &Outcome) -> f64 {
    outcome.threads.iter().map(|thread| thread.cost.cycles()).sum()
}

/// By seeds.
pub fn stalls(setup: &Setup, blocks: &[Block], locked: &[LockPage]) -> Vec<f64> {
    SEEDS.iter().map(|&seed| stall(&run(setup, blocks, locked, seed))).collect()
}

/// Mean of some.
pub fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

/// Worst of some.
pub fn worst(of: &[f64]) -> f64 {
    of.iter().copied().fold(0.0, f64::max)
}

/// By page: data accesses, fetches; counted one by one.
pub fn counted(blocks: &[Block]) -> BTreeMap<LockPage, (u64, u64)> {
    let mut counts = BTreeMap::new();
    let mut count = |process, addr: u64, kind, times: u64| {
        let page = LockPage { process, vpn: addr / 4096 };
        let (data, fetch): &mut (u64, u64) = counts.entry(page).or_default();
        *(if kind == Kind::Fetch { fetch } else { data }) += times;
    };
    for block in blocks {
        for i in 0..block.len() {
            count(block.process, block.addr[i], block.kind[i], 1 + u64::from(block.repeat[i]));
        }
        for (_, event) in &block.events {
            if let Event::Repeats { addr, kind, count: times } = event {
                count(block.process, *addr, *kind, *times);
            }
        }
    }
    counts
}
