//! A recording's page visits: how many each instruction made, and stretches of them to be replayed.
//!
//! A *visit* is a recorded load or store: behind a recorder's window ([`TraceInfo::filter_window`]) it brings a page in
//! that is not among those used last, and the lines touched until the page leaves belong to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::FixedState;
use lookaside_engine::{Outcome, RegionRow};
use lookaside_timing::{PageVisit, RunVisits, VisitLine, VisitWindow};
use lookaside_trace::{Block, Event, Kind, MapSource, Source, TraceError, TraceInfo};

use crate::cost_curve::{CostCurve, WindowPlace};
use crate::recent_pages::{PageKey, RecentPages};
use crate::touch_order::TouchOrder;

/// Stretches that are replayed at the most.
const WINDOWS: u64 = 16;
/// Visits of one that miss the first TLB level, and are timed.
const WINDOW_MISSES: u64 = 75_000;
/// Visits of one, missing or not, at the most: looking at them takes time.
const MOST_WINDOW_VISITS: u64 = 1 << 20;
/// So many visits before a window are looked at for what the caches and TLBs hold when it begins.
const WARMING_VISITS: u64 = 1 << 20;
/// Of the pages visited there the last so many are read before the timed visits: more than any second-level TLB has
/// entries (3072 in Zen 4), and with four lines each more than the second caches of today's cores hold.
const WARMING_PAGES: usize = 1 << 13;

/// Places of a block's page visits.
pub fn visits_of(block: &Block) -> impl Iterator<Item = usize> + '_ {
    block.kind.iter().enumerate().filter(|(_, kind)| **kind != Kind::Fetch).map(|(at, _)| at)
}

/// The program's memory that huge pages could hold: 2 MiB windows that lie wholly in anonymous memory or the heap, as
/// far as huge pages are asked for it. Mappings side by side count as one, as the kernel has them.
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
            |region: &&RegionRow| !region.source.is_file() && region.source != MapSource::Stack && asked(region);
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

/// Where to cut windows out of a run, of whose visits `misses` miss the first TLB level.
pub fn window_places(curve: &CostCurve, misses: u64) -> Vec<WindowPlace> {
    let visits_a_miss = curve.visits() as f64 / misses.max(1) as f64;
    let length = (WINDOW_MISSES as f64 * visits_a_miss) as u64;
    curve.places(WINDOWS, length.clamp(WINDOW_MISSES, MOST_WINDOW_VISITS))
}

/// Cuts windows out of a recording, and sees in which order its pages were touched first. Visits to one of the
/// `first_level` pages visited last are none of theirs: the first TLB level holds these pages, small or huge. What they
/// touched belongs to the visit that brought the page in.
///
/// # Errors
/// A recording that can't be read on.
pub fn cut_windows(
    source: &mut dyn Source,
    places: &[WindowPlace],
    huge: &HugeWindows,
    first_level: usize,
) -> Result<RunVisits, TraceError> {
    let mut cutter = WindowCutter::new(source.info(), places, huge, first_level);
    let mut block = Block::default();
    while source.next_block(&mut block)? {
        cutter.run(&block);
    }
    Ok(cutter.finish())
}

/// The last visit to a page before a window.
#[derive(Clone, Copy)]
struct LastVisit {
    seen: u64,
    addr: u64,
    lines: u64,
}

/// A visit to a page that may still be there.
struct OpenVisit {
    line: VisitLine,
    /// Other lines of the page, a bit each.
    others: u64,
    accesses: u32,
    store: bool,
}

struct WindowCutter<'a> {
    huge: &'a HugeWindows,
    stores_apart: bool,
    /// Places that are not begun yet.
    places: std::iter::Peekable<std::iter::Copied<std::slice::Iter<'a, WindowPlace>>>,
    seen: u64,
    touched: TouchOrder,
    /// Processes in order of appearance, and their numbers in it.
    processes: Vec<u32>,
    numbers: HashMap<u32, u32, FixedState>,
    done: Vec<VisitWindow>,
    /// The window that is made.
    place: Option<WindowPlace>,
    /// Its visits; the first so many are not timed.
    visits: Vec<OpenVisit>,
    warming: usize,
    /// How many of its timed visits each thread made, by process number and thread.
    threads: BTreeMap<(u32, u32), u64>,
    /// The thread that makes the visits now.
    thread: u32,
    /// Instructions executed in it.
    instructions: f64,
    /// Those of blocks without a visit, and of the block that is read, for each of its visits.
    instructions_before: u64,
    instructions_a_visit: f64,
    /// The pages that the first TLB level holds.
    recent: RecentPages,
    /// The visit that each page is there by.
    open: HashMap<PageKey, usize, FixedState>,
    /// The pages visited before the next window.
    before: HashMap<PageKey, LastVisit, FixedState>,
}

