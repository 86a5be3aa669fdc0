//! The miss curve: misses of data accesses over TLB size, all sizes in one pass.
//!
//! LRU, 4 KiB pages told apart by process. Fully associative sizes come from exact stack distances
//! (Mattson et al. 1970): an access hits in every TLB that has more entries than distinct other pages were
//! touched since its page was last touched. Set-associative ones from the same distance within each
//! set, for every number of sets at once (Hill and Smith 1989).
//!
//! The curve is one of addresses: events other than [`Event::Repeats`] are passed over. A page that was unmapped and
//! mapped again is the same page, a context switch empties nothing. (Entries that are invalidated leave holes that
//! depend on the TLB's size, so that no single pass would be exact.)

mod estimate;
mod miss_curve;
mod pages;
mod recency;
mod sets;
#[cfg(target_arch = "x86_64")]
mod wide;
mod window;

use lookaside_trace::{Block, Event, Kind, WindowEvent};

pub use estimate::estimate_from_samples;
use miss_curve::listed_sizes;
pub use miss_curve::{MissCurve, SetCurve, MAX_WAYS};
use pages::PageNumbers;
use recency::Recency;
pub use sets::MAX_SETS;
use sets::{SetStacks, Visit};
use window::CurveWindow;

/// Visits that go through a stage together: enough to keep a stage's code and tables close, few enough for the
/// visits themselves to stay in the first-level cache.
const BATCH: usize = 512;

/// Visits ahead of which what is known of a page is fetched.
const AHEAD: usize = 8;

/// log2 of the page size that the curve speaks of.
const PAGE_SHIFT: u32 = 12;

/// Builds a [`MissCurve`] from a stream of blocks.
///
/// ```
/// use lookaside_engine::curve::CurveBuilder;
/// use lookaside_trace::{Block, Kind};
///
/// let mut block = Block::default();
/// for page in [1u64, 2, 3, 1, 2, 3] {
///     block.push(Kind::Load, page << 12);
/// }
/// let mut builder = CurveBuilder::new();
/// builder.run(&block);
/// assert_eq!(builder.fully_associative_misses(2), 6);
/// assert_eq!(builder.fully_associative_misses(3), 3);
/// assert_eq!(builder.finish().cold_misses, 3);
/// ```
#[derive(Default)]
pub struct CurveBuilder {
    pages: PageNumbers,
    recency: Recency,
    window: CurveWindow,
    sets: SetStacks,
    batch: Vec<Visit>,
    /// Page of the last access.
    last: Option<u32>,
    accesses: u64,
    cold_misses: u64,
    distances: Distances,
    /// A block's pages, at its data accesses.
    numbers: Vec<u32>,
}

impl CurveBuilder {
    /// An empty curve.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty curve of a trace whose recorder left out the repeats of so many pages, those used last
    /// ([`lookaside_trace::TraceInfo::filter_window`]; 0 = it did not): it begins at this size, and is of no sets but
    /// one.
    pub fn beyond(window: u32) -> Self {
        Self { window: CurveWindow::of(window), ..Self::default() }
    }

    /// Adds a block's data accesses. Left-out repeats hit at every size of the curve.
    pub fn run(&mut self, block: &Block) {
        self.pages.enter(block.process);
        if self.window.most > 0 {
            return self.run_windowed(block);
        }
        let visits = block.addr.iter().zip(&block.kind).filter(|(_, kind)| **kind != Kind::Fetch);
        for (addr, _) in visits {
            let page_number = addr >> PAGE_SHIFT;
            let page = self.pages.number(page_number);
            self.accesses += 1;
            if self.last != Some(page) {
                self.last = Some(page);
                self.batch.push(Visit { page, index: page_number as u32 });
                if self.batch.len() == BATCH {
                    self.drain();
                }
            }
        }
        self.drain();
        self.end_block(block);
    }

    /// Of a block whose pages come into a window: they are out of the order of visits while they are there.
    fn run_windowed(&mut self, block: &Block) {
        let is_windowed = block.is_windowed();
        self.window.enter_block(block, is_windowed, &mut self.recency);
        let accesses = || block.addr.iter().zip(&block.kind).enumerate().filter(|(_, (_, kind))| **kind != Kind::Fetch);
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        numbers.extend(accesses().map(|(_, (addr, _))| self.pages.number(addr >> PAGE_SHIFT)));
        let mut events = block.window_events.iter().peekable();
        for (visit, (at, _)) in accesses().enumerate() {
            while let Some(event) = events.next_if(|event| event.at as usize <= at) {
                self.leave(event);
            }
            if let Some(&later) = numbers.get(visit + AHEAD) {
                self.recency.prefetch(later);
            }
            let page = numbers[visit];
            let distance = match is_windowed {
                true => self.window.enter(page, &mut self.recency),
                false => self.recency.visit(page),
            };
            match distance {
                Some(distance) => self.distances.add(distance),
                None => self.cold_misses += 1,
            }
        }
        events.for_each(|event| self.leave(event));
        self.accesses += numbers.len() as u64;
        self.numbers = numbers;
        self.end_block(block);
    }

