//! Which windows there are and which are chosen, beside the plainest way to find out: page by page, sample by sample.

use std::collections::BTreeMap;

use lookaside_runtime::hugepages::{
    choose, spread, tally, window_of, windows, FitWindow, MappedArea, PageRange, PageState, ProcessView, SampleCounts,
    Unfit, WindowWeight, WindowWeights, WINDOW_BYTES, WINDOW_PAGES,
};
use proptest::prelude::*;

const PAGE: u64 = 4096;
/// Where the mappings of a case begin; nothing depends on it.
const BASE: u64 = 0x7000_0000_0000;

/// Mappings and the states of their pages, from gaps and lengths in pages.
#[derive(Clone, Debug)]
struct Case {
    areas: Vec<MappedArea>,
    ranges: Vec<PageRange>,
    addrs: Vec<u64>,
}

fn unfit() -> impl Strategy<Value = Option<Unfit>> {
    prop_oneof![
        3 => Just(None),
        1 => prop_oneof![
            Just(Some(Unfit::Shared)),
            Just(Some(Unfit::File)),
            Just(Some(Unfit::Locked)),
            Just(Some(Unfit::NoHugePage)),
        ],
    ]
}

fn state() -> impl Strategy<Value = Option<PageState>> {
    prop_oneof![Just(None), Just(Some(PageState::Small)), Just(Some(PageState::Swapped))]
}

prop_compose! {
    fn case()(
        areas in prop::collection::vec((0u64..1200, 1u64..2600, unfit(), prop::collection::vec((1u64..700, state()), 0..8)), 0..6),
        huge in any::<u8>(),
        picks in prop::collection::vec((any::<u16>(), any::<bool>()), 0..120),
    ) -> Case {
        let mut case = Case { areas: Vec::new(), ranges: Vec::new(), addrs: Vec::new() };
        let mut at = BASE;
        for (gap, pages, unfit, runs) in areas {
            let start = at + gap * PAGE;
            let end = start + pages * PAGE;
            let mut from = start;
            for (pages, state) in runs {
                let to = end.min(from + pages * PAGE);
                if let (Some(state), true) = (state, from < to) {
                    case.ranges.push(PageRange { start: from, end: to, state });
                }
                from = to;
            }
            let bytes = |state| case.ranges.iter().filter(|r| r.start >= start && r.state == state).map(|r| r.end - r.start).sum();
            let resident_bytes = bytes(PageState::Small);
            case.areas.push(MappedArea { start, end, name: format!("area {start:#x}"), resident_bytes, referenced_bytes: 0, unfit });
            at = end;
        }
        // Some whole windows are huge: what is in them else gives way.
        let whole: Vec<u64> = case.areas.iter().filter(|area| area.unfit.is_none())
            .flat_map(|area| (area.start.next_multiple_of(WINDOW_BYTES)..area.end).step_by(WINDOW_BYTES as usize).filter(|w| w + WINDOW_BYTES <= area.end))
            .collect();
        for (_, &window) in whole.iter().enumerate().filter(|(at, _)| huge >> (at % 8) & 1 == 1) {
            let end = window + WINDOW_BYTES;
            let parts = |r: &PageRange| [(r.start, r.end.min(window)), (r.start.max(end), r.end)]
                .into_iter().filter(|(from, to)| from < to)
                .map(|(start, end)| PageRange { start, end, state: r.state }).collect::<Vec<_>>();
            case.ranges = case.ranges.iter().flat_map(parts).collect();
            case.ranges.push(PageRange { start: window, end, state: PageState::Huge });
            case.ranges.sort_by_key(|range| range.start);
        }
        case.addrs = picks.into_iter().map(|(pick, known)| {
            if known { BASE + u64::from(pick) * (at + WINDOW_BYTES - BASE) / 65_536 } else { 0 }
        }).collect();
        case
    }
}

/// A page's state, by looking through all ranges.
fn state_of(case: &Case, page: u64) -> Option<PageState> {
    case.ranges.iter().find(|range| (range.start..range.end).contains(&page)).map(|range| range.state)
}

/// All windows, by looking at every page of every one.
fn plain_windows(case: &Case) -> Vec<FitWindow> {
    let mut found = Vec::new();
    for (index, area) in case.areas.iter().enumerate() {
        let first = window_of(area.start);
        for start in (first..area.end).step_by(WINDOW_BYTES as usize) {
            if area.unfit.is_some() || start < area.start || start + WINDOW_BYTES > area.end {
                continue;
            }
            let count = |state| {
                let pages = (start..start + WINDOW_BYTES).step_by(PAGE as usize);
                pages.filter(|&page| state_of(case, page) == Some(state)).count() as u32
            };
            let window = FitWindow {
                start,
                area: index,
                small_pages: count(PageState::Small),
                huge_pages: count(PageState::Huge),
                swapped_pages: count(PageState::Swapped),
            };
            if window.small_pages + window.huge_pages > 0 {
                found.push(window);
            }
        }
    }
    found
}

