//! Replacement policy: sequences of accesses to one set under which the known policies miss differently often.
//!
//! Each policy is played on a set of its own, many random sequences are tried, and those are measured that tell the
//! policies apart best. What was measured has to be what one policy predicts, for all of them, and not what any other
//! does; else it is not determined. That nothing fits does not rule out any of them: FIFO, random and tree-PLRU of many
//! ways, made up, often fit none either.

use lookaside_machine::Replacement;
use serde::Serialize;

use crate::bench::{Bench, Halt};
use crate::finding::Finding;
use crate::gf2;
use crate::rng::Rng;
use crate::tlb::conflict::choose;
use crate::tlb::geometry::Geometry;
use crate::tlb::level::Level;

/// Sequences tried on paper, and of those measured.
const TRIED: usize = 60;
/// See [`TRIED`].
const MEASURED: usize = 5;
/// Periods played before misses are counted, and counted; more for random replacement, which is a mean.
const PERIODS: usize = 12;
/// See [`PERIODS`].
const RANDOM_PERIODS: usize = 200;
/// Times a sequence is played from different states; a policy whose misses depend on the state predicts nothing.
const STATES: u64 = 4;
/// A prediction holds within this share of itself and so many misses.
const WITHIN: (f64, f64) = (0.12, 0.7);

/// A sequence that was measured, and what each policy would have done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// Numbers of pages of one set, in order, again and again.
    pub sequence: Vec<usize>,
    /// Misses in each round of it, measured.
    pub misses: f64,
    /// Misses by policy.
    pub predicted: Vec<(Replacement, f64)>,
}

/// The policy of a level whose geometry is known, and the trials, shortest first.
pub fn policy(
    bench: &mut Bench<'_>,
    level: &Level,
    geometry: &Geometry,
) -> Result<(Finding<Replacement>, Vec<Trial>), Halt> {
    let mut trials = Vec::new();
    for mut trial in telling(bench, geometry.ways as usize)? {
        let Some(misses) = measure(bench, level, geometry, &trial.sequence)? else {
            return Ok((Finding::not_determined("the level above cannot be kept out of the way"), trials));
        };
        trial.misses = misses;
        trials.push(trial);
    }
    trials.sort_by_key(|trial| trial.sequence.len());
    let holds = |policy: Replacement| {
        trials.iter().all(|trial| {
            let predicted = trial.predicted.iter().find(|(p, _)| *p == policy);
            predicted.is_some_and(|(_, p)| (trial.misses - p).abs() <= WITHIN.0 * p + WITHIN.1)
        })
    };
    let all = candidates(geometry.ways as usize);
    let fitting: Vec<Replacement> = all.iter().copied().filter(|&policy| holds(policy)).collect();
    let finding = match &fitting[..] {
        _ if trials.is_empty() => Finding::not_determined("no sequence tells the policies apart"),
        [one] => Finding::confirmed(*one, Vec::new()),
        [] => Finding::not_determined(format!("what was measured fits none of {all:?}")),
        several => Finding::not_determined(format!("what was measured fits any of {several:?}")),
    };
    Ok((finding, trials))
}

/// Policies that a set of so many ways may have.
fn candidates(ways: usize) -> Vec<Replacement> {
    let mut all = vec![Replacement::Lru, Replacement::Fifo, Replacement::Random];
    if ways.is_power_of_two() && ways > 2 {
        all.push(Replacement::TreePlru);
    }
    all
}

