//! A made-up memory hierarchy: caches, TLBs and a walker, timed with noise.

use lookaside_machine::PageSize;
use lookaside_probe::{LineChain, MemoryArea, Metal, MetalError, PageChain};
use lookaside_stats::SplitMix64;

/// What the machine is.
#[derive(Clone, Debug)]
pub struct Shape {
    pub line: u64,
    /// Sets, ways, cycles.
    pub caches: Vec<(u64, usize, f64)>,
    pub memory: f64,
    /// Entries of the first-level TLB, fully associative.
    pub first: usize,
    /// Sets (linear index) and ways of the second, and what a hit there adds.
    pub second: (u64, usize, f64),
    pub base: f64,
    pub first_cache_level: usize,
    /// Least recently used goes, or any.
    pub lru: bool,
    /// Standard deviation of samples, and share of those that are far too long.
    pub noise: (f64, f64),
    /// Every so many steps somebody else takes a line of the last cache; 0 = never.
    pub neighbour: u64,
    pub area: u64,
    /// Contiguous small pages that an entry covers.
    pub coalesce: u64,
    /// How the second cache replaces, if not as all else does; and whether its index has bits of the frame added to
    /// those of the line.
    pub second_cache: Option<Policy>,
    pub folded: bool,
    /// A second stage maps by small pages: so entries of huge pages are small ones', and its table is read too.
    pub nested: bool,
    /// Entries above the leaf's; `None` = always at hand.
    pub upper: Option<Upper>,
    /// Pages of 1 GiB; `None` = there are none.
    pub gigantic: Option<Gigantic>,
}

/// How each TLB level holds pages of 1 GiB.
#[derive(Clone, Debug)]
pub struct Gigantic {
    /// Small pages that an entry covers; 1 = it is one of the small pages' own.
    pub covers: [u64; 2],
    /// Entries for them, fully associative; where they cover more than a small page. 0 = there is no such entry.
    pub entries: [usize; 2],
}

/// Where entries above the leaf's are kept.
#[derive(Clone, Debug)]
pub struct Upper {
    /// Sets and ways of the walk cache of table level 2 and those after it; 0 ways = none.
    pub caches: Vec<(u64, usize)>,
    /// Cycles that the second stage adds to reading one.
    pub stage: f64,
}

/// How a line is chosen that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Lru,
    Fifo,
    Random,
    /// A tree of bits, where the ways are a power of two.
    TreePlru,
}

struct Sets {
    mask: u64,
    ways: usize,
    policy: Policy,
    /// The index is the sum of a line's number and of that shifted by so many bits; 0 = of its number alone.
    fold: u32,
    sets: Vec<Vec<u64>>,
    /// Bits of the trees: 1 = the right half goes next.
    trees: Vec<u64>,
}

impl Sets {
    fn new(sets: u64, ways: usize, lru: bool) -> Self {
        let policy = if lru { Policy::Lru } else { Policy::Random };
        let (trees, sets) = (vec![0; sets as usize], vec![Vec::new(); sets as usize]);
        Self { mask: sets.len() as u64 - 1, ways, policy, fold: 0, sets, trees }
    }

    /// Whether it hits; it is there afterwards.
    fn access(&mut self, key: u64, rng: &mut SplitMix64) -> bool {
        let fold = if self.fold > 0 { key >> self.fold } else { 0 };
        let number = ((key ^ fold) & self.mask) as usize;
        let set = &mut self.sets[number];
        let found = set.iter().position(|&held| held == key);
        if let (Some(at), Policy::Lru) = (found, self.policy) {
            set[at..].rotate_left(1);
        }
        let way = found.unwrap_or_else(|| {
            if set.len() < self.ways {
                set.push(key);
                return set.len() - 1;
            }
            match self.policy {
                Policy::Lru | Policy::Fifo => {
                    set.rotate_left(1);
                    set[self.ways - 1] = key;
                    self.ways - 1
                }
                Policy::Random => {
                    let way = rng.index(self.ways);
                    set[way] = key;
                    way
                }
                Policy::TreePlru => {
                    let mut node = 1;
                    while node < self.ways {
                        node = 2 * node + (self.trees[number] >> node & 1) as usize;
                    }
                    set[node - self.ways] = key;
                    node - self.ways
                }
            }
        });
        if self.policy == Policy::TreePlru {
            let mut node = self.ways + way;
            while node > 1 {
                // Away from the way used.
                let bit = 1 << (node / 2);
                self.trees[number] =
                    if node.is_multiple_of(2) { self.trees[number] | bit } else { self.trees[number] & !bit };
                node /= 2;
            }
        }
        found.is_some()
    }
}

