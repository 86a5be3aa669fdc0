use std::sync::atomic::AtomicBool;

use lookaside_engine::{Cost, Engine, PagePolicy, ProcessRange, Side};
use lookaside_machine::preset;
use lookaside_stats::SplitMix64;
use lookaside_trace::{Event, Kind, MapSource, MemorySource};

use super::*;
use crate::bake::{ModelledBaker, TouchMethod};
use crate::remedies::{compare, RemedyVariant, RerunScope};
use crate::{Remedy, RemedyKind};

const BASE: u64 = 0x10_0000_0000;
const MIB: u64 = 1 << 20;

/// These blocks, of a trace of every access.
fn source(blocks: &[Block]) -> MemorySource {
    MemorySource::new(TraceInfo::default(), blocks.to_vec())
}

/// A program in phases: each reads its part of the memory at random, some pages more often than others.
fn program(seed: u64, accesses: u64) -> Vec<Block> {
    let mut numbers = SplitMix64::new(seed);
    let mut below = move |bound: u64| numbers.next_u64() % bound;
    let bytes = (16 + below(48)) * MIB;
    let mut blocks = Vec::new();
    let (mut left, mut reach, mut start, mut skew) = (0, 0, 0, false);
    for number in 0..accesses / 1000 {
        if left == 0 {
            (left, reach, skew) = (5 + below(60), (1 + below(bytes / MIB)) * MIB, below(2) == 0);
            start = below(bytes - reach + 1) & !0xfff;
        }
        left -= 1;
        let mut block = Block { process: 1, thread: 1, ..Block::default() };
        if number == 0 {
            let source = MapSource::Anonymous;
            block.push_event(Event::Map { addr: BASE, len: bytes, prot: 3, source, site: 0 });
        }
        for _ in 0..1000 {
            let at = below(reach);
            let at = if skew { at * below(reach) / reach } else { at };
            block.push(Kind::Load, BASE + start + at);
        }
        blocks.push(block);
    }
    blocks
}

fn huge_pages(setup: &Setup) -> RemedyVariant {
    let (what, how, caveat) = Default::default();
    RemedyVariant { kind: RemedyKind::HugeEverywhere, what, setup: setup.clone(), how, caveat, bloat_bytes: None }
}

fn row(setups: &[Setup; 2], blocks: &[Block], plan: Option<WindowPlan>) -> Remedy {
    let ran = rerun(setups.to_vec(), source(blocks), (plan, None), &AtomicBool::new(false)).expect("good setups");
    assert!(matches!(ran.end, RunEnd::Complete));
    let scope = RerunScope {
        is_sampled: ran.is_sampled,
        accesses: StretchCounts::sum(&ran.counts[0]).accesses,
        accesses_share: 1.0,
        whole: None,
        approximate: false,
    };
    compare(&huge_pages(&setups[1]), (&ran.counts[0], &ran.counts[1]), scope).expect("a cost")
}

/// Small pages; and huge ones in the first 12 MiB, so that phases differ in what is saved.
fn setups(machine: &str) -> [Setup; 2] {
    let base = Setup::new(preset(machine).expect("a preset"));
    let mut huge = base.clone();
    let range = ProcessRange { process: None, start: BASE, end: BASE + 12 * MIB };
    huge.os.pages = PagePolicy::Selective(vec![range]);
    [base, huge]
}

#[test]
fn the_interval_of_windows_holds_the_whole_runs_saving_in_most_cases() {
    const ACCESSES: u64 = 640_000;
    let (mut held, mut cases) = (0, 0);
    for (number, machine) in ["skylake", "xeon-e5-2650", "neoverse-n1"].into_iter().cycle().take(15).enumerate() {
        let setups = setups(machine);
        let blocks = program(number as u64, ACCESSES);
        // The tables of 64 MiB.
        let warming = REFILLS * refilling_misses(&setups[0].machine, 128 << 10);
        assert!(warming < 16_000, "{machine}: {warming}");
        let plan = WindowPlan::even(ACCESSES, 80_000, warming, number as u64);
        assert!(plan.is_some(), "{machine}: {warming}");
        let (whole, sampled) = (row(&setups, &blocks, None), row(&setups, &blocks, plan));
        assert_eq!([whole.least_saved_share, whole.most_saved_share], [Some(whole.saved_share); 2]);
        assert_eq!((whole.windows, sampled.windows, sampled.accesses), (0, 64, 80_000));
        let [least, most] = [sampled.least_saved_share, sampled.most_saved_share].map(|end| end.expect("an interval"));
        assert!(least <= sampled.saved_share && sampled.saved_share <= most && most <= 1.0);
        cases += 1;
        held += u32::from((least..=most).contains(&whole.saved_share));
    }
    assert!(held * 10 >= cases * 8, "{held} of {cases}");
}

