//! Hand-made analyses: a hash join that misses a lot, the same one sampled, and a program too small to matter.
//! The numbers are invented, but fit each other.
#![allow(dead_code)] // each user takes what it needs

use lookaside_engine::{CacheCounts, Cost, OsModel, Outcome, PageRow, RegionRow, Side, ThreadRow, TlbCounts};
use lookaside_machine::*;
use lookaside_report::{html, terminal, Style};
use lookaside_stats::Figure;
use lookaside_techniques::huge_gain::{Denominator, HugeGain, MeasuredGain, PredictedGain, TimeRatio};
use lookaside_techniques::*;
use lookaside_trace::{Granularity, MapSource};

fn tlb(name: &str, level: u32, fetch: bool, sizes: &[PageSize], entries: u32, ways: u32, hit_cycles: f64) -> Tlb {
    let data = [Serves::Load, Serves::Store];
    let serves = match (level, fetch) {
        (1, true) => vec![Serves::Fetch],
        (1, false) => data.to_vec(),
        _ => vec![Serves::Load, Serves::Store, Serves::Fetch],
    };
    Tlb {
        name: name.into(),
        level,
        serves,
        page_sizes: sizes.to_vec(),
        entries,
        ways: Ways::Count(ways),
        index: IndexFn::Linear,
        replacement: Replacement::Lru,
        tags: vec![Tag::Asid],
        lockable_entries: 0,
        coalesce_pages: 1,
        directory_entries: false,
        hit_cycles,
        shared_by: SharedBy::Core,
    }
}

fn cache(name: &str, level: u32, size: u64, ways: u32, hit_cycles: f64) -> Cache {
    Cache {
        name: name.into(),
        level,
        serves: vec![Serves::Load, Serves::Store],
        size,
        ways: Ways::Count(ways),
        line_bytes: 64,
        index: IndexFn::Linear,
        replacement: Replacement::Lru,
        write_allocate: true,
        filled_by: lookaside_machine::FilledBy::Misses,
        hit_cycles,
        shared_by: if level == 3 { SharedBy::Socket } else { SharedBy::Core },
    }
}

pub fn machine() -> Machine {
    use PageSize as P;
    Machine {
        name: "golden-cove".into(),
        description: "Intel Golden Cove (Sapphire Rapids)".into(),
        sources: vec!["Intel optimization manual 248966-050, table 2-6 (TLBs)".into(), "LAB: pointer chase".into()],
        clock_mhz: 3700.0,
        topology: Topology { sockets: 1, cores_per_socket: 4, threads_per_core: 2 },
        page_table: PageTable { format: TableFormat::X86_64L4, host: None },
        walker: Walker::default(),
        tlbs: vec![
            tlb("l1d", 1, false, &[P::K4], 96, 6, 0.0),
            tlb("l1d-2m", 1, false, &[P::M2], 32, 4, 0.0),
            tlb("l1i", 1, true, &[P::K4], 256, 8, 0.0),
            tlb("l2-a", 2, false, &[P::K4, P::M2], 1024, 8, 7.0),
            tlb("l2-b", 2, false, &[P::K4, P::G1], 1024, 8, 7.0),
        ],
        walk_caches: vec![WalkCache {
            name: "pde".into(),
            table_level: 2,
            entries: 32,
            ways: Ways::Count(4),
            replacement: Replacement::Lru,
            hit_cycles: 0.0,
            stage: Stage::Guest,
            shared_by: SharedBy::Core,
        }],
        caches: vec![
            cache("l1d", 1, 48 << 10, 12, 5.0),
            cache("l2", 2, 2 << 20, 16, 15.0),
            cache("l3", 3, 30 << 20, 12, 70.0),
        ],
        memory: Memory { cycles: 330.0, bytes_per_second: None },
        stream: None,
        context_switch: ContextSwitch::default(),
        disturbances: Vec::new(),
        timing: None,
        origins: Default::default(),
        not_determined: vec!["replacement of the second level: no public source; LRU assumed".into()],
    }
}