pub struct Sim {
    shape: Shape,
    rng: SplitMix64,
    caches: Vec<Sets>,
    first: Sets,
    second: Sets,
    upper: Vec<Sets>,
    gigantic: Vec<Sets>,
}

/// Steps that are really run of a sample: more would say the same.
const RUN: u64 = 10_000;
/// Frames of page tables lie beyond those of data.
const TABLES: u64 = 1 << 50;
/// And those of the second stage.
const HOST_TABLES: u64 = 1 << 52;
/// Small pages of a huge one.
const HUGE: u64 = 512;

/// Where an entry of this level lies: tables have frames anywhere.
fn table(level: u64, entry: u64) -> u64 {
    let frame = SplitMix64::new((entry / HUGE) << 8 | level).next_u64() >> 24;
    TABLES + (frame << 12) + entry % HUGE * 8
}

impl Sim {
    pub fn new(shape: Shape, seed: u64) -> Self {
        let mut caches: Vec<Sets> =
            shape.caches.iter().map(|&(sets, ways, _)| Sets::new(sets, ways, shape.lru)).collect();
        caches[1].policy = shape.second_cache.unwrap_or(caches[1].policy);
        caches[1].fold = if shape.folded { shape.caches[1].0.ilog2() } else { 0 };
        let (first, second) =
            (Sets::new(1, shape.first, shape.lru), Sets::new(shape.second.0, shape.second.1, shape.lru));
        let walk = shape.upper.iter().flat_map(|upper| &upper.caches);
        let upper = walk.map(|&(sets, ways)| Sets::new(sets, ways, shape.lru)).collect();
        let large = shape.gigantic.iter().flat_map(|gigantic| gigantic.entries);
        let gigantic = large.map(|entries| Sets::new(1, entries, shape.lru)).collect();
        Self { shape, rng: SplitMix64::new(seed), caches, first, second, upper, gigantic }
    }

    /// Cycles of reading a line of physical memory, through the caches from one level on.
    fn read(&mut self, address: u64, from: usize) -> f64 {
        let line = address / self.shape.line;
        let cost = |level: usize| self.shape.caches[level].2;
        for level in from..self.caches.len() {
            if self.caches[level].access(line, &mut self.rng) {
                return cost(level);
            }
        }
        self.shape.memory
    }

    /// Cycles of reading entries above the leaf's, from the lowest that is at hand.
    fn read_upper(&mut self, page: u64, from: usize) -> f64 {
        let Some(Upper { stage, .. }) = self.shape.upper else { return 0.0 };
        let mut cycles = 0.0;
        for (level, shift) in [9, 18, 27].into_iter().enumerate() {
            let entry = page >> shift;
            if self.upper[level].ways > 0 && self.upper[level].access(entry, &mut self.rng) {
                break;
            }
            cycles += stage + self.read(table(level as u64 + 2, entry), from);
        }
        cycles
    }