#[test]
fn a_run_that_is_no_longer_than_its_windows_is_run_whole() {
    let setups = setups("skylake");
    let blocks = program(1, 100_000);
    assert_eq!(window_plan(&setups, &TraceInfo::default(), (&CostCurve::even(100_000), 1), 64 << 10), None);
    let row = row(&setups, &blocks, None);
    let [base, with] = setups.map(|setup| {
        let mut engine = Engine::new(setup).expect("a setup");
        blocks.iter().for_each(|block| engine.run(block));
        engine.outcome().translation_cycles()
    });
    assert_eq!((row.base_translation_cycles, row.translation_cycles), (base, with));
    assert_eq!(row.saved_share, 1.0 - with / base);
}

#[test]
fn one_window_with_all_the_cost_leaves_the_interval_open() {
    let window = |cycles: f64| StretchCounts { translation_cycles: cycles, ..StretchCounts::default() };
    let scope = RerunScope { is_sampled: true, accesses: 10, accesses_share: 0.1, whole: None, approximate: false };
    let [_, huge] = setups("skylake");
    let variant = huge_pages(&huge);
    let row = |before: &[f64], after: &[f64]| {
        let [before, after] = [before, after].map(|of| of.iter().copied().map(window).collect::<Vec<_>>());
        compare(&variant, (&before, &after), scope)
    };
    let alone = row(&[0.0, 10.0, 0.0], &[0.0, 4.0, 0.0]).expect("a cost");
    assert_eq!((alone.saved_share, alone.least_saved_share, alone.most_saved_share), (0.6, None, None));
    assert_eq!(row(&[0.0, 0.0], &[0.0, 0.0]), None);
    assert_eq!(row(&[], &[]), None);
}

/// Counts that differ in all that there is.
fn counts(times: u64) -> StretchCounts {
    let cycles = times as f64;
    StretchCounts {
        accesses: 7 * times,
        walks: 5 * times,
        walk_cycles: 300.0 * cycles,
        translation_cycles: 400.0 * cycles,
        modelled_cycles: 1000.0 * cycles,
    }
}

#[test]
fn a_stretch_has_what_data_and_fetches_cost_and_stretches_add_up() {
    let side = |accesses, walks, walk_cycles| {
        let cost = Cost { walks, walk_cycles, tlb_hit_cycles: 50.0, ..Cost::default() };
        Side { accesses, cost, data_stall_cycles: 100.0, ..Side::default() }
    };
    let outcome = Outcome { data: side(10, 6, 500.0), fetch: side(4, 4, 100.0), ..Outcome::default() };
    let of = StretchCounts { modelled_cycles: 14.0 + 200.0 + 700.0, translation_cycles: 700.0, ..counts(2) };
    assert_eq!(StretchCounts::of(&outcome), of);
    assert_eq!(StretchCounts::sum(&[counts(1), counts(2), counts(4)]), counts(7));
    assert_eq!(StretchCounts::sum(&[]), StretchCounts::default());
    assert_eq!(counts(7).since(&counts(3)), counts(4));
}

