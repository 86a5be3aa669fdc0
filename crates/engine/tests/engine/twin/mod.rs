//! The fast engine against its slow twin, on random machines and random traces.

mod array;
mod background;
mod code_pages;
mod common_level;
mod events;
mod generate;
mod hardware;
mod model;
mod rows;
mod space;
mod walk;
mod window;

use crate::recorder;
use generate::{blocks, calm_ops, columns, ops, setups, BlockColumns, TraceItem};
use lookaside_engine::{AccessResult, Engine, Filter, Outcome, Setup, WalkModel};
use lookaside_machine::{PageSize, Serves, Stage, Tlb};
use lookaside_trace::{Block, Event, Granularity, TraceInfo};
use model::Twin;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// `PROPTEST_CASES` asks for more than the default, which keeps the whole file within seconds.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1000);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

/// Recorded accesses.
fn rows_of(block: &Block) -> (&[u64], &[lookaside_trace::Kind], &[u64]) {
    (&block.addr, &block.kind, &block.ip)
}

fn run_twin(setup: &Setup, blocks: &[Block]) -> (Vec<AccessResult>, Outcome) {
    let mut twin = Twin::new(setup);
    for block in blocks {
        twin.run(block);
    }
    let steps = std::mem::take(&mut twin.steps);
    (steps.iter().map(|step| step.result(&setup.machine)).collect(), twin.finish())
}

fn run_engine(setup: &Setup, blocks: &[Block]) -> Result<(Vec<AccessResult>, Outcome), TestCaseError> {
    let mut engine = Engine::new(setup.clone()).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let mut results = Vec::new();
    for block in blocks {
        engine.run_traced(block, &mut |result| results.push(result));
    }
    Ok((results, engine.outcome()))
}