/// The best window that is left, again and again.
fn plain_choice(windows: &[FitWindow], addrs: &[u64], budget: usize) -> Vec<u64> {
    let seen = |window: &FitWindow| addrs.iter().filter(|&&addr| addr != 0 && window_of(addr) == window.start).count();
    let mut left: Vec<&FitWindow> =
        windows.iter().filter(|window| window.huge_pages == 0 && seen(window) > 0).collect();
    let mut chosen = Vec::new();
    while chosen.len() < budget && !left.is_empty() {
        let mut best = 0;
        for at in 1..left.len() {
            let (a, b) = (left[at], left[best]);
            let better = (seen(a), a.small_pages) > (seen(b), b.small_pages)
                || ((seen(a), a.small_pages) == (seen(b), b.small_pages) && a.start < b.start);
            if better {
                best = at;
            }
        }
        chosen.push(left.remove(best).start);
    }
    chosen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn windows_are_those_that_looking_page_by_page_finds(case in case()) {
        let found = windows(&case.areas, &case.ranges);
        prop_assert_eq!(&found, &plain_windows(&case));
        for window in &found {
            let untouched = WINDOW_PAGES - window.small_pages - window.huge_pages;
            prop_assert_eq!(window.bloat_bytes(), u64::from(untouched) * PAGE);
        }
    }

    #[test]
    fn the_windows_seen_most_are_chosen(case in case(), budget in 0usize..12) {
        let windows = windows(&case.areas, &case.ranges);
        let weights = tally(&case.addrs);
        let view = ProcessView { pid: 7, areas: &case.areas, windows: &windows, weights: &weights };
        let choice = choose(&[view], budget);
        let chosen: Vec<u64> = choice.chosen.iter().map(|chosen| chosen.window.start).collect();
        prop_assert_eq!(&chosen, &plain_choice(&windows, &case.addrs, budget));
        for chosen in &choice.chosen {
            let seen = case.addrs.iter().filter(|&&addr| addr != 0 && window_of(addr) == chosen.window.start).count();
            prop_assert_eq!((chosen.pid, chosen.weight), (7, seen as u64));
            prop_assert_eq!(&chosen.region, &case.areas[chosen.window.area].name);
        }
        let weight = |is_huge: bool| {
            let starts: Vec<u64> = windows.iter().filter(|w| (w.huge_pages > 0) == is_huge).map(|w| w.start).collect();
            let seen = case.addrs.iter().filter(|&&addr| addr != 0 && starts.contains(&window_of(addr))).count();
            (starts.len(), seen as u64)
        };
        prop_assert_eq!((choice.candidates, choice.candidates_weight), weight(false));
        prop_assert_eq!((choice.huge, choice.huge_weight), weight(true));
        prop_assert_eq!(choice.chosen_weight, choice.chosen.iter().map(|chosen| chosen.weight).sum::<u64>());
        prop_assert!(choice.chosen_weight <= choice.candidates_weight);
        prop_assert_eq!(choice.candidates + choice.huge, windows.len());
        if let Some(held_out) = choice.held_out {
            prop_assert!((0.0..=1.0).contains(&held_out));
        }
        // All that may be chosen is: then the other half has all, too.
        let all = choose(&[view], windows.len());
        prop_assert_eq!(all.chosen_weight, all.candidates_weight);
    }

    #[test]
    fn each_sample_fell_somewhere(case in case()) {
        let windows = windows(&case.areas, &case.ranges);
        let mut fell = SampleCounts::default();
        fell.add(&case.areas, &windows, &case.addrs);
        let mut plain = SampleCounts { samples: case.addrs.len() as u64, ..SampleCounts::default() };
        for &addr in &case.addrs {
            let area = case.areas.iter().find(|area| (area.start..area.end).contains(&addr));
            let window = windows.iter().find(|window| (window.start..window.start + WINDOW_BYTES).contains(&addr));
            *match (addr, area, window) {
                (0, ..) => &mut plain.unknown,
                (_, None, _) => &mut plain.unmapped,
                (_, Some(MappedArea { unfit: Some(unfit), .. }), _) => plain.unfit.entry(*unfit).or_default(),
                (_, _, Some(window)) if window.huge_pages > 0 => &mut plain.huge,
                (_, _, Some(_)) => &mut plain.small,
                (_, _, None) => &mut plain.edges,
            } += 1;
        }
        prop_assert_eq!(fell, plain);
    }

    #[test]
    fn bytes_are_spread_over_what_is_in_memory(case in case(), referenced in 0u64..1 << 40) {
        let windows = windows(&case.areas, &case.ranges);
        let bytes = vec![referenced; case.areas.len()];
        let weights = spread(&case.areas, &windows, &bytes);
        for (index, area) in case.areas.iter().enumerate().filter(|(_, area)| area.resident_bytes > 0) {
            let of_area: Vec<&FitWindow> = windows.iter().filter(|window| window.area == index && window.huge_pages == 0).collect();
            let sum: u64 = of_area.iter().map(|window| weights[&window.start].all()).sum();
            prop_assert!(sum <= referenced, "{sum} of {referenced}");
            for window in of_area {
                let exact = referenced as f64 * f64::from(window.small_pages) * PAGE as f64 / area.resident_bytes as f64;
                let weight = weights[&window.start].all() as f64;
                prop_assert!((weight - exact).abs() <= 1.0 + exact * 1e-9, "{weight} for {exact}");
            }
        }
    }
}

