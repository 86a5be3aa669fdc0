//! Models that have the first TLB level in common, and are run together.

use std::ops::ControlFlow;

use lookaside_engine::{run_many, Detail, Engine, PagePolicy, Setup, WalkModel};
use lookaside_machine::{IndexFn, PageSize, Replacement, Tag, Ways};
use lookaside_trace::{Block, Event, Kind, MapSource, Source, TraceError, TraceInfo};
use proptest::prelude::*;

use super::generate::{blocks, columns, ops, setups};
use super::{config, run_twin};

proptest! {
    #![proptest_config(config())]

    /// Models that have the first level in common count what each counts by itself.
    #[test]
    fn a_common_first_level_is_asked_once(
        setup in setups(), ops in ops(500), columns in columns(), cuts in any::<u64>(), dice in any::<u64>(),
        are_forms in any::<bool>(),
    ) {
        let mut setup = Setup { walks: WalkModel::CountOnly, detail: Detail::Totals, locks: Vec::new(), ..setup };
        setup.machine.tlbs.iter_mut().for_each(|tlb| tlb.lockable_entries = 0);
        if are_forms {
            // As `form_group.rs` wants them.
            setup.machine.tlbs.retain(|tlb| tlb.level <= 2);
            setup.machine.tlbs.iter_mut().filter(|tlb| tlb.level > 1).for_each(|tlb| tlb.coalesce_pages = 1);
            for tlb in setup.machine.tlbs.iter_mut().filter(|tlb| !tlb.tags.contains(&Tag::Global)) {
                tlb.tags.push(Tag::Global);
            }
        }
        // More than there are CPUs, each of which has a model that asks.
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let others = (0..cpus + 12).map(|number| other_later_levels(&setup, dice.rotate_left(7 * number as u32)));
        let setups: Vec<Setup> = others.collect();
        let blocks = blocks(&ops, columns, |i| cuts >> (i % 64) & 1 == 1);
        let mut source = GivenBlocks { info: TraceInfo::default(), blocks: blocks.clone().into_iter() };
        let ran = run_many(setups.clone(), &mut source, |_| ControlFlow::Continue(()));
        let ran = ran.map_err(|e| TestCaseError::fail(e.to_string()))?;
        for (setup, outcome) in setups.into_iter().zip(ran.outcomes) {
            let mut engine = Engine::new(setup).map_err(|e| TestCaseError::fail(e.to_string()))?;
            blocks.iter().for_each(|block| engine.run(block));
            prop_assert_eq!(outcome, engine.outcome());
        }
    }
}

/// A page is hit in the first level when its size is decided anew, so that later levels do not see the access.
#[test]
fn what_a_hit_decides_of_a_size_later_levels_know() {
    let start = 1 << 30;
    let map = |addr: u64| {
        let source = MapSource::File { path: "f".into(), offset: 0 };
        Event::Map { addr, len: 4096, prot: 3, source, site: 0 }
    };
    let unmap = |addr: u64| Event::Unmap { addr, len: 4096 };
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    block.events.push((0, map(start + 0x2000)));
    block.push(Kind::Load, start);
    block.events.push((1, map(start + 0x3000)));
    block.push(Kind::Load, start);
    block.events.extend([(2, unmap(start + 0x2000)), (2, unmap(start + 0x3000))]);
    block.push(Kind::Load, start + 0x4000);
    let setup = |ways: u32| {
        let machine = lookaside_machine::preset("skylake").expect("a preset");
        let second_level = [format!("tlb.stlb.ways={ways}"), format!("tlb.stlb.entries={}", 128 * ways)];
        let machine = machine.with_overrides(&second_level).expect("a good machine");
        let mut setup = Setup { walks: WalkModel::CountOnly, detail: Detail::Totals, ..Setup::new(machine) };
        setup.os.pages = PagePolicy::Thp;
        setup
    };
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
    let setups: Vec<Setup> = (1..cpus + 4).map(setup).collect();
    let (_, expected) = run_twin(&setups[0], std::slice::from_ref(&block));
    assert_eq!(expected.data.walks_by_page_size, [(PageSize::K4, 2)]);
    let mut source = GivenBlocks { info: TraceInfo::default(), blocks: vec![block].into_iter() };
    let ran = run_many(setups, &mut source, |_| ControlFlow::Continue(())).expect("good setups");
    for outcome in ran.outcomes {
        assert_eq!(outcome.data, expected.data);
    }
}

/// The setup with other arrays after the first level, where those can be.
fn other_later_levels(setup: &Setup, mut dice: u64) -> Setup {
    let mut other = setup.clone();
    let mut throw = |sides: u64| {
        let side = dice % sides;
        dice /= sides;
        side
    };
    other.machine.tlbs.retain(|tlb| tlb.level == 1 || throw(8) > 0);
    for tlb in other.machine.tlbs.iter_mut().filter(|tlb| tlb.level > 1) {
        let policies = [Replacement::Lru, Replacement::Lru, Replacement::Fifo, Replacement::Random, tlb.replacement];
        tlb.replacement = policies[throw(5) as usize];
        if throw(4) > 0 {
            let (ways, sets) = (1 + throw(7) as u32, 1 << throw(3));
            (tlb.ways, tlb.entries, tlb.index) = (Ways::Count(ways), ways * sets, IndexFn::Linear);
        }
        tlb.hit_cycles = throw(4) as f64;
    }
    other.machine.name = format!("by-{dice}");
    if other.machine.check().is_ok() {
        other
    } else {
        setup.clone()
    }
}

/// Gives blocks that are there.
struct GivenBlocks {
    info: TraceInfo,
    blocks: std::vec::IntoIter<Block>,
}

impl Source for GivenBlocks {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        block.clear();
        Ok(self.blocks.next().map(|next| *block = next).is_some())
    }
}
