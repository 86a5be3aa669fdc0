//! A trace with a helper beside it and without: what is baked, and that neither run is touched by how they are run.

use std::ops::ControlFlow;

use lookaside_engine::{run_source, Detail, Outcome, RunEnd, Setup};
use lookaside_techniques::bake::*;
use lookaside_trace::{Block, Event, Kind, MapSource, Source, TraceError, TraceInfo};
use proptest::prelude::*;

use crate::twin::BASE;
use crate::{bakers, bytes, setup, small, Blocks, CHAINED};

/// Blocks of several processes and threads, with events and left-out repeats.
fn blocks() -> impl Strategy<Value = Blocks> {
    let access = (0..3000u64, 0..64u64, 0..3u8, 0..4u32);
    let event = (0..9u8, 0..3000u64, 1..900u64);
    let block =
        (1..3u32, 1..3u32, prop::collection::vec(access, 0..80), prop::collection::vec((0..80u32, event), 0..4));
    prop::collection::vec(block, 1..12).prop_map(|all| {
        let mut blocks = Blocks::default();
        for (process, thread, accesses, events) in all {
            let mut block = Block { process, thread, ..Block::default() };
            for (page, line, kind, repeat) in accesses {
                block.push([Kind::Load, Kind::Store, Kind::Fetch][kind as usize], BASE + page * 4096 + line * 64);
                block.repeat.push(repeat);
            }
            let len = block.len() as u32;
            block.events = events.into_iter().map(|(at, event)| (at.min(len), happens(event))).collect();
            block.events.sort_by_key(|of| of.0);
            if !block.is_empty() {
                blocks.blocks.push_back(block);
            }
        }
        blocks
    })
}

fn happens((what, page, pages): (u8, u64, u64)) -> Event {
    let (addr, len) = (BASE + page * 4096, pages * 4096);
    match what {
        0..=4 => Event::Map { addr, len, prot: 3, source: MapSource::named("table"), site: 0 },
        5 | 6 => Event::Unmap { addr, len },
        7 => Event::Fork { parent: 1, child: 2 },
        _ => Event::ContextSwitch { cpu: (page % 3) as u32 },
    }
}

