//! Counts the misses of one TLB level in a round through some pages, by time or by walks.

use std::collections::{BTreeMap, BTreeSet};

use crate::bench::{ChainBench, Halt};
use crate::gf2;
use crate::tlb::core_use::CoreUse;
use crate::tlb::first_level_flood::FirstLevelFlood;

/// Pages that surely fit any TLB.
const FEW: usize = 2;
/// Pages of one look with copies: they fit a first-level data cache.
const MOST_PAGES: usize = 512;
/// log2 of the copies that are chosen from.
const COPIES_LOG2: usize = 9;
/// Orders in which pages are walked in one measurement.
const ORDERS: usize = 3;
/// Times that each page comes in a walk at random, in the mean: a page has 512 words, and none may come more often.
const AT_RANDOM: usize = 256;
/// The same where walks are counted: a look takes no longer itself, and there are many of them.
const AT_RANDOM_OF_WALKS: usize = 8;
/// Choices of other pages that a look is compared with.
const BASES: usize = 2;
/// The same where a neighbour makes them miss.
const MORE_BASES: usize = 4;
/// Steps of such a walk at most: through few pages, and through many.
const MOST_RANDOM: (usize, usize) = (1 << 13, 1 << 16);
/// Such walks, one after the other.
const WALKS: usize = 2;
/// So many pages are walked in one order only.
const MANY: usize = 1024;

/// What turns times into misses of one level.
#[derive(Clone, Debug, Default)]
pub struct LevelMeter {
    /// Ticks of a step that hits the first level.
    pub hit_ticks: f64,
    /// Ticks more for a step that misses this level.
    pub miss_ticks: f64,
    /// Ticks more for a step that misses the level above.
    pub above_ticks: f64,
    /// The level above, for the second level.
    pub above: Option<FirstLevelFlood>,
    /// Whose the core is taken to be.
    pub core: CoreUse,
    /// Vectors that lead into different sets here, and their sums too; as far as they are known.
    pub lanes: Vec<u64>,
}

impl LevelMeter {
    /// Of a window of bits, these vectors alone do not change the set.
    pub(crate) fn know_within(&mut self, window: u64, kernel: &[u64], bits: u32) {
        let outside = (0..bits).map(|bit| 1 << bit).filter(|bit| window & bit == 0);
        let rows: Vec<u64> = kernel.iter().copied().chain(outside).collect();
        self.know(&gf2::null_space(&rows, bits));
        if let Some(above) = &mut self.above {
            above.know_below(window, &gf2::null_space(&rows, bits));
        }
    }

    /// The masks of this level.
    pub fn know_masks(&mut self, masks: &[u64]) {
        self.know(masks);
        if let Some(above) = &mut self.above {
            above.know_below(u64::MAX, masks);
        }
    }

    fn know(&mut self, masks: &[u64]) {
        // One vector for each mask (in reduced form) that it alone sees.
        self.lanes = gf2::reduce(masks).iter().map(|row| row & row.wrapping_neg()).collect();
    }

    /// Pages and their copies in other sets, so many that they put each other out of the level above; at most in half
    /// of the sets, the other half is for comparison. With them, the number of copies.
    pub fn copied(&self, bench: &mut ChainBench<'_>, pages: &[u64]) -> (Vec<u64>, usize) {
        self.copied_to(bench, pages, MOST_PAGES)
    }

    /// The same with so many copies at most: what they leave of the level above, fillers flood.
    pub(crate) fn copied_to(&self, bench: &mut ChainBench<'_>, pages: &[u64], most: usize) -> (Vec<u64>, usize) {
        let copies = self.copies(bench, pages, most);
        (copies.iter().flat_map(|copy| pages.iter().map(move |page| page ^ copy)).collect(), copies.len())
    }

