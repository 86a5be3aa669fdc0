//! Simulates one set: what each replacement rule would do with a sequence of pages.

use std::collections::BTreeMap;

use crate::tlb::policy::plru_tree::PlruTree;
use lookaside_stats::SplitMix64;

/// A rule that a set may follow. The first four kinds are answers; the others are only there so that sequences are
/// chosen that tell the four from them too.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplacementRule {
    /// The page used longest ago goes.
    Lru,
    /// The page filled longest ago goes.
    Fifo,
    /// Any page goes.
    Random,
    /// A tree of bits that point away from what was used.
    Tree(PlruTree),
    /// Not recently used: a bit a way, set on use; when all are set, all others are cleared; the first clear one goes.
    Bits,
    /// Two bits of distance a way (Jaleel et al., "High Performance Cache Replacement Using Re-Reference Interval
    /// Prediction", 2010): 2 when filled, 0 when hit; the first with 3 goes, all are raised until there is one.
    Distances,
}

/// Accesses over which random misses are counted: more than a measurement has.
const RANDOM_STEPS: usize = 6000;

/// How a rule is played: from so many states, so many periods before misses are counted, and counted.
struct RulePlay {
    states: u64,
    before: usize,
    counted: usize,
}

impl ReplacementRule {
    fn play(&self, length: usize) -> RulePlay {
        match self {
            // The reset leaves nothing of what was before.
            Self::Lru | Self::Fifo => RulePlay { states: 1, before: 2, counted: 1 },
            // A tree of unequal sides keeps its phase from period to period: each set another.
            Self::Tree(_) => RulePlay { states: 12, before: 3, counted: 1 },
            Self::Bits | Self::Distances => RulePlay { states: 1, before: 3, counted: 8 },
            // A mean over many periods.
            Self::Random => RulePlay { states: 1, before: 3, counted: RANDOM_STEPS / length },
        }
    }

    /// Misses of a period of this chain (page numbers below `pages`), walked again and again: by the state it begins
    /// with.
    pub fn misses(&self, ways: usize, chain: &[usize], pages: usize) -> Vec<f64> {
        let play = self.play(chain.len());
        let count = |state| {
            let mut set = SimulatedSet::new(self, ways, pages, state);
            for _ in 0..8 * ways {
                // Filled in any order with pages that never come again.
                let page = pages + set.rng.index(2 * ways);
                set.access(page);
            }
            for &page in chain.iter().cycle().take(play.before * chain.len()) {
                set.access(page);
            }
            let counted = chain.iter().cycle().take(play.counted * chain.len());
            counted.filter(|&&page| !set.access(page)).count() as f64 / play.counted as f64
        };
        (0..play.states).map(count).collect()
    }
}

/// No page; no way.
const NONE: usize = usize::MAX;

struct SimulatedSet<'a> {
    rule: &'a ReplacementRule,
    /// Page held by each way.
    held: Vec<usize>,
    /// Way that holds each page.
    place: Vec<usize>,
    /// LRU: time of the last use; FIFO: the first number is the next to go; tree: bits; others: bits or distances.
    state: Vec<usize>,
    /// LRU: ways by the time of their last use.
    used: BTreeMap<usize, usize>,
    time: usize,
    rng: SplitMix64,
}

impl<'a> SimulatedSet<'a> {
    fn new(rule: &'a ReplacementRule, ways: usize, pages: usize, seed: u64) -> Self {
        Self {
            rule,
            held: vec![NONE; ways],
            place: vec![NONE; pages + 2 * ways],
            state: vec![0; ways],
            used: BTreeMap::new(),
            time: 0,
            rng: SplitMix64::new(seed),
        }
    }

    /// Whether it hits.
    fn access(&mut self, page: usize) -> bool {
        self.time += 1;
        let hit = self.place[page] != NONE;
        if !hit {
            let way = self.victim();
            if self.held[way] != NONE {
                self.place[self.held[way]] = NONE;
            }
            self.held[way] = page;
            self.place[page] = way;
        }
        let way = self.place[page];
        match self.rule {
            ReplacementRule::Lru => {
                self.used.remove(&self.state[way]);
                self.state[way] = self.time;
                self.used.insert(self.time, way);
            }
            ReplacementRule::Tree(tree) => tree.point_away(&mut self.state, way),
            ReplacementRule::Bits => {
                self.state[way] = 1;
                if self.state.iter().all(|&bit| bit == 1) {
                    self.state.fill(0);
                    self.state[way] = 1;
                }
            }
            ReplacementRule::Distances => self.state[way] = if hit { 0 } else { 2 },
            ReplacementRule::Fifo | ReplacementRule::Random => {}
        }
        hit
    }

    fn victim(&mut self) -> usize {
        let ways = self.held.len();
        match self.rule {
            // Empty ways first.
            ReplacementRule::Lru if self.used.len() < ways => self.used.len(),
            ReplacementRule::Lru => self.used.first_key_value().map_or(0, |(_, &way)| way),
            ReplacementRule::Fifo => {
                let way = self.state[0];
                self.state[0] = (way + 1) % ways;
                way
            }
            ReplacementRule::Random => self.rng.index(ways),
            ReplacementRule::Tree(tree) => tree.victim(&self.state),
            ReplacementRule::Bits => self.state.iter().position(|&bit| bit == 0).unwrap_or(0),
            ReplacementRule::Distances => {
                let most = self.state.iter().copied().max().unwrap_or(0);
                for distance in &mut self.state {
                    *distance += 3usize.saturating_sub(most);
                }
                self.state.iter().position(|&distance| distance >= 3).unwrap_or(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is held after a sequence, oldest way first, of a set that was empty.
    fn held(rule: &ReplacementRule, ways: usize, pages: &[usize]) -> Vec<usize> {
        let mut set = SimulatedSet::new(rule, ways, 100, 0);
        // Empty ways first, as fills of a real set do: each of them is the next to go of its rule, but for random.
        for (way, &page) in pages.iter().take(ways).enumerate() {
            set.held[way] = page;
            set.place[page] = way;
            set.time += 1;
            match rule {
                ReplacementRule::Lru => {
                    set.state[way] = set.time;
                    set.used.insert(set.time, way);
                }
                ReplacementRule::Tree(tree) => tree.point_away(&mut set.state, way),
                _ => {}
            }
        }
        for &page in &pages[ways..] {
            set.access(page);
        }
        set.held
    }

    #[test]
    fn rules_do_what_their_names_say() {
        assert_eq!(held(&ReplacementRule::Lru, 3, &[1, 2, 3, 1, 4]), [1, 4, 3]);
        assert_eq!(held(&ReplacementRule::Fifo, 3, &[1, 2, 3, 1, 4]), [4, 2, 3]);
        let tree = ReplacementRule::Tree(PlruTree::padded(4));
        // As the engine's own tests have it.
        assert_eq!(held(&tree, 4, &[1, 2, 3, 4, 5, 6]), [5, 2, 6, 4]);
        assert_eq!(held(&tree, 4, &[1, 2, 3, 4, 1, 5]), [1, 2, 5, 4]);
    }

    #[test]
    fn a_circle_of_one_page_too_many_misses_always_under_lru_and_fifo() {
        let circle: Vec<usize> = (0..5).collect();
        for rule in [ReplacementRule::Lru, ReplacementRule::Fifo] {
            assert_eq!(rule.misses(4, &circle, 5), [5.0]);
            assert_eq!(rule.misses(5, &circle, 5), [0.0]);
        }
        let random = ReplacementRule::Random.misses(4, &circle, 5)[0];
        assert!((1.0..4.5).contains(&random), "{random}");
    }
}
