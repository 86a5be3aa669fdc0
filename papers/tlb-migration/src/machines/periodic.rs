//! Beyond the paper: a periodic task of high priority that is moved in some of its jobs, and how its response times
//! scatter.

use lookaside_machine::Machine;
use lookaside_stats::SplitMix64;

use super::data_tlb::Restored;
use super::processes::SimulatedProcessId;
use super::program::ProgramSteps;
use super::task_set::{steps_of, Along, FrameAllocator};
use super::MigrationModelError;

/// The task and what runs beside it.
///
/// On each core a program of the background runs for ever. A job of the task begins on its core in the program's place,
/// and when it is done the program goes on. In every so many jobs, somewhere in its middle, a more urgent task takes
/// the core: the job is moved to the next one and ends there, as under global real-time scheduling.
#[derive(Clone, Debug)]
pub struct Periodic {
    /// What a job executes.
    pub job: ProgramSteps,
    /// One for each core.
    pub background: Vec<ProgramSteps>,
    /// Accesses to data of each program of the background between two jobs.
    pub between_accesses: u32,
    /// Jobs.
    pub jobs: u32,
    /// The last of so many jobs is moved.
    pub move_every: u32,
    /// All data caches are flushed before each move.
    pub flushes: bool,
    /// Where in a job it is moved.
    pub seed: u64,
}

/// What the jobs took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    /// From release to end, in the jobs' order: with saving and restoring, without what flushing caches takes.
    pub response_cycles: Vec<u64>,
    /// What came of the entries that went along.
    pub restored: Restored,
}

impl Periodic {
    /// Runs the jobs.
    ///
    /// # Errors
    /// The machine is of another kind, the background is not one program a core, or a program has pages where the
    /// kernel is.
    pub fn run(&self, machine: &Machine, along: &Along) -> Result<Jobs, MigrationModelError> {
        let mut linux = along.linux(machine)?;
        let cores = linux.gem5().cores();
        if self.background.len() != cores || self.background.iter().any(|program| program.steps().is_empty()) {
            let what = "a program of the background for each core";
            return Err(MigrationModelError::Machine { machine: machine.name.clone(), what });
        }
        let mut frames = FrameAllocator::new();
        frames.map(&mut linux, SimulatedProcessId::FIRST, &self.job)?;
        let mut background = Vec::with_capacity(cores);
        for (core, program) in self.background.iter().enumerate() {
            let process = linux.process()?;
            frames.map(&mut linux, process, program)?;
            background.push((linux.spawn_in(process, core)?, program.steps(), 0));
        }
        let task = linux.spawn(0)?;
        let (mut random, mut core) = (SplitMix64::new(self.seed), 0);
        let mut response_cycles = Vec::with_capacity(self.jobs as usize);
        for job in 1..=self.jobs {
            for (program, steps, next) in &mut background {
                let count = steps_of(&steps[*next..], self.between_accesses);
                linux.execute(*program, &steps[*next..*next + count])?;
                *next = (*next + count) % steps.len();
            }
            let (steps, mut flushing) = (self.job.steps(), 0);
            let start = linux.gem5().cycles();
            linux.preempt(core)?;
            let mut from = 0;
            // Drawn for each job, so that what is moved does not change the draws of those after it.
            let at = (random.next_u64() % steps.len().max(1) as u64) as usize;
            if job.is_multiple_of(self.move_every.max(1)) {
                linux.execute(task, &steps[..at])?;
                if self.flushes {
                    let before = linux.gem5().cycles();
                    linux.gem5().flush_caches();
                    flushing = linux.gem5().cycles() - before;
                }
                core = (core + 1) % cores;
                linux.move_to(task, core)?;
                linux.preempt(core)?;
                from = at;
            }
            linux.execute(task, &steps[from..])?;
            response_cycles.push(linux.gem5().cycles() - start - flushing);
            linux.preempt(core)?;
        }
        Ok(Jobs { response_cycles, restored: linux.gem5().restored() })
    }
}