    fn leave(&mut self, event: &WindowEvent) {
        if let Some((addr, others)) = window::leaves(event) {
            let page = self.pages.number(addr >> PAGE_SHIFT);
            self.window.leave(page, others, &mut self.recency);
        }
    }

    /// A block is over: counts what is left to count of it.
    fn end_block(&mut self, block: &Block) {
        self.distances.count();
        let repeats = block.repeat.iter().zip(&block.kind).filter(|(_, kind)| **kind != Kind::Fetch);
        self.accesses += repeats.map(|(&n, _)| u64::from(n)).sum::<u64>();
        for (_, event) in &block.events {
            if let Event::Repeats { kind: Kind::Load | Kind::Store, count, .. } = event {
                self.accesses += count;
            }
        }
    }

    /// Misses so far of a fully associative TLB with this many entries: exact at every size from the window's on.
    pub fn fully_associative_misses(&self, entries: u64) -> u64 {
        // The distances of everything but direct repeats, which hit from one entry on.
        let visits = self.cold_misses + self.distances.counts.iter().sum::<u64>();
        if entries == 0 {
            return self.accesses;
        }
        let hits: u64 = self.distances.counts.iter().take(entries.try_into().unwrap_or(usize::MAX)).sum();
        visits - hits
    }

    /// The curve so far.
    pub fn finish(&self) -> MissCurve {
        let visits = self.cold_misses + self.distances.counts.iter().sum::<u64>();
        let last = if visits > 0 { self.distances.counts.len().max(self.window.most as usize).max(1) } else { 0 };
        let (mut misses, mut done) = (visits, 0);
        let listed = listed_sizes(last as u64).into_iter().map(|size| {
            misses -= self.distances.counts.iter().take(size as usize).skip(done).sum::<u64>();
            done = size as usize;
            (size, misses)
        });
        let fully_associative = listed.filter(|&(size, _)| size >= self.window.most.into()).collect();
        let mut set_associative = Vec::new();
        if self.window.most == 0 {
            set_associative.push(self.one_set(visits));
            set_associative.extend(self.sets.curves());
        }
        MissCurve {
            accesses: self.accesses,
            cold_misses: self.cold_misses,
            fully_associative,
            set_associative,
            estimate: false,
        }
    }

    fn one_set(&self, visits: u64) -> SetCurve {
        let mut misses = visits;
        let by_ways = (0..MAX_WAYS).map(|way| {
            misses -= self.distances.counts.get(way).copied().unwrap_or(0);
            misses
        });
        SetCurve { sets: 1, misses_by_ways: by_ways.collect() }
    }

    fn drain(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if wide::available() {
            // SAFETY: it has just been asked for.
            unsafe { self.drain_wide() };
            return;
        }
        self.drain_by::<false>();
    }

    /// # Safety
    /// `wide::available()`.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    unsafe fn drain_wide(&mut self) {
        self.drain_by::<true>();
    }

    #[inline(always)]
    fn drain_by<const WIDE: bool>(&mut self) {
        for (at, visit) in self.batch.iter().enumerate() {
            if let Some(later) = self.batch.get(at + AHEAD) {
                self.recency.prefetch(later.page);
            }
            match self.recency.visit(visit.page) {
                Some(distance) => self.distances.add(distance),
                None => self.cold_misses += 1,
            }
        }
        self.sets.visit::<WIDE>(&mut self.batch);
        self.batch.clear();
    }
}

/// Accesses by stack distance.
#[derive(Default)]
struct Distances {
    counts: Vec<u64>,
    /// Not yet counted; nothing between blocks. What is known at the end of a long way through tables is put here, so
    /// that the next access need not wait until its count, somewhere in a table as long as there are pages, has come.
    pending: Vec<u32>,
}

impl Distances {
    #[inline(always)]
    fn add(&mut self, distance: u32) {
        if self.pending.len() == BATCH {
            self.count();
        }
        self.pending.push(distance);
    }

    fn count(&mut self) {
        let most = self.pending.iter().max().map_or(0, |&most| most as usize + 1);
        if most > self.counts.len() {
            self.counts.resize(most, 0);
        }
        self.pending.drain(..).for_each(|distance| self.counts[distance as usize] += 1);
    }
}
