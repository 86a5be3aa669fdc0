//! The threaded profile against the plain engine, and what the "what would help" rows say.

use std::sync::atomic::AtomicBool;

use lookaside_engine::curve::CurveBuilder;
use lookaside_engine::{Engine, PagePolicy, Setup};
use lookaside_machine::{preset, PageSize};
use lookaside_techniques::names::Unnamed;
use lookaside_techniques::{remedies, Profile, Remedy, RemedyKind, WantedRemedies};
use lookaside_timing::CodePlace;
use lookaside_trace::{Block, Event, FilterWindow, Granularity, Kind, MapSource, MemorySource, TraceInfo};

/// All rows.
const ALL: WantedRemedies = WantedRemedies { what_if: true, exact: false, seed: 1 };

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

fn source(blocks: &[Block]) -> MemorySource {
    MemorySource::new(TraceInfo::default(), blocks.to_vec())
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
fn bands_are_named_by_their_own_processs_mappings() {
    let block = |process, path: &str| {
        let mut block = Block { process, thread: 1, ..Block::default() };
        let source = MapSource::File { path: path.into(), offset: 0 };
        block.push_event(Event::Map { addr: 0x1000, len: 0x1000, prot: 1, source, site: 0 });
        block.push(Kind::Load, 0x1000);
        block.push(Kind::Load, 0x8000);
        block
    };
    let blocks = [block(2, "/lib/b"), block(1, "/lib/a"), block(3, "/lib/c")];
    let base = Setup::new(preset("skylake").expect("preset"));
    let mut profile = Profile::record(&mut source(&blocks), &base, &mut |_: &Block| {}).expect("profile");
    let heat = profile.take_heat(&Unnamed);
    let names: Vec<(u32, &str)> = heat.rows.iter().map(|row| (row.process, &row.name[..])).collect();
    assert_eq!(names, [(1, "a"), (1, ""), (2, "b"), (2, ""), (3, "c"), (3, "")]);
}

#[test]
fn visits_are_told_by_place_with_their_cost_and_what_waits() {
    const AT: u64 = 1 << 40;
    let base = Setup::new(preset("skylake").expect("preset"));
    // Two instructions that read 150 pages each in turns, a third that reads one, and one that stores to it.
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    for (addr, source) in [(AT, MapSource::Anonymous), (2 * AT, MapSource::Stack)] {
        block.push_event(Event::Map { addr, len: 2 << 20, prot: 3, source, site: 0 });
    }
    for i in 0..3000u64 {
        for (ip, kind, addr) in [
            (0x1000, Kind::Load, AT + i % 150 * 4096),
            (0x1004, Kind::Load, AT + (150 + i % 150) * 4096),
            (0x2000, Kind::Load, 2 * AT),
            (0x2004, Kind::Store, 2 * AT),
        ] {
            block.push(kind, addr);
            block.ip.push(ip);
        }
    }
    block.push_event(Event::Waits { ip: 0x1000, visits: 4, waits: 1 });
    block.push_event(Event::Waits { ip: 0x1004, visits: 4, waits: 3 });
    let mut profile = Profile::record(&mut source(&[block.clone()]), &base, &mut |_: &Block| {}).expect("profile");
    let place = |process: u32, ip: u64| CodePlace { file: process.to_string(), offset: ip >> 12 };
    let visits = profile.visits(&place, &|_| true).expect("visits");
    let misses = |ip: u64| {
        let rows = profile.outcome.instructions_rows.iter().filter(|row| row.ip == ip);
        rows.fold((0, 0.0), |sum, row| (sum.0 + row.cost.l1_misses, sum.1 + row.cost.cycles()))
    };
    let [one, other, third, last] = [0x1000, 0x1004, 0x2000, 0x2004].map(misses);
    assert!(one.0 > 2900 && other.0 > 2900, "{one:?} {other:?}");
    let both = &visits.sites[&place(1, 0x1000)];
    assert_eq!(both.visits, one.0 + other.0);
    assert!((both.waiting_visits - 0.25 * one.0 as f64 - 0.75 * other.0 as f64).abs() < 1e-6, "{both:?}");
    assert!((both.translation_cycles - one.1 - other.1).abs() < 1e-6, "{both:?}");
    let rest = &visits.sites[&place(1, 0x2000)];
    assert_eq!((visits.sites.len(), rest.visits, rest.waiting_visits), (2, third.0 + last.0, 0.0));
    assert_eq!((visits.total, visits.waiting), (both.visits + rest.visits, Some(both.waiting_visits)));
    // All of the run is replayed. Of 301 pages the first level's 64 entries keep the one alone.
    assert_eq!(visits.run.windows.len(), 1);
    assert_eq!(visits.run.windows[0].visits.len(), 6001);
    assert_eq!((visits.small_pages, visits.huge_pages, visits.unasked_pages), (300, 1, 0));
    let unasked = profile.visits(&place, &|_| false).expect("visits");
    assert_eq!((unasked.small_pages, unasked.huge_pages, unasked.unasked_pages), (0, 0, 300));
    // A recorder that says nothing of waiting leaves it open.
    block.events.retain(|(_, event)| !matches!(event, Event::Waits { .. }));
    let mut silent = Profile::record(&mut source(&[block]), &base, &mut |_: &Block| {}).expect("profile");
    assert_eq!(silent.visits(&place, &|_| true).expect("visits").waiting, None);
}

#[test]
fn what_did_nothing_has_no_rows_and_needs_no_word() {
    let base = Setup::new(preset("skylake").expect("preset"));
    let mut profile = Profile::record(&mut source(&[]), &base, &mut |_: &Block| {}).expect("profile");
    let mut notes = Vec::new();
    let rows = profile.remedies(&base, (&Unnamed, ALL), &AtomicBool::new(false), &mut notes).expect("remedies");
    assert_eq!((rows, notes), (Vec::new(), Vec::<String>::new()));
}

#[test]
fn remedies_are_runs_of_the_model() {
    let base = Setup::new(preset("skylake").expect("preset"));
    let blocks = random_reads(40);
    let mut profile = Profile::record(&mut source(&blocks), &base, &mut |_: &Block| {}).expect("profile");
    let mut notes = Vec::new();
    let rows = profile.remedies(&base, (&Unnamed, ALL), &AtomicBool::new(false), &mut notes).expect("remedies");
    assert!(notes.is_empty(), "{notes:?}");
    assert!(rows.windows(2).all(|w| w[0].saved_share >= w[1].saved_share), "best first");
    let (baked, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.kind == RemedyKind::Baked);
    // A helper makes walks cheaper, and none of them less. It is run over windows.
    assert_eq!((baked.len(), baked[0].windows, baked[0].walks), (1, 64, baked[0].base_walks));
    assert!(baked[0].accesses_share < 1.0 && baked[0].caveat.starts_with("the helper takes a CPU to itself"));
    for row in &rows {
        assert_eq!((row.accesses_share, row.windows), (1.0, 0));
        assert_eq!([row.least_saved_share, row.most_saved_share], [Some(row.saved_share); 2]);
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
    // Both mappings have sixteen windows; each of the upper one's has three times as many walks.
    let hot = rows.iter().find(|r| r.kind == RemedyKind::HugeWhereHot).expect("row");
    let count: usize = hot
        .how
        .strip_prefix("lookaside hugepages run --budget ")
        .and_then(|how| how.split(' ').next())
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(hot.what, format!("huge pages for the {count} best windows"));
    assert!(hot.caveat.starts_with("of 32, by walk cycles"), "{}", hot.caveat);
    assert!((17..32).contains(&count), "{count}");
    assert_eq!(hot.how.split("; or ").nth(1), Some("madvise(MADV_HUGEPAGE) on anonymous"));
    // All pages of it are touched.
    assert_eq!((row.bloat_bytes, hot.bloat_bytes), (Some(0), Some(0)));
    assert!(
        hot.saved_share > 0.8 * row.saved_share && hot.walks > row.walks,
        "{} {}",
        hot.saved_share,
        row.saved_share
    );
    assert!(rows.iter().any(|r| r.what.starts_with("twice the last-level TLB (stlb: 1536 → 3072")), "{rows:?}");
    assert!(rows.iter().any(|r| r.what.starts_with("every walk reference served by")));
    assert!(rows.iter().any(|r| r.what.starts_with("the 4 best pages locked")));
}

#[test]
fn exact_rows_are_of_the_whole_run() {
    let base = Setup::new(preset("skylake").expect("preset"));
    let blocks = random_reads(40);
    let mut profile = Profile::record(&mut source(&blocks), &base, &mut |_: &Block| {}).expect("profile");
    let mut rows = |wanted| {
        let rows = profile.remedies(&base, (&Unnamed, wanted), &AtomicBool::new(false), &mut Vec::new());
        rows.expect("remedies").into_iter().find(|row| row.kind == RemedyKind::Baked).expect("a row")
    };
    let whole = rows(WantedRemedies { exact: true, ..ALL });
    assert_eq!((whole.windows, whole.accesses_share), (0, 1.0));
    assert_eq!([whole.least_saved_share, whole.most_saved_share], [Some(whole.saved_share); 2]);
    // Windows lie elsewhere with another seed.
    let [one, same, other] = [1, 1, 2].map(|seed| rows(WantedRemedies { seed, ..ALL }));
    assert!(one == same && one.translation_cycles != other.translation_cycles);
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
        let rows = profile
            .remedies(base, (&Unnamed, WantedRemedies { what_if, ..ALL }), &never, &mut Vec::new())
            .expect("remedies");
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
    assert_eq!(names(&kinds(&base, false)), ["Baked", "HugeEverywhere", "HugeWhereHot"]);
    let all = ["Baked", "HugeEverywhere", "HugeWhereHot", "LargerTlb", "LockedPages", "WalksHitLastCache"];
    assert_eq!(names(&kinds(&base, true)), all);
    // A guest of a host with small pages, whose TLB was never seen to hold a whole huge page.
    let host = ["page_table.host.format=x86-64-4level", "page_table.host.page_size=4K"].map(String::from);
    let mut guest = Setup::new(base.machine.with_overrides(&host).expect("a guest"));
    for tlb in guest.machine.tlbs.iter_mut().filter(|tlb| tlb.page_sizes.contains(&PageSize::K4)) {
        tlb.page_sizes = vec![PageSize::K4];
    }
    guest.machine.tlbs.retain(|tlb| tlb.page_sizes == [PageSize::K4]);
    let rows = kinds(&guest, false);
    assert_eq!(names(&rows), ["Baked", "HugeEverywhere", "HugeOnHost", "HugeWhereHot", "OneStage"]);
    assert!(rows[1].1 < 0.6 && rows[2].1 > 0.9, "{rows:?}");
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
        let mut source = MemorySource::new(info, blocks.clone());
        let mut profile = Profile::record(&mut source, &base, &mut |_: &Block| {}).expect("profile");
        let rows =
            profile.remedies(&base, (&Unnamed, ALL), &AtomicBool::new(false), &mut Vec::new()).expect("remedies");
        assert!(rows.len() > 3);
        rows.iter().filter(|row| row.approximate).map(|row| format!("{:?}", row.kind)).collect::<Vec<_>>()
    };
    assert_eq!(approximate(FilterWindow::default()), [""; 0]);
    let filter = remedies::filter(&base);
    assert_eq!(filter.log2_classes, 0);
    let mut near = approximate(filter.window);
    near.sort_unstable();
    assert_eq!(near, ["HugeEverywhere", "HugeWhereHot"]);
}

#[test]
fn stopping_leaves_the_rows_over_what_ran() {
    let base = Setup::new(preset("skylake").expect("preset"));
    let blocks = random_reads(40);
    let mut profile = Profile::record(&mut source(&blocks), &base, &mut |_: &Block| {}).expect("profile");
    let mut notes = Vec::new();
    let rows = profile.remedies(&base, (&Unnamed, ALL), &AtomicBool::new(true), &mut notes).expect("remedies");
    assert!(rows.iter().all(|r| r.accesses_share < 1.0));
    assert!(notes.iter().any(|n| n.contains("cut short")), "{notes:?}");
}

/// Rows of a program by their kinds.
fn rows_by_kind(blocks: &[Block], base: &Setup) -> Vec<(RemedyKind, Remedy)> {
    let mut profile = Profile::record(&mut source(blocks), base, &mut |_: &Block| {}).expect("profile");
    let rows = profile
        .remedies(base, (&Unnamed, WantedRemedies { what_if: false, ..ALL }), &AtomicBool::new(false), &mut Vec::new())
        .expect("remedies");
    rows.into_iter().map(|row| (row.kind, row)).collect()
}

/// One thread that fetches at random from a file's code, and reads one page.
fn random_fetches(text: u64, path: &str) -> Vec<Block> {
    const TEXT: u64 = 0x40_0000;
    let mut state = 3u64;
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    let file = MapSource::File { path: path.into(), offset: 0 };
    block.push_event(Event::Map { addr: TEXT, len: text, prot: 5, source: file, site: 0 });
    block.push_event(Event::Map { addr: 1 << 40, len: 4 << 20, prot: 3, source: MapSource::Anonymous, site: 0 });
    for number in 0..40_000u64 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let ip = TEXT + (state >> 33) % text;
        for (kind, addr) in [(Kind::Fetch, ip), (Kind::Load, (1 << 40) + number % 64 * 64)] {
            block.push(kind, addr);
            block.ip.push(ip);
        }
    }
    vec![block]
}

