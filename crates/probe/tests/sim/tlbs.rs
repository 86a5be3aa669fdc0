//! TLBs under loads of small pages: what the engine does with them, to the access (`tests/made_up/engine.rs` holds the
//! two against each other), many times as fast on chains that are walked again and again, which is all that the
//! inference asks for.

use lookaside_engine::os::{generator, Structure};
use lookaside_machine::{tree_left_ways, Replacement};
use lookaside_probe::gf2;
use lookaside_stats::SplitMix64;

use super::Array;

/// No slot, no page of the chain.
const NONE: u32 = u32::MAX;

/// The levels, and the chain that was walked last.
#[derive(Clone)]
pub struct Tlbs {
    levels: Vec<Level>,
    /// Misses by level.
    misses: Vec<u64>,
    chain: Chain,
}

impl Tlbs {
    /// Empty ones. `seed` is of random replacement.
    pub fn new(arrays: &[Array], seed: u64) -> Self {
        let levels = arrays.iter().enumerate().map(|(number, array)| Level::new(array, seed, number)).collect();
        Self { levels, misses: vec![0; arrays.len()], chain: Chain::default() }
    }

    /// Misses of the first level, and of all.
    pub fn misses(&self) -> (u64, u64) {
        (self.misses.first().copied().unwrap_or(0), self.misses.last().copied().unwrap_or(0))
    }

    /// Different pages of the chain that was walked last.
    pub fn distinct(&self) -> usize {
        self.chain.distinct.len()
    }

    /// Loads these pages in order, so many times.
    pub fn walk(&mut self, pages: &[u64], rounds: usize) {
        if self.chain.pages != pages {
            self.take(pages);
        }
        let Self { levels, misses, chain } = self;
        let [first, others @ ..] = &mut levels[..] else { return };
        for _ in 0..rounds {
            let before = misses[0];
            for &number in &chain.numbers {
                if first.hits(number) {
                    continue;
                }
                misses[0] += 1;
                for (level, misses) in others.iter_mut().zip(&mut misses[1..]) {
                    if level.hits(number) {
                        break;
                    }
                    *misses += 1;
                    level.fill(number, &chain.distinct);
                }
                first.fill(number, &chain.distinct);
            }
            // Hits leave no rule a choice: whatever one such round made of its state, the next makes the same of.
            if misses[0] == before {
                break;
            }
        }
    }

    /// Loads these pages, none of them of the chain, past the first level, as a neighbour on the same core does that
    /// has one of its own.
    pub fn walk_below(&mut self, pages: &[u64]) {
        for &page in pages {
            for level in self.levels.iter_mut().skip(1) {
                if level.loads_foreign(page) {
                    break;
                }
            }
        }
    }

    /// From now on pages are these.
    fn take(&mut self, pages: &[u64]) {
        self.levels.iter_mut().for_each(Level::release);
        self.chain.number(pages);
        for level in &mut self.levels {
            level.take(&self.chain.distinct);
        }
    }
}

/// Pages in order, each with a number of its own.
#[derive(Clone, Default)]
struct Chain {
    pages: Vec<u64>,
    numbers: Vec<u32>,
    distinct: Vec<u64>,
    /// Open addressing, from pages to numbers.
    table: Vec<u32>,
}

impl Chain {
    fn number(&mut self, pages: &[u64]) {
        self.pages.clear();
        self.pages.extend(pages);
        self.numbers.clear();
        self.distinct.clear();
        let size = (2 * pages.len()).next_power_of_two();
        self.table.clear();
        self.table.resize(size, NONE);
        for &page in pages {
            // Fibonacci hashing (Knuth, vol. 3, §6.4): the high bits of a product with 2^64 over the golden ratio.
            let mut at = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % size;
            while self.table[at] != NONE && self.distinct[self.table[at] as usize] != page {
                at = (at + 1) % size;
            }
            if self.table[at] == NONE {
                self.table[at] = self.distinct.len() as u32;
                self.distinct.push(page);
            }
            self.numbers.push(self.table[at]);
        }
    }
}

/// One array.
#[derive(Clone)]
struct Level {
    masks: Vec<u64>,
    ways: u32,
    /// By slot (`set * ways + way`): the page held, and its number in the chain.
    held: Vec<u64>,
    owner: Vec<u32>,
    /// By set: ways that hold something, the lowest ones.
    filled: Vec<u32>,
    rule: Rule,
    /// By number in the chain: set, and slot.
    sets: Vec<u32>,
    slots: Vec<u32>,
}

#[derive(Clone)]
enum Rule {
    /// By set a ring through a sentinel, which stands after its ways: (newer, older).
    Lru(Vec<(u32, u32)>),
    /// By set the way that goes next.
    Fifo(Vec<u32>),
    Random(SplitMix64),
    /// By set a bit a node; the shape.
    Tree {
        bits: Vec<u128>,
        shape: Shape,
    },
}

