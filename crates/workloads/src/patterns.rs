//! Synthetic patterns for tests and benches.

use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Kind};

use crate::shuffle::Shuffle;
use crate::stream::{load, Pattern, MOST_PAGES, PAGE_BYTES};
use crate::Zipf;

/// Loads at the first word of pages drawn evenly: an E-entry LRU TLB hits E/P of them in the long run.
#[derive(Clone, Debug)]
pub struct UniformPages {
    pages: u64,
    random: SplitMix64,
}

impl UniformPages {
    /// Over this many pages (1 to 2^40; what is beyond counts as the nearest).
    pub fn new(pages: u64, seed: u64) -> Self {
        Self { pages: pages.clamp(1, MOST_PAGES), random: SplitMix64::new(seed) }
    }
}

impl Pattern for UniformPages {
    fn name(&self) -> &'static str {
        "uniform-pages"
    }

    fn bytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }

    #[inline]
    fn step(&mut self, base: u64, block: &mut Block) {
        load(block, base + self.random.below(self.pages) * PAGE_BYTES);
    }
}

/// Loads at pages drawn by [`Zipf`]; popular pages are scattered over the memory by a seeded permutation.
#[derive(Clone, Debug)]
pub struct ZipfPages {
    zipf: Zipf,
    place: Shuffle,
    random: SplitMix64,
}

impl ZipfPages {
    /// Over this many pages (1 to 2^40), the page of rank r with weight `r^-exponent`; an exponent that is
    /// negative or not a number counts as 0 (even).
    pub fn new(pages: u64, exponent: f64, seed: u64) -> Self {
        let zipf = Zipf::new(pages.min(MOST_PAGES), exponent);
        let mut random = SplitMix64::new(seed);
        let place = Shuffle::new(zipf.len(), random.next_u64());
        Self { zipf, place, random }
    }
}

impl Pattern for ZipfPages {
    fn name(&self) -> &'static str {
        "zipf-pages"
    }

    fn bytes(&self) -> u64 {
        self.zipf.len() * PAGE_BYTES
    }

    #[inline]
    fn step(&mut self, base: u64, block: &mut Block) {
        let rank = self.zipf.sample(&mut self.random);
        load(block, base + self.place.apply(rank - 1) * PAGE_BYTES);
    }
}

/// Loads a fixed stride apart, again from the start after the last that fits.
#[derive(Clone, Debug)]
pub struct Strided {
    bytes: u64,
    stride: u64,
    next: u64,
}

impl Strided {
    /// Over `bytes` (at least one stride) in steps of `stride` bytes (0 counts as 1).
    pub fn new(bytes: u64, stride: u64) -> Self {
        let stride = stride.clamp(1, MOST_PAGES * PAGE_BYTES);
        Self { bytes: bytes.clamp(stride, MOST_PAGES * PAGE_BYTES), stride, next: 0 }
    }
}

impl Pattern for Strided {
    fn name(&self) -> &'static str {
        "strided"
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn step(&mut self, base: u64, block: &mut Block) {
        if self.next + self.stride > self.bytes {
            self.next = 0;
        }
        load(block, base + self.next);
        self.next += self.stride;
    }
}

/// A pointer chase: one node a page, all of them in one random cycle (Sattolo's), each node on a line of its
/// page of its own choosing (so that the pages do not all meet in one cache set).
#[derive(Clone, Debug)]
pub struct PointerChase {
    next: Vec<u32>,
    at: u32,
    lines: u64,
}

impl PointerChase {
    /// Over this many pages (0 counts as 1, at most 2^32 - 1); uses 4 bytes a page.
    pub fn new(pages: u64, seed: u64) -> Self {
        let n = pages.clamp(1, u64::from(u32::MAX)) as u32;
        let mut next: Vec<u32> = (0..n).collect();
        let mut random = SplitMix64::new(seed);
        for i in (1..n as usize).rev() {
            next.swap(i, random.below(i as u64) as usize);
        }
        Self { next, at: 0, lines: random.next_u64() }
    }
}

impl Pattern for PointerChase {
    fn name(&self) -> &'static str {
        "pointer-chase"
    }

    fn bytes(&self) -> u64 {
        self.next.len() as u64 * PAGE_BYTES
    }

    #[inline]
    fn step(&mut self, base: u64, block: &mut Block) {
        let page = u64::from(self.at);
        let line = SplitMix64::new(page ^ self.lines).next_u64() % (PAGE_BYTES / 64);
        load(block, base + page * PAGE_BYTES + line * 64);
        self.at = self.next[self.at as usize];
    }
}

/// Random updates as HPCC's RandomAccess (GUPS) makes them: its sequence `x = x << 1 ^ (x < 0 ? 7 : 0)`,
/// a load and a store of the 8-byte word `x & (words - 1)`. A step is one update.
#[derive(Clone, Debug)]
pub struct Gups {
    words: u64,
    x: u64,
}

impl Gups {
    /// Over a table of `bytes`, rounded up to a power of two of at least 8. The seed picks the start in the sequence.
    pub fn new(bytes: u64, seed: u64) -> Self {
        let words = (bytes.min(MOST_PAGES * PAGE_BYTES).div_ceil(8)).next_power_of_two();
        Self { words, x: hpcc_start(seed) }
    }
}

impl Pattern for Gups {
    fn name(&self) -> &'static str {
        "gups"
    }

    fn bytes(&self) -> u64 {
        self.words * 8
    }

    #[inline]
    fn step(&mut self, base: u64, block: &mut Block) {
        self.x = hpcc_next(self.x);
        let addr = base + (self.x & (self.words - 1)) * 8;
        block.push(Kind::Load, addr);
        block.push(Kind::Store, addr);
    }
}

/// Where a seed begins in HPCC's sequence.
pub(crate) fn hpcc_start(seed: u64) -> u64 {
    // 0 is the one state that the sequence never leaves.
    SplitMix64::new(seed).next_u64() | 1
}

/// The next of HPCC's sequence: x^63 + x^2 + x + 1 shifted once.
#[inline(always)]
pub(crate) fn hpcc_next(x: u64) -> u64 {
    (x << 1) ^ if x >> 63 == 1 { 7 } else { 0 }
}
