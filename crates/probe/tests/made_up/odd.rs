//! A made-up level of one kind of entry whose rule the engine does not have.

use lookaside_machine::PageSize;
use lookaside_probe::{Metal, MetalError, PageChain};
use lookaside_stats::SplitMix64;

/// Ticks of a hit.
pub const HIT: f64 = 4.0;
/// Ticks that a miss adds.
pub const MISS: f64 = 8.0;

/// How a set chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A bit a way, set on use, all others cleared when all are set; any clear one goes.
    NotRecentlyUsed,
    /// SRRIP with two bits (Jaleel et al. 2010).
    Intervals,
    /// LRU, but new pages are put in the place of the one to go next (LIP: Qureshi et al. 2007).
    LeastRecentInsertion,
    /// LRU, but only so many in a hundred hits count as a use: between LRU and FIFO, and so is the development
    /// machine's first level.
    RarelyUsed(usize),
    /// Tree-PLRU over a number of ways that is no power of two: the right side is smaller.
    UnequalTree,
}

#[derive(Clone, Debug)]
struct Set {
    pages: Vec<Option<u64>>,
    state: Vec<u64>,
}

/// The machine.
pub struct Odd {
    rule: Rule,
    sets_log2: u32,
    sets: Vec<Set>,
    time: u64,
    rng: SplitMix64,
}

impl Odd {
    pub fn new(rule: Rule, sets_log2: u32, ways: usize, seed: u64) -> Self {
        let set = Set { pages: vec![None; ways], state: vec![0; 2 * ways.next_power_of_two()] };
        Self { rule, sets_log2, sets: vec![set; 1 << sets_log2], time: 0, rng: SplitMix64::new(seed) }
    }

    /// Whether it hits.
    fn access(&mut self, page: u64) -> bool {
        self.time += 1;
        let mask = (1 << self.sets_log2) - 1;
        let at = (page & mask) as usize;
        let Self { rule, sets, time, rng, .. } = self;
        let Set { pages, state } = &mut sets[at];
        let ways = pages.len();
        let hit = pages.iter().position(|&held| held == Some(page));
        let empty = pages.iter().position(Option::is_none);
        let way = hit.or(empty).unwrap_or_else(|| match rule {
            Rule::NotRecentlyUsed => {
                let clear = (0..ways).filter(|&way| state[way] == 0);
                let chosen = rng.index(clear.clone().count());
                clear.clone().nth(chosen).expect("one is clear")
            }
            Rule::Intervals => loop {
                if let Some(way) = (0..ways).find(|&way| state[way] == 3) {
                    break way;
                }
                state[..ways].iter_mut().for_each(|interval| *interval += 1);
            },
            Rule::LeastRecentInsertion | Rule::RarelyUsed(_) => (0..ways).min_by_key(|&way| state[way]).expect("a way"),
            Rule::UnequalTree => {
                let leaves = ways.next_power_of_two();
                let mut node = 1;
                while node < leaves {
                    // The first leaf of the right side; if there is none, there is only the left.
                    let right = (2 * node + 1) << (leaves.ilog2() - (2 * node + 1).ilog2());
                    node = 2 * node + if right - leaves < ways { state[node] as usize } else { 0 };
                }
                node - leaves
            }
        });
        pages[way] = Some(page);
        match rule {
            Rule::NotRecentlyUsed => {
                state[way] = 1;
                if state[..ways].iter().all(|&bit| bit == 1) {
                    state[..ways].fill(0);
                    state[way] = 1;
                }
            }
            Rule::Intervals => state[way] = if hit.is_some() { 0 } else { 2 },
            Rule::LeastRecentInsertion if hit.is_none() && empty.is_none() => {}
            Rule::RarelyUsed(percent) if hit.is_some() && rng.index(100) >= *percent => {}
            Rule::LeastRecentInsertion | Rule::RarelyUsed(_) => state[way] = *time,
            Rule::UnequalTree => {
                let mut node = way + ways.next_power_of_two();
                while node > 1 {
                    state[node / 2] = 1 - (node % 2) as u64;
                    node /= 2;
                }
            }
        }
        hit.is_some()
    }

    /// Between 0 and 1.
    fn uniform(&mut self) -> f64 {
        self.rng.unit()
    }
}

impl Metal for Odd {
    fn page_bits(&self, size: PageSize) -> u32 {
        if size == PageSize::K4 {
            30
        } else {
            0
        }
    }

    fn max_pages(&self, _: PageSize) -> usize {
        1 << 15
    }

    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        for &page in chain.pages.iter().cycle().take(4 * chain.pages.len()) {
            self.access(page);
        }
        let rounds = rounds.min(8);
        (0..samples)
            .map(|_| {
                let steps = chain.pages.len() * rounds as usize;
                let misses = chain.pages.iter().cycle().take(steps).filter(|&&page| !self.access(page)).count();
                let ticks = (steps as f64 * HIT + misses as f64 * MISS) / f64::from(rounds);
                // Up to one percent of noise, always longer, as disturbances are.
                Ok(ticks * (1.0 + 0.01 * self.uniform()))
            })
            .collect()
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }
}
