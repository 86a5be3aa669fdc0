use lookaside_engine::{Cost, PageRow};
use lookaside_machine::PageSize;
use lookaside_trace::MemorySource;
use proptest::prelude::*;

use super::*;

const BASE: u64 = 0x7000_0000_0000;

fn region(process: u32, start: u64, end: u64, source: MapSource) -> RegionRow {
    RegionRow { process, start, end, source, site: Vec::new(), pages: 0, accesses: 0, cost: Default::default() }
}

#[test]
fn only_whole_windows_of_anonymous_memory_are_huge() {
    let file = MapSource::File { path: "/lib".into(), offset: 0 };
    let regions = [
        region(1, BASE + 0x10_0000, BASE + 0x30_0000, MapSource::Anonymous),
        // Right behind it, as the kernel merges them.
        region(1, BASE + 0x30_0000, BASE + 0x50_0000, MapSource::Heap),
        region(1, BASE + 0x50_0000, BASE + 0x90_0000, file),
        region(2, BASE, BASE + 0x20_0000, MapSource::Stack),
    ];
    let huge = HugeWindows::new(&regions, &|_| true);
    let holds = [0x0, 0x10_0000, 0x20_0000, 0x3f_ffff, 0x40_0000, 0x60_0000].map(|at| huge.holds(1, BASE + at));
    assert_eq!(holds, [false, false, true, true, false, false]);
    // The part that nobody asked for is not there.
    let heap = HugeWindows::new(&regions, &|region| region.source == MapSource::Heap);
    assert!(!heap.holds(1, BASE + 0x20_0000) && !heap.holds(1, BASE + 0x40_0000));
    assert!(!huge.holds(2, BASE) && !huge.holds(3, BASE + 0x20_0000));
}

#[test]
fn pages_that_are_touched_in_huge_windows_are_counted_once() {
    let regions = [
        region(1, BASE, BASE + 0x40_0000, MapSource::Anonymous),
        region(2, BASE, BASE + 0x20_0000, MapSource::Anonymous),
    ];
    let huge = HugeWindows::new(&regions, &|_| true);
    let page = |(process, addr)| PageRow {
        process,
        addr,
        size: PageSize::K4,
        region: None,
        accesses: 1,
        cost: Cost::default(),
    };
    // First and last page of a window, the next window twice, one behind both, and another process.
    let touched = [(1, 0), (1, 0x1f_f000), (1, 0x20_0000), (1, 0x20_0000), (1, 0x40_0000), (2, 0)];
    let pages = touched.map(|(process, at)| page((process, BASE + at))).to_vec();
    assert_eq!(huge.touched(&Outcome { pages, ..Outcome::default() }), (4, 3));
}

#[test]
fn a_window_is_as_long_as_its_misses_need() {
    let mut curve = CostCurve::default();
    curve.push(4_000_000, 0.0);
    let places = |misses| window_places(&curve, misses).iter().map(|p| (p.start, p.length)).collect::<Vec<_>>();
    // Each visit misses, or every other; or more than there are, which is not to be.
    let midst = |length: u64| (0..16).map(|part| (part * 250_000 + (250_000 - length) / 2, length)).collect::<Vec<_>>();
    assert_eq!(places(4_000_000), midst(75_000));
    assert_eq!(places(2_000_000), midst(150_000));
    assert_eq!(places(8_000_000), midst(75_000));
    // None does: 2^20 visits would be enough for a window, and are more than a fourth of the run.
    assert_eq!(places(0), [0u64, 1, 2, 3].map(|part| (part * 1_000_000, 1_000_000)));
    assert_eq!(window_places(&CostCurve::default(), 0), []);
}

/// The whole of a run of `total` visits.
fn whole(total: u64) -> WindowPlace {
    WindowPlace { start: 0, length: total, weight: 1.0, cost_share: 1.0 }
}

fn cut(blocks: Vec<Block>, places: &[WindowPlace]) -> Vec<VisitWindow> {
    let huge = HugeWindows::new(&[region(1, 0, 1 << 40, MapSource::Anonymous)], &|_| true);
    cut_windows(&mut MemorySource::new(TraceInfo::default(), blocks), places, &huge, 0).unwrap().windows
}

fn line(addr: u64) -> VisitLine {
    VisitLine::new(0, addr, true)
}

/// Lines of the visits, and how many others each has.
fn lines(window: &VisitWindow) -> Vec<(VisitLine, u8)> {
    window.visits.iter().map(|visit| (visit.line, visit.others)).collect()
}

