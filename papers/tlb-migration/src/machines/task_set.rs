//! Beyond the paper: programs that run beside each other on the modelled Linux, and a load balancer that moves them now
//! and then.
//!
//! Time is counted in accesses here, not in cycles, so that whatever goes along, the same is executed in the same
//! order, and all that differs is what it takes.

use lookaside_machine::Machine;

use super::data_tlb::Restored;
use super::gem5_benchmark::FIRST_FRAME;
use super::linux::{Linux, Predictor, TaskId};
use super::processes::SimulatedProcessId;
use super::program::{DataStep, ProgramSteps};
use super::MigrationModelError;
use crate::interface::Version;

/// What a task that is moved takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    /// By which interface.
    pub version: Version,
    /// Most entries; none: nothing goes along.
    pub cap: Option<u32>,
    /// Only those that will be used.
    pub predictor: Option<Predictor>,
}

impl Along {
    /// A Linux with no programs that does so.
    ///
    /// # Errors
    /// The machine is of another kind, or the version knows no ages.
    pub fn linux(&self, machine: &Machine) -> Result<Linux, MigrationModelError> {
        let mut linux = Linux::empty(machine, self.version, self.cap)?;
        if let Some(predictor) = self.predictor {
            linux.predict(predictor)?;
        }
        Ok(linux)
    }
}

/// Which tasks the load balancer moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// One that waits, from a core with more tasks to a core with fewer: what evens out the load.
    Waiting,
    /// One that runs, in turns, to a core that is idle: the stopper thread takes it off its core.
    Running,
}

/// Who runs when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveSchedule {
    /// How often each program runs, over and over.
    pub times: u32,
    /// Accesses to data of a core before the next core's turn: so finely the cores' accesses alternate.
    pub slice_accesses: u32,
    /// Slices of a task's turn, after which the next in the queue runs.
    pub turn_slices: u32,
    /// Slices from one move to the next.
    pub move_slices: u32,
    /// Which tasks are moved.
    pub moves: Moves,
    /// All data caches are flushed before each move, as the paper's benchmark does.
    pub flushes: bool,
}

/// What a task set took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MigrationCounts {
    /// Cycles of all cores together, kernel included as far as it is modelled.
    pub cycles: u64,
    /// Tasks moved.
    pub moves: u64,
    /// Table walks.
    pub walks: u64,
    /// What came of the entries that went along.
    pub restored: Restored,
}

/// Programs as tasks, in processes of their own or as threads of one.
#[derive(Clone, Debug)]
pub struct MigratingTasks<'a> {
    linux: Linux,
    /// In order of their start.
    tasks: Vec<TaskProgress<'a>>,
}

#[derive(Clone, Debug)]
struct TaskProgress<'a> {
    task: TaskId,
    steps: &'a [DataStep],
    next: usize,
    /// Times that it ran to its end.
    ends: u32,
}

/// Where pages of programs are mapped to: frames in order of first use.
#[derive(Debug)]
pub(super) struct FrameAllocator(u32);

impl FrameAllocator {
    pub(super) fn new() -> Self {
        Self(FIRST_FRAME)
    }

    /// Maps the pages of a program, but for those that are there.
    ///
    /// # Errors
    /// The kernel has a section there, or there is no room for the tables.
    pub(super) fn map(
        &mut self,
        linux: &mut Linux,
        process: SimulatedProcessId,
        program: &ProgramSteps,
    ) -> Result<(), MigrationModelError> {
        let tables = &mut linux.enter(process)?.tables;
        for page in program.pages() {
            if tables.walk(page << super::PAGE_SHIFT).leaf.is_none_or(|leaf| leaf.global) {
                tables.map(page, self.0, 3)?;
                self.0 += 1;
            }
        }
        Ok(())
    }
}