fn plain(setup: &Setup, blocks: &Blocks) -> Outcome {
    let setup = Setup { detail: Detail::Totals, ..setup.clone() };
    let ran = run_source(setup, &mut blocks.clone(), |_| ControlFlow::Continue(())).expect("it runs");
    ran.outcomes.into_iter().next().expect("an outcome")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn without_a_helper_it_is_the_plain_run(blocks in blocks()) {
        let base = model(setup(small()), &mut blocks.clone(), &CHAINED, None, &[]);
        let base = base.map_err(|e| TestCaseError::fail(e.to_string()))?;
        let plain = plain(&setup(small()), &blocks);
        prop_assert_eq!(base.program_cycles, plain.modelled_cycles());
        prop_assert_eq!(base.program, plain);
    }

    /// Another process's tables and data, in a cache with room for all: the program is as without a helper, to the last
    /// count.
    #[test]
    fn a_helper_that_takes_nothing_away_changes_nothing(blocks in blocks(), baker in bakers()) {
        let setup = setup(small().with_overrides(&["cache.l3.size=64M".into()]).expect("a machine"));
        let mut blocks = blocks;
        for block in &mut blocks.blocks {
            block.process = 1; // of two threads, on the first core
            block.events.retain(|(_, event)| !matches!(event, Event::ContextSwitch { .. } | Event::Fork { .. }));
        }
        let baker = ModelledBaker { process: 99, placement: HelperPlacement::OtherCore, ..baker };
        let baked = model(setup.clone(), &mut blocks.clone(), &CHAINED, Some(&baker), &[]);
        let mut baked = baked.map_err(|e| TestCaseError::fail(e.to_string()))?;
        let plain = plain(&setup, &blocks);
        prop_assert_eq!(baked.program_cycles, plain.modelled_cycles());
        // These are everyone's.
        baked.program.pages_touched = plain.pages_touched.clone();
        (baked.program.loads, baked.program.stores, baked.program.instructions) =
            (plain.loads, plain.stores, plain.instructions);
        prop_assert_eq!(baked.program, plain);
    }

    #[test]
    fn side_by_side_is_one_by_one(blocks in blocks(), baker in bakers()) {
        let both = compare_baked(&[(setup(small()), baker.clone())], &mut blocks.clone(), &CHAINED, |_| {
            ControlFlow::Continue(())
        });
        let both = both.map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert!(matches!(both.end, RunEnd::Complete));
        let alone = |baker| model(setup(small()), &mut blocks.clone(), &CHAINED, baker, &[]).expect("it runs");
        prop_assert_eq!(&both.pairs, &vec![BakePair { base: alone(None), baked: alone(Some(&baker)) }]);
    }

    /// Against granules of 128 KiB, one by one.
    #[test]
    fn what_is_found_is_what_is_touched_of_large_mappings(
        steps in prop::collection::vec((0..4u8, 0..160u64, 1..80u64, prop::collection::vec(0..160u64, 0..12)), 0..12),
    ) {
        const GRANULE: u64 = 128 << 10;
        let mut blocks = Blocks::default();
        let (mut names, mut touched) = ([None; 240], [false; 15]);
        for (number, (what, at, granules, touches)) in steps.iter().enumerate() {
            let mut block = Block { process: 5, thread: 1, ..Block::default() };
            let (addr, len) = (BASE + at * GRANULE, granules * GRANULE);
            let name = ["a", "b"][number % 2];
            match what {
                0 | 1 => block.push_event(Event::Map { addr, len, prot: 3, source: MapSource::named(name), site: 0 }),
                2 => block.push_event(Event::Map { addr, len, prot: 0, source: MapSource::named("none"), site: 0 }),
                _ => block.push_event(Event::Unmap { addr, len }),
            }
            let range = *at as usize..(at + granules) as usize;
            match what {
                0 | 1 => names[range].fill(Some(name)),
                2 => names[range].fill(None),
                _ => {}
            }
            for &touch in touches {
                block.push(Kind::Load, BASE + touch * GRANULE + 8);
                touched[touch as usize / 16] = true;
            }
            blocks.blocks.push_back(block);
        }
        // Without a mapping there is nothing of the map.
        let is_mapped = steps.iter().any(|step| step.0 < 3);
        let baked = |i: usize| (!is_mapped || names[i].is_some()) && touched[i / 16];
        let mut expected = [false; 240];
        let mut i = 0;
        while i < 240 {
            // A gap of one granule is near, one of two is not.
            let mut end = i;
            while end < 240 && (baked(end) || end + 1 < 240 && end > i && baked(end + 1)) {
                end += 1;
            }
            let span: Vec<usize> = (i..end).filter(|&i| baked(i)).collect();
            if span.len() >= 32 {
                span.iter().for_each(|&i| expected[i] = true);
            }
            i = end + 1;
        }
        let found = find_targets(&mut blocks, || true);
        let mut actual = [false; 240];
        for region in found.iter().flat_map(|found| &found.regions) {
            for at in (region.range.start - BASE) / GRANULE..(region.range.end - BASE) / GRANULE {
                actual[at as usize] = true;
                if let Some(name) = names[at as usize] {
                    prop_assert_eq!(&region.name, &format!("[anon:{name}]"));
                }
            }
        }
        prop_assert_eq!(actual.to_vec(), expected.to_vec());
        prop_assert_eq!(found.is_none(), expected.iter().all(|baked| !baked));
    }
}

#[test]
fn the_process_with_the_most_is_baked() {
    let mut blocks = Blocks::default();
    for (process, megabytes) in [(3, 8), (4, 16), (5, 2)] {
        let mut block = Block { process, thread: process, ..Block::default() };
        let (addr, len) = (BASE, megabytes << 20);
        block.push_event(Event::Map { addr, len, prot: 3, source: MapSource::Heap, site: 0 });
        (0..megabytes).for_each(|at| block.push(Kind::Load, BASE + (at << 20)));
        // The kernel's half is nobody's to bake.
        block.push(Kind::Load, u64::MAX - 4095);
        blocks.blocks.push_back(block);
    }
    let region = TargetRegion { name: "[heap]".into(), range: BASE..BASE + (16 << 20) };
    let found = BakeTargets { process: 4, regions: vec![region], processes: 3, threads: 3 };
    assert_eq!(find_targets(&mut blocks.clone(), || true), Some(found));
    assert_eq!(find_targets(&mut blocks.clone(), || false), None);
}

/// After exec nothing of the program before is left; a child begins with its parent's.
#[test]
fn exec_begins_anew_and_fork_goes_on() {
    let mut blocks = Blocks::default();
    let mut parent = Block { process: 1, thread: 1, ..Block::default() };
    parent.push_event(Event::Map { addr: BASE, len: 8 << 20, prot: 3, source: MapSource::Heap, site: 0 });
    (0..4).for_each(|at| parent.push(Kind::Store, BASE + (at << 21)));
    parent.push_event(Event::Fork { parent: 1, child: 2 });
    parent.push_event(Event::Exec { path: "/bin/true".into() });
    parent.push(Kind::Load, BASE);
    blocks.blocks.push_back(parent);
    let mut child = Block { process: 2, thread: 2, ..Block::default() };
    child.push(Kind::Load, BASE);
    blocks.blocks.push_back(child);
    let found = find_targets(&mut blocks, || true).expect("the child's heap");
    assert_eq!((found.process, found.ranges()), (2, std::iter::once(BASE..BASE + (8 << 20)).collect()));
}

