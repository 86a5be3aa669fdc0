//! What a probe found, as text and page.

use lookaside_machine::PageSize;
use lookaside_probe::{
    CacheReport, CacheReports, CheckedClaim, Claim, CountProof, CountedMisses, CountedSet, Finding, Geometry,
    GiganticPages, HardwarePart, LatencyPoint, LevelReport, MeasuredRange, PartSize, PmuEvent, ProbeReport, TlbPolicy,
    TriedEvent, WalkCacheReport, WalkCacheSize, WalkCaches,
};
use lookaside_views::probe::view;

use crate::drawn::{page, text};

fn report() -> ProbeReport {
    let level = |level, geometry, policy| LevelReport {
        level,
        page_size: PageSize::K4,
        geometry,
        miss_cycles: match level {
            1 => Finding::confirmed(MeasuredRange { low: 6.96, high: 8.0, passes: 2 }, Vec::new()),
            _ => Finding::not_asked(),
        },
        policy,
        trials: Vec::new(),
    };
    let claim = |amount, ways, arrays, measured| {
        let part = HardwarePart::DataTlb { level: 1, page_size: PageSize::K4 };
        CheckedClaim::new(
            Claim { source: "CPUID 2".into(), part, shape: PartSize { amount, most: amount, ways }, arrays },
            measured,
        )
    };
    let proof = CountProof { near_per_kilo_access: 1.0, middle_per_kilo_access: None, far_per_kilo_access: 980.4 };
    let set = |fitting_per_round| CountedSet { level: 1, ways: 3, fitting_per_round, overflowing_per_round: 4.0 };
    let counted = TriedEvent {
        event: PmuEvent { name: "misses", code: 0x1245, counts: CountedMisses::FirstMisses, source: "a manual" },
        proof: Finding::confirmed(proof, Vec::new()),
        sets: vec![set(0.01), set(1.5)],
    };
    let masks = vec![0b1, 0b110];
    let geometry = Finding::confirmed(Geometry { entries: 12, ways: 3, sets: 4, masks }, Vec::new());
    let first = level(1, geometry, Finding::confirmed(TlbPolicy::Lru, Vec::new()));
    let gigantic = {
        let at = |level, geometry| LevelReport { level, page_size: PageSize::G1, geometry, ..first.clone() };
        let levels = vec![at(1, first.geometry.clone()), at(2, Finding::not_asked())];
        let levels = levels.into_iter().map(|level| LevelReport {
            miss_cycles: Finding::not_asked(),
            policy: Finding::not_asked(),
            ..level
        });
        let parts = [PageSize::G1, PageSize::M2].map(|part| Finding::confirmed(part, Vec::new()));
        GiganticPages { lacks: None, parts: parts.into(), levels: levels.collect() }
    };
    let reason = "no pages were found that evict each other from it, however many were tried";
    let second = level(2, Finding::not_determined(reason), Finding::not_asked());
    ProbeReport {
        seed: 7,
        cpu: Some(3),
        remarks: vec!["little memory".into()],
        cycles_per_tick: 1.25,
        levels: vec![first, second],
        measurements: 9,
        halted: Some("no time left".into()),
        counters: Finding::confirmed(vec![counted], Vec::new()),
        claims: vec![
            claim(16, Some((4, 4)), 2, Some(PartSize::new(12, 3))),
            claim(12, Some((2, 3)), 1, Some(PartSize::new(12, 3))),
            claim(9, None, 1, None),
        ],
        walk_caches: Some(WalkCaches {
            levels: vec![
                WalkCacheReport {
                    table_level: 2,
                    entries: Finding::confirmed(
                        WalkCacheSize { at_least: 32, at_most: 32, shape: Some((4, 8)) },
                        Vec::new(),
                    ),
                    miss_cycles: Finding::confirmed(MeasuredRange { low: 5.0, high: 5.5, passes: 2 }, Vec::new()),
                    passes_differ: false,
                    curves: Vec::new(),
                },
                WalkCacheReport {
                    table_level: 3,
                    entries: Finding::confirmed(WalkCacheSize { at_least: 57, at_most: 60, shape: None }, Vec::new()),
                    miss_cycles: Finding::not_determined("no two passes agree"),
                    passes_differ: false,
                    curves: Vec::new(),
                },
            ],
        }),
        gigantic: Some(gigantic),
        ..ProbeReport::default()
    }
}

