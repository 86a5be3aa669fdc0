//! The helper beside a program, against a slow twin; and what it can't be told to do.

mod beside;
mod twin;

use lookaside_engine::{FrameLayout, PagePolicy, Setup};
use lookaside_machine::{preset, FilledBy, Machine, Serves, SharedBy};
use lookaside_techniques::bake::*;
use lookaside_timing::{AddressFlow, CoreParameters, FlowRegister};
use lookaside_trace::{Block, Event, Kind, MapSource, Source, TraceError, TraceInfo};
use proptest::prelude::*;

use twin::{twin, BASE};

/// Blocks, one after the other.
#[derive(Clone, Debug, Default)]
struct Blocks {
    info: TraceInfo,
    blocks: std::collections::VecDeque<Block>,
}

impl Blocks {
    /// Accesses to these pages' lines (page, line, is a store), in blocks of so many.
    fn new(accesses: &[(u64, u64, bool)], a_block: usize) -> Self {
        let mut blocks = Self::default();
        for part in accesses.chunks(a_block) {
            let mut block = Block { process: 1, thread: 1, ..Block::default() };
            for &(page, line, store) in part {
                block.push(if store { Kind::Store } else { Kind::Load }, BASE + page * 4096 + line * 64);
            }
            blocks.blocks.push_back(block);
        }
        blocks
    }
}

impl Source for Blocks {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        *block = self.blocks.pop_front().unwrap_or_default();
        Ok(!block.is_empty())
    }
}

/// So small that a few pages fill it.
fn small() -> Machine {
    let sizes = ["tlb.l1d.entries=4", "tlb.l2d.entries=16", "tlb.l2d.ways=4", "tlb.l2d.coalesce_pages=1"];
    let caches = ["cache.l1d-cache.size=1K", "cache.l2.size=2K", "cache.l3.size=16K", "walk_cache.pde.entries=2"];
    let sets: Vec<String> = sizes.iter().chain(&caches).map(|set| (*set).into()).collect();
    preset("ryzen-5900x").and_then(|machine| machine.with_overrides(&sets)).expect("a preset")
}

fn setup(machine: Machine) -> Setup {
    let mut setup = Setup::new(machine);
    setup.os.frames = FrameLayout::Random;
    setup
}

fn bakers() -> impl Strategy<Value = ModelledBaker> {
    let ways = prop_oneof![Just(TouchMethod::Load), Just(TouchMethod::Prefetch), Just(TouchMethod::Entries)];
    let places = prop_oneof![Just(HelperPlacement::OtherCore), Just(HelperPlacement::SmtSibling)];
    let region = (0..3000u64, 1..2000u64, 0..4096u64);
    let regions = prop::collection::vec(region, 1..3);
    let pace = (1..40u32, 0..3u32, 1..30u32);
    (ways, places, regions, 1..12u64, (0..200u64, 0..20_000u32), pace).prop_map(
        |(way, placement, regions, stride_pages, (nops, sleep), (touch, nop, in_flight))| ModelledBaker {
            placement,
            stride_pages,
            nops,
            sleep_cycles: f64::from(sleep),
            pace: TouchCost { touch_cycles: touch.into(), nop_cycles: nop.into(), in_flight: in_flight.into() },
            ..ModelledBaker::new(
                way,
                1,
                regions.iter().map(|r| BASE + r.0 * 4096 + r.2..BASE + (r.0 + r.1) * 4096 + r.2).collect(),
            )
        },
    )
}

/// Where each of so many addresses comes from.
fn flows(accesses: usize) -> impl Strategy<Value = Vec<AddressFlow>> {
    let register = |number: u8| if number == 0 { FlowRegister::NONE } else { FlowRegister::new(number) };
    let flow =
        (0..4u8, 0..4u8).prop_map(move |(from, into)| AddressFlow { from: register(from), into: register(into) });
    prop::collection::vec(flow, accesses)
}