#[test]
fn lines_touched_while_a_page_is_there_belong_to_its_visit() {
    let mut block = Block { process: 1, ..Block::default() };
    block.push(Kind::Load, 0x1040);
    block.push(Kind::Fetch, 0x1000);
    block.push(Kind::Load, 0x2000);
    block.push_leave(0x1000, Kind::Fetch, 0, 0xff);
    block.push_leave(0x1000, Kind::Load, 1, 0b101);
    block.push(Kind::Store, 0x1080);
    block.push_leave(0x1000, Kind::Load, 1, 1 << 63);
    let windows = cut(vec![block], &[whole(3)]);
    assert_eq!(windows.len(), 1);
    assert_eq!(lines(&windows[0]), [(line(0x1040), 2), (line(0x2000), 0), (line(0x1080), 1)]);
    assert_eq!(windows[0].others, [line(0x1000), line(0x1080), line(0x1fc0)]);
}

#[test]
fn a_visit_counts_what_is_accessed_until_its_page_leaves() {
    let mut block = Block { process: 1, ..Block::default() };
    block.push(Kind::Load, 0x1040);
    block.push(Kind::Store, 0x2000);
    block.repeat = vec![4, 2];
    block.push_event(Event::Repeats { addr: 0x1000, kind: Kind::Load, count: 10 });
    block.push_event(Event::Repeats { addr: 0x1000, kind: Kind::Fetch, count: 1000 });
    block.push_event(Event::Repeats { addr: 0x9000, kind: Kind::Load, count: 100 });
    block.push(Kind::Load, 0x1080);
    block.repeat.push(u32::MAX);
    // A first level of two pages holds page 1 on.
    let counts = |first_level| {
        let huge = HugeWindows::default();
        let mut source = MemorySource::new(TraceInfo::default(), vec![block.clone()]);
        let run = cut_windows(&mut source, &[whole(3)], &huge, first_level).unwrap();
        let count = |visit: &PageVisit| (visit.accesses, visit.store);
        run.windows[0].visits.iter().map(count).collect::<Vec<_>>()
    };
    assert_eq!(counts(0), [(15, false), (3, true), (u32::MAX, false)]);
    assert_eq!(counts(2), [(u32::MAX, false), (3, true)]);
}

#[test]
fn pages_that_the_first_level_holds_are_no_visits() {
    let mut block = Block { process: 1, ..Block::default() };
    for addr in [0x1040, 0x2000, 0x1080, 0x1040, 0x3000, 0x2fc0] {
        block.push(Kind::Load, addr);
    }
    block.push_leave(0x1000, Kind::Load, 1, 1);
    let huge = HugeWindows::default();
    let mut source = MemorySource::new(TraceInfo::default(), vec![block]);
    let RunVisits { windows, touched } = cut_windows(&mut source, &[whole(6)], &huge, 2).unwrap();
    // Page 2 is back after 1 and 3, which are all that two entries hold.
    let line = |addr| VisitLine::new(0, addr, false);
    assert_eq!(lines(&windows[0]), [(line(0x1040), 2), (line(0x2000), 0), (line(0x3000), 0), (line(0x2fc0), 0)]);
    assert_eq!(windows[0].others, [line(0x1000), line(0x1080)]);
    assert_eq!(touched, [line(0x1040), line(0x2000), line(0x3000)]);
}

#[test]
fn a_window_begins_with_what_was_visited_last() {
    let mut block = Block { process: 1, ..Block::default() };
    // Pages 1, 2, 3, 1, then the window: 4, 1, and behind it 5.
    for page in [1u64, 2, 3, 1, 4, 1, 5] {
        block.push(Kind::Load, page << 12);
        block.push_leave(page << 12, Kind::Load, 1, 1 << page);
    }
    let place = WindowPlace { start: 4, length: 2, weight: 3.5, cost_share: 0.25 };
    let windows = cut(vec![block.clone()], &[place]);
    let pages: Vec<VisitLine> = windows[0].visits.iter().map(|visit| visit.line).collect();
    assert_eq!(pages, [2, 3, 1, 4, 1].map(|page| line(page << 12)));
    assert_eq!((windows[0].first_timed, windows[0].weight, windows[0].cost_share), (3, 3.5, 0.25));
    assert_eq!(windows[0].others, [2, 3, 1, 4, 1].map(|page| line((page << 12) + 64 * page)));
    // Side by side: the second one begins with what the first one has visited, too.
    let first = WindowPlace { start: 2, length: 2, ..place };
    let windows = cut(vec![block], &[first, place]);
    assert_eq!((windows.len(), windows[0].first_timed, windows[1].first_timed), (2, 2, 3));
}