#[test]
fn code_has_a_row_where_its_walks_matter_and_a_window_of_it_can_be_huge() {
    let base = Setup::new(preset("skylake").expect("preset"));
    let code = |text: u64, path: &str| {
        let rows = rows_by_kind(&random_fetches(text, path), &base);
        rows.into_iter().find(|row| row.0 == RemedyKind::HugeCode).map(|row| row.1)
    };
    let row = code(16 << 20, "/usr/bin/cc1").expect("a row");
    assert!(row.saved_share > 0.9, "{row:?}");
    assert_eq!(row.how, "lookaside hugepages run --text CMD");
    assert_eq!(code(16 << 20, "/usr/bin/node").expect("a row").how, "NODE_OPTIONS=--use-largepages=on");
    // Elsewhere in memory than in huge pages of a page cache.
    let mut moved = random_fetches(16 << 20, "/usr/bin/cc1");
    let block = &mut moved[0];
    for addr in block.addr.iter_mut().chain(&mut block.ip).filter(|addr| **addr < 1 << 40) {
        *addr += 0x1000;
    }
    if let Event::Map { addr, .. } = &mut block.events[0].1 {
        *addr += 0x1000;
    }
    let row = rows_by_kind(&moved, &base).into_iter().find(|row| row.0 == RemedyKind::HugeCode).expect("a row").1;
    assert!(row.how == "lookaside hugepages run --text CMD" && row.saved_share > 0.8, "{row:?}");
    // Less than a window; and no fetches to speak of.
    assert_eq!(code(1 << 20, "/usr/bin/cc1"), None);
    assert!(rows_by_kind(&random_reads(4), &base).iter().all(|row| row.0 != RemedyKind::HugeCode));
}

