//! Counts the TLB entries that an act (a system call, a prefetch, a neighbour's walk) evicts.
//!
//! The pages are loaded, the act is done, and they are loaded again and timed: once as they are, once with each page
//! touched at another line right before. The difference is what translations cost. Behind a walk through pages that put
//! everything out of the first level, what it costs more with the act than without is the second level's losses;
//! without that walk, both levels'.

use std::collections::BTreeSet;

use crate::bench::{ChainBench, Halt};
use crate::eviction_sets::{PagePicker, TlbLevels};
use crate::metal::single_shot::Act;
use lookaside_stats::median;

/// Samples that took more than this many times the median are left out: interrupted.
const LONG: f64 = 4.0;
/// A miss of less than this cannot be seen.
const LEAST_TICKS: f64 = 1.0;
/// Pages whose misses are known, and the samples of each, to find out what a miss costs.
const KNOWN_PAGES: usize = 8;
/// See [`KNOWN_PAGES`].
const KNOWN_SAMPLES: usize = 512;

/// What a sample of one load counts at most, in walks; as much below one as above, since the timer's grain goes either
/// way.
const MOST_WALKS: f64 = 2.0;
/// A share of walks that is lower is the grain's.
const HARDLY: f64 = 0.3;

/// A bench with known levels, and what misses cost on it.
pub(crate) struct EvictionBench<'b, 'm, 'l> {
    pub bench: &'b mut ChainBench<'m>,
    pub picker: PagePicker<'l>,
    /// Ticks that a first-level miss adds where the second level hits.
    pub l1_ticks: f64,
    /// Ticks that a second-level miss adds to that.
    pub walk_ticks: f64,
}

/// Entries that an act takes, of so many that were in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EntryLosses {
    pub of: usize,
    pub l1: f64,
    pub stlb: f64,
}

impl<'b, 'm, 'l> EvictionBench<'b, 'm, 'l> {
    /// Finds out what misses cost. `Ok(Err)` is why nothing can be seen here.
    pub(crate) fn new(bench: &'b mut ChainBench<'m>, levels: &'l TlbLevels) -> Result<Result<Self, String>, Halt> {
        let seed = bench.rng.next_u64();
        let picker = PagePicker::new(levels, bench.bits(), seed);
        let mut evictions = Self { bench, picker, l1_ticks: 0.0, walk_ticks: 0.0 };
        let pages = evictions.pages(KNOWN_PAGES);
        let (out, flood) = evictions.evictors(&pages);
        let each = pages.len() as f64;
        let hit = evictions.extra(&[Act::Load(&pages)], &pages, KNOWN_SAMPLES)? / each;
        let l1 = evictions.extra(&[Act::Load(&pages), Act::Load(&flood)], &pages, KNOWN_SAMPLES)? / each;
        let all = [Act::Load(&pages), Act::Load(&out), Act::Load(&flood)];
        let all = evictions.extra(&all, &pages, KNOWN_SAMPLES)? / each;
        (evictions.l1_ticks, evictions.walk_ticks) = (l1 - hit, all - l1);
        if evictions.l1_ticks < LEAST_TICKS || evictions.walk_ticks < LEAST_TICKS {
            return Ok(Err(format!(
                "known hits, first-level misses and walks take {hit:.1}, {l1:.1} and {all:.1} ticks more than a control"
            )));
        }
        Ok(Ok(evictions))
    }

    /// Fresh pages in different sets of the second level, at most as many as leave half of its sets alone.
    pub(crate) fn pages(&mut self, count: usize) -> Vec<u64> {
        self.picker.move_window();
        let most = (self.picker.levels.last().sets as usize / 2).max(1);
        self.picker.in_different_sets(count.min(most))
    }

    /// Pages that put these out of the second level, and pages that put all out of the first and leave the second
    /// level's sets of these alone.
    pub(crate) fn evictors(&mut self, pages: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let sets: BTreeSet<u64> = pages.iter().map(|&page| self.picker.set(page)).collect();
        (self.picker.evicting(pages), self.picker.flooding_first_level(&sets))
    }