fn cost(l1_misses: u64, walks: u64, cycles_a_walk: f64) -> Cost {
    Cost {
        l1_misses,
        walks,
        walk_references: walks + walks / 4,
        walk_references_memory: walks / 7,
        tlb_hit_cycles: (l1_misses - walks) as f64 * 7.0,
        walk_cycles: walks as f64 * cycles_a_walk,
    }
}

fn named(name: &str, bytes: u64, addr: u64, source: Option<MapSource>, accesses: u64, cost: Cost) -> NamedCost {
    NamedCost { name: name.into(), process: 4711, bytes, addr, source, accesses, cost, samples: 0 }
}

fn file(path: &str) -> Option<MapSource> {
    Some(MapSource::File { path: path.into(), offset: 0 })
}

fn servers(total: u64, shares: [u64; 4]) -> Vec<(String, u64)> {
    ["l1d", "l2", "l3", "memory"]
        .iter()
        .zip(shares)
        .map(|(name, share)| (name.to_string(), total * share / 100))
        .collect()
}

fn outcome() -> Outcome {
    let data = cost(1_090_000_000, 160_200_000, 61.0);
    let fetch = cost(2_400_000, 60_000, 24.0);
    Outcome {
        machine: "golden-cove".into(),
        data: Side {
            accesses: 12_412_345_678,
            cost: data,
            walks_by_page_size: vec![(PageSize::K4, data.walks)],
            walk_references_by_server: servers(data.walk_references, [18, 33, 34, 15]),
            walk_references_by_table: vec![("guest L1".into(), data.walks), ("guest L2".into(), data.walks / 4)],
            data_stall_cycles: 20_400_000_000.0,
        },
        fetch: Side {
            accesses: 9_120_004_112,
            cost: fetch,
            walks_by_page_size: vec![(PageSize::K4, fetch.walks)],
            walk_references_by_server: servers(fetch.walk_references, [40, 40, 18, 2]),
            walk_references_by_table: vec![("guest L1".into(), fetch.walks), ("guest L2".into(), fetch.walks / 4)],
            data_stall_cycles: 100_000_000.0,
        },
        tlbs: machine()
            .tlbs
            .iter()
            .map(|t| TlbCounts {
                name: t.name.clone(),
                level: t.level,
                lookups: if t.level == 1 { 12_412_345_678 } else { 1_092_400_000 },
                hits: if t.level == 1 { 11_322_345_678 } else { 466_000_000 },
                fills: 80_000_000,
                evictions: 79_998_976,
                ..TlbCounts::default()
            })
            .collect(),
        walk_caches: vec![CacheCounts {
            name: "pde".into(),
            walk_lookups: 160_260_000,
            walk_hits: 120_195_000,
            ..CacheCounts::default()
        }],
        caches: vec![
            CacheCounts {
                name: "l1d".into(),
                data_lookups: 2_100_000_000,
                data_hits: 1_200_000_000,
                walk_lookups: 200_325_000,
                walk_hits: 36_000_000,
            },
            CacheCounts {
                name: "l2".into(),
                data_lookups: 900_000_000,
                data_hits: 610_000_000,
                walk_lookups: 164_000_000,
                walk_hits: 66_000_000,
            },
        ],
        loads: 9_000_000_000,
        stores: 3_412_345_678,
        instructions: 9_120_004_112,
        context_switches: 12,
        shootdowns: 340,
        switch_cycles: 0.0,
        pages_touched: vec![(PageSize::K4, 1_120_455)],
        table_bytes: 9_216_000,
        regions: vec![RegionRow {
            process: 4711,
            start: 0x7f31_0000_0000,
            end: 0x7f31_0000_0000 + 2_254_857_830,
            source: MapSource::Anonymous,
            site: vec![0x5601_2a00_1010],
            pages: 550_502,
            accesses: 5_100_000_000,
            cost: cost(720_000_000, 121_000_000, 63.0),
        }],
        threads: [(4711, 9, 10), (4712, 1, 10)]
            .map(|(thread, part, of)| ThreadRow {
                process: 4711,
                thread,
                accesses: 21_532_349_790 / of * part,
                cost: cost(1_092_400_000 / of * part, 160_260_000 / of * part, 61.0),
            })
            .to_vec(),
        pages: (0..1500u64)
            .map(|i| PageRow {
                process: 4711,
                addr: 0x7f31_0000_0000 + ((i * 7919) % 65536) * 4096,
                size: PageSize::K4,
                region: Some(0),
                accesses: 90_000 - 11 * i,
                cost: cost(9_000 - i, 3_000 - i, 61.0),
            })
            .collect(),
        ..Outcome::default()
    }
}

