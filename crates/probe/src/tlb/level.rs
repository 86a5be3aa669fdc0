//! One TLB level as an instrument: how many misses a round through some pages has.

use std::collections::{BTreeMap, BTreeSet};

use crate::bench::{Bench, Halt};
use crate::gf2;
use crate::tlb::shared::Core;

/// Dimension of the space that fillers are taken from: near enough that their upper page-table entries, which some cores
/// keep in the second-level TLB (Zen), are few.
const NEAR: usize = 14;
/// Pages that surely fit any TLB.
const FEW: usize = 2;
/// Pages out of which the one that is least in the way is taken.
const CHOICE: usize = 12;
/// A tested set is in the way more than any load.
const TESTED: u32 = 1 << 16;
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

/// A level above whose geometry is known, which has to be kept from hiding what the level below does.
#[derive(Clone, Debug)]
pub struct Above {
    /// Index masks; none = fully associative.
    pub masks: Vec<u64>,
    /// Ways of a set.
    pub ways: u32,
    /// Pages for each way that walk through a set between two uses of a page: surely put it out.
    flood: f64,
    bits: u32,
    /// Vectors that do not change the set here, the nearest.
    kernel: Vec<u64>,
    /// The same in a window in which sets of the level below are told apart by `below`: pages from there keep out of each
    /// other's way, and of the sets under test.
    known: Vec<u64>,
    /// Masks of the level below, as far as they are known.
    below: Vec<u64>,
    /// Of the spaces that are large enough to put all else out, the one that is least in its own way below.
    calm: Vec<u64>,
}

impl Above {
    /// The level with these masks and ways, where page numbers have `bits` bits.
    pub fn new(masks: Vec<u64>, ways: u32, flood: f64, bits: u32) -> Self {
        let mut kernel = gf2::near_first(&gf2::null_space(&masks, bits));
        kernel.truncate(NEAR);
        Self { masks, ways, flood, bits, kernel, known: Vec::new(), below: Vec::new(), calm: Vec::new() }
    }

    /// In a window of bits, `below` tells sets of the level below apart.
    fn know_below(&mut self, window: u64, below: &[u64]) {
        let outside = (0..self.bits).map(|bit| 1 << bit).filter(|bit| window & bit == 0);
        let rows: Vec<u64> = self.masks.iter().copied().chain(outside).collect();
        self.known = gf2::near_first(&gf2::null_space(&rows, self.bits));
        self.known.truncate(NEAR);
        self.below = below.to_vec();
    }

    /// Floods no more than just enough.
    pub fn sparing(&mut self) {
        self.flood = if self.flood > 2.0 { 2.0 } else { 1.25 };
    }

    /// Pages that have to walk through a set.
    fn wanted(&self) -> u32 {
        (self.flood * f64::from(self.ways)).ceil() as u32
    }

    /// Where so many pages of one set here are taken from. So many known ones would crowd the level below: its sets hold
    /// half of what crowds them or more, and this may be a half of that again.
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
    pub fn flood_pages(&self) -> usize {
        (self.wanted() as usize) << self.masks.len()
    }

    fn is_flooded(&self, pages: &[u64]) -> bool {
        pages.len() > 2 * self.flood_pages()
    }

    /// log2 of pages of a space that miss here on each access, and hit in the level below, which is much larger.
    pub fn calm_log2(&self) -> usize {
        self.flood_pages().next_power_of_two().ilog2() as usize
    }

