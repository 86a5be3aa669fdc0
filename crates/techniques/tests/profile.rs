//! The threaded profile against the plain engine, and what the "what would help" rows say.

use std::sync::atomic::AtomicBool;

use lookaside_engine::curve::CurveBuilder;
use lookaside_engine::{Engine, PagePolicy, Setup};
use lookaside_machine::{preset, PageSize};
use lookaside_techniques::names::Unnamed;
use lookaside_techniques::window::SampledWindows;
use lookaside_techniques::{remedies, Profile, RemedyKind};
use lookaside_trace::{Block, Event, FilterWindow, Granularity, Kind, MapSource, Source, TraceError, TraceInfo};

/// Blocks from memory.
struct Blocks<'a> {
    info: TraceInfo,
    blocks: std::slice::Iter<'a, Block>,
}

impl Source for Blocks<'_> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        match self.blocks.next() {
            Some(next) => {
                block.clone_from(next);
                Ok(true)
            }
            None => {
                block.clear();
                Ok(false)
            }
        }
    }
}

/// Two mappings of 32 MiB with a gap between, read at random, the upper one three times as often.
fn random_reads(blocks: usize) -> Vec<Block> {
    const BASE: u64 = 0x10_0000_0000;
    const HALF: u64 = 32 << 20;
    let mut state = 7u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    };
    (0..blocks)
        .map(|number| {
            let mut block = Block { process: 1, thread: 1, ..Block::default() };
            if number == 0 {
                for addr in [BASE, BASE + 2 * HALF] {
                    block.push_event(Event::Map { addr, len: HALF, prot: 3, source: MapSource::Anonymous, site: 0 });
                }
            }
            for _ in 0..10_000 {
                let half = if next() % 4 == 0 { BASE } else { BASE + 2 * HALF };
                block.push(Kind::Load, half + next() % HALF);
            }
            block
        })
        .collect()
}

fn source(blocks: &[Block]) -> Blocks<'_> {
    Blocks { info: TraceInfo::default(), blocks: blocks.iter() }
}

#[test]
fn a_profile_is_what_the_engine_and_the_curve_say() {
    let setup = Setup::new(preset("skylake").expect("preset"));
    let blocks = random_reads(40);
    let mut engine = Engine::new(setup.clone()).expect("setup");
    let mut curve = CurveBuilder::new();
    for block in &blocks {
        engine.run(block);
        curve.run(block);
    }
    let mut watched = 0;
    let mut profile =
        Profile::record(&mut source(&blocks), &setup, &mut |b: &Block| watched += b.len()).expect("profile");
    assert_eq!(profile.outcome, engine.outcome());
    assert_eq!(profile.curve, curve.finish());
    assert_eq!(watched, 400_000);
    let heat = profile.take_heat(&Unnamed);
    let accesses: u64 = heat.rows.iter().flat_map(|row| &row.accesses).sum();
    assert_eq!(accesses, 400_000);
    assert!(heat.rows.iter().all(|row| row.name == "anonymous"), "{:?}", heat.rows);
}

#[test]
fn remedies_are_runs_of_the_model() {
    let base = Setup::new(preset("skylake").expect("preset"));
    let blocks = random_reads(40);
    let mut profile = Profile::record(&mut source(&blocks), &base, &mut |_: &Block| {}).expect("profile");
    let mut notes = Vec::new();
    let rows = profile.remedies(&base, (&Unnamed, true), &AtomicBool::new(false), &mut notes).expect("remedies");
    assert!(notes.is_empty(), "{notes:?}");
    assert!(rows.windows(2).all(|w| w[0].translation_cycles <= w[1].translation_cycles), "best first");
    for row in &rows {
        assert_eq!(row.accesses_share, 1.0);
        assert_eq!(row.base_translation_cycles, profile.outcome.translation_cycles());
        assert_eq!(row.base_walks, profile.outcome.data.cost.walks);
    }
    // Each row is what a run of its own says.
    let mut huge = base.clone();
    huge.os.pages = PagePolicy::Thp;
    let mut engine = Engine::new(huge).expect("setup");
    blocks.iter().for_each(|block| engine.run(block));
    let row = rows.iter().find(|r| r.what == "huge pages (2M) everywhere").expect("row");
    assert_eq!(row.translation_cycles, engine.outcome().translation_cycles());
    assert_eq!(row.walks, engine.outcome().data.cost.walks);
    let hot = rows.iter().find(|r| r.what.starts_with("huge pages for the hottest region")).expect("row");
    assert_eq!(hot.how, "lookaside run --hugepages=auto:16 -- CMD; or madvise(MADV_HUGEPAGE) on anonymous (32 MiB)");
    assert!(hot.walks < row.base_walks * 2 / 5, "the upper one is hotter: {}", hot.walks);
    // All pages of it are touched.
    assert_eq!((row.bloat_bytes, hot.bloat_bytes), (Some(0), Some(0)));
    assert!(hot.walks < row.base_walks / 2 && hot.walks > row.walks);
    assert!(rows.iter().any(|r| r.what.starts_with("twice the last-level TLB (stlb: 1536 → 3072")), "{rows:?}");
    assert!(rows.iter().any(|r| r.what.starts_with("every walk reference served by")));
    assert!(rows.iter().any(|r| r.what.starts_with("the 4 best pages locked")));
}

