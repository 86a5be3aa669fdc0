//! PT-Baker's section 4.4.3.1 on the metal: does a prefetch instruction fill the TLB?

use lookaside_harness::metal::{estimate, interleaved, Estimate};
use lookaside_probe::{Act, ChainBench, Halt, PrefetchHint};

/// Rounds timed in each repetition.
const ROUNDS: usize = 5;
/// Rounds before them.
const SETTLE: usize = 3;
/// Ticks after which the last prefetches are surely done: some memory accesses one after the other.
const DONE_TICKS: u64 = 4000;

/// Misses a load from which on the others' pages have put out these, and up to which they have not.
const MANY: f64 = 0.5;
/// See [`MANY`].
const FEW: f64 = 0.1;

/// Lines that the control reads of each of its pages, and reads of each line: a page that comes again in a shot is read
/// at the next of 7 words of a line, then at the next line.
const LINES: usize = 24;
/// See [`LINES`].
const WORDS: usize = 7;

/// Ticks a load of a part of an array, by what is done to the rest between two rounds.
pub(super) struct PrefetchTimes {
    pub(super) alone: Estimate,
    /// As many lines as the rest has pages are loaded, but out of few pages: what the rest's data do to the caches.
    pub(super) lines: Estimate,
    /// The rest is loaded: what the whole array costs.
    pub(super) loaded: Estimate,
    /// It is only prefetched, by each instruction.
    pub(super) prefetched: Vec<(PrefetchHint, Estimate)>,
}

/// The instructions that the paper names.
const HINTS: [PrefetchHint; 3] = [PrefetchHint::T0, PrefetchHint::T1, PrefetchHint::T2];

impl PrefetchTimes {
    /// Most accesses of a shot, which has to have room for as many pages.
    pub(super) fn accesses(some: usize, all: usize) -> usize {
        some + (all - some).div_ceil(LINES) * LINES * WORDS
    }

    /// An array of `all` pages, of which `some` are loaded.
    pub(super) fn measure(bench: &mut ChainBench<'_>, some: usize, all: usize) -> Result<Self, Halt> {
        let bits = all.next_power_of_two().ilog2().min(bench.bits());
        let start = bench.page() & !((1 << bits) - 1);
        let mut first: Vec<u64> = (start..start + some as u64).collect();
        let mut other: Vec<u64> = (start + some as u64..start + all as u64).collect();
        bench.rng.shuffle(&mut first);
        bench.rng.shuffle(&mut other);
        // Pages that nobody has touched have no translation to fill: touch them all once.
        bench.shot(&[Act::Load(&other)], &first, 1)?;
        let wait = Act::Wait(DONE_TICKS);
        let few = start + all as u64..start + (all + other.len().div_ceil(LINES)) as u64;
        let lines: Vec<u64> = few.flat_map(|page| [page; LINES * WORDS]).collect();
        let mut acts = vec![vec![wait], vec![Act::Load(&lines), wait], vec![Act::Load(&other), wait]];
        acts.extend(HINTS.iter().map(|&hint| vec![Act::Prefetch(hint, &other), wait]));
        let estimates = interleaved(&acts, |_, acts| {
            // The first rounds begin in the state that another experiment left.
            let rounds = bench.shot(acts, &first, SETTLE + ROUNDS)?;
            Ok(estimate(rounds[SETTLE.min(rounds.len())..].to_vec()).median / some as f64)
        })?;
        let mut estimates = estimates.into_iter();
        let mut next = || estimates.next().unwrap_or_else(|| estimate(Vec::new()));
        let [alone, lines, loaded] = [next(), next(), next()];
        Ok(Self { alone, lines, loaded, prefetched: HINTS.iter().map(|&hint| (hint, next())).collect() })
    }

    /// Whether more of the loads miss than for the data alone, where a miss adds at least so many ticks; `None` =
    /// cannot be told. Disturbances only add ticks, so the low ends are what they spare: of the loads for a yes, of
    /// what they are compared with for a no.
    pub(super) fn fills(&self, with: &Estimate, miss_ticks: f64) -> Option<bool> {
        let rise = |ticks: f64, without: f64| (ticks - without) / miss_ticks;
        if rise(with.low, self.lines.median) > MANY {
            Some(true)
        } else if rise(with.median, self.lines.low.min(self.alone.low)) < FEW {
            Some(false)
        } else {
            None
        }
    }
}