fn curve(accesses: u64, estimate: bool) -> MissCurve {
    let knee = |entries: f64| {
        0.19 / (1.0 + entries / 14.0)
            + 0.075 * (-entries / 1500.0).exp()
            + 0.012 * (-entries / 90_000.0).exp()
            + 0.000_09
    };
    let misses = |entries: f64| (knee(entries) * accesses as f64) as u64;
    let mut sizes: Vec<u64> = (0..=20u32).flat_map(|p| [1u64 << p, 3 << p >> 1]).collect();
    sizes.sort_unstable();
    sizes.dedup();
    MissCurve {
        accesses,
        cold_misses: (accesses as f64 * 0.000_09) as u64,
        fully_associative: sizes.iter().map(|&e| (e, misses(e as f64))).collect(),
        set_associative: [16u32, 64, 128, 256]
            .iter()
            .map(|&sets| SetCurve {
                sets,
                misses_by_ways: (1..=16)
                    .map(|w| misses(f64::from(sets * w) * 0.8).saturating_add(accesses / 900))
                    .collect(),
            })
            .collect(),
        estimate,
    }
}

fn heat() -> HeatMap {
    let columns = 96u64;
    let mappings: [(&str, u64, u64, usize); 6] = [
        ("/usr/local/bin/hashjoin", 0x5601_2a00_0000, 1 << 16, 2),
        ("[heap]", 0x5601_2c40_0000, 1 << 20, 4),
        ("anonymous, mapped at build_table (join.c:88)", 0x7f31_0000_0000, 64 << 20, 24),
        ("anonymous, mapped at read_rows (csv.c:203)", 0x7f33_8000_0000, 16 << 20, 12),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", 0x7f34_1000_0000, 1 << 18, 3),
        ("[stack]", 0x7ffd_3000_0000, 1 << 15, 2),
    ];
    let mut rows = Vec::new();
    for (m, (name, start, band, bands)) in mappings.iter().enumerate() {
        for b in 0..*bands as u64 {
            let accesses = (0..columns)
                .map(|c| {
                    let noise = (c.wrapping_mul(2_654_435_761) ^ (b * 40_503 + m as u64 * 977))
                        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        >> 58;
                    match m {
                        2 if c < 30 => (c * *bands as u64 / 30 == b) as u64 * 60_000 + noise * 10,
                        2 => 9_000 + noise * 300,
                        3 if c < 30 => 20_000 * u64::from(c * 12 / 30 == b),
                        3 => 4_000 * u64::from((c - 30) * 12 / 66 == b),
                        1 => noise * u64::from(c % 3 == 0),
                        _ => 200 + noise * 20,
                    }
                })
                .collect();
            rows.push(HeatRow {
                process: 4711,
                start: start + b * band,
                end: start + (b + 1) * band,
                name: name.to_string(),
                accesses,
            });
        }
    }
    HeatMap { accesses_per_column: 12_412_345_678 / columns, rows }
}