    /// The space to take for them.
    pub fn calm(&mut self, basis: Vec<u64>) {
        self.calm = basis;
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

    /// The page, of some that differ from `page` by these vectors, that is not in use and meets fewest others below; it is
    /// put to use.
    fn least(&self, page: u64, vectors: &[u64], used: &mut Used, bench: &mut Bench<'_>) -> u64 {
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
    fn apart(&self, pages: &[u64], fillers: &[u64], bench: &mut Bench<'_>) -> BTreeMap<u64, u64> {
        let mut used = Used::default();
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
    pub fn fillers(&self, pages: &[u64], bench: &mut Bench<'_>) -> Vec<u64> {
        let mut used = Used::default();
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
struct Used {
    pages: BTreeSet<u64>,
    load: BTreeMap<u64, u32>,
}

/// What turns times into misses of one level.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// Ticks of a step that hits the first level.
    pub hit_ticks: f64,
    /// Ticks more for a step that misses this level.
    pub miss_ticks: f64,
    /// Ticks more for a step that misses the level above.
    pub above_ticks: f64,
    /// The level above, for the second level.
    pub above: Option<Above>,
    /// Whose the core is taken to be.
    pub core: Core,
    /// Vectors that lead into different sets here, and their sums too; as far as they are known.
    pub lanes: Vec<u64>,
}

impl Level {
    /// Of a window of bits, these vectors alone do not change the set.
    pub fn know_within(&mut self, window: u64, kernel: &[u64], bits: u32) {
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

    /// Pages and their copies in other sets, so many that they put each other out of the level above; at most in half of the
    /// sets, the other half is for comparison. With them, the number of copies.
    pub fn copied(&self, bench: &mut Bench<'_>, pages: &[u64]) -> (Vec<u64>, usize) {
        self.copied_to(bench, pages, MOST_PAGES)
    }

    /// The same with so many copies at most: what they leave of the level above, fillers flood.
    pub fn copied_to(&self, bench: &mut Bench<'_>, pages: &[u64], most: usize) -> (Vec<u64>, usize) {
        let copies = self.copies(bench, pages, most);
        (copies.iter().flat_map(|copy| pages.iter().map(move |page| page ^ copy)).collect(), copies.len())
    }

    fn copies(&self, bench: &mut Bench<'_>, pages: &[u64], most: usize) -> Vec<u64> {
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
    pub fn misses(&self, bench: &mut Bench<'_>, pages: &[u64]) -> Result<f64, Halt> {
        self.look(bench, pages)?.misses(bench)
    }

    /// The same, to be measured several times.
    pub fn look(&self, bench: &mut Bench<'_>, pages: &[u64]) -> Result<Look, Halt> {
        let many = pages.len() > MANY;
        self.look_in(bench, pages, if many { (1, 2) } else { (ORDERS, 2) }, false)
    }

    /// Pages that may be far too many, in one order.
    pub fn look_at_crowd(&self, bench: &mut Bench<'_>, pages: &[u64]) -> Result<Look, Halt> {
        self.look_in(bench, pages, (1, 1), true)
    }

    /// Misses of a round through pages that may be far too many, in one order: then nearly all miss under LRU and FIFO.
    pub fn misses_of_crowd(&self, bench: &mut Bench<'_>, pages: &[u64]) -> Result<f64, Halt> {
        self.look_at_crowd(bench, pages)?.misses(bench)
    }

    fn look_in(&self, bench: &mut Bench<'_>, pages: &[u64], orders: (usize, usize), crowd: bool) -> Result<Look, Halt> {
        let by = if self.counts_walks(bench) { By::Walks } else { By::Time };
        self.look_by(bench, pages, orders, crowd, by)
    }

    /// Whether its misses are told by walks, not by time: those of the last level, on a core whose other thread makes times too unsteady.
    pub(crate) fn counts_walks(&self, bench: &mut Bench<'_>) -> bool {
        self.core == Core::Shared && self.above.is_some() && bench.counts_walks()
    }

    /// Ticks that a round through pages that may be far too many takes longer than one through pages that fit, a page.
    pub fn ticks_of_crowd(&self, bench: &mut Bench<'_>, pages: &[u64]) -> Result<f64, Halt> {
        let misses = self.look_by(bench, pages, (1, 1), true, By::Time)?.misses(bench)?;
        Ok(misses * self.miss_ticks / pages.len() as f64)
    }

    fn look_by(
        &self,
        bench: &mut Bench<'_>,
        pages: &[u64],
        orders: (usize, usize),
        crowd: bool,
        by: By,
    ) -> Result<Look, Halt> {
        let fillers = self.above.as_ref().map_or_else(Vec::new, |above| above.fillers(pages, bench));
        let rounds = in_orders(bench, pages, &fillers, orders);
        let round = pages.len() + fillers.len();
        let count = rounds.len() as f64 / round as f64;
        let misses_a_tick = 1.0 / (count * self.miss_ticks);
        let mut look = Look { rounds, round, by, base: 0.0, misses_a_tick };
        // The same steps, but that none misses here: what is left is this level's, whatever the clock does meanwhile.
        look.base = match &self.above {
            None => {
                let few: Vec<u64> = (0..look.rounds.len()).map(|i| pages[i % pages.len().min(FEW)]).collect();
                bench.sequence(&few)?
            }
            // Of so many pages at random hardly one is walked for.
            Some(_) if by == By::Walks => 0.0,
            Some(above) if fillers.is_empty() && (crowd || above.is_flooded(pages)) => {
                let start = bench.page();
                let hits: Vec<u64> = gf2::span(&above.calm).into_iter().map(|page| page ^ start).collect();
                bench.pages(&hits)? * look.rounds.len() as f64 / hits.len() as f64
            }
            // Some of those others may meet by chance: the lowest of several.
            Some(above) => {
                let mut least = f64::MAX;
                for _ in 0..if self.core == Core::Own { BASES } else { MORE_BASES } {
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
enum By {
    /// Of the last level: walks, counted.
    Walks,
    /// The time that they take.
    Time,
}

/// Rounds whose misses can be counted.
#[derive(Debug)]
pub struct Look {
    rounds: Vec<u64>,
    /// Steps of one of them.
    round: usize,
    by: By,
    /// What rounds without misses cost: walks of one, or ticks of all.
    base: f64,
    misses_a_tick: f64,
}

impl Look {
    /// Walks through the pages at random for a while: what fits its sets comes to rest there, also under trees over ways that are no power
    /// of two, where many a circle does not; and at rest no order misses.
    pub fn settle(&self, bench: &mut Bench<'_>) -> Result<(), Halt> {
        let distinct = self.rounds.iter().collect::<BTreeSet<_>>().len();
        let most = if distinct > MANY { MOST_RANDOM.1 } else { MOST_RANDOM.0 };
        let times = if self.by == By::Walks { AT_RANDOM_OF_WALKS } else { AT_RANDOM };
        let steps = most.min(times * distinct).min(bench.max_pages());
        for _ in 0..WALKS {
            let steps: Vec<u64> = (0..steps).map(|_| self.rounds[bench.rng.index(self.rounds.len())]).collect();
            bench.walk(&steps)?;
        }
        Ok(())
    }

    /// Whether so many misses a round stand out: by this share of the time of all the same steps without any, where time tells.
    pub fn tells(&self, misses: f64, share: f64) -> bool {
        self.by == By::Walks || misses / (self.misses_a_tick * self.base) >= share
    }

    /// Misses a round.
    pub fn misses(&self, bench: &mut Bench<'_>) -> Result<f64, Halt> {
        let more = self.cost(bench, &self.rounds)? - self.base;
        Ok(if self.by == By::Walks { more } else { more * self.misses_a_tick })
    }

    /// Walks of a round of such rounds, or ticks of all.
    fn cost(&self, bench: &mut Bench<'_>, rounds: &[u64]) -> Result<f64, Halt> {
        match self.by {
            By::Walks => bench.walks(rounds, self.round),
            By::Time => bench.sequence(rounds),
        }
    }
}

/// Rounds through `pages` in several orders, each so many times running, `fillers` always after them.
fn in_orders(bench: &mut Bench<'_>, pages: &[u64], fillers: &[u64], (orders, times): (usize, usize)) -> Vec<u64> {
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
