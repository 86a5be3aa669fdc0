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
fn visits_are_counted_by_instruction_and_fetches_are_none() {
    let mut counts = VisitCounts::default();
    let kinds = [Kind::Load, Kind::Fetch, Kind::Store, Kind::Load, Kind::Load];
    let block = Block {
        process: 4,
        addr: vec![0; 5],
        kind: kinds.to_vec(),
        ip: vec![0x10, 0x10, 0x20, 0x10, 0x10],
        ..Block::default()
    };
    counts.run(&block);
    counts.run(&block);
    assert_eq!(counts.total(), 8);
    assert_eq!(counts.by_instruction(), &HashMap::from([((4, 0x10), 6), ((4, 0x20), 2)]));
    assert_eq!(counts.total(), 8);
}

/// A source of blocks made beforehand.
struct Blocks(TraceInfo, std::vec::IntoIter<Block>);

impl Source for Blocks {
    fn info(&self) -> &TraceInfo {
        &self.0
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        Ok(match self.1.next() {
            Some(next) => {
                *block = next;
                true
            }
            None => false,
        })
    }
}

fn cut(blocks: Vec<Block>, total: u64) -> Vec<VisitWindow> {
    let huge = HugeWindows::new(&[region(1, 0, 1 << 40, MapSource::Anonymous)], &|_| true);
    cut_windows(&mut Blocks(TraceInfo::default(), blocks.into_iter()), total, &huge).unwrap()
}

fn line(addr: u64) -> VisitLine {
    VisitLine::new(0, addr, true)
}

#[test]
fn lines_touched_while_a_page_is_there_belong_to_its_visit() {
    let mut block = Block { process: 1, ..Block::default() };
    block.push(Kind::Load, 0x1040);
    block.push(Kind::Fetch, 0x1000);
    block.push(Kind::Load, 0x2000);
    block.push_event(Event::Leave { addr: 0x1000, kind: Kind::Fetch, others: 0, lines: 0xff });
    block.push_event(Event::Leave { addr: 0x1000, kind: Kind::Load, others: 1, lines: 0b101 });
    block.push(Kind::Store, 0x1080);
    block.push_event(Event::Leave { addr: 0x1000, kind: Kind::Load, others: 1, lines: 1 << 63 });
    let windows = cut(vec![block], 3);
    assert_eq!(windows.len(), 1);
    assert_eq!(windows[0].visits, [(line(0x1040), 2), (line(0x2000), 0), (line(0x1080), 1)]);
    assert_eq!(windows[0].others, [line(0x1000), line(0x1080), line(0x1fc0)]);
}

#[test]
fn windows_are_spread_over_a_long_run() {
    let total = 20 * WINDOW_VISITS;
    let blocks = (0..total / 1000).map(|number| {
        let mut block = Block { process: 1, ..Block::default() };
        (0..1000).for_each(|at| block.push(Kind::Load, (number * 1000 + at) << 12));
        block
    });
    let windows = cut(blocks.collect(), total);
    assert_eq!(windows.len() as u64, WINDOWS);
    for (at, window) in windows.iter().enumerate() {
        assert_eq!(window.visits.len() as u64, WINDOW_VISITS);
        let every = total / WINDOWS;
        assert_eq!(window.visits[0].0, line((at as u64 * every + (every - WINDOW_VISITS) / 2) << 12));
    }
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
                block.push_event(Event::Leave { addr: page << 12, kind: Kind::Load, others: 0, lines });
                if let Some(visit) = open.remove(&page) {
                    expected[visit].1 = lines;
                }
            } else {
                block.push(Kind::Load, page << 12);
                open.insert(page, expected.len());
                expected.push((page << 12, 0));
            }
        }
        let windows = cut(vec![block.clone()], block.len() as u64);
        if block.addr.is_empty() {
            prop_assert!(windows.is_empty());
            return Ok(());
        }
        let got: Vec<(VisitLine, u32)> = windows[0].visits.iter().map(|&(line, n)| (line, u32::from(n))).collect();
        let wanted: Vec<(VisitLine, u32)> = expected.iter().map(|&(addr, n)| (line(addr), n.count_ones())).collect();
        prop_assert_eq!(got, wanted);
        let others: Vec<VisitLine> = expected.iter()
            .flat_map(|&(addr, lines)| (0..64).filter(move |bit| lines >> bit & 1 == 1).map(move |bit| line(addr + bit * 64)))
            .collect();
        prop_assert_eq!(&windows[0].others, &others);
    }
}
