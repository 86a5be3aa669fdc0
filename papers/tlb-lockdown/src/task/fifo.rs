//! A fully associative array with FIFO replacement (the engine's `SEMANTICS.md` §9), and what is in it at a glance.

/// Pages of 4 KiB in 32 bits of addresses, and sections of 1 MiB behind them.
const KEYS: usize = (1 << 20) + (1 << 12);
/// No page.
const NONE: u32 = u32::MAX;

/// A micro TLB.
pub(super) struct Fifo {
    ways: Vec<u32>,
    /// Ways in use: the first so many, since all are emptied together.
    used: usize,
    /// The way that goes next.
    next: usize,
    holds: Vec<bool>,
}

/// Name of a base page.
pub(super) fn page(addr: u64) -> usize {
    (addr >> 12) as usize & 0xf_ffff
}

/// Name of a section.
pub(super) fn section(addr: u64) -> usize {
    (1 << 20) + ((addr >> 20) as usize & 0xfff)
}

impl Fifo {
    pub(super) fn new(entries: usize) -> Self {
        Self { ways: vec![NONE; entries], used: 0, next: 0, holds: vec![false; KEYS] }
    }

    #[inline(always)]
    pub(super) fn holds(&self, key: usize) -> bool {
        self.holds[key]
    }

    /// A page comes in that is not there.
    pub(super) fn fill(&mut self, key: usize) {
        let way = if self.used < self.ways.len() {
            self.used += 1;
            self.used - 1
        } else {
            let way = self.next;
            self.next = (self.next + 1) % self.ways.len();
            self.holds[self.ways[way] as usize] = false;
            way
        };
        self.ways[way] = key as u32;
        self.holds[key] = true;
    }

    /// All go; the pointer stays.
    pub(super) fn flush(&mut self) {
        for key in &self.ways[..self.used] {
            self.holds[*key as usize] = false;
        }
        self.used = 0;
    }
}