#[test]
fn the_largest_structure_that_walks_fill_sets_how_long_to_warm_up() {
    let skylake = preset("skylake").expect("a preset");
    // The second-level TLB has 1536 entries, and a cache line of 64 bytes has eight entries of a table.
    let misses = |change: &dyn Fn(&mut Machine), table_bytes| {
        let mut machine = skylake.clone();
        change(&mut machine);
        refilling_misses(&machine, table_bytes)
    };
    let unchanged = |_: &mut Machine| ();
    assert_eq!([0, 64 * 1536, 64 * 1537].map(|bytes| misses(&unchanged, bytes)), [1536, 1536, 1537]);
    // No more lines than the 8 MiB of the last cache.
    assert_eq!(misses(&unchanged, 1 << 30), (8 << 20) / 64);
    let coalescing = |machine: &mut Machine| machine.tlbs[5].coalesce_pages = 4;
    assert_eq!((misses(&coalescing, 0), skylake.tlbs[5].entries), (4 * 1536, 1536));
    assert_eq!(misses(&|machine| machine.walk_caches[0].entries = 2000, 0), 2000);
    // A host has as many tables again.
    let host = ["page_table.host.format=x86-64-4level", "page_table.host.page_size=4K"].map(String::from);
    let guest = skylake.with_overrides(&host).expect("a guest");
    assert_eq!(refilling_misses(&guest, 1 << 20), (2 << 20) / 64);
    // What walks don't read: caches that are for fetches, or nearer than the first that a walk looks in.
    let for_fetches = |machine: &mut Machine| machine.caches[3].serves = vec![Serves::Fetch];
    assert_eq!(misses(&for_fetches, 1 << 30), (256 << 10) / 64);
    assert_eq!(misses(&|machine| machine.walker.first_cache_level = 3, 1 << 30), (8 << 20) / 64);
    assert_eq!(misses(&|machine| machine.walker.first_cache_level = 4, 1 << 30), 1536);
}

#[test]
fn a_recorders_filter_makes_windows_shorter_and_warming_too() {
    let setups = setups("skylake");
    let plan = |filter_window, recorded| {
        let info = TraceInfo { filter_window, ..TraceInfo::default() };
        window_plan(&setups, &info, (&CostCurve::even(recorded), 1), 64 * 2000)
    };
    // Primed with twice the second level's pages.
    let primed = |recorded, budget, warming| {
        WindowPlan::by_cost(&CostCurve::even(recorded), budget, warming, 1).map(|plan| plan.primed_with(2 * 1536))
    };
    // Four times the 2000 lines of the tables; where hits were recorded, too, four times as much of all.
    assert_eq!(plan(0, 1 << 26), primed(1 << 26, 8 << 20, 32_000));
    assert_eq!(plan(1, 1 << 26), primed(1 << 26, 2 << 20, 8000));
    assert!(plan(0, 1 << 26).is_some() && plan(1, 4 << 20).is_some() && plan(0, 4 << 20).is_none());
}

/// A helper over the first of the program's memory.
fn over_first(bytes: u64) -> ModelledBaker {
    let range = BASE..BASE + bytes;
    ModelledBaker::new(TouchMethod::Prefetch, 1, vec![range])
}

/// The helper runs all the time.
const ALWAYS: HelperHours = HelperHours::ALWAYS;

/// The program's counts beside a helper over its first `bytes`, or alone.
fn baked(setup: &Setup, blocks: &[Block], hours: HelperHours, bytes: Option<u64>) -> Vec<StretchCounts> {
    let baker = bytes.map(over_first);
    let never = AtomicBool::new(false);
    let (counts, end) =
        rerun_baked(setup.clone(), baker.as_ref(), (source(blocks), None), hours, &never).expect("a run");
    assert!(matches!(end, RunEnd::Complete));
    counts
}

#[test]
fn with_no_helper_beside_it_the_run_is_the_plain_one() {
    for (number, machine) in ["skylake", "neoverse-n1"].into_iter().cycle().take(4).enumerate() {
        let [setup, _] = setups(machine);
        let blocks = program(number as u64, 100_000);
        for plan in [None, WindowPlan::even(100_000, 20_000, 2000, 1)] {
            let plain = rerun(vec![setup.clone()], source(&blocks), (plan.clone(), None), &AtomicBool::new(false))
                .expect("a run");
            let hours = HelperHours { plan, before: 700, touches_before: 10 };
            assert_eq!(baked(&setup, &blocks, hours, None), plain.counts[0], "{machine} {number}");
        }
    }
}

