use lookaside_engine::{Cost, LockedPage, Outcome, PagePolicy, PageRow, RegionRow, WalkModel};
use lookaside_machine::{preset, HostTable, PageSize, Serves, Stage, TableFormat, Ways};
use lookaside_trace::{Block, Event, FilterWindow, Kind, MapSource};

use super::*;
use crate::bake::{ModelledBaker, TargetFinder, TouchMethod};
use crate::names::Unnamed;

/// The base run on a machine with 4 KiB, 2 MiB and 1 GiB pages; on one with sections of 1 MiB and 4 lockable entries.
pub(super) fn skylake() -> Setup {
    Setup::new(preset("skylake").expect("a preset"))
}

pub(super) fn cortex_a9() -> Setup {
    Setup::new(preset("cortex-a9").expect("a preset"))
}

/// A guest of a host with pages of this size.
pub(super) fn guest(page_size: PageSize) -> Setup {
    let mut setup = skylake();
    let format = TableFormat::X86_64L4;
    setup.machine.page_table.host = Some(HostTable { format, page_size, memory_bits: None });
    setup
}

pub(super) fn walks(walk_cycles: f64) -> Cost {
    Cost { walk_cycles, ..Cost::default() }
}

/// A small page of no known mapping.
pub(super) fn page(process: u32, addr: u64, walk_cycles: f64) -> PageRow {
    PageRow { process, addr, size: PageSize::K4, region: None, accesses: 1, cost: walks(walk_cycles) }
}

pub(super) fn region(process: u32, start: u64, end: u64, source: MapSource) -> RegionRow {
    RegionRow { process, start, end, source, site: Vec::new(), pages: 0, accesses: 0, cost: Cost::default() }
}

pub(super) fn file(path: &str, offset: u64) -> MapSource {
    MapSource::File { path: path.into(), offset }
}

fn variant(kind: RemedyKind) -> RemedyVariant {
    let (what, how, caveat) = ("what".into(), "how".into(), "caveat".into());
    RemedyVariant { kind, what, setup: skylake(), how, caveat, bloat_bytes: Some(5) }
}

fn counts(accesses: u64, walks: u64, [walk_cycles, translation_cycles, modelled_cycles]: [f64; 3]) -> StretchCounts {
    StretchCounts { accesses, walks, walk_cycles, translation_cycles, modelled_cycles }
}

const WHOLE: RerunScope =
    RerunScope { is_sampled: false, accesses: 150, accesses_share: 0.25, whole: None, approximate: true };

/// The interval is wider by as much as the windows' cost without a change is off what the whole run has.
#[test]
fn windows_that_are_off_the_whole_run_widen_the_interval() {
    let base = [counts(100, 10, [80.0, 100.0, 1000.0]), counts(50, 5, [40.0, 60.0, 500.0])];
    let with = [counts(100, 4, [20.0, 30.0, 900.0]), counts(50, 2, [5.0, 10.0, 450.0])];
    let mut variant = hardware::twice_the_last_level(&skylake()).expect("a row");
    variant.bloat_bytes = None;
    let ends = |whole| {
        let row = compare(&variant, (&base, &with), RerunScope { is_sampled: true, whole, ..WHOLE }).expect("a row");
        [row.least_saved_share, row.most_saved_share].map(|end| end.expect("an end"))
    };
    // 15 walks of 120 cycles in all, and 40 cycles of hits.
    let ([least, most], same) = (ends(None), ends(Some(counts(150, 15, [120.0, 160.0, 1500.0]))));
    assert_eq!(same, [least, most]);
    // A quarter is left. Walks are a fifth too short, then a quarter too many, then hits too few by half.
    for (walks, cycles, reach) in
        [(15, [150.0, 190.0], 0.2 * 150.0 / 190.0), (12, [120.0, 160.0], 0.25 * 0.75), (15, [120.0, 200.0], 0.5 * 0.4)]
    {
        let [wider_least, wider_most] = ends(Some(counts(150, walks, [cycles[0], cycles[1], 1500.0])));
        assert!((least - wider_least - 0.25 * reach).abs() < 1e-12, "{walks} {cycles:?}");
        assert!((wider_most - (most + 0.25 * reach).min(1.0)).abs() < 1e-12, "{walks} {cycles:?}");
    }
}