proptest! {
    #![proptest_config(config())]

    /// The generators make only machines that the machine room accepts.
    #[test]
    fn random_machines_are_valid(setup in setups()) {
        let text = lookaside_machine::to_toml(&setup.machine);
        let read = lookaside_machine::parse(&text, "random").map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(read, setup.machine);
    }

    /// Rules that hold in every outcome of the twin itself: a twin that counts nothing would agree with anything.
    #[test]
    fn the_twin_keeps_its_books(setup in setups(), ops in ops(300), columns in columns()) {
        let mut twin = Twin::new(&setup);
        // A step is told of whether it counts or not.
        let mut ops = ops;
        ops.retain(|item| !matches!(item.what, TraceItem::Event(Event::Interval { .. })));
        for block in blocks(&ops, columns, |_| false) {
            twin.run(&block);
        }
        let steps = std::mem::take(&mut twin.steps);
        let outcome = twin.finish();
        let walks = steps.iter().filter(|s| s.hit.is_none()).count() as u64;
        prop_assert_eq!(outcome.data.cost.walks + outcome.fetch.cost.walks, walks);
        let references: usize = steps.iter().map(|s| s.references.len()).sum();
        prop_assert_eq!(outcome.data.cost.walk_references + outcome.fetch.cost.walk_references, references as u64);
    }

    /// Access by access, and every count and row.
    #[test]
    fn the_engine_is_its_twin(setup in setups(), ops in ops(400), columns in columns()) {
        let blocks = blocks(&ops, columns, |_| false);
        let (twin_results, twin) = run_twin(&setup, &blocks);
        let (results, outcome) = run_engine(&setup, &blocks)?;
        for (i, (engine, twin)) in results.iter().zip(&twin_results).enumerate() {
            prop_assert_eq!(engine, twin, "access {} of {}: the engine's is left", i, results.len());
        }
        prop_assert_eq!(results.len(), twin_results.len());
        prop_assert_eq!(outcome, twin, "the engine's is left");
    }

    /// What a recorder may leave out of the pages used last changes nothing but which kind of access a repeat counts
    /// as.
    #[test]
    fn a_window_changes_nothing(
        setup in setups(),
        ops in ops(600),
        ip in any::<bool>(),
        (entries, pages) in (2..8u32, 1..8u32),
        cuts in any::<u64>(),
    ) {
        let setup = window::suited(setup, entries);
        prop_assert_eq!(Filter::exact_for(std::slice::from_ref(&setup)).window, window::of(entries));
        let mut ops = ops;
        for op in &mut ops {
            if let TraceItem::Access { addr, .. } = &mut op.what {
                *addr &= 0x3f_ffff_ffff; // what a program can access
            }
        }
        let pages = pages.min(entries);
        let full = blocks(&ops, BlockColumns { ip, repeat: false }, |_| false);
        let mut recorded: Vec<Block> = full.iter().map(|block| recorder::recorded(block, recorder::RecorderOptions::pages(pages as usize))).collect();
        let (_, expected) = run_engine(&setup, &full)?;
        let mut engine = Engine::new(setup).map_err(|e| TestCaseError::fail(e.to_string()))?;
        for block in &mut recorded {
            // As a reader gives them: cut anywhere.
            let mut rest = std::mem::take(block);
            while cuts % 2 == 0 && rest.len() > 9 {
                let (part, after) = recorder::cut(rest, 1 + (cuts % 7) as usize);
                engine.run(&part);
                rest = after;
            }
            engine.run(&rest);
        }
        let outcome = engine.outcome();
        let expected = Outcome { loads: outcome.loads, stores: outcome.stores, ..expected };
        prop_assert_eq!(outcome, expected);
    }

    /// Nor does it where the first level has sets: any that lie within classes of pages, under LRU or tree-PLRU.
    #[test]
    fn a_window_with_classes_changes_nothing(
        setup in setups(),
        ops in ops(600),
        ip in any::<bool>(),
        level in window::level(),
        smaller in any::<(u32, u32, u32)>(),
        cuts in any::<u64>(),
        batch in 1..40usize,
    ) {
        let setup = window::with_sets(setup, &level);
        let filter = Filter::exact_for(std::slice::from_ref(&setup));
        let how = window::at_most(&filter, smaller);
        let info = TraceInfo {
            granularity: Granularity::Page,
            filter_window: how.window.pages,
            filter_log2_classes: how.window.log2_classes,
            filter_class_pages: how.window.class_pages,
            filter_stores_apart: how.stores_apart,
            ..TraceInfo::default()
        };
        prop_assert_eq!(Filter::check(&info, &setup), Ok(()));
        let mut ops = ops;
        for op in &mut ops {
            if let TraceItem::Access { addr, .. } = &mut op.what {
                *addr &= 0x3f_ffff_ffff; // what a program can access
            }
        }
        let full = blocks(&ops, BlockColumns { ip, repeat: false }, |_| false);
        let recorded: Vec<Block> = full.iter().map(|block| recorder::recorded(block, how)).collect();
        let (_, expected) = run_engine(&setup, &full)?;
        let (_, seen) = run_engine(&setup, &recorded)?;
        // Recorded with every visit, or without direct repeats, and left out later.
        let plain = |block: &Block| recorder::by_classes(block, 0, how.stores_apart);
        let visits: Vec<Block> = if how.unified { full.clone() } else { full.iter().map(plain).collect() };
        for visits in [&full, &visits] {
            let windowed = recorder::windowed(visits, how);
            // Counts that come as events empty the windows of this recorder alone.
            let counts = |block: &&Block| block.events.iter().any(|(_, event)| matches!(event, Event::Repeats { .. }));
            let pairs = windowed.iter().zip(&recorded).zip(visits.iter());
            for ((block, expected), visits) in pairs.filter(|(_, visits)| !counts(visits)) {
                prop_assert_eq!(rows_of(block), rows_of(if block.is_windowed() { expected } else { visits }));
            }
            prop_assert_eq!(windowed.len(), recorded.len());
            let without_lines: Vec<Block> = windowed.into_iter().map(recorder::without_lines).collect();
            let (_, later) = run_engine(&setup, &without_lines)?;
            let [mut later, mut seen] =
                [&later, &seen].map(|outcome| window::whatever_kind(outcome.clone(), filter.unified));
            if visits.iter().any(|block| counts(&block)) {
                [&mut later, &mut seen].into_iter().for_each(window::whatever_lock);
            }
            prop_assert_eq!(later, seen, "left out later");
        }
        let mut engine = Engine::new(setup).map_err(|e| TestCaseError::fail(e.to_string()))?;
        engine.in_batches_of(batch, cuts % 3 == 0);
        for mut rest in recorded {
            while cuts % 2 == 0 && rest.len() > 9 {
                let (part, after) = recorder::cut(rest, 1 + (cuts % 7) as usize);
                engine.run(&part);
                rest = after;
            }
            engine.run(&rest);
        }
        prop_assert_eq!(&engine.outcome(), &seen, "in batches");
        let [expected, seen] = [expected, seen].map(|outcome| window::whatever_kind(outcome, filter.unified));
        prop_assert_eq!(seen, expected);
    }

    /// What the coarsest exact filter by classes leaves out changes nothing either.
    #[test]
    fn classes_change_nothing(setup in setups(), ops in ops(600), ip in any::<bool>()) {
        let mut setup = setup;
        setup.machine.caches.clear();
        setup.machine.walker.first_cache_level = 1;
        if matches!(setup.walks, WalkModel::AlwaysAt(_)) {
            setup.walks = WalkModel::Full;
        }
        let filter = Filter::exact_for(std::slice::from_ref(&setup));
        // As machines are: all accesses to base pages have a first level. (Repeats count as the kind that they repeat.)
        let first = || setup.machine.tlbs.iter().filter(|t| t.level == 1 && t.page_sizes[0] == PageSize::K4);
        let holds = |kind| first().any(|t| t.serves.contains(&kind));
        // Where some first-level array serves both loads and stores and another one of them, no filter is exact.
        let data = |t: &&Tlb| t.level == 1 && [Serves::Load, Serves::Store].iter().any(|kind| t.serves.contains(kind));
        let both = |t: &Tlb| [Serves::Load, Serves::Store].iter().all(|kind| t.serves.contains(kind));
        let is_mixed = filter.stores_apart && setup.machine.tlbs.iter().filter(data).any(both);
        if is_mixed || filter.unified || ![Serves::Load, Serves::Store, Serves::Fetch].into_iter().all(holds) {
            return Ok(());
        }
        let full = blocks(&ops, BlockColumns { ip, repeat: false }, |_| false);
        let by = |block: &Block| recorder::by_classes(block, filter.log2_classes, filter.stores_apart);
        let recorded: Vec<Block> = full.iter().map(by).collect();
        let (_, expected) = run_engine(&setup, &full)?;
        let (_, mut outcome) = run_engine(&setup, &recorded)?;
        let mut expected = Outcome { loads: outcome.loads, stores: outcome.stores, ..expected };
        // A repeat looks up the array that has the page, not those asked before it.
        outcome.tlbs.iter_mut().chain(&mut expected.tlbs).for_each(|tlb| tlb.lookups = 0);
        prop_assert_eq!(outcome, expected);
    }

    /// What leaves a window, with lines that data caches see, on any machine: in batches or one by one.
    #[test]
    fn a_window_is_the_same_in_batches(
        setup in setups(), ops in ops(600), pages in 1..9usize, classes in 0..3u32, of_class in 1..5u32, lines in any::<u64>()
    ) {
        let mut how = recorder::RecorderOptions::pages(pages);
        if classes > 0 {
            (how.window.log2_classes, how.window.class_pages) = (classes, of_class);
        }
        let full = blocks(&ops, BlockColumns { ip: false, repeat: false }, |_| false);
        let recorded: Vec<Block> = full.iter().map(|block| recorder::with_lines(block, how, lines)).collect();
        let (_, seen) = run_engine(&setup, &recorded)?;
        let mut engine = Engine::new(setup).map_err(|e| TestCaseError::fail(e.to_string()))?;
        recorded.iter().for_each(|block| engine.run(block));
        prop_assert_eq!(engine.outcome(), seen);
    }

    /// What others do beside the program is done to the same hardware, and counted apart.
    #[test]
    fn others_are_counted_apart(setup in setups(), ops in ops(400), columns in columns(), dice in any::<u64>()) {
        background::check(&setup, &blocks(&ops, columns, |i| dice >> (i % 64) & 1 == 1), dice)?;
    }

    /// Where blocks end makes no difference, nor whether anyone looks on.
    #[test]
    fn blocks_may_end_anywhere(setup in setups(), ops in ops(300), columns in columns(), cuts in any::<u64>()) {
        let (_, whole) = run_engine(&setup, &blocks(&ops, columns, |_| false))?;
        let mut engine = Engine::new(setup).map_err(|e| TestCaseError::fail(e.to_string()))?;
        for block in blocks(&ops, columns, |i| cuts >> (i % 64) & 1 == 1) {
            engine.run(&block);
        }
        prop_assert_eq!(engine.outcome(), whole);
    }

    /// What is gathered before it is run makes no difference, nor which instructions run it. Few events, so that
    /// batches fill.
    #[test]
    fn batches_may_end_anywhere(
        setup in setups(), ops in calm_ops(700), columns in columns(), items in 1..12usize, plainly in any::<bool>(),
    ) {
        let blocks = blocks(&ops, columns, |_| false);
        let (_, whole) = run_engine(&setup, &blocks)?;
        for (items, plainly) in [(items, plainly), (items * 25, !plainly)] {
            let mut engine = Engine::new(setup.clone()).map_err(|e| TestCaseError::fail(e.to_string()))?;
            engine.in_batches_of(items, plainly);
            blocks.iter().for_each(|block| engine.run(block));
            prop_assert_eq!(engine.outcome(), whole.clone(), "batches of {}, plainly: {}", items, plainly);
        }
    }
}