fn remedy(kind: RemedyKind, what: &str, translation: f64, walks: u64, how: &str, caveat: &str, share: f64) -> Remedy {
    let base = outcome();
    let walk_cycles = base.data.cost.walk_cycles + base.fetch.cost.walk_cycles;
    Remedy {
        kind,
        what: what.into(),
        translation_cycles: base.translation_cycles() * translation * share,
        base_translation_cycles: base.translation_cycles() * share,
        walk_cycles: walk_cycles * translation * share,
        base_walk_cycles: walk_cycles * share,
        walks: (walks as f64 * share) as u64,
        base_walks: ((base.data.cost.walks + base.fetch.cost.walks) as f64 * share) as u64,
        base_modelled_cycles: base.modelled_cycles() * share,
        saved_share: 1.0 - translation,
        least_saved_share: Some(1.0 - translation - if share < 1.0 { 0.02 } else { 0.0 }),
        most_saved_share: Some((1.0 - translation + if share < 1.0 { 0.02 } else { 0.0 }).min(1.0)),
        windows: if share < 1.0 { 16 } else { 0 },
        accesses: (base.data.accesses as f64 * share) as u64,
        accesses_share: share,
        approximate: false,
        how: how.into(),
        caveat: caveat.into(),
        bloat_bytes: None,
    }
}

/// A hash join seen exactly, page-granular.
pub fn exact() -> Analysis {
    let mut analysis = without_gain();
    analysis.huge_gain = gain(&analysis, None);
    analysis
}

/// The same, without a native run.
pub fn once() -> Analysis {
    let mut analysis = Analysis { native: None, replay: None, waiting_share: None, ..without_gain() };
    analysis.huge_gain = gain(&analysis, None);
    analysis
}

/// What huge pages gain, beside these times of it.
pub fn gain(analysis: &Analysis, measured: Option<MeasuredGain>) -> HugeGain {
    HugeGain::new(&crate::native::evidence(analysis), measured)
}

/// The same, and huge pages measured: so many times as fast in user time, give or take a fiftieth.
pub fn timed(ratio: f64, rounds: u32) -> Analysis {
    let mut analysis = without_gain();
    let time = |base_seconds: f64, ratio: f64| TimeRatio {
        base_seconds,
        huge_seconds: base_seconds / ratio,
        ratio,
        low: ratio * 0.98,
        high: ratio * 1.02,
        significant: rounds >= 5 && (ratio * 0.98 > 1.0 || ratio * 1.02 < 1.0),
    };
    let (user, wall) = (Some(time(11.2, ratio)), Some(time(12.9, ratio * 0.97)));
    analysis.huge_gain = gain(&analysis, Some(MeasuredGain { rounds, cpu: None, user, wall, huge_share: Some(0.913) }));
    analysis
}