    fn copies(&self, bench: &mut ChainBench<'_>, pages: &[u64], most: usize) -> Vec<u64> {
        let mut copies = vec![0];
        let Some(above) = &self.above else { return copies };
        let mut all = gf2::span(&self.lanes[..self.lanes.len().min(COPIES_LOG2)]);
        let most = most.min(all.len() / 2).min(MOST_PAGES / pages.len().max(1));
        all.remove(0);
        bench.rng.shuffle(&mut all);
        // Those that stay in the same set above go first: they need fewest.
        all.sort_by_key(|&lane| gf2::apply(&above.masks, lane));
        let mut load: BTreeMap<u64, u32> = BTreeMap::new();
        let mut add = |lane: u64| {
            for page in pages {
                *load.entry(gf2::apply(&above.masks, page ^ lane)).or_default() += 1;
            }
            load.values().all(|&pages| pages >= above.wanted())
        };
        let mut flooded = add(0);
        for lane in all {
            if flooded || copies.len() >= most {
                break;
            }
            copies.push(lane);
            flooded = add(lane);
        }
        copies
    }

    /// Misses of a round through these pages: 0 if they fit, at least one for each page that a set has too many,
    /// whatever the policy.
    ///
    /// The order changes every other round. In one order for ever, policies that are not LRU can be caught in a cycle
    /// that keeps a foreign page, and so misses though everything would fit; in a new order each round, LRU hits more.
    pub fn misses(&self, bench: &mut ChainBench<'_>, pages: &[u64]) -> Result<f64, Halt> {
        self.look(bench, pages)?.misses(bench)
    }

    /// The same, to be measured several times.
    pub fn look(&self, bench: &mut ChainBench<'_>, pages: &[u64]) -> Result<MissRounds, Halt> {
        let many = pages.len() > MANY;
        self.look_in(bench, pages, if many { (1, 2) } else { (ORDERS, 2) }, false)
    }

    /// Pages that may be far too many, in one order.
    pub(crate) fn look_at_crowd(&self, bench: &mut ChainBench<'_>, pages: &[u64]) -> Result<MissRounds, Halt> {
        self.look_in(bench, pages, (1, 1), true)
    }

    /// Misses of a round through pages that may be far too many, in one order: then nearly all miss under LRU and FIFO.
    pub(crate) fn misses_of_crowd(&self, bench: &mut ChainBench<'_>, pages: &[u64]) -> Result<f64, Halt> {
        self.look_at_crowd(bench, pages)?.misses(bench)
    }

    fn look_in(
        &self,
        bench: &mut ChainBench<'_>,
        pages: &[u64],
        orders: (usize, usize),
        crowd: bool,
    ) -> Result<MissRounds, Halt> {
        let by = if self.counts_walks(bench) { MissSource::Walks } else { MissSource::Time };
        self.look_by(bench, pages, orders, crowd, by)
    }

    /// Whether its misses are told by walks, not by time: those of the last level, on a core whose other thread makes
    /// times too unsteady.
    pub(crate) fn counts_walks(&self, bench: &mut ChainBench<'_>) -> bool {
        self.core == CoreUse::Shared && self.above.is_some() && bench.counts_walks()
    }

    /// Ticks that a round through pages that may be far too many takes longer than one through pages that fit, a page.
    pub(crate) fn ticks_of_crowd(&self, bench: &mut ChainBench<'_>, pages: &[u64]) -> Result<f64, Halt> {
        let misses = self.look_by(bench, pages, (1, 1), true, MissSource::Time)?.misses(bench)?;
        Ok(misses * self.miss_ticks / pages.len() as f64)
    }

