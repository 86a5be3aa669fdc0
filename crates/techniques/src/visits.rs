//! A recording's page visits: how many each instruction made, and stretches of them to be replayed.
//!
//! A *visit* is a recorded load or store: behind a recorder's window ([`TraceInfo::filter_window`]) it brings a page in
//! that is not among those used last, and the lines touched until the page leaves belong to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lookaside_engine::{Outcome, RegionRow};
use lookaside_timing::{VisitLine, VisitWindow};
use lookaside_trace::{Block, Event, Kind, MapSource, Source, TraceError, TraceInfo};

/// Stretches that are replayed, spread evenly over the run.
const WINDOWS: u64 = 8;
/// Visits of one: half of them warm caches, which then have seen more page-table lines (eight pages each) than the
/// second caches of today's cores hold lines.
const WINDOW_VISITS: u64 = 150_000;

/// Counts visits by instruction while blocks go by.
#[derive(Clone, Debug, Default)]
pub struct VisitCounts {
    total: u64,
    by_ip: HashMap<(u32, u64), u64>,
    /// The last instruction's visits, not in the map yet.
    run: ((u32, u64), u64),
}

impl VisitCounts {
    /// Counts a block.
    pub fn run(&mut self, block: &Block) {
        for (at, _) in block.kind.iter().enumerate().filter(|(_, kind)| **kind != Kind::Fetch) {
            let key = (block.process, block.ip.get(at).copied().unwrap_or(0));
            if key != self.run.0 {
                self.flush();
                self.run.0 = key;
            }
            self.run.1 += 1;
        }
    }

    /// All visits.
    pub fn total(&self) -> u64 {
        self.total + self.run.1
    }

    /// Visits by process and instruction (0 = not recorded).
    pub fn by_instruction(&mut self) -> &HashMap<(u32, u64), u64> {
        self.flush();
        &self.by_ip
    }

    fn flush(&mut self) {
        let (key, count) = std::mem::take(&mut self.run);
        if count > 0 {
            *self.by_ip.entry(key).or_default() += count;
            self.total += count;
        }
    }
}

/// The program's memory that huge pages could hold: 2 MiB windows that lie wholly in anonymous memory or the heap, as far
/// as huge pages are asked for it. Mappings side by side count as one, as the kernel has them.
#[derive(Clone, Debug, Default)]
pub struct HugeWindows {
    /// Of each process: ends by first bytes.
    ranges: BTreeMap<u32, BTreeMap<u64, u64>>,
}

/// Bytes of a huge page.
const HUGE_BYTES: u64 = 2 << 20;

impl HugeWindows {
    /// By the mappings of a run, whenever they were there; `asked`: huge pages are asked for a mapping.
    pub fn new(regions: &[RegionRow], asked: &dyn Fn(&RegionRow) -> bool) -> Self {
        let holds =
            |region: &&RegionRow| matches!(region.source, MapSource::Anonymous | MapSource::Heap) && asked(region);
        let mut all: Vec<(u32, u64, u64)> = regions.iter().filter(holds).map(|r| (r.process, r.start, r.end)).collect();
        all.sort_unstable();
        let mut ranges: BTreeMap<u32, BTreeMap<u64, u64>> = BTreeMap::new();
        for (process, start, end) in all {
            let of = ranges.entry(process).or_default();
            match of.last_entry() {
                Some(mut last) if start <= *last.get() => {
                    let end = end.max(*last.get());
                    last.insert(end);
                }
                _ => {
                    of.insert(start, end);
                }
            }
        }
        Self { ranges }
    }

    /// Whether the window that `addr` lies in can be huge.
    pub fn holds(&self, process: u32, addr: u64) -> bool {
        let start = addr & !(HUGE_BYTES - 1);
        let range = self.ranges.get(&process).and_then(|of| of.range(..=start).next_back());
        range.is_some_and(|(_, &end)| start.checked_add(HUGE_BYTES).is_some_and(|stop| stop <= end))
    }