/// Trials, not measured yet, that tell all candidates apart.
fn telling(bench: &mut Bench<'_>, ways: usize) -> Result<Vec<Trial>, Halt> {
    let all = candidates(ways);
    let mut found: Vec<(f64, Trial)> = Vec::new();
    for _ in 0..TRIED {
        bench.check()?;
        let sequence = random_sequence(&mut bench.rng, ways);
        let predicted: Option<Vec<_>> =
            all.iter().map(|&policy| Some((policy, predict(policy, ways, &sequence)?))).collect();
        let Some(predicted) = predicted else { continue };
        // The least distance of two predictions, in what is allowed.
        let mut apart = f64::MAX;
        for (i, (_, a)) in predicted.iter().enumerate() {
            for (_, b) in &predicted[..i] {
                apart = apart.min((a - b).abs() / (WITHIN.0 * a.max(*b) + WITHIN.1));
            }
        }
        found.push((apart, Trial { sequence, misses: 0.0, predicted }));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(MEASURED);
    // Those told apart by less than both allowances would confirm nothing.
    Ok(found.into_iter().filter(|(apart, _)| *apart > 2.0).map(|(_, trial)| trial).collect())
}

/// A walk through a few pages more than fit, with some of them used again and again.
fn random_sequence(rng: &mut Rng, ways: usize) -> Vec<usize> {
    let pages = ways + 1 + rng.below(3);
    let hot = 1 + rng.below((ways / 2).max(1));
    let every = 1 + rng.below(4);
    let mut sequence = Vec::new();
    for page in hot..pages {
        sequence.push(page);
        if page % every == 0 {
            sequence.push(rng.below(hot));
        }
    }
    for _ in 0..rng.below(ways + 1) {
        sequence.push(rng.below(pages));
    }
    sequence
}

/// Misses a period once it has settled; `None` where that depends on the state before.
fn predict(policy: Replacement, ways: usize, sequence: &[usize]) -> Option<f64> {
    let periods = if policy == Replacement::Random { RANDOM_PERIODS } else { PERIODS };
    let mut least = f64::MAX;
    let mut most = 0.0f64;
    let mut sum = 0.0;
    for state in 0..STATES {
        let mut set = Set::new(policy, ways, state);
        for _ in 0..4 * ways {
            let foreign = 1_000_000 + set.rng.below(2 * ways);
            set.access(foreign);
        }
        for &page in sequence.iter().cycle().take(sequence.len() * periods) {
            set.access(page);
        }
        let misses = (0..periods).map(|_| sequence.iter().filter(|&&page| !set.access(page)).count()).sum::<usize>();
        let misses = misses as f64 / periods as f64;
        (least, most, sum) = (least.min(misses), most.max(misses), sum + misses);
    }
    let same = most - least <= if policy == Replacement::Random { 0.1 * most + 0.2 } else { 0.05 };
    same.then_some(sum / STATES as f64)
}

/// Misses a period, measured; `None` if the level above cannot be flooded.
fn measure(bench: &mut Bench<'_>, level: &Level, geometry: &Geometry, sequence: &[usize]) -> Result<Option<f64>, Halt> {
    let kernel = gf2::null_space(&geometry.masks, bench.bits());
    let pages = sequence.iter().max().map_or(0, |most| most + 1);
    let vectors = choose(bench, &kernel, pages);
    let lanes = match &level.above {
        None => vec![bench.page()],
        Some(above) => {
            let wanted = above.flood_pages();
            if wanted > geometry.sets as usize {
                return Ok(None);
            }
            // One page of each set in turn: by the time a set is used again, the level above has forgotten it.
            let start = bench.page();
            let mut sets = gf2::span(&pivots(&geometry.masks));
            bench.rng.shuffle(&mut sets);
            sets.truncate(wanted);
            sets.into_iter().map(|set| set ^ start).collect()
        }
    };
    let chain = |fold: usize| -> Vec<u64> {
        sequence
            .iter()
            .flat_map(|&page| lanes.iter().map(move |lane| (page, lane)))
            .map(|(page, lane)| vectors[page % fold] ^ lane)
            .collect()
    };
    // The same with fewer pages, which fit.
    let (all, fitting) = (chain(pages), chain(geometry.ways as usize));
    let base = bench.sequence(&fitting)?;
    Ok(Some((bench.sequence(&all)? - base) / (level.miss_ticks * lanes.len() as f64)))
}

/// One vector for each mask (in reduced form) that it alone sees.
fn pivots(masks: &[u64]) -> Vec<u64> {
    gf2::reduce(masks).iter().map(|row| row & row.wrapping_neg()).collect()
}

/// One set on paper, with the rules of the engine (`SEMANTICS.md`, 9).
struct Set {
    policy: Replacement,
    ways: Vec<usize>,
    /// LRU: time of the last use; FIFO: the first number is the pointer; tree-PLRU: bits, heap order from 1.
    state: Vec<usize>,
    time: usize,
    rng: Rng,
}

impl Set {
    fn new(policy: Replacement, ways: usize, seed: u64) -> Self {
        Self { policy, ways: vec![usize::MAX; ways], state: vec![0; ways.max(2)], time: 0, rng: Rng::new(seed) }
    }

    /// Whether it hits.
    fn access(&mut self, page: usize) -> bool {
        self.time += 1;
        let hit = self.ways.iter().position(|&held| held == page);
        let way = hit.unwrap_or_else(|| self.victim());
        self.ways[way] = page;
        match self.policy {
            Replacement::Lru => self.state[way] = self.time,
            Replacement::TreePlru => self.point_away(way),
            Replacement::Fifo | Replacement::Random => {}
        }
        hit.is_some()
    }

    fn victim(&mut self) -> usize {
        let ways = self.ways.len();
        match self.policy {
            Replacement::Lru => (0..ways).min_by_key(|&way| self.state[way]).unwrap_or(0),
            Replacement::Fifo => {
                let way = self.state[0];
                self.state[0] = (way + 1) % ways;
                way
            }
            Replacement::Random => self.rng.below(ways),
            Replacement::TreePlru => {
                let mut node = 1;
                while node < ways {
                    node = 2 * node + self.state[node];
                }
                node - ways
            }
        }
    }

    fn point_away(&mut self, way: usize) {
        let mut node = way + self.ways.len();
        while node > 1 {
            self.state[node / 2] = 1 - node % 2;
            node /= 2;
        }
    }
}