impl<'a> WindowCutter<'a> {
    fn new(info: &TraceInfo, places: &'a [WindowPlace], huge: &'a HugeWindows, first_level: usize) -> Self {
        Self {
            huge,
            stores_apart: info.filter_stores_apart,
            places: places.iter().copied().peekable(),
            seen: 0,
            touched: TouchOrder::default(),
            processes: Vec::new(),
            numbers: HashMap::default(),
            done: Vec::new(),
            place: None,
            visits: Vec::new(),
            warming: 0,
            threads: BTreeMap::new(),
            thread: 0,
            instructions: 0.0,
            instructions_before: 0,
            instructions_a_visit: 0.0,
            recent: RecentPages::new(first_level),
            open: HashMap::default(),
            before: HashMap::default(),
        }
    }

    fn run(&mut self, block: &Block) {
        let instructions = self.instructions_before + instructions_of(block);
        let visits = visits_of(block).count() as u64;
        (self.instructions_before, self.instructions_a_visit) = match visits {
            0 => (instructions, 0.0),
            _ => (0, instructions as f64 / visits as f64),
        };
        self.thread = block.thread;
        let mut events = block.events.iter().peekable();
        let mut window_events = block.window_events.iter().peekable();
        for at in 0..=block.len() {
            while let Some(event) = window_events.next_if(|event| event.at as usize <= at) {
                if event.others().is_some() {
                    self.leave(block.process, event.addr, event.kind, event.lines);
                }
            }
            while let Some((_, event)) = events.next_if(|(position, _)| *position as usize <= at) {
                if let Event::Repeats { addr, kind, count } = event {
                    self.repeats(block.process, *addr, *kind, *count);
                }
            }
            if at < block.len() && block.kind[at] != Kind::Fetch {
                let repeats = block.repeat.get(at).copied().unwrap_or(0);
                self.visit(block.process, block.addr[at], block.kind[at], u64::from(repeats) + 1);
            }
        }
    }

    /// So many accesses to a page, the first of them to this address; the others were counted and left out.
    fn visit(&mut self, process: u32, addr: u64, kind: Kind, accesses: u64) {
        let seen = self.seen;
        self.seen += 1;
        if self.touched.is_new(process, addr) {
            let key = self.key(process, addr, kind);
            self.touched.push(self.line(key, addr));
        }
        if self.places.peek().is_some_and(|next| next.start == seen) {
            self.begin_window();
        }
        let inside = self.place.is_some_and(|place| seen < place.start + place.length);
        if inside {
            self.instructions += self.instructions_a_visit;
        }
        let before_next = self.places.peek().is_some_and(|next| seen + WARMING_VISITS >= next.start);
        if !inside && !before_next {
            if !self.open.is_empty() {
                // The page may have come in anew, behind the window's end.
                let key = self.key(process, addr, kind);
                self.open.remove(&key);
            }
            return;
        }
        let key = self.key(process, addr, kind);
        let held = self.recent.visit(key);
        match self.open.get(&key) {
            Some(&visit) if held => {
                let visit = &mut self.visits[visit];
                visit.others |= other_line(visit.line, addr);
                visit.accesses = plus(visit.accesses, accesses);
            }
            _ if inside && !held => {
                self.open.insert(key, self.visits.len());
                *self.threads.entry((key.number, self.thread)).or_default() += 1;
                let (line, store) = (self.line(key, addr), kind == Kind::Store);
                self.visits.push(OpenVisit { line, others: 0, accesses: plus(0, accesses), store });
            }
            _ => {
                self.open.remove(&key);
            }
        }
        if before_next {
            let last = self.before.entry(key).or_insert(LastVisit { seen, addr, lines: 0 });
            *last = LastVisit { seen, addr, lines: if held { last.lines } else { 0 } };
        }
    }