    /// Small pages that the run touched in such windows, and how many windows these are.
    pub fn touched(&self, outcome: &Outcome) -> (u64, u64) {
        let pages = outcome.pages.iter().filter(|page| self.holds(page.process, page.addr));
        let places: BTreeSet<(u32, u64)> = pages.map(|page| (page.process, page.addr >> 12)).collect();
        let windows: BTreeSet<(u32, u64)> = places.iter().map(|&(process, page)| (process, page >> 9)).collect();
        (places.len() as u64, windows.len() as u64)
    }
}

/// Cuts windows out of a recording of `total` visits.
///
/// # Errors
/// A recording that can't be read on.
pub fn cut_windows(source: &mut dyn Source, total: u64, huge: &HugeWindows) -> Result<Vec<VisitWindow>, TraceError> {
    let mut cutter = WindowCutter::new(source.info(), total, huge);
    let mut block = Block::default();
    while source.next_block(&mut block)? {
        cutter.run(&block);
    }
    Ok(cutter.finish())
}

struct WindowCutter<'a> {
    huge: &'a HugeWindows,
    stores_apart: bool,
    /// Visits from one window's begin to the next one's, and of a window.
    every: u64,
    length: u64,
    seen: u64,
    /// Processes in order of appearance.
    numbers: HashMap<u32, u32>,
    done: Vec<VisitWindow>,
    /// Of the window that is made: lines, and which other lines of their pages.
    visits: Vec<(VisitLine, u64)>,
    /// The visit that each page is there by: by process, page and table.
    open: HashMap<(u32, u64, bool), usize>,
}

impl<'a> WindowCutter<'a> {
    fn new(info: &TraceInfo, total: u64, huge: &'a HugeWindows) -> Self {
        let windows = WINDOWS.min(total.div_ceil(WINDOW_VISITS)).max(1);
        let every = total.div_ceil(windows).max(1);
        Self {
            huge,
            stores_apart: info.filter_stores_apart,
            every,
            length: every.min(WINDOW_VISITS),
            seen: 0,
            numbers: HashMap::new(),
            done: Vec::new(),
            visits: Vec::new(),
            open: HashMap::new(),
        }
    }

    fn run(&mut self, block: &Block) {
        let mut events = block.events.iter().peekable();
        for at in 0..=block.len() {
            while let Some((_, event)) = events.next_if(|(position, _)| *position as usize <= at) {
                if let Event::Leave { addr, kind, lines, .. } = event {
                    self.leave(block.process, *addr, *kind, *lines);
                }
            }
            if at < block.len() && block.kind[at] != Kind::Fetch {
                self.visit(block.process, block.addr[at], block.kind[at]);
            }
        }
    }

    fn key(&self, process: u32, addr: u64, kind: Kind) -> (u32, u64, bool) {
        (process, addr >> 12, self.stores_apart && kind == Kind::Store)
    }

    fn visit(&mut self, process: u32, addr: u64, kind: Kind) {
        // The window lies in the midst of its part of the run.
        let place = (self.seen % self.every).checked_sub((self.every - self.length) / 2);
        self.seen += 1;
        if place == Some(0) {
            self.end_window();
        }
        if place.is_none_or(|place| place >= self.length) {
            // The page has come in anew, behind the window's end.
            self.open.remove(&self.key(process, addr, kind));
            return;
        }
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(process).or_insert(next);
        self.open.insert(self.key(process, addr, kind), self.visits.len());
        self.visits.push((VisitLine::new(number, addr, self.huge.holds(process, addr)), 0));
    }

    fn leave(&mut self, process: u32, addr: u64, kind: Kind, lines: u64) {
        if kind != Kind::Fetch {
            if let Some(visit) = self.open.remove(&self.key(process, addr, kind)) {
                self.visits[visit].1 = lines;
            }
        }
    }

    fn end_window(&mut self) {
        self.open.clear();
        if self.visits.is_empty() {
            return;
        }
        let mut window = VisitWindow::default();
        for (line, mut others) in self.visits.drain(..) {
            window.visits.push((line, others.count_ones() as u8));
            while others != 0 {
                window.others.push(line.beside(others.trailing_zeros()));
                others &= others - 1;
            }
        }
        self.done.push(window);
    }

    fn finish(mut self) -> Vec<VisitWindow> {
        self.end_window();
        self.done
    }
}

#[cfg(test)]
mod tests;