#[test]
fn what_only_other_hardware_could_do_is_not_shown_unasked() {
    let kinds = |base: &Setup, what_if: bool| {
        let mut blocks = random_reads(4);
        let file = MapSource::File { path: "/usr/lib/libjemalloc.so.2".into(), offset: 0 };
        blocks[0].push_event(Event::Map { addr: 0x1000, len: 0x1000, prot: 5, source: file, site: 0 });
        blocks[0].push(Kind::Load, 0x1000);
        let mut profile = Profile::record(&mut source(&blocks), base, &mut |_: &Block| {}).expect("profile");
        let never = AtomicBool::new(false);
        let rows = profile.remedies(base, (&Unnamed, what_if), &never, &mut Vec::new()).expect("remedies");
        let everywhere = rows.iter().find(|row| row.kind == RemedyKind::HugeEverywhere).expect("a row");
        assert!(everywhere.how.starts_with("MALLOC_CONF=thp:always; or echo always > "), "{}", everywhere.how);
        let mut kinds: Vec<(String, f64)> = rows
            .iter()
            .map(|row| (format!("{:?}", row.kind), 1.0 - row.translation_cycles / row.base_translation_cycles))
            .collect();
        kinds.sort_by(|a, b| a.0.cmp(&b.0));
        kinds
    };
    let names = |kinds: &[(String, f64)]| kinds.iter().map(|kind| kind.0.clone()).collect::<Vec<_>>();
    let base = Setup::new(preset("skylake").expect("preset"));
    assert_eq!(names(&kinds(&base, false)), ["HugeEverywhere", "HugeWhereHot"]);
    let all = ["HugeEverywhere", "HugeWhereHot", "LargerTlb", "LockedPages", "WalksHitLastCache"];
    assert_eq!(names(&kinds(&base, true)), all);
    // A guest of a host with small pages, whose TLB was never seen to hold a whole huge page.
    let host = ["page_table.host.format=x86-64-4level", "page_table.host.page_size=4K"].map(String::from);
    let mut guest = Setup::new(base.machine.with_overrides(&host).expect("a guest"));
    for tlb in guest.machine.tlbs.iter_mut().filter(|tlb| tlb.page_sizes.contains(&PageSize::K4)) {
        tlb.page_sizes = vec![PageSize::K4];
    }
    guest.machine.tlbs.retain(|tlb| tlb.page_sizes == [PageSize::K4]);
    let rows = kinds(&guest, false);
    assert_eq!(names(&rows), ["HugeEverywhere", "HugeOnHost", "HugeWhereHot", "OneStage"]);
    assert!(rows[0].1 < 0.6 && rows[1].1 > 0.9, "{rows:?}");
}

#[test]
fn rows_that_a_recorders_windows_are_not_exact_for_say_so() {
    let base = Setup::new(preset("skylake").expect("preset"));
    let blocks = random_reads(4);
    let approximate = |filter: FilterWindow| {
        let info = TraceInfo {
            granularity: Granularity::Page,
            filter_window: filter.pages,
            filter_log2_classes: filter.log2_classes,
            filter_class_pages: filter.class_pages,
            ..TraceInfo::default()
        };
        let mut source = Blocks { info, blocks: blocks.iter() };
        let mut profile = Profile::record(&mut source, &base, &mut |_: &Block| {}).expect("profile");
        let rows =
            profile.remedies(&base, (&Unnamed, true), &AtomicBool::new(false), &mut Vec::new()).expect("remedies");
        assert!(rows.len() > 3);
        let near = rows.iter().filter(|row| row.approximate).map(|row| row.what.split('(').next().map(str::to_owned));
        near.flatten().collect::<Vec<_>>()
    };
    assert_eq!(approximate(FilterWindow::default()), [""; 0]);
    let filter = remedies::filter(&base);
    assert_eq!(filter.log2_classes, 0);
    let mut near = approximate(filter.window);
    near.sort_unstable();
    assert_eq!(near, ["huge pages ", "huge pages for the hottest region "]);
}

#[test]
fn stopping_leaves_the_rows_over_what_ran() {
    let base = Setup::new(preset("skylake").expect("preset"));
    let blocks = random_reads(40);
    let mut profile = Profile::record(&mut source(&blocks), &base, &mut |_: &Block| {}).expect("profile");
    let mut notes = Vec::new();
    let rows = profile.remedies(&base, (&Unnamed, true), &AtomicBool::new(true), &mut notes).expect("remedies");
    assert!(rows.iter().all(|r| r.accesses_share < 1.0));
    assert!(notes.iter().any(|n| n.contains("cut short")), "{notes:?}");
}

#[test]
fn windows_keep_events_and_the_budget() {
    let blocks = random_reads(1000); // 10 M accesses, windows of 2 Mi
    let mut windows = SampledWindows::new(source(&blocks), 10_000_000, 5_000_000);
    let (mut block, mut accesses, mut events) = (Block::default(), 0, 0);
    while windows.next_block(&mut block).expect("memory") {
        accesses += block.len() as u64;
        events += block.events.len();
    }
    assert_eq!(events, 2);
    assert!((4_000_000..7_000_000).contains(&accesses), "{accesses}");
}