fn without_gain() -> Analysis {
    Analysis {
        version: "0.1.0".into(),
        command: ["hashjoin", "--build", "orders.csv", "--probe", "lineitem.csv", "--threads", "1"].map(String::from).to_vec(),
        seeing: Seeing::Exact { recorder: "valgrind".into(), granularity: Granularity::Page, window: 0 },
        machine: machine(),
        machine_reason: "the preset nearest to the running CPU, Intel Xeon Platinum 8481C".into(),
        os: OsModel::default(),
        seed: 1,
        outcome: outcome(),
        intervals: None,
        curve: Some(curve(12_412_345_678, false)),
        objects: vec![
            named("build_table (join.c:88)", 2_254_857_830, 0x7f31_0000_0000, None, 5_100_000_000, cost(720_000_000, 121_000_000, 63.0)),
            named("read_rows (csv.c:203)", 805_306_368, 0x7f33_8000_0000, None, 2_300_000_000, cost(160_000_000, 24_400_000, 52.0)),
            named("std::vector<std::pair<unsigned long, Row*>, arena_allocator<std::pair<unsigned long, Row*>>>::reserve (bits/vector.tcc:72)", 268_435_456, 0x7f34_0000_0000, None, 800_000_000, cost(60_000_000, 5_100_000, 40.0)),
            named("intern_string (strings.c:41)", 67_108_864, 0x7f34_2000_0000, None, 400_000_000, cost(31_000_000, 1_200_000, 31.0)),
            named("output_buffer (out.c:17)", 1_048_576, 0x7f34_3000_0000, None, 100_000_000, cost(2_000_000, 8_000, 20.0)),
            named("getline (libio/iogetdelim.c:98)", 131_072, 0x5601_2c40_0000, None, 90_000_000, cost(400_000, 900, 18.0)),
        ],
        regions: vec![
            named("anonymous, mapped at build_table (join.c:88)", 2_254_857_830, 0x7f31_0000_0000, Some(MapSource::Anonymous), 5_100_000_000, cost(720_000_000, 121_000_000, 63.0)),
            named("anonymous, mapped at read_rows (csv.c:203)", 805_306_368, 0x7f33_8000_0000, Some(MapSource::Anonymous), 2_300_000_000, cost(160_000_000, 24_400_000, 52.0)),
            named("[heap]", 67_108_864, 0x5601_2c40_0000, Some(MapSource::Heap), 2_100_000_000, cost(140_000_000, 11_000_000, 44.0)),
            named("/usr/lib/x86_64-linux-gnu/libc.so.6", 1_925_120, 0x7f34_1000_0000, file("/usr/lib/x86_64-linux-gnu/libc.so.6"), 1_100_000_000, cost(22_000_000, 400_000, 30.0)),
            named("/usr/local/bin/hashjoin", 131_072, 0x5601_2a00_0000, file("/usr/local/bin/hashjoin"), 300_000_000, cost(4_000_000, 20_000, 25.0)),
            named("[stack]", 139_264, 0x7ffd_3000_0000, Some(MapSource::Stack), 1_500_000_000, cost(3_000_000, 1_000, 20.0)),
        ],
        functions: vec![
            named("probe (join.c:131)", 0, 0x5601_2a00_1200, None, 0, cost(690_000_000, 116_000_000, 63.0)),
            named("build_table (join.c:96)", 0, 0x5601_2a00_1000, None, 0, cost(190_000_000, 30_000_000, 58.0)),
            named("parse_row (csv.c:120)", 0, 0x5601_2a00_2200, None, 0, cost(120_000_000, 9_900_000, 41.0)),
            named("__memmove_avx_unaligned_erms (libc.so.6)", 0, 0x7f34_1000_1200, None, 0, cost(61_000_000, 2_800_000, 33.0)),
            named("hash64 (hash.h:22)", 0, 0x5601_2a00_2600, None, 0, cost(9_000_000, 300_000, 30.0)),
            named("malloc_consolidate (libc.so.6)", 0, 0x7f34_1000_9200, None, 0, cost(4_000_000, 90_000, 30.0)),
        ],
        remedies: vec![
            remedy(RemedyKind::HugeEverywhere, "huge pages everywhere", 0.061, 1_400_000, "glibc: GLIBC_TUNABLES=glibc.malloc.hugetlb=1; or echo always > /sys/kernel/mm/transparent_hugepage/enabled", "memory bloat and fault cost are not counted", 1.0),
            remedy(RemedyKind::HugeWhereHot, "huge pages for the 1076 best windows", 0.12, 9_800_000, "lookaside hugepages run --budget 1076 CMD; or madvise(MADV_HUGEPAGE) on build_table (join.c:88) and read_rows (csv.c:203)", "", 1.0),
            remedy(RemedyKind::WalksHitLastCache, "walks that always hit the l3", 0.71, 160_260_000, "a baker on another core (lookaside bake run)", "best case: no cost of the helper", 1.0),
            remedy(RemedyKind::LargerTlb, "twice the STLB (l2-a, l2-b: 1024 → 2048 entries each)", 0.83, 121_000_000, "", "other hardware", 0.62),
            remedy(RemedyKind::LockedPages, "the 8 best pages locked", 0.998, 160_000_000, "", "golden-cove has no lockable entries", 0.62),
        ],
        huge_gain: HugeGain::default(),
        native: Some(crate::native::clock()),
        replay: Some(crate::native::replay()),
        waiting_share: Some(0.25),
        heat: heat(),
        left_out: Vec::new(),
        child_exit: Some(ChildExit::Code(0)),
        complete: true,
        notes: vec![
            "Valgrind runs one thread at a time: switches between threads are its own, not the kernel's.".into(),
            "Page-granular: stalls of data accesses are those of the first line of each visit to a page; the modelled cycles are too few by the rest, the share is too high by as much.".into(),
            "0.2 % of the instruction addresses have no symbol.".into(),
        ],
    }
}

