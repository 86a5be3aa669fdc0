//! Pages that evict everything from the first level, so that it does not hide the misses of the second.

use crate::bench::ChainBench;
use crate::gf2;
use std::collections::{BTreeMap, BTreeSet};

/// Dimension of the space that fillers are taken from: near enough that their upper page-table entries, which some
/// cores keep in the second-level TLB (Zen), are few.
const NEAR: usize = 14;

/// Pages out of which the one that is least in the way is taken.
const CHOICE: usize = 12;

/// A tested set is in the way more than any load.
const TESTED: u32 = 1 << 16;

/// A level above whose geometry is known, which has to be kept from hiding what the level below does.
#[derive(Clone, Debug)]
pub struct FirstLevelFlood {
    /// Index masks; none = fully associative.
    pub masks: Vec<u64>,
    /// Ways of a set.
    pub ways: u32,
    /// Pages for each way that walk through a set between two uses of a page: surely put it out.
    flood: f64,
    bits: u32,
    /// Vectors that do not change the set here, the nearest.
    kernel: Vec<u64>,
    /// The same in a window in which sets of the level below are told apart by `below`: pages from there keep out of
    /// each other's way, and of the sets under test.
    known: Vec<u64>,
    /// Masks of the level below, as far as they are known.
    below: Vec<u64>,
    /// Of the spaces that are large enough to put all else out, the one that is least in its own way below.
    pub(super) least_crowded: Vec<u64>,
}

impl FirstLevelFlood {
    /// The level with these masks and ways, where page numbers have `bits` bits.
    pub fn new(masks: Vec<u64>, ways: u32, flood: f64, bits: u32) -> Self {
        let mut kernel = gf2::near_first(&gf2::null_space(&masks, bits));
        kernel.truncate(NEAR);
        Self { masks, ways, flood, bits, kernel, known: Vec::new(), below: Vec::new(), least_crowded: Vec::new() }
    }

    /// In a window of bits, `below` tells sets of the level below apart.
    pub(super) fn know_below(&mut self, window: u64, below: &[u64]) {
        let outside = (0..self.bits).map(|bit| 1 << bit).filter(|bit| window & bit == 0);
        let rows: Vec<u64> = self.masks.iter().copied().chain(outside).collect();
        self.known = gf2::near_first(&gf2::null_space(&rows, self.bits));
        self.known.truncate(NEAR);
        self.below = below.to_vec();
    }

    /// Floods no more than just enough.
    pub(crate) fn sparing(&mut self) {
        self.flood = if self.flood > 2.0 { 2.0 } else { 1.25 };
    }

    /// Pages that have to walk through a set.
    pub(super) fn wanted(&self) -> u32 {
        (self.flood * f64::from(self.ways)).ceil() as u32
    }

    /// Where so many pages of one set here are taken from. So many known ones would crowd the level below: its sets
    /// hold half of what crowds them or more, and this may be a half of that again.
    fn source(&self, pages: usize) -> &[u64] {
        if 1usize << self.known.len() >= 4 * pages {
            &self.known
        } else {
            &self.kernel
        }
    }

    /// Entries here.
    pub fn entries(&self) -> usize {
        (self.ways as usize) << self.masks.len()
    }

    /// Pages at random that put out all others.
    pub(crate) fn flood_pages(&self) -> usize {
        (self.wanted() as usize) << self.masks.len()
    }

    pub(super) fn is_flooded(&self, pages: &[u64]) -> bool {
        pages.len() > 2 * self.flood_pages()
    }

    /// log2 of pages of a space that miss here on each access, and hit in the level below, which is much larger.
    pub(crate) fn least_crowded_log2(&self) -> usize {
        self.flood_pages().next_power_of_two().ilog2() as usize
    }

    /// The space to take for them.
    pub(crate) fn least_crowded(&mut self, basis: Vec<u64>) {
        self.least_crowded = basis;
    }

    /// Pages by set here.
    fn by_set(&self, pages: &[u64]) -> BTreeMap<u64, Vec<u64>> {
        let mut sets: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for &page in pages {
            sets.entry(gf2::apply(&self.masks, page)).or_default().push(page);
        }
        sets
    }

    fn below(&self, page: u64) -> u64 {
        gf2::apply(&self.below, page)
    }

    /// The page, of some that differ from `page` by these vectors, that is not in use and meets fewest others below; it
    /// is put to use.
    fn least(&self, page: u64, vectors: &[u64], used: &mut UsedPages, bench: &mut ChainBench<'_>) -> u64 {
        let mut least = (u32::MAX, page);
        for _ in 0..CHOICE {
            let other = page ^ gf2::combine(vectors, bench.rng.next_u64());
            let load = used.load.get(&self.below(other)).copied().unwrap_or(0);
            let load = load + if used.pages.contains(&other) { 2 * TESTED } else { 0 };
            if load < least.0 {
                least = (load, other);
            }
            if load == 0 {
                break;
            }
        }
        used.pages.insert(least.1);
        *used.load.entry(self.below(least.1)).or_default() += 1;
        least.1
    }

    /// For each page another of the same set here, and in the level below where it meets few others.
    pub(super) fn apart(&self, pages: &[u64], fillers: &[u64], bench: &mut ChainBench<'_>) -> BTreeMap<u64, u64> {
        let mut used = UsedPages::default();
        for &filler in fillers {
            used.pages.insert(filler);
            *used.load.entry(self.below(filler)).or_default() += 1;
        }
        let mut apart = BTreeMap::new();
        for pages in self.by_set(pages).into_values() {
            let source = self.source(pages.len());
            let reach = gf2::reduce(&source.iter().map(|&v| self.below(v)).collect::<Vec<u64>>()).len();
            // Many pages of one set here might not fit the few sets below that go with it: some go elsewhere, enough of
            // them to miss there.
            let parts = if reach >= 2 { 1 } else { (pages.len() / self.wanted() as usize).clamp(1, 4) };
            for (part, pages) in pages.chunks(pages.len().div_ceil(parts)).enumerate() {
                let elsewhere = if part == 0 { 0 } else { bench.page() };
                for &page in pages {
                    apart.insert(page, self.least(page ^ elsewhere, source, &mut used, bench));
                }
            }
        }
        apart
    }

    /// Pages that, beside `pages`, make every set that these use miss on every access.
    pub(crate) fn fillers(&self, pages: &[u64], bench: &mut ChainBench<'_>) -> Vec<u64> {
        let mut used = UsedPages::default();
        for &page in pages {
            used.pages.insert(page);
            used.load.insert(self.below(page), TESTED);
        }
        let mut fillers = Vec::new();
        for pages in self.by_set(pages).into_values() {
            let source = self.source(self.wanted() as usize);
            for _ in pages.len()..self.wanted() as usize {
                fillers.push(self.least(pages[0], source, &mut used, bench));
            }
        }
        fillers
    }
}

/// Pages of a chain, and how many of them lie in each set of the level below.
#[derive(Default)]
struct UsedPages {
    pages: BTreeSet<u64>,
    load: BTreeMap<u64, u32>,
}