#[test]
fn a_window_begins_with_the_lines_that_were_accessed_before_it() {
    let mut block = Block { process: 1, ..Block::default() };
    block.push(Kind::Store, 0x1040);
    block.push_leave(0x1000, Kind::Load, 0, 0b111);
    block.push(Kind::Load, 0x2000);
    block.push(Kind::Load, 0x3000);
    let place = |start| WindowPlace { start, length: 1, weight: 1.0, cost_share: 0.5 };
    let windows = cut(vec![block], &[place(1), place(2)]);
    // Line 1 of the page is the visit's own. Whatever was done there, it is read.
    let before = PageVisit { line: line(0x1040), others: 2, accesses: 3, store: false };
    let first = |window: &VisitWindow| (window.first_timed, window.visits[0], window.others.clone());
    let others = vec![line(0x1000), line(0x1080)];
    assert_eq!([first(&windows[0]), first(&windows[1])], [(1, before, others.clone()), (2, before, others)]);
}

#[test]
fn a_page_that_the_first_level_holds_from_before_is_no_visit_of_the_window() {
    let mut block = Block { process: 1, ..Block::default() };
    for page in [1u64, 2, 2, 3, 1] {
        block.push(Kind::Load, page << 12);
    }
    block.push_leave(0x2000, Kind::Load, 1, 0b10);
    let place = WindowPlace { start: 2, length: 3, ..whole(0) };
    let mut source = MemorySource::new(TraceInfo::default(), vec![block]);
    let run = cut_windows(&mut source, &[place], &HugeWindows::default(), 2).unwrap();
    let window = &run.windows[0];
    let line = |addr| VisitLine::new(0, addr, false);
    assert_eq!(window.first_timed, 2);
    assert_eq!(lines(window)[2..], [(line(0x3000), 0), (line(0x1000), 0)]);
}

#[test]
fn what_is_accessed_after_a_page_came_in_anew_behind_the_window_is_not_the_windows() {
    let mut block = Block { process: 1, ..Block::default() };
    for addr in [0x1000, 0x2000, 0x1080] {
        block.push(Kind::Load, addr);
    }
    for addr in [0x1000, 0x2000] {
        block.push_leave(addr, Kind::Load, 0, 0b1000);
        block.push_event(Event::Repeats { addr, kind: Kind::Load, count: 9 });
    }
    let windows = cut(vec![block], &[whole(2)]);
    let visit = |addr, others, accesses| PageVisit { line: line(addr), others, accesses, store: false };
    assert_eq!(windows[0].visits, [visit(0x1000, 0, 1), visit(0x2000, 1, 10)]);
}

#[test]
fn stores_have_pages_of_their_own_where_they_are_filtered_apart() {
    let mut block = Block { process: 1, ..Block::default() };
    block.push(Kind::Load, 0x1000);
    block.push(Kind::Store, 0x1040);
    block.push_leave(0x1000, Kind::Store, 1, 0b1100);
    block.push_leave(0x1000, Kind::Load, 0, 0b10000);
    let visits = |filter_stores_apart| {
        let info = TraceInfo { filter_stores_apart, ..TraceInfo::default() };
        let mut source = MemorySource::new(info, vec![block.clone()]);
        let run = cut_windows(&mut source, &[whole(2)], &HugeWindows::default(), 2).unwrap();
        run.windows[0].visits.clone()
    };
    let visit = |addr, others, accesses, store| {
        let line = VisitLine::new(0, addr, false);
        PageVisit { line, others, accesses, store }
    };
    assert_eq!(visits(true), [visit(0x1000, 1, 1, false), visit(0x1040, 2, 1, true)]);
    assert_eq!(visits(false), [visit(0x1000, 4, 2, false)]);
}

