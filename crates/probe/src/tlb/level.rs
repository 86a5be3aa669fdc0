//! One TLB level as an instrument: how many misses a round through some pages has.

use std::collections::{BTreeMap, BTreeSet};

use crate::bench::{Bench, Halt};
use crate::gf2;

/// Tries to find a filler outside the tested sets; where all sets are tested there is none.
const TRIES: usize = 32;

/// Dimension of the space that fillers are taken from: near enough that their upper page-table entries, which some cores
/// keep in the second-level TLB (Zen), are few.
const NEAR: usize = 14;
/// Pages that surely fit any TLB.
const FEW: usize = 2;
/// Pages out of which the one that is least in the way is taken.
const CHOICE: usize = 4;
/// Orders in which pages are walked in one measurement.
const ORDERS: usize = 3;
/// So many pages are walked in one order only.
const MANY: usize = 1024;

/// A level above whose geometry is known, which has to be kept from hiding what the level below does.
#[derive(Clone, Debug)]
pub struct Above {
    /// Index masks; none = fully associative.
    pub masks: Vec<u64>,
    /// Ways of a set.
    pub ways: u32,
    /// Pages for each way that walk through a set between two uses of a page: surely put it out.
    flood: u32,
    kernel: Vec<u64>,
    /// Masks of the level below, once they are known: fillers then keep out of the sets under test.
    below: Vec<u64>,
}

impl Above {
    /// The level with these masks and ways, where page numbers have `bits` bits.
    pub fn new(masks: Vec<u64>, ways: u32, flood: u32, bits: u32) -> Self {
        let mut kernel = gf2::near_first(&gf2::null_space(&masks, bits));
        kernel.truncate(NEAR);
        Self { masks, ways, flood, kernel, below: Vec::new() }
    }

    /// Another page of the same set, at random.
    fn other(&self, page: u64, bench: &mut Bench<'_>) -> u64 {
        page ^ gf2::combine(&self.kernel, bench.rng.draw())
    }

    /// From now on fillers keep out of the tested pages' sets in the level below, where that has more than one.
    pub fn avoid(&mut self, below: &[u64]) {
        self.below = below.to_vec();
    }

    fn entries(&self) -> usize {
        (self.ways as usize) << self.masks.len()
    }

    /// Pages at random that put out all others.
    pub fn flood_pages(&self) -> usize {
        self.flood as usize * self.entries()
    }

    fn is_flooded(&self, pages: &[u64]) -> bool {
        pages.len() > 2 * self.flood as usize * self.entries()
    }

    /// Neighbouring pages that miss here, and hit in the level below, which is much larger.
    fn flood(&self, bench: &mut Bench<'_>) -> Vec<u64> {
        let count = (u64::from(self.flood) * self.entries() as u64).next_power_of_two();
        let start = bench.page();
        (0..count).map(|page| page ^ start).collect()
    }

    /// For each page another of the same set here, and in the level below where it meets few others.
    fn apart(&self, pages: &[u64], fillers: &[u64], bench: &mut Bench<'_>) -> BTreeMap<u64, u64> {
        let mut load: BTreeMap<u64, u32> = BTreeMap::new();
        for &filler in fillers {
            *load.entry(gf2::apply(&self.below, filler)).or_default() += 1;
        }
        let mut sets: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for &page in pages {
            sets.entry(gf2::apply(&self.masks, page)).or_default().push(page);
        }
        let mut apart = BTreeMap::new();
        for pages in sets.into_values() {
            // Many pages of one set here might not fit the few sets below that go with it: the rest goes elsewhere.
            for (part, pages) in pages.chunks(4 * self.ways as usize).enumerate() {
                let elsewhere = if part == 0 { 0 } else { bench.page() };
                for &page in pages {
                    let others: Vec<u64> = (0..CHOICE).map(|_| self.other(page ^ elsewhere, bench)).collect();
                    let weight = |other: u64| load.get(&gf2::apply(&self.below, other)).copied().unwrap_or(0);
                    let Some(&other) = others.iter().min_by_key(|&&other| weight(other)) else { continue };
                    *load.entry(gf2::apply(&self.below, other)).or_default() += 1;
                    apart.insert(page, other);
                }
            }
        }
        apart
    }