fn stressors() -> impl Strategy<Value = Stressor> {
    prop_oneof![
        (1..40_000u64).prop_map(|bytes| Stressor::Walk { bytes }),
        (1..40_000u64).prop_map(|bytes| Stressor::Random { bytes })
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_model_is_its_twin(
        baker in prop::option::of(bakers()),
        accesses in prop::collection::vec((0..4000u64, 0..64u64, any::<bool>()), 1..400),
        (a_block, warm, knows) in (1..500usize, 0..300u64, any::<bool>()),
        // Quarters: sums of these are exact.
        (flows, quarters) in (flows(400), 4..40u32),
        nested in any::<bool>(),
        again in 1..4u64,
        stressors in prop::collection::vec(stressors(), 0..3),
    ) {
        // Pages that come again, now and then.
        let accesses: Vec<_> = accesses.iter().map(|&(page, line, store)| (page % (1000 * again), line, store)).collect();
        let mut machine = small();
        if nested {
            machine.page_table.host = Some(lookaside_machine::HostTable {
                format: lookaside_machine::TableFormat::X86_64L4,
                page_size: lookaside_machine::PageSize::K4,
                memory_bits: Some(30),
            });
        }
        // Of the last block nothing is said.
        let mut flows: Vec<_> = accesses.chunks(a_block).zip(flows.chunks(a_block)).map(|both| both.1.to_vec()).collect();
        flows.last_mut().expect("a block").clear();
        let core = CoreParameters { window: 40, ..CoreParameters::ZEN3 };
        let flow = match knows {
            true => ProgramFlow::Known { core, flows: &flows, instructions_per_access: f64::from(quarters) / 4.0 },
            false => ProgramFlow::Chained,
        };
        let program = BakedProgram { warm_accesses: warm, flow };
        let blocks = Blocks::new(&accesses, a_block);
        let found = model(setup(machine.clone()), &mut blocks.clone(), &program, baker.as_ref(), &stressors);
        let found = found.map_err(|e| TestCaseError::fail(e.to_string()))?;
        let expected = twin(&machine, &blocks.blocks, &program, baker.as_ref(), &stressors);
        prop_assert_eq!(twin::Summary::of(&found), expected);
    }
}

/// One region of so many bytes.
fn bytes(len: u64) -> Vec<std::ops::Range<u64>> {
    std::iter::once(BASE..BASE + len).collect()
}

const CHAINED: BakedProgram<'_> = BakedProgram { warm_accesses: 0, flow: ProgramFlow::Chained };

/// Every page of so many, twice.
fn sweep(pages: u64) -> Blocks {
    let accesses: Vec<_> = (0..2 * pages).map(|i| (i * 17 % pages, i % 64, false)).collect();
    Blocks::new(&accesses, 100)
}

#[test]
fn kernel_level_baking_keeps_tables_that_fit_and_touches_no_data() {
    let baker = ModelledBaker::new(TouchMethod::Entries, 1, bytes(1000 * 4096));
    let run = |baker| model(setup(small()), &mut sweep(1000), &CHAINED, baker, &[]).expect("it runs");
    let (base, baked) = (run(None), run(Some(&baker)));
    // 1000 pages' leaf entries are 125 lines, of 256 in L3.
    assert!(base.program.data.cost.walk_references_memory > 500, "{:?}", base.program.data.cost);
    let left = baked.program.data.cost.walk_references_memory;
    assert!(left * 20 < base.program.data.cost.walk_references_memory, "{left}");
    assert_eq!(baked.program.data.cost.walks, base.program.data.cost.walks);
    assert!(baked.program_cycles < base.program_cycles);
    let helper = baked.helper.expect("there is one");
    assert_eq!((helper.outcome.data.accesses, helper.outcome.data.cost.walks), (0, 0));
    assert!(helper.rounds > 10 && helper.touches >= 125 * helper.rounds, "{helper:?}");
}

#[test]
fn entries_of_huge_pages_are_in_the_directory() {
    let mut setup = setup(small());
    setup.os.pages = PagePolicy::Thp;
    let (pages, len) = (64 * 512, 64 << 21);
    let mut source = Blocks::new(&[], 1);
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    block.push_event(Event::Map { addr: BASE, len, prot: 3, source: MapSource::Anonymous, site: 0 });
    (0..4000u64).for_each(|i| block.push(Kind::Load, BASE + i * 7919 % pages * 4096));
    source.blocks.push_back(block);
    let baker = ModelledBaker { stride_pages: 512, ..ModelledBaker::new(TouchMethod::Entries, 1, bytes(len)) };
    let baked = model(setup, &mut source, &BakedProgram { warm_accesses: 2000, ..CHAINED }, Some(&baker), &[])
        .expect("it runs");
    let helper = baked.helper.expect("there is one");
    // 64 entries in 8 lines, and one above them: all stay in its first cache.
    let first = &helper.outcome.caches[0];
    assert_eq!(first.name, "l1d-cache");
    assert_eq!(first.data_lookups, first.data_hits, "{helper:?}");
    assert!(helper.touches > 1000);
}

#[test]
fn what_cannot_be_is_said() {
    let region = bytes(4096);
    let baker = ModelledBaker::new(TouchMethod::Load, 1, region.clone());
    let error = |machine: Machine, baker: &ModelledBaker, program: &BakedProgram<'_>| {
        model(setup(machine), &mut sweep(3), program, Some(baker), &[]).expect_err("impossible").to_string()
    };
    let mut lone = small();
    lone.topology.cores_per_socket = 1;
    assert_eq!(
        error(lone.clone(), &baker, &CHAINED),
        "ryzen-5900x has one core a socket: the helper can't be placed so; choose another placement or machine"
    );
    lone.topology.threads_per_core = 1;
    let sibling = ModelledBaker { placement: HelperPlacement::SmtSibling, ..baker.clone() };
    assert!(error(lone, &sibling, &CHAINED).contains("has one hardware thread a core"));
    for regions in [vec![], bytes(0), [bytes(1), bytes(0)].concat()] {
        assert!(error(small(), &ModelledBaker { regions, ..baker.clone() }, &CHAINED).contains("no page to touch"));
    }
    let no_time = TouchCost { touch_cycles: 0.0, ..baker.pace };
    assert_eq!(
        error(small(), &ModelledBaker { pace: no_time, ..baker.clone() }, &CHAINED),
        "pace.touch_cycles = 0: must be a number from 1 on"
    );
    let not_a_number = ModelledBaker { sleep_cycles: f64::NAN, ..baker.clone() };
    assert!(error(small(), &not_a_number, &CHAINED).contains("sleep_cycles = NaN"));
    assert!(error(small(), &ModelledBaker { stride_pages: 0, ..baker.clone() }, &CHAINED).contains("stride_pages = 0"));
    let core = CoreParameters::ZEN3;
    let never = ProgramFlow::Known { core, flows: &[], instructions_per_access: 0.5 };
    let error = error(small(), &baker, &BakedProgram { flow: never, ..CHAINED });
    assert!(error.contains("program.instructions_per_access = 0.5"), "{error}");
}