    fn step(&mut self, address: u64, area: MemoryArea) -> f64 {
        let page = address >> 12;
        if area == MemoryArea::Gigantic {
            return self.gigantic_step(address);
        }
        let (covers, leaf) = match area {
            MemoryArea::Contiguous { split: true, .. } => (self.shape.coalesce, page),
            MemoryArea::Contiguous { split: false, .. } => (if self.shape.nested { 1 } else { HUGE }, page / HUGE),
            _ => (1, page),
        };
        let mut cycles = 0.0;
        if !self.first.access(page / covers, &mut self.rng) {
            cycles += self.shape.second.2;
            if !self.second.access(page / covers, &mut self.rng) {
                let from = self.shape.first_cache_level - 1;
                let entry = if area == MemoryArea::Sparse { table(1, leaf) } else { TABLES + leaf * 8 };
                cycles += self.shape.base - self.shape.second.2 + self.read(entry, from);
                cycles += self.read_upper(page, from);
                if self.shape.nested && !matches!(area, MemoryArea::Shared | MemoryArea::Sparse) {
                    cycles += self.read(HOST_TABLES + page * 8, from);
                }
            }
        }
        // Frames lie anywhere, but for one frame of all and for huge pages.
        let frame = match area {
            MemoryArea::Shared | MemoryArea::Sparse => 0,
            MemoryArea::Contiguous { .. } => page,
            MemoryArea::Own { .. } | MemoryArea::Gigantic => SplitMix64::new(page).next_u64() >> 24,
        };
        cycles + self.read(frame << 12 | address & 0xfff, 0)
    }

    /// One in pages of 1 GiB that are all one frame.
    fn gigantic_step(&mut self, address: u64) -> f64 {
        let page = address >> 12;
        let Gigantic { covers, entries } = self.shape.gigantic.clone().expect("there are such pages");
        let mut hits = |level: usize, small: &mut Sets, rng: &mut SplitMix64| match (covers[level], entries[level]) {
            (1, _) => small.access(page, rng),
            (_, 0) => false,
            (covers, _) => self.gigantic[level].access(page / covers, rng),
        };
        let mut cycles = 0.0;
        if !hits(0, &mut self.first, &mut self.rng) {
            cycles += self.shape.second.2;
            if !hits(1, &mut self.second, &mut self.rng) {
                let from = self.shape.first_cache_level - 1;
                cycles += self.shape.base - self.shape.second.2 + self.read(TABLES + page / covers[1] * 8, from);
            }
        }
        cycles + self.read(address % (1 << 30), 0)
    }

    fn uniform(&mut self) -> f64 {
        self.rng.unit()
    }
}

impl Metal for Sim {
    fn rest(&mut self, _: std::time::Duration) {}

    fn page_bits(&self, _: PageSize) -> u32 {
        0
    }

    fn max_pages(&self, _: PageSize) -> usize {
        0
    }

    fn chase(&mut self, _: &PageChain<'_>, _: u32, _: usize) -> Result<Vec<f64>, MetalError> {
        Err(MetalError::Cannot("no chains of pages".into()))
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }

    fn is_guest(&self) -> Option<bool> {
        Some(self.shape.nested)
    }

    fn area_bytes(&mut self, area: MemoryArea) -> u64 {
        match area {
            MemoryArea::Own { .. } | MemoryArea::Contiguous { .. } => self.shape.area,
            MemoryArea::Shared => 1 << 36,
            MemoryArea::Sparse => 1 << 45,
            MemoryArea::Gigantic => {
                if self.shape.gigantic.is_some() {
                    1 << 44
                } else {
                    0
                }
            }
        }
    }

    fn steps(&mut self, steps: &LineChain<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
        let mut ring = steps.offsets.iter().copied().cycle();
        for _ in 0..steps.warm {
            let offset = ring.next().expect("a chain");
            self.step(offset, steps.area);
        }
        let run = steps.timed.min(RUN);
        let mut cycles = 0.0;
        for i in 0..run {
            let offset = ring.next().expect("a chain");
            cycles += self.step(offset, steps.area);
            if self.shape.neighbour > 0 && i % self.shape.neighbour == 0 {
                let foreign = self.rng.next_u64();
                self.caches.last_mut().expect("a cache").access(foreign, &mut self.rng.clone());
            }
        }
        let mean = cycles / run as f64;
        let (sigma, outliers) = self.shape.noise;
        Ok((0..samples)
            .map(|_| {
                // Twelve uniform numbers make a normal one, nearly.
                let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
                let longer = if self.uniform() < outliers { 1.0 + 3.0 * self.uniform() } else { 1.0 };
                mean * (1.0 + sigma * normal) * longer
            })
            .collect())
    }
}
