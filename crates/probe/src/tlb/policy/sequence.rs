//! Sequences of accesses to the pages of one set that tell policies apart.

use lookaside_stats::SplitMix64;
use serde::Serialize;

use crate::tlb::policy::simulated_set::ReplacementRule;

/// Pages that fill a set again and again before each sequence: so many times its ways, and so many more. Twice: what
/// was there before is gone whatever the policy (but for random), even from a tree's side that gets few of the fills.
const RESET: (usize, usize) = (2, 2);
/// In a set of at least so many ways other pages (the stack's, a table's, a neighbour's) may hold one, and one more for
/// each so many ways.
const LARGE: (usize, usize) = (8, 24);
/// Most blocks that a random sequence is made of.
const BLOCKS: usize = 4;

/// Accesses after a reset, the last of which look what is still there.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialSequence {
    /// Pages 0 to `reset` are walked in order first: what they leave is known of most policies.
    pub reset: usize,
    /// Numbers of the pages accessed then: those below `reset` are the reset's, others are new.
    pub pages: Vec<usize>,
    /// So many of the last accesses are the ones whose misses are measured.
    pub looks: usize,
}

impl TrialSequence {
    /// So many different pages are in one, or in its [`TrialSequence::all_missing`], at most.
    pub fn most_pages(ways: usize) -> usize {
        RESET.0 * ways + RESET.1 + 2 * longest(ways)
    }

    /// Different pages in it and its [`TrialSequence::all_missing`].
    pub fn distinct(&self) -> usize {
        self.pages.iter().fold(self.reset, |count, &page| count.max(page + 1)) + self.looks
    }

    /// The chain: reset, then the pages.
    pub fn chain(&self) -> Vec<usize> {
        (0..self.reset).chain(self.pages.iter().copied()).collect()
    }

    /// The chain with hits in place of the last accesses: the page used last is there, whatever the policy.
    pub fn all_hitting(&self) -> Vec<usize> {
        let mut chain = self.chain();
        let before = chain.len() - self.looks;
        let last = chain[before - 1];
        chain[before..].fill(last);
        chain
    }

    /// The chain with new pages in place of the last accesses.
    pub fn all_missing(&self) -> Vec<usize> {
        let mut chain = self.chain();
        let (before, new) = (chain.len() - self.looks, self.distinct() - self.looks);
        chain.truncate(before);
        chain.extend(new..new + self.looks);
        chain
    }

    /// New pages numbered in the order of their first use.
    fn renumbered(mut self) -> Self {
        let mut new: Vec<usize> = Vec::new();
        for page in self.pages.iter_mut().filter(|page| **page >= self.reset) {
            let number = new.iter().position(|known| known == page).unwrap_or(new.len());
            if number == new.len() {
                new.push(*page);
            }
            *page = self.reset + number;
        }
        self
    }

    /// Any sequence for a set of so many ways: blocks of new pages, of pages used again, and of pairs of the two.
    pub fn random(rng: &mut SplitMix64, ways: usize) -> Self {
        let reset = RESET.0 * ways + RESET.1;
        let (mut pages, mut new) = (Vec::new(), reset);
        let blocks = 1 + rng.index(BLOCKS);
        for _ in 0..blocks {
            match rng.index(6) {
                0 => pages.extend(run(rng, reset, ways)),
                1 if new > reset => {
                    let used = new - reset;
                    pages.extend(run(rng, new, used));
                }
                1 => pages.extend(run(rng, reset, ways)),
                2 | 3 => {
                    let count = 1 + rng.index(ways);
                    pages.extend(new..new + count);
                    new += count;
                }
                4 => {
                    // The oldest used again, some pushed out, the oldest looked for: there where use counts.
                    let old = reset - ways;
                    let mut again: Vec<usize> = (old..old + 1 + rng.index(ways)).step_by(1 + rng.index(2)).collect();
                    pages.extend(&again);
                    let count = 1 + rng.index(ways);
                    pages.extend(new..new + count);
                    new += count;
                    if rng.index(2) == 0 {
                        again.reverse();
                    }
                    pages.extend(again);
                }
                _ => {
                    let again = reset - 1 - rng.index(ways);
                    let count = 1 + rng.index(ways);
                    pages.extend((new..new + count).flat_map(|page| [again, page]));
                    new += count;
                }
            }
        }
        // Looked for: pages of the reset, new ones, or those that were used last.
        let mut looked = match rng.index(4) {
            0 if new > reset => run(rng, new, new - reset),
            1 if !pages.is_empty() => {
                let used = pages.len();
                run(rng, used, used).into_iter().map(|at| pages[at]).collect()
            }
            _ => run(rng, reset, ways),
        };
        looked.truncate(ways);
        pages.truncate(longest(ways) - looked.len());
        let looks = looked.len();
        pages.extend(looked);
        Self { reset, pages, looks }.renumbered()
    }