    fn leave(&mut self, process: u32, addr: u64, kind: Kind, lines: u64) {
        if kind == Kind::Fetch || self.open.is_empty() && self.before.is_empty() {
            return;
        }
        let key = self.key(process, addr, kind);
        if let Some(&visit) = self.open.get(&key) {
            self.visits[visit].others |= lines;
        }
        if let Some(last) = self.before.get_mut(&key) {
            last.lines |= lines;
        }
    }

    /// Accesses that were counted and left out are known of only now.
    fn repeats(&mut self, process: u32, addr: u64, kind: Kind, count: u64) {
        if kind == Kind::Fetch || self.open.is_empty() {
            return;
        }
        let key = self.key(process, addr, kind);
        if let Some(&visit) = self.open.get(&key) {
            self.visits[visit].accesses = plus(self.visits[visit].accesses, count);
        }
    }

    fn key(&mut self, process: u32, addr: u64, kind: Kind) -> PageKey {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(process).or_insert_with(|| {
            self.processes.push(process);
            next
        });
        PageKey { number, page: addr >> 12, apart: self.stores_apart && kind == Kind::Store }
    }

    fn line(&self, key: PageKey, addr: u64) -> VisitLine {
        VisitLine::new(key.number, addr, self.huge.holds(self.processes[key.number as usize], addr))
    }

    /// What was visited last before it, the longest ago first, and then the window itself.
    fn begin_window(&mut self) {
        self.end_window();
        self.place = self.places.next();
        let mut before: Vec<(PageKey, LastVisit)> = self.before.iter().map(|(&key, &last)| (key, last)).collect();
        match self.places.peek() {
            Some(next) => self.before.retain(|_, last| last.seen + WARMING_VISITS >= next.start),
            None => self.before.clear(),
        }
        before.sort_unstable_by_key(|(_, last)| last.seen);
        for (key, last) in before.split_off(before.len().saturating_sub(WARMING_PAGES)) {
            let line = self.line(key, last.addr);
            let others = last.lines & !(1 << line_of(last.addr));
            // What was accessed there is only to be in the caches.
            self.visits.push(OpenVisit { line, others, accesses: others.count_ones() + 1, store: false });
        }
        self.warming = self.visits.len();
        self.instructions = 0.0;
    }

    fn end_window(&mut self) {
        self.open.clear();
        let Some(place) = self.place.take() else { return };
        let mut window = VisitWindow {
            first_timed: self.warming,
            weight: place.weight,
            cost_share: place.cost_share,
            thread: most_visits(&std::mem::take(&mut self.threads)),
            instructions: self.instructions,
            ..VisitWindow::default()
        };
        for OpenVisit { line, mut others, accesses, store } in self.visits.drain(..) {
            window.visits.push(PageVisit { line, others: others.count_ones() as u8, accesses, store });
            while others != 0 {
                window.others.push(line.beside(others.trailing_zeros()));
                others &= others - 1;
            }
        }
        self.done.push(window);
    }

    fn finish(mut self) -> RunVisits {
        self.end_window();
        RunVisits { windows: self.done, touched: self.touched.finish() }
    }
}

/// The thread with most visits, the first of several.
fn most_visits(threads: &BTreeMap<(u32, u32), u64>) -> (u32, u32) {
    let most = threads.iter().rev().max_by_key(|(_, &visits)| visits);
    most.map(|(&thread, _)| thread).unwrap_or_default()
}

/// A count and more, as far as it holds them.
fn plus(count: u32, more: u64) -> u32 {
    count.saturating_add(u32::try_from(more).unwrap_or(u32::MAX))
}

/// Instructions that were executed while the block was recorded, as far as fetches are.
fn instructions_of(block: &Block) -> u64 {
    let recorded = block.kind.iter().enumerate().filter(|(_, kind)| **kind == Kind::Fetch);
    let fetched: u64 = recorded.map(|(at, _)| 1 + block.repeat.get(at).map_or(0, |&more| u64::from(more))).sum();
    let left_out = block.events.iter().map(|(_, event)| match event {
        Event::Repeats { kind: Kind::Fetch, count, .. } => *count,
        _ => 0,
    });
    left_out.fold(fetched, u64::saturating_add)
}

/// The line's bit among those of its page, unless the visit itself is to it.
fn other_line(visited: VisitLine, addr: u64) -> u64 {
    let line = line_of(addr);
    u64::from(visited.offset() % 64 != line) << line
}

/// Number of the line in its page.
fn line_of(addr: u64) -> u32 {
    (addr >> 6 & 63) as u32
}

#[cfg(test)]
mod tests;
