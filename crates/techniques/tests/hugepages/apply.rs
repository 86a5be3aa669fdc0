//! Planned ranges in another run's regions.

use lookaside_techniques::hugepages::apply::{aligned_windows, find_region, planned_range};
use lookaside_techniques::hugepages::plan::{PlannedWindow, WindowRegion};
use lookaside_techniques::hugepages::WINDOW_BYTES;
use lookaside_techniques::lock::maps::ListedMapping;
use lookaside_trace::{parse_maps, MapSource};
use proptest::prelude::*;

const PAGE: u64 = 4096;
const PAGES: u64 = WINDOW_BYTES / PAGE;

/// Page by page, window by window; ranges begin and end at pages.
fn naive(planned: &[std::ops::Range<u64>], region: std::ops::Range<u64>) -> Vec<(u64, u64, usize)> {
    let mut found = Vec::new();
    let mut addr = 0;
    while addr + WINDOW_BYTES <= region.end {
        let pages: Vec<u64> = (0..PAGES).map(|page| addr + page * PAGE).collect();
        let held = |range: &std::ops::Range<u64>| pages.iter().filter(|page| range.contains(page)).count() as u64;
        let union = pages.iter().filter(|page| planned.iter().any(|range| range.contains(page))).count() as u64;
        if addr >= region.start && union * 2 >= PAGES {
            let most = planned.iter().map(held).max().unwrap_or(0);
            let first = planned.iter().position(|range| held(range) == most).unwrap_or(0);
            found.push((addr, union * PAGE, first));
        }
        addr += WINDOW_BYTES;
    }
    found
}

fn window(source: MapSource, start: u64, end: u64, address: u64) -> PlannedWindow {
    let mapping = ListedMapping { start, end, prot: 3, source, site: 0 };
    PlannedWindow {
        process: 1,
        address,
        bytes: WINDOW_BYTES,
        symbol: String::new(),
        accesses: 1,
        walks: 1,
        touched_bytes: 0,
        saved_cycles: 1.0,
        collapse_cycles: 1.0,
        break_even_runs: 1.0,
        bloat_bytes: 0,
        not_native: None,
        region: Some(WindowRegion { name: "x".into(), offset_bytes: address - start, nth: 0, equals: 1, mapping }),
        native: None,
    }
}