#[test]
fn a_row_is_the_sums_side_by_side() {
    let base = [counts(100, 10, [80.0, 100.0, 1000.0]), counts(50, 5, [40.0, 60.0, 500.0])];
    let with = [counts(100, 4, [20.0, 30.0, 900.0]), counts(50, 2, [5.0, 10.0, 450.0])];
    let expected = Remedy {
        kind: RemedyKind::LargerTlb,
        what: "what".into(),
        translation_cycles: 40.0,
        base_translation_cycles: 160.0,
        walk_cycles: 25.0,
        base_walk_cycles: 120.0,
        walks: 6,
        base_walks: 15,
        base_modelled_cycles: 1500.0,
        saved_share: 0.75,
        least_saved_share: Some(0.75),
        most_saved_share: Some(0.75),
        windows: 0,
        accesses: 150,
        accesses_share: 0.25,
        approximate: true,
        how: "how".into(),
        caveat: "caveat".into(),
        bloat_bytes: Some(5),
    };
    let variant = variant(RemedyKind::LargerTlb);
    assert_eq!(compare(&variant, (&base, &with), WHOLE), Some(expected.clone()));
    // Of windows the interval is that of the ratio of what they save to what they cost.
    let saved = ratio_of_sums(&[(70.0, 100.0), (50.0, 60.0)]).expect("two windows");
    assert!(saved.low < 0.75 && saved.high > 1.0);
    let sampled = Remedy { least_saved_share: Some(saved.low), most_saved_share: Some(1.0), windows: 2, ..expected };
    assert_eq!(compare(&variant, (&base, &with), RerunScope { is_sampled: true, ..WHOLE }), Some(sampled));
}

#[test]
fn only_code_that_stays_as_it_is_has_no_row() {
    let base = [counts(100, 10, [80.0, 100.0, 1000.0])];
    let other = [counts(100, 10, [80.0, 99.0, 999.0])];
    let saved = |kind, with| compare(&variant(kind), (&base, with), WHOLE).map(|row| row.saved_share);
    assert_eq!(saved(RemedyKind::HugeCode, &base), None);
    assert_eq!(saved(RemedyKind::HugeEverywhere, &base), Some(0.0));
    assert_eq!([RemedyKind::HugeCode, RemedyKind::Baked].map(|kind| saved(kind, &other)), [Some(1.0 - 0.99); 2]);
    let free = [counts(100, 0, [0.0; 3])];
    assert_eq!(compare(&variant(RemedyKind::Baked), (&free, &base), WHOLE), None);
}

#[test]
fn what_saves_most_comes_first() {
    use RemedyKind::{Baked, HugeCode, LargerTlb, OneStage};
    let base = [counts(100, 10, [80.0, 100.0, 1000.0])];
    let row = |(kind, cycles): (RemedyKind, f64)| {
        compare(&variant(kind), (&base, &[counts(100, 10, [0.0, cycles, 0.0])]), WHOLE).expect("a cost")
    };
    let mut rows = [(Baked, 120.0), (OneStage, 50.0), (LargerTlb, 10.0), (HugeCode, 50.0)].map(row);
    rank(&mut rows);
    assert_eq!(rows.map(|row| row.kind), [LargerTlb, OneStage, HugeCode, Baked]);
}

fn kinds(base: &Setup, outcome: &Outcome, what_if: bool) -> Vec<RemedyKind> {
    let found = variants(base, RemedyContext { outcome, namer: &Unnamed, what_if });
    found.into_iter().map(|variant| variant.kind).collect()
}

