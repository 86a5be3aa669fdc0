//! Model runs of one program with different pages locked, each over several seeds; what was run once is remembered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use lookaside_engine::{Detail, Engine, Setup};
use lookaside_trace::Block;

use super::histogram::{page_shift, LockPage};
use super::stall::{count_stalls_alone, StallCycles};
use crate::plan::PlanError;

/// Where sets of locked pages are tried out.
pub struct LockBench<'a> {
    setup: Setup,
    tlb: String,
    shift: u32,
    seeds: Vec<u64>,
    blocks: &'a [Block],
    stop: &'a AtomicBool,
    known: BTreeMap<Vec<LockPage>, Vec<StallCycles>>,
}

impl<'a> LockBench<'a> {
    /// Of a setup whose array `tlb` may hold up to `most_entries` locked pages here, whatever the machine says: to see
    /// what more would add. A seed chooses random replacement's victims and where frames and tables lie.
    pub fn new(
        base: &Setup,
        tlb: &str,
        most_entries: u32,
        seeds: Vec<u64>,
        blocks: &'a [Block],
        stop: &'a AtomicBool,
    ) -> Self {
        let mut setup = base.clone();
        setup.detail = Detail::Totals;
        setup.locks.clear();
        for array in setup.machine.tlbs.iter_mut().filter(|array| array.name == tlb) {
            array.lockable_entries = array.lockable_entries.max(most_entries);
        }
        count_stalls_alone(&mut setup);
        let shift = page_shift(&setup.machine);
        Self { setup, tlb: tlb.into(), shift, seeds, blocks, stop, known: BTreeMap::new() }
    }

    /// Stall cycles with these pages locked, seed by seed. The order of the pages plays no part.
    ///
    /// # Errors
    /// More pages than may be locked; a setup that can't be run; stopped.
    pub fn stalls(&mut self, locked: &[LockPage]) -> Result<&[StallCycles], PlanError> {
        self.try_all(std::slice::from_ref(&locked.to_vec()))?;
        Ok(self.known.get(&key(locked)).map_or(&[], Vec::as_slice))
    }

    /// Runs all sets that were not run before, side by side.
    ///
    /// # Errors
    /// As [`LockBench::stalls`].
    pub(crate) fn try_all(&mut self, sets: &[Vec<LockPage>]) -> Result<(), PlanError> {
        let mut new: Vec<Vec<LockPage>> = sets.iter().map(|set| key(set)).collect();
        new.sort_unstable();
        new.dedup();
        new.retain(|set| !self.known.contains_key(set));
        let jobs: Vec<(&Vec<LockPage>, u64)> =
            new.iter().flat_map(|set| self.seeds.iter().map(move |seed| (set, *seed))).collect();
        let results = side_by_side(jobs.len(), |job| self.run(jobs[job].0, jobs[job].1));
        let mut results = results.into_iter();
        for set in new {
            let of_seeds: Result<Vec<_>, _> = results.by_ref().take(self.seeds.len()).collect();
            self.known.insert(set, of_seeds?);
        }
        Ok(())
    }

    /// Model runs so far.
    pub fn runs(&self) -> u64 {
        (self.known.len() * self.seeds.len()) as u64
    }

    /// Recorded accesses of a run.
    pub fn rows(&self) -> u64 {
        self.blocks.iter().map(|block| block.len() as u64).sum()
    }

    /// Seeds.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    fn run(&self, locked: &[LockPage], seed: u64) -> Result<StallCycles, PlanError> {
        let mut setup = self.setup.clone();
        setup.seed = seed;
        setup.locks = locked.iter().map(|page| page.lock(&self.tlb, self.shift)).collect();
        let mut engine = Engine::new(setup)?;
        for block in self.blocks {
            if self.stop.load(Ordering::Relaxed) {
                return Err(PlanError::Stopped);
            }
            engine.run(block);
        }
        Ok(StallCycles::of(&engine.outcome()))
    }
}

fn key(set: &[LockPage]) -> Vec<LockPage> {
    let mut key = set.to_vec();
    key.sort_unstable();
    key.dedup();
    key
}

/// The results of `0..jobs`, in order, by as many threads as the machine runs at once.
pub(crate) fn side_by_side<T: Send>(jobs: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(jobs);
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return done;
            }
            done.push((job, work(job)));
        }
    };
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(take)).collect();
        let join = |handle: thread::ScopedJoinHandle<'_, Vec<(usize, T)>>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        handles.into_iter().flat_map(join).collect()
    });
    all.sort_unstable_by_key(|(job, _)| *job);
    all.into_iter().map(|(_, result)| result).collect()
}