impl Level {
    fn new(array: &Array, seed: u64, number: usize) -> Self {
        let (sets, ways) = (array.sets as usize, array.ways);
        let rule = match array.replacement {
            Replacement::Lru => {
                let ring = (0..=ways).map(|at| ((at + ways) % (ways + 1), (at + 1) % (ways + 1))).collect::<Vec<_>>();
                Rule::Lru(ring.repeat(sets))
            }
            Replacement::Fifo => Rule::Fifo(vec![0; sets]),
            Replacement::Random => Rule::Random(generator(seed, Structure::Tlb, number, 0)),
            Replacement::Srrip => panic!("of data caches alone"),
            Replacement::TreePlru => {
                assert!(ways <= 128, "no tree of {ways} ways");
                let mut shape = Shape::default();
                shape.grow(ways, (0, 0));
                Rule::Tree { bits: vec![0; sets], shape }
            }
        };
        Self {
            masks: array.masks.clone(),
            ways,
            held: vec![0; sets * ways as usize],
            owner: vec![NONE; sets * ways as usize],
            filled: vec![0; sets],
            rule,
            sets: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// Its pages belong to no chain any more.
    fn release(&mut self) {
        for &slot in self.slots.iter().filter(|&&slot| slot != NONE) {
            self.owner[slot as usize] = NONE;
        }
    }

    /// Looks for the pages of a chain.
    fn take(&mut self, pages: &[u64]) {
        self.sets.clear();
        self.slots.clear();
        for (number, &page) in pages.iter().enumerate() {
            let set = gf2::apply(&self.masks, page) as u32;
            let slot = self.way_of(set, page).map_or(NONE, |way| set * self.ways + way);
            if slot != NONE {
                self.owner[slot as usize] = number as u32;
            }
            self.sets.push(set);
            self.slots.push(slot);
        }
    }

    /// The way of this set that holds a page.
    fn way_of(&self, set: u32, page: u64) -> Option<u32> {
        let start = (set * self.ways) as usize;
        let held = &self.held[start..start + self.filled[set as usize] as usize];
        held.iter().position(|&other| other == page).map(|way| way as u32)
    }

    /// A page that is none of the chain is used, and comes in where it is not there. Whether it was.
    fn loads_foreign(&mut self, page: u64) -> bool {
        let set = gf2::apply(&self.masks, page) as u32;
        let way = self.way_of(set, page);
        match way {
            Some(way) => self.touch(set, way),
            None => {
                self.put(set, page, NONE);
            }
        }
        way.is_some()
    }

    /// Whether a page of the chain is there; then it is used.
    #[inline]
    fn hits(&mut self, number: u32) -> bool {
        let slot = self.slots[number as usize];
        if slot == NONE {
            return false;
        }
        let set = self.sets[number as usize];
        self.touch(set, slot - set * self.ways);
        true
    }

    /// A page of the chain comes in.
    #[inline]
    fn fill(&mut self, number: u32, pages: &[u64]) {
        self.slots[number as usize] = self.put(self.sets[number as usize], pages[number as usize], number);
    }

    /// A page comes into a set; gives its slot. `owner` is its number in the chain.
    #[inline]
    fn put(&mut self, set: u32, page: u64, owner: u32) -> u32 {
        let filled = &mut self.filled[set as usize];
        let way = if *filled < self.ways {
            *filled += 1;
            *filled - 1
        } else {
            self.victim(set)
        };
        self.touch(set, way);
        let slot = set * self.ways + way;
        let before = std::mem::replace(&mut self.owner[slot as usize], owner);
        if before != NONE {
            self.slots[before as usize] = NONE;
        }
        self.held[slot as usize] = page;
        slot
    }

    #[inline]
    fn touch(&mut self, set: u32, way: u32) {
        match &mut self.rule {
            Rule::Lru(ring) => {
                let links = &mut ring[(set * (self.ways + 1)) as usize..][..self.ways as usize + 1];
                let sentinel = self.ways as usize;
                let (newer, older) = links[way as usize];
                links[newer as usize].1 = older;
                links[older as usize].0 = newer;
                let newest = links[sentinel].1;
                links[way as usize] = (self.ways, newest);
                links[sentinel].1 = way;
                links[newest as usize].0 = way;
            }
            Rule::Tree { bits, shape } => {
                let (path, right) = shape.paths[way as usize];
                bits[set as usize] = bits[set as usize] & !path | right;
            }
            Rule::Fifo(_) | Rule::Random(_) => {}
        }
    }

    #[inline]
    fn victim(&mut self, set: u32) -> u32 {
        match &mut self.rule {
            Rule::Lru(ring) => ring[(set * (self.ways + 1) + self.ways) as usize].0,
            Rule::Fifo(next) => {
                let next = &mut next[set as usize];
                let way = *next;
                *next = (way + 1) % self.ways;
                way
            }
            Rule::Random(rng) => rng.below_u32(self.ways),
            Rule::Tree { bits, shape } => {
                let bits = bits[set as usize];
                let mut at = if shape.sides.is_empty() { WAY } else { 0 };
                while at < WAY {
                    at = shape.sides[at as usize][(bits >> at & 1) as usize];
                }
                at - WAY
            }
        }
    }
}

/// From here on a side is a way, not a node.
const WAY: u32 = 1 << 16;

/// A tree's two-way nodes from the root on, and by way the nodes above it, and those of them that it turns to the
/// right.
#[derive(Clone, Default)]
struct Shape {
    sides: Vec<[u32; 2]>,
    paths: Vec<(u128, u128)>,
}

impl Shape {
    fn grow(&mut self, ways: u32, (path, right): (u128, u128)) -> u32 {
        if ways == 1 {
            self.paths.push((path, right));
            return WAY + self.paths.len() as u32 - 1;
        }
        let node = self.sides.len();
        self.sides.push([WAY; 2]);
        let (bit, left) = (1 << node, tree_left_ways(ways, node == 0));
        self.sides[node] = [self.grow(left, (path | bit, right | bit)), self.grow(ways - left, (path | bit, right))];
        node as u32
    }
}