/// Random reads over 1 GiB: of 2 MiB of leaf tables, which the own core's caches don't keep beside the data.
fn random_reads() -> Vec<Block> {
    let mut numbers = SplitMix64::new(5);
    let mut blocks: Vec<Block> = Vec::new();
    for number in 0..60 {
        let mut block = Block { process: 1, thread: 1, ..Block::default() };
        if number == 0 {
            let source = MapSource::Anonymous;
            block.push_event(Event::Map { addr: BASE, len: 1 << 30, prot: 3, source, site: 0 });
        }
        (0..2000).for_each(|_| block.push(Kind::Load, BASE + numbers.next_u64() % (1 << 30)));
        blocks.push(block);
    }
    blocks
}

#[test]
fn a_helper_saves_walk_cycles_and_no_walks() {
    let [setup, _] = setups("skylake");
    let blocks = random_reads();
    let counts = |bytes| StretchCounts::sum(&baked(&setup, &blocks, ALWAYS, bytes));
    let [alone, all, elsewhere] = [None, Some(1 << 30), Some(4 << 20)].map(counts);
    assert_eq!((alone.walks, alone.accesses), (all.walks, all.accesses));
    assert_eq!((alone.walks, alone.accesses), (elsewhere.walks, elsewhere.accesses));
    let saved = |with: &StretchCounts| 1.0 - with.walk_cycles / alone.walk_cycles;
    assert!(saved(&all) > 0.1, "{}", saved(&all));
    assert!(saved(&elsewhere) < saved(&all) / 4.0, "{} {}", saved(&elsewhere), saved(&all));
}

#[test]
fn a_helper_that_runs_for_windows_saves_there_what_one_saves_that_runs_on() {
    let [setup, _] = setups("skylake");
    let blocks = random_reads();
    // Each of 120,000 accesses costs more than the helper's loop takes: as in a recording without repeats.
    let plan = WindowPlan::short(&CostCurve::even(120_000), 1000, 2000, 1);
    assert!(plan.is_some());
    let saved = |hours: HelperHours| {
        let [alone, with] =
            [None, Some(1 << 30)].map(|bytes| StretchCounts::sum(&baked(&setup, &blocks, hours.clone(), bytes)));
        1.0 - with.walk_cycles / alone.walk_cycles
    };
    let round = (1 << 30) / (8 * 4096);
    let [on, windows, late] = [(2000, 0), (1000, round), (0, 0)]
        .map(|(before, touches_before)| saved(HelperHours { plan: plan.clone(), before, touches_before }));
    assert!((windows - on).abs() < 0.1 * on, "{windows} {on}");
    assert!(late < windows, "{late} {windows}");
}

#[test]
fn the_helpers_hours_keep_to_its_touches() {
    let [setup, _] = setups("skylake");
    let mut engine = Engine::new(setup.clone()).expect("a setup");
    random_reads().iter().for_each(|block| engine.run(block));
    let outcome = engine.outcome();
    for bytes in [4 << 20, 1 << 30, 1 << 40] {
        let baker = over_first(bytes);
        for recorded in [0, 127, 128, 120_000, 1 << 40] {
            let hours = HelperHours::new(&baker, &setup.machine, &outcome, (&CostCurve::even(recorded), 1));
            let touches_an_access = (outcome.modelled_cycles() / recorded.max(1) as f64 / 5.0).max(1.0);
            let touches = 64.0 * (hours.touches_before as f64 + 2.0 * hours.before as f64 * touches_an_access);
            let least = 64.0 * 2.0 * 16.0 * touches_an_access;
            assert!(touches <= (4 << 20) as f64 + least, "{bytes} {recorded}: {touches}");
            assert_eq!(hours.plan.is_some(), recorded >= 128, "{recorded}");
            assert!(hours.touches_before <= bytes / (8 * 4096));
        }
    }
}

#[test]
fn a_helper_runs_for_as_long_as_it_is_let() {
    let [setup, _] = setups("skylake");
    let blocks = program(1, 10_000);
    let baker = over_first(MIB);
    let (counts, end) =
        rerun_baked(setup, Some(&baker), (source(&blocks), None), ALWAYS, &AtomicBool::new(true)).expect("a run");
    assert_eq!(counts, [StretchCounts::default()]);
    assert!(matches!(end, RunEnd::Stopped));
}
