//! The model, given a description made of measured costs, charges those costs.

use lookaside_engine::{Detail, Engine, Setup};
use lookaside_machine::{preset, PageSize};
use lookaside_probe::{
    CacheReport, CacheReports, CacheShape, Finding, Geometry, LevelReport, MeasuredRange, ProbeReport, WalkCosts,
    WalkReport,
};
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Kind};

fn seen(cycles: f64) -> Finding<MeasuredRange> {
    Finding::confirmed(MeasuredRange { low: cycles, high: cycles, passes: 2 }, Vec::new())
}

fn level(level: u32, entries: u32, ways: u32) -> LevelReport {
    let sets = entries / ways;
    let masks = (0..sets.ilog2()).map(|bit| 1 << bit).collect();
    LevelReport {
        level,
        page_size: PageSize::K4,
        geometry: Finding::confirmed(Geometry { entries, ways, sets, masks }, Vec::new()),
        miss_cycles: Finding::not_asked(),
        policy: Finding::not_asked(),
        trials: Vec::new(),
    }
}

fn cache(level: u32, cycles: f64, bytes: f64, shape: Finding<CacheShape>) -> CacheReport {
    let span = MeasuredRange { low: bytes / 2.0, high: bytes * 1.1, passes: 2 };
    CacheReport {
        level,
        cycles: seen(cycles),
        bytes: Finding::confirmed(span, Vec::new()),
        ways: Finding::not_asked(),
        shape,
    }
}

/// What was measured on a Zen 4, and the engine of it.
fn engine() -> Engine {
    let shape = Finding::confirmed(CacheShape { bytes: 32 << 10, ways: 8, sets: 64 }, Vec::new());
    let mib = f64::from(1 << 20);
    let caches = CacheReports {
        line_bytes: Finding::confirmed(64, Vec::new()),
        levels: vec![
            cache(1, 4.0, 32.0 * 1024.0, shape),
            cache(2, 14.0, mib, Finding::not_asked()),
            cache(3, 44.0, 8.0 * mib, Finding::not_asked()),
        ],
        memory_cycles: seen(390.0),
        memory_from: Some(16 << 20),
        curves: Vec::new(),
    };
    let far = WalkReport { place: lookaside_probe::PteLocation::Memory, table_bytes: 32 << 20, cycles: seen(490.0) };
    let walks = WalkCosts {
        second_level_cycles: seen(7.0),
        walks: vec![far],
        base_cycles: seen(35.0),
        first_cache_level: Finding::confirmed(1, Vec::new()),
    };
    let report = ProbeReport {
        levels: vec![level(1, 72, 72), level(2, 3072, 12)],
        caches: Some(caches),
        walks: Some(walks),
        ..ProbeReport::default()
    };
    let machine = report.machine(&preset("ryzen-5900x").expect("a preset"));
    machine.check().expect("a possible machine");
    let mut setup = Setup::new(machine);
    setup.detail = Detail::Totals;
    Engine::new(setup).expect("an engine")
}

/// Hit cycles and walk cycles an access, and walks an access, of rounds through so many pages, eight apart, once warm.
fn costs(pages: u64) -> (f64, f64, f64) {
    let mut engine = engine();
    let mut order: Vec<u64> = (0..pages).collect();
    SplitMix64::new(1).shuffle(&mut order);
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    for page in order {
        block.push(Kind::Load, (page << 15) | ((page % 64) << 6));
    }
    for _ in 0..3 {
        engine.run(&block);
    }
    let before = engine.outcome().data.cost;
    engine.run(&block);
    let cost = engine.outcome().data.cost;
    let a_page = |after: f64, before: f64| (after - before) / pages as f64;
    let walks = a_page(cost.walks as f64, before.walks as f64);
    (a_page(cost.tlb_hit_cycles, before.tlb_hit_cycles), a_page(cost.walk_cycles, before.walk_cycles), walks)
}

#[test]
fn costs_are_those_measured() {
    // Twice the first level, and five pages in each of the 32 sets of the second that they meet in.
    let (hits, _, walks) = costs(160);
    assert!((hits - 7.0).abs() < 0.1 && walks < 0.01, "{hits} {walks}");
    // Sets get more pages than ways: all walk; 256 KiB of leaf entries and as much data are in the second-level cache.
    let (_, cycles, walks) = costs(4096);
    assert!((walks - 1.0).abs() < 0.01, "{walks}");
    // Some meet in a set of that cache and are in the third.
    assert!((cycles / (35.0 + 14.0) - 1.0).abs() < 0.05, "{cycles}");
}