#[test]
fn a_window_has_the_instructions_that_were_executed_in_it() {
    let mut first = Block { process: 1, ..Block::default() };
    first.push(Kind::Fetch, 0x1000);
    first.repeat.push(99);
    first.push_event(Event::Repeats { addr: 0x1000, kind: Kind::Fetch, count: 300 });
    first.push_event(Event::Repeats { addr: 0x9000, kind: Kind::Load, count: 5000 });
    // Four visits after 400 + 40 instructions, then two after ten.
    let mut visits = Block { process: 1, ..Block::default() };
    (0..4).for_each(|page| visits.push(Kind::Load, page << 12));
    visits.push_event(Event::Repeats { addr: 0x1000, kind: Kind::Fetch, count: 40 });
    let mut last = Block { process: 1, ..Block::default() };
    (4..6).for_each(|page| last.push(Kind::Load, page << 12));
    last.push_event(Event::Repeats { addr: 0x1000, kind: Kind::Fetch, count: 10 });
    let blocks = vec![first, visits, last];
    let at = |start, length| WindowPlace { start, length, weight: 1.0, cost_share: 0.5 };
    let windows = cut(blocks.clone(), &[at(1, 2), at(3, 2)]);
    assert_eq!([windows[0].instructions, windows[1].instructions], [220.0, 115.0]);
    assert_eq!(cut(blocks, &[whole(6)])[0].instructions, 450.0);
}

#[test]
fn a_window_is_of_the_thread_that_made_most_of_it() {
    let block = |process, thread, pages: std::ops::Range<u64>| {
        let mut block = Block { process, thread, ..Block::default() };
        pages.for_each(|page| block.push(Kind::Load, page << 12));
        block
    };
    let blocks = vec![
        block(7, 7, 0..3),
        block(7, 8, 3..8),
        block(7, 9, 8..10),
        block(4, 9, 0..6),
        block(4, 3, 6..8),
        block(4, 5, 8..12),
    ];
    let places = [(0, 6), (6, 4), (10, 6), (16, 6)].map(|(start, length)| WindowPlace { start, length, ..whole(0) });
    let threads: Vec<(u32, u32)> = cut(blocks, &places).iter().map(|window| window.thread).collect();
    // Three visits of each thread: the first. Processes are numbered as they appear.
    assert_eq!(threads, [(0, 7), (0, 8), (1, 9), (1, 5)]);
}

#[test]
fn a_window_begins_with_no_more_than_caches_hold() {
    let pages = WARMING_PAGES as u64 + 100;
    let mut block = Block { process: 1, ..Block::default() };
    (0..pages).for_each(|page| block.push(Kind::Load, page << 12));
    let windows = cut(vec![block], &[WindowPlace { start: pages - 1, length: 1, weight: 1.0, cost_share: 1.0 }]);
    assert_eq!(windows[0].first_timed, WARMING_PAGES);
    assert_eq!(windows[0].visits[0].line, line(99 << 12));
    assert_eq!(windows[0].visits.len(), WARMING_PAGES + 1);
}

proptest! {
    /// Short runs are one window with each visit in it, whatever leaves when.
    #[test]
    fn nothing_of_a_short_run_is_lost(steps in prop::collection::vec((0u64..8, any::<bool>(), any::<u64>()), 1..60)) {
        let mut block = Block { process: 1, ..Block::default() };
        let mut expected: Vec<(u64, u64)> = Vec::new();
        let mut open: HashMap<u64, usize> = HashMap::new();
        for (page, leaves, lines) in steps {
            if leaves {
                block.push_leave(page << 12, Kind::Load, 0, lines);
                if let Some(&visit) = open.get(&page) {
                    expected[visit].1 |= lines;
                }
            } else {
                block.push(Kind::Load, page << 12);
                open.insert(page, expected.len());
                expected.push((page << 12, 0));
            }
        }
        let windows = cut(vec![block.clone()], &[whole(block.len() as u64)]);
        if block.addr.is_empty() {
            prop_assert!(windows.is_empty());
            return Ok(());
        }
        prop_assert_eq!(windows[0].first_timed, 0);
        let got: Vec<(VisitLine, u32)> = lines(&windows[0]).into_iter().map(|(line, n)| (line, u32::from(n))).collect();
        let wanted: Vec<(VisitLine, u32)> = expected.iter().map(|&(addr, n)| (line(addr), n.count_ones())).collect();
        prop_assert_eq!(got, wanted);
        let others: Vec<VisitLine> = expected.iter()
            .flat_map(|&(addr, lines)| (0..64).filter(move |bit| lines >> bit & 1 == 1).map(move |bit| line(addr + bit * 64)))
            .collect();
        prop_assert_eq!(&windows[0].others, &others);
    }
}