impl<'a> MigratingTasks<'a> {
    /// The first task is on core 0, the next on core 1, and so on.
    ///
    /// # Errors
    /// The machine is of another kind, a program has no pages or has them where the kernel is, or there are too many
    /// processes.
    pub fn new(
        machine: &Machine,
        programs: &'a [ProgramSteps],
        one_process: bool,
        along: &Along,
    ) -> Result<Self, MigrationModelError> {
        let mut linux = along.linux(machine)?;
        let (mut frames, mut tasks, cores) = (FrameAllocator::new(), Vec::new(), linux.gem5().cores());
        for (number, program) in programs.iter().enumerate() {
            let process = if one_process || number == 0 { SimulatedProcessId::FIRST } else { linux.process()? };
            frames.map(&mut linux, process, program)?;
            let task = linux.spawn_in(process, number % cores)?;
            tasks.push(TaskProgress { task, steps: program.steps(), next: 0, ends: 0 });
        }
        Ok(Self { linux, tasks })
    }

    /// All of them to their ends.
    ///
    /// # Errors
    /// A saved entry has no code in the interface's version.
    pub fn run(mut self, schedule: &MoveSchedule) -> Result<MigrationCounts, MigrationModelError> {
        let (start, walks) = (self.linux.gem5().cycles(), self.linux.gem5().walks);
        let (mut flushing, mut moves) = (0, 0);
        for slice in 1u64.. {
            self.slice(schedule)?;
            if self.tasks.iter().all(|of| of.ends >= schedule.times) {
                break;
            }
            if slice.is_multiple_of(schedule.turn_slices.max(1).into()) {
                for core in 0..self.linux.gem5().cores() {
                    if self.linux.waiting(core).is_some() {
                        self.linux.preempt(core)?;
                    }
                }
            }
            if slice.is_multiple_of(schedule.move_slices.max(1).into()) {
                if let Some((task, to)) = self.next_move(schedule.moves, moves) {
                    if schedule.flushes {
                        let before = self.linux.gem5().cycles();
                        self.linux.gem5().flush_caches();
                        flushing += self.linux.gem5().cycles() - before;
                    }
                    self.linux.move_to(task, to)?;
                    moves += 1;
                }
            }
        }
        let restored = self.linux.gem5().restored();
        let gem5 = self.linux.gem5();
        Ok(MigrationCounts { cycles: gem5.cycles() - start - flushing, moves, walks: gem5.walks - walks, restored })
    }

    /// Each core executes some accesses of the task that it runs.
    fn slice(&mut self, schedule: &MoveSchedule) -> Result<(), MigrationModelError> {
        for core in 0..self.linux.gem5().cores() {
            let Some(running) = self.linux.running(core) else { continue };
            let Some(of) = self.tasks.iter_mut().find(|of| of.task == running) else { continue };
            let end = of.next + steps_of(&of.steps[of.next..], schedule.slice_accesses);
            self.linux.execute(of.task, &of.steps[of.next..end])?;
            of.next = end;
            if of.next == of.steps.len() {
                (of.next, of.ends) = (0, of.ends + 1);
                if of.ends >= schedule.times {
                    self.linux.exit(of.task)?;
                }
            }
        }
        Ok(())
    }

    /// The task that is moved next, and where to. Cores and tasks take turns where several would do.
    fn next_move(&mut self, which: Moves, moves: u64) -> Option<(TaskId, usize)> {
        let cores = self.linux.gem5().cores();
        let turns = |of: usize| (0..of).map(move |n| (n + (moves % of.max(1) as u64) as usize) % of);
        let least = turns(cores).min_by_key(|core| self.linux.tasks_of(*core))?;
        match which {
            Moves::Waiting => {
                // Of equals the last is the greatest: the other end of the turn.
                let most = turns(cores).max_by_key(|core| self.linux.tasks_of(*core))?;
                let uneven = self.linux.tasks_of(most) > self.linux.tasks_of(least);
                self.linux.waiting(most).filter(|_| uneven).map(|task| (task, least))
            }
            Moves::Running => {
                let mut running = turns(self.tasks.len()).map(|task| self.tasks[task].task);
                let task = running.find(|task| self.linux.is_running(*task))?;
                (self.linux.tasks_of(least) == 0).then_some((task, least))
            }
        }
    }
}

/// How many of these steps make so many accesses, one at least.
pub(super) fn steps_of(steps: &[DataStep], accesses: u32) -> usize {
    let mut made = 0;
    let end = steps.iter().position(|step| {
        made += step.accesses();
        made >= u64::from(accesses)
    });
    end.map_or(steps.len(), |last| last + 1)
}
