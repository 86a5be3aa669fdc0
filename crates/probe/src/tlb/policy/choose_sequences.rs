//! Chooses the access sequences that tell the replacement rules apart best.

use crate::bench::{ChainBench, Halt};
use crate::tlb::policy::rules::RuleSet;
use crate::tlb::policy::sequence::{is_steady, predict, Prediction, TrialSequence};
use crate::tlb::policy::trial::{TlbPolicy, WITHIN};

/// Sequences tried on paper for two looks.
const TRIED: usize = 80;
/// So many, if some say nothing.
const MOST_TRIED: usize = 3 * TRIED;
/// Two predictions tell where they are apart by so many times what is allowed: with one of them fitting, the other is
/// out.
const TELLS: f64 = 4.0;
/// Worth of all else that a sequence tells, beside what no other did.
const BESIDES: f64 = 0.02;
/// Sequences of a look that are just any.
const ANY: usize = 4;
/// Sequences tried on paper for a short one, and shorter ones made of them.
const SHORT: (usize, usize) = (20, 200);
/// Shortest sequences that are given to be measured.
const SHORTEST: usize = 4;

/// What may be off by how much, in misses.
type AllowedError<'a> = &'a dyn Fn(&TrialSequence) -> f64;

impl RuleSet {
    /// What each rule predicts; `None` where one cannot.
    pub fn predict(&self, sequence: &TrialSequence) -> Option<Vec<Prediction>> {
        self.rules.iter().map(|(_, _, rule)| predict(rule, self.ways, sequence)).collect()
    }

    /// Whether a sequence tells a policy from all others. Asks the rules that are quick to play first.
    fn tells(&self, policy: TlbPolicy, sequence: &TrialSequence, allowed: f64) -> bool {
        let (own, others): (Vec<_>, Vec<_>) = self.rules.iter().partition(|(_, of, _)| *of == policy);
        let own: Option<Vec<_>> = own.iter().map(|(.., rule)| predict(rule, self.ways, sequence)).collect();
        let Some(own) = own else { return false };
        others.iter().all(|(.., rule)| {
            let other = predict(rule, self.ways, sequence);
            other.is_some_and(|other| own.iter().all(|own| apart(own, &other, allowed) >= TELLS))
        })
    }
}

/// Any sequence, but for those that say nothing where a way is taken.
fn random(bench: &mut ChainBench<'_>, ways: usize) -> Result<TrialSequence, Halt> {
    loop {
        bench.check()?;
        let sequence = TrialSequence::random(&mut bench.rng, ways);
        if is_steady(ways, &sequence) {
            return Ok(sequence);
        }
    }
}

/// How far apart two predictions are, in parts of what a measurement between them may be off by.
fn apart(a: &Prediction, b: &Prediction, allowed: f64) -> f64 {
    a.apart(b) / (allowed + WITHIN * a.high.max(b.high).max(0.0))
}

/// Sequences for two looks: so many each that tell the rules apart, and [`ANY`].
pub fn choose(
    bench: &mut ChainBench<'_>,
    known: &RuleSet,
    allowed: AllowedError<'_>,
    count: usize,
) -> Result<[Vec<TrialSequence>; 2], Halt> {
    let mut pool = Vec::new();
    for _ in 0..MOST_TRIED {
        if pool.len() == TRIED {
            break;
        }
        let sequence = random(bench, known.ways)?;
        let Some(at) = known.predict(&sequence) else { continue };
        let pairs = (0..at.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let pairs = pairs.filter(|&(a, b)| known.rules[a].1 != known.rules[b].1);
        // How far apart each two of different policies are.
        let apart: Vec<f64> = pairs.map(|(a, b)| apart(&at[a], &at[b], allowed(&sequence)).min(TELLS)).collect();
        pool.push((sequence, apart));
    }
    let mut looks = [Vec::new(), Vec::new()];
    for look in &mut looks {
        let mut covered = vec![0.0f64; pool.first().map_or(0, |(_, apart): &(_, Vec<f64>)| apart.len())];
        for _ in 0..count {
            // What adds most to what is told apart; then what tells most.
            let worth = |apart: &[f64]| -> f64 {
                let new: f64 = covered.iter().zip(apart).map(|(&had, &now)| (now - had).max(0.0)).sum();
                new + BESIDES * apart.iter().sum::<f64>()
            };
            let best = (0..pool.len()).max_by(|&a, &b| worth(&pool[a].1).total_cmp(&worth(&pool[b].1)));
            let Some(best) = best else { break };
            let (sequence, apart) = pool.swap_remove(best);
            covered.iter_mut().zip(&apart).for_each(|(had, &now)| *had = had.max(now));
            look.push(sequence);
        }
        // Some that were not chosen for anything: what is none of the rules may show anywhere.
        look.extend(pool.drain(pool.len().saturating_sub(ANY)..).map(|(sequence, _)| sequence));
    }
    Ok(looks)
}

/// Short sequences that tell a policy from all others, the shortest first: known ones and random ones, less all that
/// can be left out.
pub fn shrink(
    bench: &mut ChainBench<'_>,
    known: &RuleSet,
    allowed: AllowedError<'_>,
    policy: TlbPolicy,
    measured: Vec<TrialSequence>,
) -> Result<Vec<TrialSequence>, Halt> {
    let random: Result<Vec<TrialSequence>, Halt> = (0..SHORT.0).map(|_| random(bench, known.ways)).collect();
    let mut found: Vec<TrialSequence> = Vec::new();
    let mut left = SHORT.1;
    for start in measured.into_iter().chain(random?) {
        let mut best = start;
        if !known.tells(policy, &best, allowed(&best)) {
            continue;
        }
        found.push(best.clone());
        while left > 0 {
            bench.check()?;
            let shorter = best.shorter().into_iter().find(|shorter| {
                left = left.saturating_sub(1);
                left > 0 && is_steady(known.ways, shorter) && known.tells(policy, shorter, allowed(shorter))
            });
            let Some(shorter) = shorter else { break };
            found.push(shorter.clone());
            best = shorter;
        }
    }
    found.sort_by_key(|sequence| sequence.pages.len());
    found.dedup();
    found.truncate(SHORTEST);
    Ok(found)
}