#[test]
fn what_the_machine_at_hand_can_do_is_tried_unasked() {
    use RemedyKind::{HugeEverywhere, LargerTlb, LockedPages, WalksHitLastCache};
    let outcome = Outcome { pages: vec![page(1, 0x1000, 5.0)], ..Outcome::default() };
    assert_eq!(kinds(&skylake(), &outcome, false), [HugeEverywhere]);
    assert_eq!(kinds(&cortex_a9(), &outcome, false), [HugeEverywhere, LockedPages]);
    for base in [skylake(), cortex_a9()] {
        let all = [HugeEverywhere, LockedPages, LargerTlb, WalksHitLastCache];
        assert_eq!(kinds(&base, &outcome, true), all);
    }
}

#[test]
fn a_recorder_keeps_what_any_row_needs() {
    let base = skylake();
    let huge = huge::with_huge_pages(&base).expect("small pages");
    let own = Filter::exact_for(std::slice::from_ref(&base));
    assert!(own.window.pages > 0 && own.log2_classes > 0 && !own.stores_apart);
    assert_ne!(Filter::exact_for(&[base.clone(), huge]).window, own.window);
    let kept = filter(&base);
    assert_eq!((kept.window, kept.log2_classes, kept.stores_apart), (own.window, 0, false));
    // Loads and stores of huge pages have arrays of their own: one window serves no row but the base.
    let mut apart = base;
    let array = apart.machine.tlbs.iter().position(|tlb| tlb.name == "l1d-2m").expect("an array");
    let mut stores = apart.machine.tlbs[array].clone();
    (stores.name, stores.serves) = ("l1s-2m".into(), vec![Serves::Store]);
    apart.machine.tlbs[array].serves = vec![Serves::Load];
    apart.machine.tlbs.push(stores);
    let kept = filter(&apart);
    assert_eq!((kept.window, kept.stores_apart), (FilterWindow::default(), true));
}

#[test]
fn without_a_virtual_machine_nothing_of_the_host_is_left() {
    assert_eq!(hardware::without_host(&skylake()), None);
    let mut base = guest(PageSize::K4);
    let mut nested = base.machine.walk_caches[0].clone();
    (nested.name, nested.stage) = ("nested".into(), Stage::Host);
    base.machine.walk_caches.insert(0, nested);
    let row = hardware::without_host(&base).expect("a host");
    assert_eq!((row.kind, row.setup), (RemedyKind::OneStage, skylake()));
}

#[test]
fn the_last_level_has_twice_the_ways() {
    let row = hardware::twice_the_last_level(&skylake()).expect("a last level");
    let changes = "stlb: 1536 → 3072 entries, stlb-1g: 16 → 32 entries";
    assert_eq!((row.kind, row.what), (RemedyKind::LargerTlb, format!("twice the last-level TLB ({changes})")));
    let mut expected = skylake();
    for (name, entries, ways) in [("stlb", 3072, 24), ("stlb-1g", 32, 8)] {
        let tlb = expected.machine.tlbs.iter_mut().find(|tlb| tlb.name == name).expect("an array");
        (tlb.entries, tlb.ways) = (entries, Ways::Count(ways));
    }
    assert_eq!(row.setup, expected);
    // Arrays that serve fetches alone are no data's last level.
    let mut base = skylake();
    base.machine.tlbs.retain(|tlb| !tlb.serves.contains(&Serves::Load));
    assert_eq!(hardware::twice_the_last_level(&base), None);
}

#[test]
fn walks_hit_the_last_cache_that_loads_look_in() {
    let mut base = skylake();
    let mut deeper = base.machine.caches[1].clone();
    (deeper.name, deeper.level) = ("l4i".into(), 4);
    base.machine.caches.push(deeper);
    let row = hardware::walks_hit_last_cache(&base).expect("a cache");
    assert_eq!((row.kind, row.setup.walks), (RemedyKind::WalksHitLastCache, WalkModel::AlwaysAt("l3".into())));
    assert_eq!(row.what, "every walk reference served by l3");
    assert!(row.caveat.starts_with("each reference costs 44 cycles"), "{}", row.caveat);
    base.walks = WalkModel::CountOnly;
    assert_eq!(hardware::walks_hit_last_cache(&base), None);
}