#[test]
fn stressors_put_the_tables_out_and_the_helper_brings_them_back() {
    // A round is 38 lines; L3 holds 256, and is filled anew in some 1600 cycles.
    let baker = ModelledBaker::new(TouchMethod::Entries, 1, bytes(300 * 4096));
    let stressors = [Stressor::Walk { bytes: 64 << 10 }; 2];
    let run = |baker, stressors: &[_]| {
        let baked = model(setup(small()), &mut sweep(300), &CHAINED, baker, stressors).expect("it runs");
        baked.program.data.cost.walk_references_memory
    };
    let (alone, pressed, baked) = (run(None, &[]), run(None, &stressors), run(Some(&baker), &stressors));
    assert!(pressed > alone && baked * 2 < pressed, "{alone} {pressed} {baked}");
    let error = model(setup(small()), &mut sweep(10), &CHAINED, None, &[stressors[0]; 5]).expect_err("6 cores");
    assert!(error.to_string().contains("has 6 cores a socket"), "{error}");
}

#[test]
fn a_stride_beyond_all_addresses_ends_the_round() {
    let baker =
        ModelledBaker { stride_pages: u64::MAX, ..ModelledBaker::new(TouchMethod::Prefetch, 1, bytes(1 << 30)) };
    let baked = model(setup(small()), &mut sweep(50), &CHAINED, Some(&baker), &[]).expect("it runs");
    let helper = baked.helper.expect("there is one");
    assert_eq!(helper.touches, helper.rounds);
}

#[test]
fn a_region_ends_before_the_page_behind_it() {
    for pages in [8, 16, 17] {
        let baker = ModelledBaker::new(TouchMethod::Entries, 1, bytes(pages * 4096));
        let baked = model(setup(small()), &mut sweep(50), &CHAINED, Some(&baker), &[]).expect("it runs");
        let helper = baked.helper.expect("there is one");
        let a_round = pages.div_ceil(8);
        assert!(helper.rounds > 2 && helper.touches / a_round == helper.rounds, "{pages}: {helper:?}");
    }
}

#[test]
fn the_helper_needs_a_cache_that_walks_read_and_both_cores_share() {
    let baker = ModelledBaker::new(TouchMethod::Load, 1, bytes(4096));
    let run = |machine: &Machine, placement: HelperPlacement| {
        let baker = ModelledBaker { placement, ..baker.clone() };
        model(setup(machine.clone()), &mut sweep(3), &CHAINED, Some(&baker), &[]).map(drop)
    };
    let mut machine = small();
    machine.topology.cores_per_socket = 2;
    assert!(run(&machine, HelperPlacement::OtherCore).is_ok());
    // Walks read from the second level on; the third one serves fetches alone, and the first one is the socket's.
    for cache in &mut machine.caches {
        match cache.level {
            1 => cache.shared_by = SharedBy::Socket,
            3 => (cache.serves, cache.filled_by) = (vec![Serves::Fetch], FilledBy::Misses),
            _ => {}
        }
    }
    let error = run(&machine, HelperPlacement::OtherCore).expect_err("nothing to keep warm");
    assert!(matches!(error, BakeModelError::NothingShared { .. }), "{error}");
    assert!(error.to_string().starts_with("ryzen-5900x: walks read no cache that the helper's core shares"), "{error}");
    // The second level is the core's.
    assert!(run(&machine, HelperPlacement::SmtSibling).is_ok());
}

#[test]
fn nothing_to_run_is_nothing() {
    let baker = ModelledBaker::new(TouchMethod::Load, 1, bytes(4096));
    let baked = model(setup(small()), &mut Blocks::default(), &CHAINED, Some(&baker), &[]).expect("it runs");
    assert_eq!((baked.program_cycles, baked.helper), (0.0, None));
}