    /// Pages that, beside `pages`, make every set that these use miss on every access.
    pub fn fillers(&self, pages: &[u64], bench: &mut Bench<'_>) -> Vec<u64> {
        let mut sets: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
        for &page in pages {
            sets.entry(gf2::apply(&self.masks, page)).or_insert((page, 0)).1 += 1;
        }
        let tested: BTreeSet<u64> = pages.iter().map(|&p| gf2::apply(&self.below, p)).collect();
        let mut fillers = Vec::new();
        for (page, count) in sets.into_values() {
            for _ in count..self.flood * self.ways {
                let mut filler = self.other(page, bench);
                for _ in 0..TRIES {
                    if !tested.contains(&gf2::apply(&self.below, filler)) {
                        break;
                    }
                    filler = self.other(page, bench);
                }
                fillers.push(filler);
            }
        }
        fillers
    }
}

/// What turns times into misses of one level.
#[derive(Clone, Debug)]
pub struct Level {
    /// Ticks of a step that hits the first level.
    pub hit_ticks: f64,
    /// Ticks more for a step that misses this level.
    pub miss_ticks: f64,
    /// Ticks more for a step that misses the level above.
    pub above_ticks: f64,
    /// The level above, for the second level.
    pub above: Option<Above>,
}

impl Level {
    /// Misses of a round through these pages: 0 if they fit, at least one for each page that a set has too many,
    /// whatever the policy.
    ///
    /// The order changes every other round. In one order for ever, policies that are not LRU can be caught in a cycle
    /// that keeps a foreign page, and so misses though everything would fit; in a new order each round, LRU hits more.
    pub fn misses(&self, bench: &mut Bench<'_>, pages: &[u64]) -> Result<f64, Halt> {
        self.look(bench, pages)?.misses(bench)
    }

    /// The same, to be measured several times.
    pub fn look(&self, bench: &mut Bench<'_>, pages: &[u64]) -> Result<Look, Halt> {
        let fillers = match &self.above {
            Some(above) if !above.is_flooded(pages) => above.fillers(pages, bench),
            _ => Vec::new(),
        };
        let rounds = orders(bench, pages, &fillers);
        let count = rounds.len() as f64 / (pages.len() + fillers.len()) as f64;
        let misses_a_tick = 1.0 / (count * self.miss_ticks);
        // The same steps, but that none misses here: what is left is this level's, whatever the clock does meanwhile.
        let base = match &self.above {
            None => {
                let few: Vec<u64> = (0..rounds.len()).map(|i| pages[i % pages.len().min(FEW)]).collect();
                bench.sequence(&few)?
            }
            Some(above) if above.is_flooded(pages) => {
                let hits = above.flood(bench);
                bench.pages(&hits)? * rounds.len() as f64 / hits.len() as f64
            }
            Some(above) => {
                let apart = above.apart(pages, &fillers, bench);
                let like: Vec<u64> = rounds.iter().map(|page| *apart.get(page).unwrap_or(page)).collect();
                bench.sequence(&like)?
            }
        };
        Ok(Look { rounds, base, misses_a_tick })
    }
}

/// Rounds whose misses can be counted.
#[derive(Debug)]
pub struct Look {
    rounds: Vec<u64>,
    base: f64,
    misses_a_tick: f64,
}

impl Look {
    /// Misses a round.
    pub fn misses(&self, bench: &mut Bench<'_>) -> Result<f64, Halt> {
        Ok((bench.sequence(&self.rounds)? - self.base) * self.misses_a_tick)
    }
}

/// Rounds through `pages` in several orders, each twice running, `fillers` always after them.
fn orders(bench: &mut Bench<'_>, pages: &[u64], fillers: &[u64]) -> Vec<u64> {
    let mut pages = pages.to_vec();
    let mut rounds = Vec::with_capacity(2 * ORDERS * (pages.len() + fillers.len()));
    for _ in 0..if pages.len() > MANY { 1 } else { ORDERS } {
        bench.rng.shuffle(&mut pages);
        for _ in 0..2 {
            rounds.extend(&pages);
            rounds.extend(fillers);
        }
    }
    rounds
}