    /// Ticks that translations of `timed` cost after these acts, all of them together.
    pub(crate) fn extra(&mut self, before: &[Act<'_>], timed: &[u64], samples: usize) -> Result<f64, Halt> {
        Ok(self.extra_by(before, timed, 1, samples)?.iter().sum())
    }

    /// The same, in windows of so many loads.
    pub(crate) fn extra_by(
        &mut self,
        before: &[Act<'_>],
        timed: &[u64],
        loads: usize,
        samples: usize,
    ) -> Result<Vec<f64>, Halt> {
        // The first follows upon other work.
        let pairs = self.bench.windows(before, timed, loads, samples + 1)?;
        let windows = timed.len().div_ceil(loads);
        Ok((0..windows).map(|i| difference(pairs.iter().skip(1).map(|pair| (pair.shot[i], pair.control[i])))).collect())
    }

    /// For each timed load the share of the samples in which it walks, and none where hardly any did: whether the first
    /// level misses too makes little of a difference, and a long walk counts as one.
    pub(crate) fn walks(&mut self, before: &[Act<'_>], timed: &[u64], samples: usize) -> Result<Vec<f64>, Halt> {
        let pairs = self.bench.windows(before, timed, 1, samples + 1)?;
        let share = |i: usize| {
            let walks = pairs.iter().skip(1).map(|pair| {
                let extra = (pair.shot[i] - pair.control[i] - self.l1_ticks) / self.walk_ticks;
                extra.clamp(-MOST_WALKS + 1.0, MOST_WALKS)
            });
            let share = walks.sum::<f64>() / samples as f64;
            if share < HARDLY {
                0.0
            } else {
                share.min(1.0)
            }
        };
        Ok((0..timed.len()).map(share).collect())
    }

    /// Shots whose times nobody wants.
    pub(crate) fn shots(&mut self, before: &[Act<'_>], timed: &[u64], samples: usize) -> Result<(), Halt> {
        self.bench.windows(before, timed, 1, samples).map(|_| ())
    }

    /// Pages that nobody has touched: of another window.
    pub(crate) fn untouched(&mut self, count: usize) -> Vec<u64> {
        self.picker.move_window();
        self.picker.in_different_sets(count)
    }

    /// Entries that an act takes from fresh pages; none where more seem to be lost than there were, or fewer than none.
    pub(crate) fn losses(
        &mut self,
        act: &[Act<'_>],
        count: usize,
        samples: usize,
    ) -> Result<Option<EntryLosses>, Halt> {
        let pages = self.pages(count);
        let (_, flood) = self.evictors(&pages);
        // In another order than they were loaded in, so that no prefetcher learns it.
        let mut timed = pages.clone();
        self.bench.rng.shuffle(&mut timed);
        let (load, flood) = ([Act::Load(&pages)], [Act::Load(&flood)]);
        let mut after = |acts: [&[Act<'_>]; 3]| self.extra(&acts.concat(), &timed, samples);
        let (none, acted) = (after([&load, &[], &[]])?, after([&load, act, &[]])?);
        let (none_behind, behind) = (after([&load, &flood, &[]])?, after([&load, act, &flood])?);
        let stlb = (behind - none_behind) / self.walk_ticks;
        let l1 = (acted - none - stlb * self.walk_ticks) / self.l1_ticks;
        let of = pages.len();
        // Walks of pages that a switch has put out find their tables elsewhere than those of the calibration did.
        let possible = -0.2 * of as f64..=1.6 * of as f64;
        let most = of as f64;
        Ok(possible.contains(&stlb).then(|| EntryLosses { of, l1: l1.clamp(0.0, most), stlb: stlb.clamp(0.0, most) }))
    }
}

/// The mean difference, without samples that were interrupted.
fn difference(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut pairs: Vec<(f64, f64)> = pairs.collect();
    let shot = median(pairs.iter().map(|pair| pair.0)).unwrap_or_default();
    let control = median(pairs.iter().map(|pair| pair.1)).unwrap_or_default();
    pairs.retain(|pair| pair.0 <= LONG * shot && pair.1 <= LONG * control);
    pairs.iter().map(|pair| pair.0 - pair.1).sum::<f64>() / pairs.len().max(1) as f64
}
