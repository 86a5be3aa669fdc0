//! PT-Baker's section 4.4.3.1 on the metal: does a prefetch instruction fill the TLB?

use lookaside_probe::{Act, Bench, Halt, Hint};

use super::estimate::{estimate, interleaved, Estimate};

/// Rounds timed in each repetition.
const ROUNDS: usize = 5;
/// Rounds before them.
const SETTLE: usize = 3;
/// Ticks after which the last prefetches are surely done: some memory accesses one after the other.
const DONE_TICKS: u64 = 4000;

/// Ticks a load of a part of an array, by what is done to the rest between two rounds.
pub(super) struct Parts {
    pub(super) alone: Estimate,
    /// The rest is loaded: what the whole array costs.
    pub(super) loaded: Estimate,
    /// It is only prefetched, by each instruction.
    pub(super) prefetched: Vec<(Hint, Estimate)>,
}

/// The instructions that the paper names.
const HINTS: [Hint; 3] = [Hint::T0, Hint::T1, Hint::T2];

impl Parts {
    /// An array of `all` pages, of which `some` are loaded.
    pub(super) fn measure(bench: &mut Bench<'_>, some: usize, all: usize) -> Result<Self, Halt> {
        let bits = all.next_power_of_two().ilog2().min(bench.bits());
        let start = bench.page() & !((1 << bits) - 1);
        let mut first: Vec<u64> = (start..start + some as u64).collect();
        let mut other: Vec<u64> = (start + some as u64..start + all as u64).collect();
        bench.rng.shuffle(&mut first);
        bench.rng.shuffle(&mut other);
        // Pages that nobody has touched have no translation to fill: touch them all once.
        bench.shot(&[Act::Load(&other)], &first, 1)?;
        let wait = Act::Wait(DONE_TICKS);
        let mut acts: Vec<Vec<Act<'_>>> = vec![vec![wait], vec![Act::Load(&other), wait]];
        acts.extend(HINTS.iter().map(|&hint| vec![Act::Prefetch(hint, &other), wait]));
        let estimates = interleaved(&acts, |_, acts| {
            // The first rounds begin in the state that another experiment left.
            let rounds = bench.shot(acts, &first, SETTLE + ROUNDS)?;
            Ok(estimate(rounds[SETTLE.min(rounds.len())..].to_vec()).median / some as f64)
        })?;
        let mut estimates = estimates.into_iter();
        let mut next = || estimates.next().unwrap_or_else(|| estimate(Vec::new()));
        Ok(Self { alone: next(), loaded: next(), prefetched: HINTS.iter().map(|&hint| (hint, next())).collect() })
    }

    /// What part of the rise that loads of the rest bring, this instruction brings.
    pub(super) fn part(&self, prefetched: &Estimate) -> f64 {
        (prefetched.median - self.alone.median) / (self.loaded.median - self.alone.median)
    }

    /// Whether loads of the rest bring a rise that can be told from noise.
    pub(super) fn rises(&self) -> bool {
        self.loaded.low > self.alone.high
    }
}