#[test]
fn huge_pages_have_no_row_where_translation_costs_nothing_in_memory_that_could_be_huge() {
    let base = Setup::new(preset("skylake").expect("preset"));
    // All the cost is the code's but for the first touch of the one page. A baker's helper serves both.
    let huge = |kind: &RemedyKind| *kind != RemedyKind::Baked;
    let kinds =
        |blocks: &[Block]| rows_by_kind(blocks, &base).into_iter().map(|row| row.0).filter(huge).collect::<Vec<_>>();
    assert!(kinds(&random_fetches(16 << 20, "/usr/bin/cc1")).contains(&RemedyKind::HugeEverywhere));
    let mut blocks = random_fetches(16 << 20, "/usr/bin/cc1");
    for addr in blocks[0].addr.iter_mut().filter(|addr| **addr >= 1 << 40) {
        *addr = 0x40_0000;
    }
    assert_eq!(kinds(&blocks), [RemedyKind::HugeCode]);
}

#[test]
fn pages_of_a_gigabyte_have_a_row_where_a_mapping_and_the_tlb_hold_one() {
    let base = Setup::new(preset("skylake").expect("preset"));
    let reads = |len: u64| {
        let mut blocks = random_reads(4);
        blocks[0].events.clear();
        let source = MapSource::Anonymous;
        blocks[0].push_event(Event::Map { addr: 0x10_0000_0000, len, prot: 3, source, site: 0 });
        blocks[0].events[0].0 = 0;
        blocks
    };
    let row = |len: u64, base: &Setup| {
        let rows = rows_by_kind(&reads(len), base);
        rows.into_iter().find(|row| row.0 == RemedyKind::HugeGigabyte).map(|row| row.1)
    };
    let found = row(1 << 30, &base).expect("a row");
    assert!(found.walks <= 2 && found.saved_share > 0.99, "{found:?}");
    assert!(found.how.ends_with("hugepagesz=1G hugepages=1 on the kernel's command line"), "{}", found.how);
    assert!(found.bloat_bytes.is_some_and(|bytes| bytes > 900 << 20), "{found:?}");
    assert_eq!(row((1 << 30) - 4096, &base), None);
    let mut without = base.clone();
    without.machine.tlbs.retain(|tlb| tlb.page_sizes.iter().all(|size| *size < PageSize::G1));
    assert_eq!(row(1 << 30, &without), None);
}