/// Blocks, and then an error.
struct Torn(Blocks);

impl Source for Torn {
    fn info(&self) -> &TraceInfo {
        self.0.info()
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        match self.0.next_block(block)? {
            true => Ok(true),
            false => Err(TraceError::Format { what: "it".into(), place: "here".into(), reason: "torn".into() }),
        }
    }
}

#[test]
fn a_comparison_says_how_far_it_is_and_why_it_ends() {
    let mut blocks = Blocks::new(&[(1, 0, false), (2, 0, false), (3, 0, true), (4, 0, false), (5, 0, false)], 2);
    blocks.blocks[1].repeat = vec![10, 0];
    let baker = ModelledBaker::new(TouchMethod::Entries, 1, bytes(4096));
    let runs = [(setup(small()), baker.clone()), (setup(small()), ModelledBaker { stride_pages: 1, ..baker.clone() })];
    let compare = |source: &mut dyn Source, most: usize| {
        let mut seen = Vec::new();
        let compared = compare_baked(&runs, source, &CHAINED, |accesses| {
            seen.push(accesses);
            if seen.len() == most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let compared = compared.expect("it runs");
        let accesses: Vec<u64> = compared.pairs.iter().map(|pair| pair.base.program.data.accesses).collect();
        (seen, accesses, compared.end)
    };
    let (seen, accesses, end) = compare(&mut blocks.clone(), 9);
    assert_eq!((seen, accesses), (vec![2, 14, 15], vec![15; 2]));
    assert!(matches!(end, RunEnd::Complete));
    let (seen, accesses, end) = compare(&mut blocks.clone(), 2);
    assert_eq!((seen, accesses), (vec![2, 14], vec![14; 2]));
    assert!(matches!(end, RunEnd::Stopped));
    let (seen, accesses, end) = compare(&mut Torn(blocks.clone()), 9);
    assert_eq!((seen, accesses), (vec![2, 14, 15], vec![15; 2]));
    assert!(matches!(end, RunEnd::Unreadable(error) if error.to_string() == "it: here: torn"));
    let idle = ModelledBaker { regions: Vec::new(), ..baker };
    let error = compare_baked(&[(setup(small()), idle)], &mut blocks, &CHAINED, |_| ControlFlow::Continue(()));
    assert!(matches!(error, Err(BakeModelError::NoPages)));
}

/// A block of a process that maps so many bytes at an address, and touches each page's second byte.
fn heap(process: u32, addr: u64, len: u64) -> Block {
    let mut block = Block { process, thread: process, ..Block::default() };
    block.push_event(Event::Map { addr, len, prot: 3, source: MapSource::Anonymous, site: 0 });
    (0..len / 4096).for_each(|page| block.push(Kind::Load, addr + page * 4096 + 1));
    block
}

fn found(blocks: &[Block]) -> Option<(u32, Vec<std::ops::Range<u64>>)> {
    let mut source = Blocks { blocks: blocks.to_vec().into(), ..Blocks::default() };
    find_targets(&mut source, || true).map(|found| (found.process, found.ranges()))
}

#[test]
fn of_two_processes_the_one_with_more_bytes_is_baked_wherever_they_lie() {
    let (high, big) = (BASE << 10, 12 << 20);
    let one = |addr: u64, len: u64| std::iter::once(addr..addr + len).collect::<Vec<_>>();
    for [low_len, high_len] in [[big, big - 4096], [big, big]] {
        assert_eq!(found(&[heap(3, BASE, low_len), heap(4, high, high_len)]), Some((3, one(BASE, big))));
    }
    assert_eq!(found(&[heap(3, BASE, big - 4096), heap(4, high, big)]), Some((4, one(high, big))));
    // The upper half is the kernel's.
    assert_eq!(found(&[heap(3, u64::MAX << 47, big)]), None);
}

#[test]
fn where_no_mapping_is_known_what_is_touched_is_baked() {
    let touches = |pages: u64| {
        let mut block = heap(3, BASE, pages * 4096);
        block.events.clear();
        block
    };
    let mut source = Blocks { blocks: [touches(513)].into(), ..Blocks::default() };
    let region = TargetRegion { name: "touched".into(), range: BASE..BASE + (4 << 20) };
    assert_eq!(find_targets(&mut source, || true).map(|found| found.regions), Some(vec![region]));
    assert_eq!(found(&[touches(512)]), None);
    // A mapping elsewhere says that nothing is here.
    assert_eq!(found(&[touches(513), heap(3, BASE << 10, 4096)]), None);
}