/// Zen 4's first level for data has 72 entries, of which a recorder's window is of 64.
#[test]
fn a_first_level_of_many_entries_keeps_a_window() {
    let mut setup = Setup::new(lookaside_machine::preset("zen4").expect("a preset"));
    setup.machine.caches.clear();
    setup.machine.walker.first_cache_level = 1;
    let filter = Filter::exact_for(std::slice::from_ref(&setup));
    assert_eq!(filter.window, window::of(64));
    let mut full = Block { process: 1, thread: 1, ..Block::default() };
    for i in 0..20_000 {
        // Near ones often, of 70, and far ones, of 4,000.
        let die = lookaside_engine::os::mix(7, i, 0, 0);
        let page = if die.is_multiple_of(20) { (die >> 8) % 4000 } else { (die >> 8) % 70 };
        let kind = if die >> 40 & 3 == 0 { lookaside_trace::Kind::Fetch } else { lookaside_trace::Kind::Load };
        full.push(kind, page << 12);
    }
    let blocks = [full];
    let (_, expected) = run_twin(&setup, &blocks);
    let recorded = recorder::recorded(&blocks[0], recorder::RecorderOptions::pages(64));
    assert!(recorded.len() < blocks[0].len() / 2, "{} of {}", recorded.len(), blocks[0].len());
    let mut engine = Engine::new(setup).expect("a good setup");
    engine.run(&recorded);
    let outcome = engine.outcome();
    let expected = Outcome { loads: outcome.loads, stores: outcome.stores, ..expected };
    assert_eq!(outcome, expected, "the engine's is left");
}

