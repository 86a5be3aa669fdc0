//! A recorder that leaves out the repeats of the pages used last, by the letter of `TraceInfo::filter_window`.

use lookaside_trace::{Block, FilterWindow, Granularity, Kind, MemorySource, Source, TraceInfo, WindowedSource};

/// How to record.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecorderOptions {
    pub window: FilterWindow,
    pub stores_apart: bool,
    pub unified: bool,
}

impl RecorderOptions {
    /// One class.
    pub fn pages(pages: usize) -> Self {
        let pages = pages as u32;
        Self { window: FilterWindow { pages, log2_classes: 0, class_pages: pages }, ..Self::default() }
    }

    fn class_of(&self, page: u64) -> u64 {
        page & ((1 << self.window.log2_classes) - 1)
    }

    fn table_of(&self, kind: Kind) -> usize {
        match kind {
            Kind::Fetch if !self.unified => 2,
            Kind::Store if self.stores_apart => 1,
            _ => 0,
        }
    }
}

/// A page in a window, the least recent first.
struct WindowedPage {
    page: u64,
    row: usize,
    /// By left-out accesses, since it was recorded or touched.
    used: bool,
}

/// What is recorded of a block.
pub fn recorded(full: &Block, how: RecorderOptions) -> Block {
    let mut windows: [Vec<WindowedPage>; 3] = Default::default();
    let mut block = Block { process: full.process, thread: full.thread, ..Block::default() };
    let mut events = full.events.iter().peekable();
    for i in 0..=full.len() {
        while let Some((_, event)) = events.next_if(|(at, _)| *at as usize == i) {
            empty(&mut windows, how, &mut block);
            block.push_event(event.clone());
        }
        let Some((&addr, &kind)) = full.addr.get(i).zip(full.kind.get(i)) else { break };
        let table = how.table_of(kind);
        let window = &mut windows[table];
        match window.iter().position(|held| held.page == addr >> 12) {
            Some(place) => {
                let held = window.remove(place);
                block.repeat[held.row] += 1;
                window.push(WindowedPage { used: true, ..held });
            }
            None => {
                let class = how.class_of(addr >> 12);
                let of_class =
                    |window: &[WindowedPage]| window.iter().filter(|held| how.class_of(held.page) == class).count();
                while window.len() == how.window.pages as usize || of_class(window) == how.window.class_pages as usize {
                    leave(window, how, table, &mut block);
                }
                for held in window.iter_mut().filter(|held| how.class_of(held.page) == class) {
                    touch(held, how, table, &mut block);
                }
                window.push(WindowedPage { page: addr >> 12, row: block.len(), used: false });
                block.push(kind, addr);
                block.repeat.push(0);
                block.ip.extend(full.ip.get(i));
            }
        }
    }
    empty(&mut windows, how, &mut block);
    block
}

const KINDS: [Kind; 3] = [Kind::Load, Kind::Store, Kind::Fetch];

fn touch(held: &mut WindowedPage, how: RecorderOptions, table: usize, block: &mut Block) {
    if std::mem::take(&mut held.used) && how.window.log2_classes > 0 {
        block.push_touch(held.page << 12, KINDS[table]);
    }
}

fn leave(window: &mut Vec<WindowedPage>, how: RecorderOptions, table: usize, block: &mut Block) {
    let mut held = window.remove(0);
    touch(&mut held, how, table, block);
    let (addr, others) = (held.page << 12, window.len() as u8);
    block.push_leave(addr, KINDS[table], others, 0);
}

fn empty(windows: &mut [Vec<WindowedPage>; 3], how: RecorderOptions, block: &mut Block) {
    for (table, window) in windows.iter_mut().enumerate() {
        while !window.is_empty() {
            leave(window, how, table, block);
        }
    }
}

/// What [`WindowedSource`] leaves of blocks that have every visit.
pub fn windowed(visits: &[Block], how: RecorderOptions) -> Vec<Block> {
    let info =
        TraceInfo { granularity: Granularity::Page, filter_stores_apart: how.stores_apart, ..TraceInfo::default() };
    let mut source = WindowedSource::new(MemorySource::new(info, visits.to_vec()), how.window, how.unified);
    let mut recorded = Vec::new();
    let mut block = Block::default();
    while source.next_block(&mut block).expect("blocks are there") {
        recorded.push(std::mem::take(&mut block));
    }
    recorded
}

/// What is recorded of a block where repeats of the last page in each of `2^log2_classes` classes are left out.
pub fn by_classes(full: &Block, log2_classes: u32, stores_apart: bool) -> Block {
    let mut last = std::collections::BTreeMap::new();
    let mut block = Block { process: full.process, thread: full.thread, ..Block::default() };
    let mut events = full.events.iter().peekable();
    for i in 0..=full.len() {
        while let Some((_, event)) = events.next_if(|(at, _)| *at as usize == i) {
            last.clear();
            block.push_event(event.clone());
        }
        let Some((&addr, &kind)) = full.addr.get(i).zip(full.kind.get(i)) else { break };
        let table = if kind == Kind::Store && !stores_apart { Kind::Load } else { kind };
        let page = addr >> 12;
        match last.insert((table, page % (1 << log2_classes)), (page, block.len())) {
            Some((same, row)) if same == page => {
                block.repeat[row] += 1;
                last.insert((table, page % (1 << log2_classes)), (page, row));
            }
            _ => {
                block.push(kind, addr);
                block.repeat.push(0);
                block.ip.extend(full.ip.get(i));
            }
        }
    }
    block
}

/// As [`recorded`], but that lines of the pages are said to have been touched: any, by their numbers.
pub fn with_lines(full: &Block, how: RecorderOptions, seed: u64) -> Block {
    let mut block = recorded(full, how);
    for event in block.window_events.iter_mut().filter(|event| event.others().is_some()) {
        let word = (event.addr >> 12 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        event.lines = if word >> 60 == 0 { u64::MAX } else { word & word >> 13 & word << 7 };
    }
    block
}

/// Without the lines that pages bring when they leave.
pub fn without_lines(mut block: Block) -> Block {
    block.window_events.iter_mut().for_each(|event| event.lines = 0);
    block
}

/// The first accesses with the events before them, and the rest.
pub fn cut(mut block: Block, at: usize) -> (Block, Block) {
    let events = block.events.partition_point(|(position, _)| (*position as usize) < at);
    let mut rest = Block { process: block.process, thread: block.thread, ..Block::default() };
    rest.addr = block.addr.split_off(at);
    rest.kind = block.kind.split_off(at);
    if !block.ip.is_empty() {
        rest.ip = block.ip.split_off(at);
    }
    rest.repeat = block.repeat.split_off(at);
    rest.events = block.events.split_off(events);
    rest.events.iter_mut().for_each(|(position, _)| *position -= at as u32);
    let of_windows = block.window_events.partition_point(|event| (event.at as usize) < at);
    rest.window_events = block.window_events.split_off(of_windows);
    rest.window_events.iter_mut().for_each(|event| event.at -= at as u32);
    (block, rest)
}