/// The same, seen in intervals of its run, two of them in cold caches.
pub fn in_intervals() -> Analysis {
    let mut analysis = once();
    analysis.seeing = Seeing::Exact { recorder: "intervals".into(), granularity: Granularity::Page, window: 48 };
    let figure = |value, low, high| Some(Figure { value, low, high });
    analysis.intervals = Some(IntervalEstimate {
        intervals: 41,
        too_short: 3,
        cold: 2,
        cpu_seconds: 43.8,
        translation_share: figure(0.2871, 0.2713, 0.3029),
        walks_per_1000_accesses: figure(15.83, -0.2, 18.1),
    });
    analysis.huge_gain.predicted = PredictedGain::of_parts(9.6, 1.2, 43.8, Denominator::CpuTimeOfIntervals);
    analysis
}

/// The same program under the clock sampler.
pub fn sampled() -> Analysis {
    let mut analysis = exact();
    analysis.seeing = Seeing::Sampled { period_ns: 500_000, samples: 31_402, resolved: 28_633 };
    analysis.outcome = Outcome { machine: "golden-cove".into(), ..Outcome::default() };
    analysis.curve = Some(curve(28_633, true));
    analysis.remedies.clear();
    (analysis.huge_gain, analysis.native, analysis.replay) = (HugeGain::default(), None, None);
    analysis.heat = HeatMap::default();
    analysis.notes = vec!["8.8 % of the samples have no data address: 5.1 % were in code that touches no memory, 3.7 % could not be decoded.".into()];
    for rows in [&mut analysis.objects, &mut analysis.functions, &mut analysis.regions] {
        let mut samples = 17_000;
        for row in rows {
            (row.cost, row.accesses, row.samples) = (Cost::default(), 0, samples);
            samples /= 3;
        }
    }
    analysis
}

/// A program that translation costs next to nothing.
pub fn tiny() -> Analysis {
    let mut analysis = exact();
    analysis.command = vec!["true".into()];
    analysis.outcome = Outcome {
        machine: "golden-cove".into(),
        data: Side { accesses: 61_204, cost: cost(140, 71, 30.0), data_stall_cycles: 900_000.0, ..Side::default() },
        ..Outcome::default()
    };
    analysis.curve = None;
    analysis.objects.clear();
    analysis.functions.clear();
    analysis.regions =
        vec![named("[stack]", 139_264, 0x7ffd_3000_0000, Some(MapSource::Stack), 40_000, cost(100, 50, 30.0))];
    analysis.remedies.clear();
    (analysis.huge_gain, analysis.native, analysis.replay) = (HugeGain::default(), None, None);
    analysis.heat = HeatMap::default();
    analysis.notes.clear();
    analysis
}

/// Nothing at all was seen.
pub fn empty() -> Analysis {
    let mut analysis = tiny();
    analysis.outcome = Outcome::default();
    analysis.regions.clear();
    analysis.command.clear();
    analysis.complete = false;
    analysis.child_exit = Some(ChildExit::Signal(9));
    analysis
}

/// The analysis as a terminal shows it.
pub fn text_of(analysis: &Analysis, style: &Style) -> String {
    terminal::render(&lookaside_views::analysis::view(analysis), style)
}

/// The analysis as a page.
pub fn page_of(analysis: &Analysis) -> String {
    html::render(&lookaside_views::analysis::view(analysis))
}

/// Runs of the engine as a terminal shows them.
pub fn simulated(outcomes: &[Outcome], style: &Style) -> String {
    terminal::render(&lookaside_views::simulate::view(outcomes), style)
}

/// Text of the page without its elements, spaces run together; fails if it is not well-formed.
pub fn words(page: &str) -> String {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(page, options).expect("well-formed");
    let texts: Vec<&str> =
        document.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect();
    texts.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}