#[test]
fn values_and_reasons_are_told() {
    let expected = "\
Translation hardware as measured: CPU 3
Beware: little memory.
Cut short: no time left. This is what was known by then.
2 values not determined.
method  9 measurements, 1.250 core cycles a timer tick, seed 7

TLB      accesses  entries                  a miss adds        replacement
L1 DTLB  4K loads  12 entries: 4 sets of 3  7.0 to 8.0 cycles  LRU
                   ways, index masks 0x1
                   0x6
L2 TLB   4K loads  not determined           –                  –
  entries: no pages were found that evict each other from it, however many
  were tried
L1 DTLB  1G loads  12 entries: 4 sets of 3  –                  –
                   ways, index masks 0x1
                   0x6

What an entry covers
L1 DTLB, a 1G page  all of it
L2 TLB, a 1G page   2M of it

Page-table walks
walk cache, table level 2  32 entries, 8 sets of 4 ways; a miss: 5.0 to
                           5.5 cycles longer
walk cache, table level 3  57 to 60 entries; a miss: not determined: no
                           two passes agree

Hardware counters
counts per 1,000 accesses  event  2 pages  L1 misses  both levels miss
misses                     r1245        1          –               980

· misses confirms the 3 ways of the L1 DTLB: 0.01 misses a round of 3
  pages of one set, 4.00 of 4
· misses does not confirm the 3 ways of the L1 DTLB: 1.50 misses a round
  of 3 pages of one set, 4.00 of 4

CPUID and sysfs
1 of 2 statements agree with the measurement.

disagreement       measured              stated                    by
L1 DTLB, 4K loads  12 entries of 3 ways  16 entries of 4 ways in   CPUID 2
                                         2 arrays

· Not measured: topology, TLBs and caches of fetches, how data caches
  replace and who shares them, data caches and memory, walks, what entries
  cover, what else fills and empties the levels, loads far apart and in a
  row, what reads and page faults take, TLBs of 2M pages.
";
    assert_eq!(text(&view(&report()), 74), expected);
    let lacks = GiganticPages { lacks: Some("none is set aside".into()), parts: Vec::new(), levels: Vec::new() };
    let text = text(&view(&ProbeReport { gigantic: Some(lacks), ..ProbeReport::default() }), 74);
    assert!(text.contains("\n1G pages  not measured: none is set aside\n"), "{text}");
}

#[test]
fn a_page_has_the_reasons_and_the_latencies() {
    let range = |low, high| Finding::confirmed(MeasuredRange { low, high, passes: 2 }, Vec::new());
    let level = CacheReport {
        level: 1,
        cycles: range(5.0, 5.1),
        bytes: range(32768.0, 49152.0),
        ways: Finding::not_determined("too much noise"),
        shape: Finding::not_asked(),
    };
    let curve = [(4096, 5.0), (65536, 14.0)].map(|(bytes, cycles)| LatencyPoint { bytes, cycles });
    let caches = CacheReports {
        line_bytes: Finding::confirmed(64, Vec::new()),
        levels: vec![level],
        memory_cycles: range(300.0, 310.0),
        memory_from: None,
        curves: vec![curve.to_vec()],
    };
    let page = page(&view(&ProbeReport { caches: Some(caches), ..report() }));
    for part in [
        "L2 TLB 4K loads not determined – – entries: no pages were found",
        "data cache 1 32 to 48 KiB; a hit takes 5.0 to 5.1 cycles; ways of a set: not determined : too much noise",
        "Cycles a load",
        "65,536 bytes: 14.0",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
}