    /// Shorter ones, the shortest first: without a part of its accesses.
    pub fn shorter(&self) -> Vec<Self> {
        let length = self.pages.len();
        let mut all = Vec::new();
        let mut part = length / 2;
        while part > 0 {
            for start in (0..length).step_by(part) {
                let end = (start + part).min(length);
                let looks = self.looks - (end + self.looks).saturating_sub(length.max(start + self.looks));
                let mut pages = self.pages.clone();
                pages.drain(start..end);
                if looks > 0 {
                    all.push(Self { reset: self.reset, pages, looks }.renumbered());
                }
            }
            part /= 2;
        }
        all
    }
}

/// Most accesses after a reset.
fn longest(ways: usize) -> usize {
    ways + ways / 4 + 8
}

/// Some of the last `ages` pages below `end`, in order, forwards or backwards.
fn run(rng: &mut SplitMix64, end: usize, ages: usize) -> Vec<usize> {
    let first = end - ages + rng.index(ages);
    let step = 1 + rng.index(3);
    let count = 1 + rng.index(ages);
    let mut pages: Vec<usize> = (first..end).step_by(step).take(count).collect();
    if rng.index(2) == 0 {
        pages.reverse();
    }
    pages
}

/// What a rule predicts for a sequence: between two numbers of misses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl Prediction {
    /// How far a number is from it; 0 = it is in it.
    pub fn distance(&self, misses: f64) -> f64 {
        (self.low - misses).max(misses - self.high).max(0.0)
    }

    /// How far two are apart; 0 = they overlap.
    pub fn apart(&self, other: &Self) -> f64 {
        (self.low - other.high).max(other.low - self.high).max(0.0)
    }
}

/// Ways that other pages may hold.
fn taken(ways: usize) -> usize {
    if ways < LARGE.0 {
        0
    } else {
        1 + ways / LARGE.1
    }
}

/// Whether it makes no great difference that other pages hold some ways. In sequences that use the oldest page of a set
/// again, one that was lost puts out the next, and so on: they say nothing.
pub fn is_steady(ways: usize, sequence: &TrialSequence) -> bool {
    let taken = taken(ways);
    [ReplacementRule::Lru, ReplacementRule::Fifo].iter().all(|rule| {
        [sequence.chain(), sequence.all_hitting(), sequence.all_missing()].iter().all(|chain| {
            let misses = |ways| rule.misses(ways, chain, sequence.distinct())[0];
            let all = misses(ways);
            [1.min(taken), taken].iter().all(|&fewer| misses(ways - fewer) <= all + 2.0 * fewer as f64)
        })
    })
}

/// What a rule predicts for a sequence, whatever the set holds at first, and also where some other pages hold a few
/// entries of a large set (the stack's, a neighbour's).
///
/// `None`: a new page in place of a look makes next to no difference there (a phase of a tree takes it back later), so
/// that nothing can be measured by it.
pub fn predict(rule: &ReplacementRule, ways: usize, sequence: &TrialSequence) -> Option<Prediction> {
    // A tree has its ways.
    let taken = if matches!(rule, ReplacementRule::Tree(_)) { 0 } else { taken(ways) };
    let mut whole = Prediction { low: f64::MAX, high: f64::MIN };
    for ways in (ways - taken..=ways).step_by(taken.max(1)) {
        let part = predict_exactly(rule, ways, sequence)?;
        whole = Prediction { low: whole.low.min(part.low), high: whole.high.max(part.high) };
    }
    Some(whole)
}

fn predict_exactly(rule: &ReplacementRule, ways: usize, sequence: &TrialSequence) -> Option<Prediction> {
    let looks = sequence.looks as f64;
    let misses = |chain: &[usize]| {
        let misses = rule.misses(ways, chain, sequence.distinct());
        let [low, high] = [f64::min, f64::max].map(|of| misses.iter().copied().reduce(of).unwrap_or(0.0));
        (low, high, misses.iter().sum::<f64>() / misses.len() as f64)
    };
    // As it is measured: in parts of what as many new pages take. The state that a set is in may be another in each of
    // the chains that are compared.
    let (none, some, all) =
        (misses(&sequence.all_hitting()), misses(&sequence.chain()), misses(&sequence.all_missing()));
    let part = |misses: f64| looks * misses / (all.2 - none.2);
    let prediction = Prediction { low: part(some.0 - none.1), high: part(some.1 - none.0) };
    (all.2 - none.2 > looks / 2.0).then_some(prediction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_sequences_are_of_pages_that_a_set_can_have() {
        let mut rng = SplitMix64::new(1);
        for ways in 2..130 {
            for _ in 0..20 {
                let sequence = TrialSequence::random(&mut rng, ways);
                assert!(sequence.looks > 0);
                for shorter in sequence.shorter().iter().chain([&sequence]) {
                    assert!(shorter.looks > 0 && shorter.looks <= shorter.pages.len(), "{shorter:?}");
                    for chain in [shorter.chain(), shorter.all_hitting(), shorter.all_missing()] {
                        assert_eq!(chain.len(), shorter.reset + shorter.pages.len());
                        assert!(chain.iter().all(|&page| page < shorter.distinct()), "{shorter:?}");
                    }
                    assert!(shorter.distinct() <= TrialSequence::most_pages(ways), "{shorter:?}");
                }
            }
        }
    }
}