#[test]
fn the_dearest_pages_are_locked() {
    let pages = [(2, 0x1000, 5.0), (1, 0x3000, 5.0), (1, 0x7000, 0.0), (1, 0x1000, 9.0), (1, 0x2000, 5.0)];
    let mut pages = pages.map(|(process, addr, cycles)| page(process, addr, cycles)).to_vec();
    // It costs something, but walks for nothing.
    pages[2].cost.tlb_hit_cycles = 100.0;
    let outcome = Outcome { pages, ..Outcome::default() };
    let places = [(1, 0x1000), (1, 0x2000), (1, 0x3000), (2, 0x1000)];
    let locks = |tlb: &str, count: usize| {
        let lock = |&(process, addr): &(u32, u64)| LockedPage { tlb: tlb.into(), process: Some(process), addr };
        places[..count].iter().map(lock).collect::<Vec<_>>()
    };
    let row = hardware::lock_best_pages(&skylake(), &outcome).expect("pages that cost");
    assert_eq!((&*row.what, row.setup.locks), ("the 4 best pages locked in stlb", locks("stlb", 4)));
    assert_eq!(row.caveat, "this machine has no lockable entries; 4 are assumed");
    assert_eq!(row.setup.machine.tlbs.iter().map(|tlb| tlb.lockable_entries).sum::<u32>(), 4);
    let mut base = cortex_a9();
    let main = base.machine.tlbs.iter_mut().find(|tlb| tlb.name == "main").expect("an array");
    main.lockable_entries = 3;
    let row = hardware::lock_best_pages(&base, &outcome).expect("pages that cost");
    assert_eq!((&*row.what, row.setup.locks), ("the 3 best pages locked in main", locks("main", 3)));
    assert_eq!(row.caveat, "pages chosen by walk cycles of this very run");
    assert_eq!(row.setup.machine, base.machine);
    let free = Outcome { pages: vec![outcome.pages[2].clone()], ..Outcome::default() };
    assert_eq!(hardware::lock_best_pages(&base, &free), None);
}

/// Of one block that maps and touches 8 MiB.
fn targets() -> TargetFinder {
    let mut block = Block { process: 5, thread: 5, ..Block::default() };
    block.push_event(Event::Map { addr: 0x4000_0000, len: 8 << 20, prot: 3, source: MapSource::Heap, site: 0 });
    (0..4).for_each(|at| block.push(Kind::Load, 0x4000_0000 + (at << 21)));
    let mut found = TargetFinder::default();
    found.run(&block);
    found
}

#[test]
fn a_helper_bakes_small_pages_whose_walks_read_memory() {
    let range = 0x4000_0000..0x4080_0000u64;
    let expected = ModelledBaker::new(TouchMethod::Prefetch, 5, vec![range]);
    assert_eq!(baked::helper(&skylake(), &targets()), Some(expected));
    assert_eq!(baked::helper(&skylake(), &TargetFinder::default()), None);
    for walks in [WalkModel::CountOnly, WalkModel::AlwaysAt("l3".into())] {
        assert_eq!(baked::helper(&Setup { walks, ..skylake() }, &targets()), None);
    }
    let mut huge = skylake();
    huge.os.pages = PagePolicy::Thp;
    assert_eq!(baked::helper(&huge, &targets()), None);
}

#[test]
fn baking_says_what_it_costs_beside_translation() {
    // 600 cycles beside translation become 700, of 1000 in all.
    let without = [counts(10, 1, [1.0, 100.0, 400.0]), counts(10, 1, [1.0, 300.0, 600.0])];
    let with = [counts(10, 1, [1.0, 50.0, 450.0]), counts(10, 1, [1.0, 150.0, 450.0])];
    let row = baked::variant(&skylake(), (&without, &with));
    assert_eq!((row.kind, &row.setup), (RemedyKind::Baked, &skylake()));
    assert!(row.caveat.contains("changes all cycles by +10.0 %,"), "{}", row.caveat);
    let row = baked::variant(&skylake(), (&with, &without));
    assert!(row.caveat.contains("changes all cycles by -11.1 %,"), "{}", row.caveat);
    let row = baked::variant(&skylake(), (&[], &[]));
    assert!(row.caveat.contains("changes all cycles by +0.0 %,"), "{}", row.caveat);
}
