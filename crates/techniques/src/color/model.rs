//! A scheduled set of tasks in the engine: which job misses how often, and what it costs.
//!
//! All tasks are threads of one process on one hardware thread. A slice's accesses are as many as its time holds at the
//! task's pace; what they cost changes no time of the schedule. Instruction fetches are not modelled.
//!
//! ```
//! use lookaside_engine::Setup;
//! use lookaside_techniques::color::model::model;
//! use lookaside_techniques::color::schedule::schedule;
//! use lookaside_techniques::color::tasks::TaskSet;
//! use lookaside_techniques::color::work::Work;
//!
//! let set = TaskSet::parse(
//!     "[[task]]\nname = \"T1\"\nphase = \"1ms\"\nperiod = \"2ms\"\nexecution = \"0.392ms\"\npages = 4\n\
//!      [[task]]\nname = \"T2\"\nperiod = \"16ms\"\nexecution = \"7.88ms\"\npages = 4\n",
//!     "tasks.toml",
//! )?;
//! // Eight pages of one set of 16.
//! let works = [0, 1].map(|task| Work::stores(&[0, 1, 2, 3].map(|page| (4 * task + page) << 16), 1000));
//! let setup = Setup::new(lookaside_machine::preset("xeon-e5-2650")?);
//! let jobs = model(setup, &schedule(&set, 1)?, &works, &[])?;
//! let first = jobs.iter().find(|job| (job.task, job.job) == (0, 1));
//! assert_eq!(first.map(|job| job.l1_misses), Some(4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use lookaside_engine::{BackgroundCounts, Detail, Engine, Setup, SetupError};
use lookaside_trace::{Block, Kind};

use super::schedule::{End, Schedule, Slice};
use super::work::Work;

/// Accesses that go through the engine at once, so that a block stays within the second-level cache.
const BLOCK_ACCESSES: usize = 1 << 14;

/// What a job came to. Its own accesses only: those of the system at its switches are counted nowhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobOutcome {
    /// The task's place in the set.
    pub task: usize,
    /// The job, from 1; 0 is the warm-up.
    pub job: u64,
    /// It was done before the schedule ended.
    pub is_complete: bool,
    /// Slices that it ran in.
    pub slices: u64,
    /// Of these, the ones too short for one round: pages that were not touched there could not miss.
    pub short_slices: u64,
    /// Accesses.
    pub accesses: u64,
    /// Misses of the first-level data TLB.
    pub l1_misses: u64,
    /// Of these, the ones that missed every level: walks.
    pub walks: u64,
    /// Cycles of TLB hits beyond the first level, and of walks.
    pub translation_cycles: f64,
    /// All cycles: one an access, stalls of data accesses, translation.
    pub cycles: f64,
}

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The setup is impossible.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Schedule and works are not of the same set.
    #[error("the schedule has a task {task}, and there are works for {works}: give one for each task, in the order of the set")]
    Works {
        /// Place of the task.
        task: usize,
        /// How many works there are.
        works: usize,
    },
}

/// Runs a schedule. `works`: one a task, in the set's order. `noise`: addresses that the system loads at the begin of
/// each slice ("OS noise", Panchamukhi 2014, section 6.0.6), warm-ups included. Jobs come in the order of tasks, then
/// of jobs.
///
/// # Errors
/// The setup is impossible, or a task has no work.
pub fn model(setup: Setup, schedule: &Schedule, works: &[Work], noise: &[u64]) -> Result<Vec<JobOutcome>, ModelError> {
    let mut engine = Engine::new(Setup { detail: Detail::Totals, ..setup })?;
    let mut system = engine.background_counts();
    let mut at_switch = empty();
    noise.iter().for_each(|addr| at_switch.push(Kind::Load, *addr));
    let warm_ups: Vec<Work> = works.iter().map(Work::warm_up).collect();
    let mut running: Vec<Option<Running>> = works.iter().map(|_| None).collect();
    let (mut jobs, mut block) = (Vec::new(), empty());
    for slice in &schedule.slices {
        let no_work = || ModelError::Works { task: slice.task, works: works.len() };
        let place = running.get_mut(slice.task).ok_or_else(no_work)?;
        engine.run_background(&at_switch, &mut system);
        let job = place.get_or_insert_with(|| Running::new(&engine, slice));
        if slice.job == 0 {
            let warm_up = &warm_ups[slice.task];
            job.run(&mut engine, warm_up, warm_up.accesses, &mut block);
        } else {
            let work = &works[slice.task];
            let accesses = job.accesses_until(slice.length_ns, work);
            job.short_slices += u64::from(accesses < work.accesses);
            job.run(&mut engine, work, accesses, &mut block);
        }
        if slice.end != End::Preempted {
            jobs.extend(place.take().map(|job| job.end(&mut engine, slice.end == End::Completed)));
        }
    }
    // Preempted, and not resumed before the schedule ends.
    jobs.extend(running.into_iter().flatten().map(|job| job.end(&mut engine, false)));
    jobs.sort_by_key(|job| (job.task, job.job));
    Ok(jobs)
}

/// A block of the one thread that all tasks are here: of threads the engine would run each on a hardware thread of its
/// own.
fn empty() -> Block {
    Block { process: 1, thread: 1, ..Block::default() }
}

/// A job under way.
struct Running {
    task: usize,
    job: u64,
    counts: BackgroundCounts,
    slices: u64,
    short_slices: u64,
    /// How long it has run, and the accesses made.
    run_ns: u64,
    accesses: u64,
    /// The next touch of the round, and how often it was done already.
    touch: usize,
    times: u32,
}

impl Running {
    fn new(engine: &Engine, first: &Slice) -> Self {
        let (task, job, counts) = (first.task, first.job, engine.background_counts());
        Self { task, job, counts, slices: 0, short_slices: 0, run_ns: 0, accesses: 0, touch: 0, times: 0 }
    }

    /// It runs for a while longer: accesses that come due. A job's accesses in all do not depend on where it is cut.
    fn accesses_until(&mut self, length_ns: u64, work: &Work) -> u64 {
        self.run_ns += length_ns;
        let due = u128::from(self.run_ns) * u128::from(work.accesses_per_ms) / 1_000_000; // ns in a ms
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        due - self.accesses
    }

    /// Goes on with the round, from where it was left.
    fn run(&mut self, engine: &mut Engine, work: &Work, accesses: u64, block: &mut Block) {
        self.slices += 1;
        self.accesses += accesses;
        let mut left = if work.round.is_empty() { 0 } else { accesses };
        while left > 0 {
            block.clear();
            while left > 0 && block.len() < BLOCK_ACCESSES {
                let touch = work.round[self.touch];
                let times = left.min(u64::from(touch.times - self.times)) as u32;
                block.push(touch.kind, touch.addr);
                block.repeat.push(times - 1);
                left -= u64::from(times);
                self.times += times;
                if self.times == touch.times {
                    self.times = 0;
                    self.touch = (self.touch + 1) % work.round.len();
                }
            }
            engine.run_background(block, &mut self.counts);
        }
    }

    fn end(mut self, engine: &mut Engine, is_complete: bool) -> JobOutcome {
        let outcome = engine.background_outcome(&mut self.counts);
        JobOutcome {
            task: self.task,
            job: self.job,
            is_complete,
            slices: self.slices,
            short_slices: self.short_slices,
            accesses: outcome.data.accesses,
            l1_misses: outcome.data.cost.l1_misses,
            walks: outcome.data.cost.walks,
            translation_cycles: outcome.translation_cycles(),
            cycles: outcome.modelled_cycles(),
        }
    }
}

#[cfg(test)]
mod tests;