#[test]
fn one_budget_is_for_all_processes_of_a_program() {
    let area = |start: u64| MappedArea {
        start,
        end: start + 4 * WINDOW_BYTES,
        name: "[heap]".into(),
        resident_bytes: 4 * WINDOW_BYTES,
        referenced_bytes: 0,
        unfit: None,
    };
    let areas = [area(BASE)];
    let ranges = [PageRange { start: BASE, end: BASE + 4 * WINDOW_BYTES, state: PageState::Small }];
    let windows = windows(&areas, &ranges);
    let seen = |counts: [u64; 4]| -> WindowWeights {
        let each = counts.iter().enumerate();
        each.map(|(at, &even)| (BASE + at as u64 * WINDOW_BYTES, WindowWeight { even, odd: 0 })).collect()
    };
    let (one, two) = (seen([5, 0, 9, 0]), seen([0, 7, 9, 0]));
    let view = |pid, weights| ProcessView { pid, areas: &areas, windows: &windows, weights };
    let choice = choose(&[view(20, &two), view(10, &one)], 4);
    let chosen: Vec<_> = choice.chosen.iter().map(|c| (c.pid, (c.window.start - BASE) / WINDOW_BYTES)).collect();
    assert_eq!(chosen, [(10, 2), (20, 2), (20, 1), (10, 0)]);
    // No sample is in the other half: nothing can be judged by it.
    assert_eq!((choice.held_out, choice.candidates), (None, 8));
    assert_eq!(choose(&[view(10, &one)], 9).chosen.len(), 2, "what was never seen is not chosen");
}

#[test]
fn chance_is_found_out_by_the_other_half() {
    let areas = [MappedArea {
        start: BASE,
        end: BASE + 100 * WINDOW_BYTES,
        name: String::new(),
        resident_bytes: 100 * WINDOW_BYTES,
        referenced_bytes: 0,
        unfit: None,
    }];
    let ranges = [PageRange { start: BASE, end: areas[0].end, state: PageState::Small }];
    let windows = windows(&areas, &ranges);
    let share = |addrs: Vec<u64>| {
        let weights = tally(&addrs);
        let choice = choose(&[ProcessView { pid: 1, areas: &areas, windows: &windows, weights: &weights }], 50);
        (choice.chosen_weight as f64 / addrs.len() as f64, choice.held_out.expect("both halves were seen"))
    };
    // Each window once: any half is as good as the other, and half of the budget knows nothing of the rest.
    let (seen, held_out) = share((0..100).map(|at| BASE + at * WINDOW_BYTES).collect());
    assert_eq!((seen, held_out), (0.5, 0.0));
    // One window always.
    assert_eq!(share(vec![BASE; 100]), (1.0, 1.0));
    // One half saw one window only, which is a quarter of the other, whose four windows have all of the first.
    let at = |window: u64| BASE + window * WINDOW_BYTES;
    assert_eq!(share((0..4).flat_map(|window| [at(0), at(window)]).collect()), (1.0, 0.625));
    let counted: BTreeMap<u64, WindowWeight> = tally(&[BASE, 0, BASE + 5, BASE, BASE + WINDOW_BYTES]);
    let of = |even, odd| WindowWeight { even, odd };
    assert_eq!(counted, BTreeMap::from([(BASE, of(2, 1)), (BASE + WINDOW_BYTES, of(1, 0))]));
}

#[test]
fn a_huge_window_has_its_part_of_what_was_referenced_too() {
    let areas = [MappedArea {
        start: BASE,
        end: BASE + 4 * WINDOW_BYTES,
        name: String::new(),
        resident_bytes: 2 * WINDOW_BYTES + 256 * PAGE,
        referenced_bytes: 0,
        unfit: None,
    }];
    // A huge window, one in small pages, half of one; two fifths, two fifths and a fifth.
    let range = |start, pages, state| PageRange { start, end: start + pages * PAGE, state };
    let ranges = [range(BASE, 512, PageState::Huge), range(BASE + WINDOW_BYTES, 768, PageState::Small)];
    let windows = windows(&areas, &ranges);
    let weights = spread(&areas, &windows, &[10 << 20]);
    assert_eq!(weights.values().map(|weight| weight.all()).collect::<Vec<_>>(), [4 << 20, 4 << 20, 2 << 20]);
    // Of a mapping that was not told of nothing is known.
    assert!(spread(&areas, &windows, &[]).is_empty());
}