/// A range becomes huge while entries of its base pages stay, and serve it: nobody walks for the huge page.
#[test]
fn a_huge_page_that_entries_of_base_pages_serve_is_touched() {
    let start = 1 << 30;
    let mut setup = Setup::new(lookaside_machine::preset("cortex-a9").expect("a preset"));
    setup.machine.page_table.format = lookaside_machine::TableFormat::X86_64L4;
    setup.machine.tlbs.iter_mut().for_each(|tlb| tlb.page_sizes = vec![PageSize::K4]);
    let range = lookaside_engine::ProcessRange { process: None, start, end: start + 1 };
    setup.os.pages = lookaside_engine::PagePolicy::SelectiveFiles(vec![range]);
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    block.push(lookaside_trace::Kind::Load, start + 0x1000);
    let source = lookaside_trace::MapSource::File { path: "f".into(), offset: 0 };
    block.events.push((1, Event::Map { addr: start, len: 2 << 20, prot: 3, source, site: 0 }));
    block.push(lookaside_trace::Kind::Load, start + 0x1000);
    let blocks = [block];
    let (_, expected) = run_twin(&setup, &blocks);
    let (_, outcome) = run_engine(&setup, &blocks).expect("a good setup");
    assert_eq!((outcome.data.cost.walks, outcome.pages_touched.len()), (1, 2), "{:?}", outcome.pages_touched);
    assert_eq!(outcome, expected);
}

