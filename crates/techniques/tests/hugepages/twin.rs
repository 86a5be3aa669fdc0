//! A small machine, random programs, and the slow way to everything: a fresh engine run with all rows for each
//! question.

use std::collections::{BTreeMap, BTreeSet};

use lookaside_engine::{Engine, Outcome, PagePolicy, ProcessRange, Setup};
use lookaside_machine::{preset, PageSize};
use lookaside_techniques::hugepages::profile::HugeProfile;
use lookaside_techniques::hugepages::{Window, WINDOW_BYTES};
use lookaside_trace::{Block, Event, Kind, MapSource, MemorySource, TraceInfo};
use proptest::prelude::*;

/// Where the memory of [`programs`] begins: half a window before a border.
pub const BASE: u64 = 64 * WINDOW_BYTES - WINDOW_BYTES / 2;

/// Whole windows in it.
pub const WINDOWS: u64 = 8;

/// A Skylake so small that a dozen base pages, and four huge ones, are too many.
pub fn small() -> Setup {
    let sets = [
        "tlb.l1d-4k.entries=4",
        "tlb.l1d-2m.entries=2",
        "tlb.l1d-2m.ways=2",
        "tlb.stlb.entries=6",
        "tlb.stlb.ways=6",
        "tlb.stlb.index=linear",
    ];
    let sets = sets.map(String::from);
    Setup::new(preset("skylake").and_then(|machine| machine.with_overrides(&sets)).expect("a preset"))
}

/// Of two processes with the same map: a file, memory with [`WINDOWS`] windows and half a one at either end, a stack of
/// one window.
pub fn programs() -> impl Strategy<Value = Vec<Block>> {
    // A few windows are hot: the product of two numbers leans to the low ones.
    let access = (0..WINDOWS + 3, 0..WINDOWS + 3, 0..12u64, 0..3u32)
        .prop_map(|(a, b, page, repeat)| (a * b / (WINDOWS + 3), page * (7 * a + 5) % 512, repeat));
    let block = (1..3u32, prop::collection::vec(access, 1..120));
    prop::collection::vec(block, 1..8).prop_map(|parts| {
        let of_part = |(process, accesses): (u32, Vec<(u64, u64, u32)>)| {
            let mut block = Block { process, thread: process, ..Block::default() };
            for (window, page, repeat) in accesses {
                block.push(
                    if page % 3 == 0 { Kind::Store } else { Kind::Load },
                    BASE - BASE % WINDOW_BYTES + window * WINDOW_BYTES + page * 4096,
                );
                block.repeat.push(repeat);
            }
            block
        };
        let map = |process| {
            let mut block = Block { process, thread: process, ..Block::default() };
            let mapped = |addr, len, source| Event::Map { addr, len, prot: 3, source, site: 0 };
            let file = MapSource::File { path: "/bin/x".into(), offset: 0 };
            block.push_event(mapped(BASE, (WINDOWS + 1) * WINDOW_BYTES, MapSource::Anonymous));
            block.push_event(mapped(BASE + (WINDOWS + 1) * WINDOW_BYTES, WINDOW_BYTES / 4, file));
            block.push_event(mapped(
                BASE + (WINDOWS + 1) * WINDOW_BYTES + WINDOW_BYTES / 2,
                WINDOW_BYTES,
                MapSource::Stack,
            ));
            block
        };
        [map(1), map(2)].into_iter().chain(parts.into_iter().map(of_part)).collect()
    })
}

/// What planning needs.
pub fn profile(setup: &Setup, blocks: &[Block]) -> HugeProfile {
    let mut source = MemorySource::new(TraceInfo::default(), blocks.to_vec());
    HugeProfile::record(&mut source, setup, &mut |_| ()).expect("it runs")
}

/// A plain run with windows huge. A stack is memory like any.
pub fn run(setup: &Setup, blocks: &[Block], huge: &[Window]) -> Outcome {
    let mut setup = setup.clone();
    let range = |window: &Window| ProcessRange {
        process: Some(window.process),
        start: window.addr,
        end: window.addr + WINDOW_BYTES,
    };
    setup.os.pages = PagePolicy::Selective(huge.iter().map(range).collect());
    setup.os.huge_page = Some(PageSize::M2);
    let mut engine = Engine::new(setup).expect("it can be run");
    for block in blocks {
        let mut block = block.clone();
        for (_, event) in &mut block.events {
            if let Event::Map { source, .. } = event {
                if *source == MapSource::Stack {
                    *source = MapSource::Anonymous;
                }
            }
        }
        engine.run(&block);
    }
    engine.outcome()
}

/// Translation cycles of one.
pub fn cycles(setup: &Setup, blocks: &[Block], huge: &[Window]) -> f64 {
    run(setup, blocks, huge).translation_cycles()
}

/// Accesses and touched pages of each window that can be huge: the whole ones of the memory, and the stack's.
pub fn counted(blocks: &[Block]) -> BTreeMap<Window, (u64, u64)> {
    let mut seen: BTreeMap<Window, (u64, BTreeSet<u64>)> = BTreeMap::new();
    let first = BASE + WINDOW_BYTES / 2;
    let stack = first + (WINDOWS + 1) * WINDOW_BYTES;
    for block in blocks {
        for (addr, repeat) in block.addr.iter().zip(&block.repeat) {
            let in_memory = (first..first + WINDOWS * WINDOW_BYTES).contains(addr);
            if in_memory || (stack..stack + WINDOW_BYTES).contains(addr) {
                let window = Window { process: block.process, addr: addr / WINDOW_BYTES * WINDOW_BYTES };
                let counts = seen.entry(window).or_default();
                counts.0 += 1 + u64::from(*repeat);
                counts.1.insert(addr / 4096);
            }
        }
    }
    seen.into_iter().map(|(window, (accesses, pages))| (window, (accesses, pages.len() as u64))).collect()
}