/// Pages, often a quarter of a window's or several: so that windows are held by half.
fn edges(below: u64) -> impl Strategy<Value = u64> {
    prop_oneof![0..below, (0..below * 4 / PAGES).prop_map(|quarters| quarters * PAGES / 4)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_are_found_as_page_by_page(
        ranges in prop::collection::vec((edges(9 * PAGES), edges(2 * PAGES)), 0..8),
        (start, pages) in (edges(3 * PAGES), 0..6 * PAGES),
    ) {
        let planned: Vec<_> = ranges.iter().map(|(start, pages)| start * PAGE..(start + pages) * PAGE).collect();
        let region = start * PAGE..(start + pages) * PAGE;
        let found: Vec<_> = aligned_windows(&planned, region.clone()).iter().map(|w| (w.addr, w.planned_bytes, w.range)).collect();
        prop_assert_eq!(found, naive(&planned, region));
    }

    /// A plan applied to the run that it was made of is itself; to a run whose region lies elsewhere, as many windows
    /// or, half a window off, one more for each run of neighbours.
    #[test]
    fn a_region_that_moved_keeps_its_windows(chosen in prop::collection::btree_set(0..12u64, 1..12), moved in edges(4 * PAGES)) {
        let (start, end) = (10 * WINDOW_BYTES, 24 * WINDOW_BYTES);
        let windows: Vec<_> = chosen.iter().map(|i| window(MapSource::Anonymous, start, end, start + (i + 1) * WINDOW_BYTES)).collect();
        let at = |shift: u64| {
            let actual = start + shift..end + shift;
            let planned: Vec<_> = windows.iter().filter_map(|w| planned_range(w, actual.clone())).collect();
            aligned_windows(&planned, actual)
        };
        let here: Vec<u64> = at(0).iter().map(|w| w.addr).collect();
        prop_assert_eq!(here, windows.iter().map(|w| w.address).collect::<Vec<_>>());
        let runs = chosen.iter().filter(|i| !chosen.contains(&(*i + 1))).count();
        let off = moved % PAGES;
        let wanted = if off == PAGES / 2 { chosen.len() + runs } else { chosen.len() };
        let there = at(moved * PAGE);
        prop_assert_eq!(there.len(), wanted);
        prop_assert!(there.iter().all(|w| w.addr % WINDOW_BYTES == 0 && w.planned_bytes * 2 >= WINDOW_BYTES));
    }

    #[test]
    fn no_numbers_are_too_large(ranges in prop::collection::vec((any::<u64>(), 0..4 * WINDOW_BYTES), 0..4), region in any::<(u64, u64)>(), address in any::<u64>()) {
        let planned: Vec<_> = ranges.iter().map(|(start, bytes)| *start..start.saturating_add(*bytes)).collect();
        for found in aligned_windows(&planned, region.0..region.1) {
            prop_assert!(found.addr >= region.0 && found.addr + WINDOW_BYTES <= region.1);
        }
        for source in [MapSource::Anonymous, MapSource::Stack] {
            let of = window(source, 0, region.1, address);
            let range = planned_range(&of, region.0..region.1);
            prop_assert!(range.is_none_or(|range| range.start < region.1 && range.end > region.0));
        }
    }
}

#[test]
fn a_stack_is_measured_from_its_end() {
    let of = window(MapSource::Stack, 8 * WINDOW_BYTES, 12 * WINDOW_BYTES, 10 * WINDOW_BYTES);
    let grown = 3 * WINDOW_BYTES..22 * WINDOW_BYTES;
    assert_eq!(planned_range(&of, grown), Some(20 * WINDOW_BYTES..21 * WINDOW_BYTES));
    assert_eq!(planned_range(&of, 21 * WINDOW_BYTES..22 * WINDOW_BYTES), None);
    let of = window(MapSource::Heap, 8 * WINDOW_BYTES, 12 * WINDOW_BYTES, 10 * WINDOW_BYTES);
    assert_eq!(planned_range(&of, 0..9 * WINDOW_BYTES), Some(2 * WINDOW_BYTES..3 * WINDOW_BYTES));
    assert_eq!(planned_range(&of, 0..2 * WINDOW_BYTES), None);
    assert_eq!(planned_range(&PlannedWindow { region: None, ..of }, 0..u64::MAX), None);
}

#[test]
fn regions_are_found_by_kind_size_and_order() {
    let listed = parse_maps(
        "555555554000-555555555000 r--p 00000000 fe:00 10 /p\n\
         555555559000-55555b559000 rw-p 00000000 00:00 0 [heap]\n\
         7fff00000000-7fff00400000 rw-p 00000000 00:00 0 \n\
         7fff10000000-7fff10400000 r--p 00000000 00:00 0 \n\
         7fff20000000-7fff20400000 rw-p 00000000 00:00 0 \n\
         7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n",
    );
    let wanted = |source, bytes: u64, prot, nth, equals| WindowRegion {
        name: "x".into(),
        offset_bytes: 0,
        nth,
        equals,
        mapping: ListedMapping { start: 0x1000, end: 0x1000 + bytes, prot, source, site: 0 },
    };
    let found = |region: WindowRegion| find_region(&region, &listed).map(|region| region.start);
    assert_eq!(found(wanted(MapSource::Heap, 1 << 20, 3, 0, 1)), Ok(0x5555_5555_9000));
    assert_eq!(found(wanted(MapSource::Stack, 1 << 20, 3, 0, 1)), Ok(0x7fff_fffd_e000));
    // What was made first lies highest.
    assert_eq!(found(wanted(MapSource::Anonymous, 4 << 20, 3, 0, 2)), Ok(0x7fff_2000_0000));
    assert_eq!(found(wanted(MapSource::Anonymous, 4 << 20, 3, 1, 2)), Ok(0x7fff_0000_0000));
    assert_eq!(found(wanted(MapSource::Anonymous, 4 << 20, 1, 0, 1)), Ok(0x7fff_1000_0000));
    // The recording knows memory's names, the kernel may not.
    assert_eq!(found(wanted(MapSource::named("table"), 4 << 20, 3, 1, 2)), Ok(0x7fff_0000_0000));
    let refused = found(wanted(MapSource::Anonymous, 4 << 20, 3, 0, 1)).expect_err("there are two");
    assert_eq!(refused, "x of 4096 KiB: the program has 2 regions of that size and protection, planned for were 1");
    assert!(found(wanted(MapSource::Anonymous, 4 << 20, 3, 2, 2)).is_err());
    let none = find_region(&wanted(MapSource::Heap, 1, 3, 0, 1), &[]).expect_err("none");
    assert_eq!(none, "x: the program has none");
}