/// What the cases above reach: nothing that a comparison of zeros would pass over.
#[test]
fn random_cases_reach_everything() {
    let mut runner = TestRunner::deterministic();
    let cases = (setups(), ops(400), columns());
    let mut seen = std::collections::BTreeMap::<&str, u64>::new();
    for _ in 0..400 {
        let (setup, ops, columns) = cases.new_tree(&mut runner).expect("nothing is filtered").current();
        let (results, outcome) = run_twin(&setup, &blocks(&ops, columns, |_| false));
        let mut count = |what, n: u64| *seen.entry(what).or_default() += n;
        for tlb in &outcome.tlbs {
            count(["hits at level 1", "hits at level 2", "hits at level 3"][tlb.level as usize - 1], tlb.hits);
            count("locked hits", tlb.locked_hits);
            count("evictions", tlb.evictions);
            count("invalidated", tlb.invalidated);
        }
        for (cache, counts) in setup.machine.walk_caches.iter().zip(&outcome.walk_caches) {
            let host = cache.stage == Stage::Host;
            let whole = host && cache.table_level == 1;
            count(
                if whole {
                    "nested TLB hits"
                } else if host {
                    "host hits"
                } else {
                    "guest hits"
                },
                counts.walk_hits,
            );
        }
        for counts in &outcome.walk_caches[setup.machine.walk_caches.len()..] {
            count("directory hits", counts.walk_hits);
        }
        for (cache, described) in outcome.caches.iter().zip(&setup.machine.caches) {
            let passes = !described.write_allocate && described.serves == [Serves::Store];
            count("stores that pass a cache", if passes { cache.data_lookups - cache.data_hits } else { 0 });
            let is_hashed = described.index != lookaside_machine::IndexFn::Linear;
            count("data hits by a hash", if is_hashed { cache.data_hits } else { 0 });
            let is_srrip = described.replacement == lookaside_machine::Replacement::Srrip;
            count("data hits under SRRIP", if is_srrip { cache.data_hits } else { 0 });
            let is_fed = described.filled_by == lookaside_machine::FilledBy::Victims;
            count("data hits among victims", if is_fed { cache.data_hits } else { 0 });
            count("walk hits among victims", if is_fed { cache.walk_hits } else { 0 });
            count("data hits", cache.data_hits);
            count("walk hits", cache.walk_hits);
        }
        let of_host = |r: &&lookaside_engine::Reference| r.stage == Stage::Host;
        count("host references", results.iter().flat_map(|r| &r.references).filter(of_host).count() as u64);
        let coalescing = |r: &&AccessResult| r.hit.is_some_and(|(_, tlb)| setup.machine.tlbs[tlb].coalesce_pages > 1);
        count("hits of coalescing arrays", results.iter().filter(coalescing).count() as u64);
        let most = setup.machine.stream.and_then(|stream| stream.walk_cycles);
        let ahead = |r: &&AccessResult| {
            r.hit.is_none() && r.streamed && !r.references.is_empty() && most.is_some_and(|most| r.cycles <= most)
        };
        count("walks ahead", results.iter().filter(ahead).count() as u64);
        count("streamed", results.iter().filter(|r| r.streamed).count() as u64);
        count("context switches", outcome.context_switches);
        count("shootdowns", outcome.shootdowns);
        count("page sizes", (outcome.pages_touched.len() > 1).into());
        count("kernel pages", outcome.pages.iter().filter(|p| p.addr >> 63 == 1).count() as u64);
        count("regions", outcome.regions.len() as u64);
        count("objects with accesses", outcome.objects.iter().filter(|o| o.accesses > 0).count() as u64);
        count("stalls", (outcome.data.data_stall_cycles > 0.0).into());
    }
    for (what, n) in &seen {
        assert!(*n > 20, "{what}: only {n}");
    }
    assert_eq!(seen.len(), 28);
}