    fn look_by(
        &self,
        bench: &mut ChainBench<'_>,
        pages: &[u64],
        orders: (usize, usize),
        crowd: bool,
        by: MissSource,
    ) -> Result<MissRounds, Halt> {
        let fillers = self.above.as_ref().map_or_else(Vec::new, |above| above.fillers(pages, bench));
        let rounds = in_orders(bench, pages, &fillers, orders);
        let round = pages.len() + fillers.len();
        let count = rounds.len() as f64 / round as f64;
        let misses_a_tick = 1.0 / (count * self.miss_ticks);
        let mut look = MissRounds { rounds, round, by, base: 0.0, misses_a_tick };
        // The same steps, but that none misses here: what is left is this level's, whatever the clock does meanwhile.
        look.base = match &self.above {
            None => {
                let few: Vec<u64> = (0..look.rounds.len()).map(|i| pages[i % pages.len().min(FEW)]).collect();
                bench.sequence(&few)?
            }
            // Of so many pages at random hardly one is walked for.
            Some(_) if by == MissSource::Walks => 0.0,
            Some(above) if fillers.is_empty() && (crowd || above.is_flooded(pages)) => {
                let start = bench.page();
                let hits: Vec<u64> = gf2::span(&above.least_crowded).into_iter().map(|page| page ^ start).collect();
                bench.pages(&hits)? * look.rounds.len() as f64 / hits.len() as f64
            }
            // Some of those others may meet by chance: the lowest of several.
            Some(above) => {
                let mut least = f64::MAX;
                for _ in 0..if self.core == CoreUse::Own { BASES } else { MORE_BASES } {
                    let apart = above.apart(pages, &fillers, bench);
                    let like: Vec<u64> = look.rounds.iter().map(|page| *apart.get(page).unwrap_or(page)).collect();
                    least = least.min(bench.sequence(&like)?);
                }
                least
            }
        };
        Ok(look)
    }
}

/// What misses are told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissSource {
    /// Of the last level: walks, counted.
    Walks,
    /// The time that they take.
    Time,
}

/// Rounds whose misses can be counted.
#[derive(Debug)]
pub struct MissRounds {
    rounds: Vec<u64>,
    /// Steps of one of them.
    round: usize,
    by: MissSource,
    /// What rounds without misses cost: walks of one, or ticks of all.
    base: f64,
    misses_a_tick: f64,
}

impl MissRounds {
    /// Walks through the pages at random for a while: what fits its sets comes to rest there, also under trees over
    /// ways that are no power of two, where many a circle does not; and at rest no order misses.
    pub fn settle(&self, bench: &mut ChainBench<'_>) -> Result<(), Halt> {
        let distinct = self.rounds.iter().collect::<BTreeSet<_>>().len();
        let most = if distinct > MANY { MOST_RANDOM.1 } else { MOST_RANDOM.0 };
        let times = if self.by == MissSource::Walks { AT_RANDOM_OF_WALKS } else { AT_RANDOM };
        let steps = most.min(times * distinct).min(bench.max_pages());
        for _ in 0..WALKS {
            let steps: Vec<u64> = (0..steps).map(|_| self.rounds[bench.rng.index(self.rounds.len())]).collect();
            bench.walk(&steps)?;
        }
        Ok(())
    }

    /// Whether so many misses a round stand out: by this share of the time of all the same steps without any, where
    /// time tells.
    pub fn tells(&self, misses: f64, share: f64) -> bool {
        self.by == MissSource::Walks || misses / (self.misses_a_tick * self.base) >= share
    }

    /// Misses a round.
    pub fn misses(&self, bench: &mut ChainBench<'_>) -> Result<f64, Halt> {
        let more = self.cost(bench, &self.rounds)? - self.base;
        Ok(if self.by == MissSource::Walks { more } else { more * self.misses_a_tick })
    }

    /// Walks of a round of such rounds, or ticks of all.
    fn cost(&self, bench: &mut ChainBench<'_>, rounds: &[u64]) -> Result<f64, Halt> {
        match self.by {
            MissSource::Walks => bench.walks(rounds, self.round),
            MissSource::Time => bench.sequence(rounds),
        }
    }
}

/// Rounds through `pages` in several orders, each so many times running, `fillers` always after them.
fn in_orders(bench: &mut ChainBench<'_>, pages: &[u64], fillers: &[u64], (orders, times): (usize, usize)) -> Vec<u64> {
    let mut pages = pages.to_vec();
    let mut rounds = Vec::with_capacity(orders * times * (pages.len() + fillers.len()));
    for _ in 0..orders {
        bench.rng.shuffle(&mut pages);
        for _ in 0..times {
            rounds.extend(&pages);
            rounds.extend(fillers);
        }
    }
    rounds
}
