//! Linux on the simulated machine, as the paper changes it (chapter 7): run queues, moves from one to another, and TLB
//! entries that go along.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use lookaside_machine::Machine;

use super::gem5::Gem5;
use super::gem5_benchmark::{others, BUFFER, FIRST_FRAME, FIRST_PAGE};
use super::paging::PAGE_SHIFT;
use super::processes::{Processes, SimulatedProcessId};
use super::program::DataStep;
use super::saving::Saved;
use super::MigrationModelError;
use crate::interface::{Register, Version};

/// Cycles of the paper's process (four runs, three moves) beside what is modelled: system calls, flushes, scheduling.
/// **Fitted** on Table A.17, 1 page, no migration.
pub const PROCESS_CYCLES: u64 = 257_800;
/// Lines from memory that a move with its entries takes, beside what the benchmark's save and restore do: the
/// scheduler's path to them runs just after all caches were flushed. **Fitted** on Table A.17, 48 pages, delta.
pub const MIGRATION_LINES: u64 = 11;
/// Instructions of a program's loop round an access. **Fitted** on Table A.17, 64 pages, no migration.
pub const USER_LOOP: u64 = 14;
/// The program's stack: in another MiB, and in the same line of first-level descriptors, which the paper finds "already
/// cached" (section 8.1).
const STACK_PAGE: u32 = FIRST_PAGE + 0xf00;
/// Bytes of a task's room for saved entries.
const TASK_BYTES: u32 = 4096;

/// A thread of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId(usize);

/// Beyond the paper: the predictor. A task takes along only entries that were used lately, for these will be used
/// again.
///
/// It presumes a counter of three bits an entry and a divider of lookups a TLB ([`Gem5::count_ages`]), and a register
/// for the threshold ([`Register::Younger`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predictor {
    /// Lookups of its TLB by which an entry that is not used grows a period older.
    pub period_lookups: NonZeroU32,
    /// In periods, 1 to [`AGES`](crate::interface::AGES): entries younger than this go along.
    pub younger_than: u8,
}

/// Of its `task_struct`.
#[derive(Clone, Debug)]
struct LinuxTask {
    process: SimulatedProcessId,
    core: usize,
    /// The entries that it takes along; none: nothing to restore.
    saved: Option<Saved>,
    ended: bool,
}

/// One core's.
#[derive(Clone, Debug, Default)]
struct RunQueue {
    /// None: the idle thread's turn.
    current: Option<TaskId>,
    queued: VecDeque<TaskId>,
}

/// The cores with their run queues, and a program of several threads; beyond the paper, several programs.
///
/// [`Linux::move_to`] is what `sched_setaffinity` leads to. A queued task is moved at once; for a running one a stopper
/// thread takes the core first, then the same function moves it: it saves the relevant entries into the task and sets
/// the flag. When the task is next switched to, `finish_task_switch` restores them and clears the flag. Kernel entries
/// take places in the TLB on each way through the kernel.
#[derive(Clone, Debug)]
pub struct Linux {
    gem5: Gem5,
    version: Version,
    /// Most entries that a task has room for; none: nothing is taken along.
    cap: Option<u32>,
    processes: Processes,
    tasks: Vec<LinuxTask>,
    queues: Vec<RunQueue>,
}

impl Linux {
    /// On a machine like preset `gem5-armv7` with interfaces of a version. With `cap`, a task that is moved takes so
    /// many entries along at most. The program has this many pages, `stride` pages from one to the next.
    ///
    /// # Errors
    /// The machine is of another kind, or there are too many pages.
    pub fn new(
        machine: &Machine,
        version: Version,
        cap: Option<u32>,
        pages: u32,
        stride: u32,
    ) -> Result<Self, MigrationModelError> {
        let mut linux = Self::empty(machine, version, cap)?;
        // Below the stack.
        let most = (STACK_PAGE - FIRST_PAGE) / stride.max(1);
        if pages == 0 || pages > most {
            return Err(MigrationModelError::Pages { pages, most });
        }
        for page in (0..pages).map(|page| page * stride) {
            linux.gem5.tables.map(FIRST_PAGE + page, FIRST_FRAME + page, 3)?;
        }
        linux.gem5.tables.map(STACK_PAGE, FIRST_FRAME - 1, 3)?;
        Ok(linux)
    }

    /// The same with a process ([`SimulatedProcessId::FIRST`]) in which nothing is mapped.
    ///
    /// # Errors
    /// The machine is of another kind.
    pub fn empty(machine: &Machine, version: Version, cap: Option<u32>) -> Result<Self, MigrationModelError> {
        let gem5 = Gem5::new(machine, version)?;
        let (processes, queues) = (Processes::new(&gem5), vec![RunQueue::default(); gem5.cores()]);
        Ok(Self { gem5, version, cap, processes, tasks: Vec::new(), queues })
    }

    /// Tasks take along only what the predictor says will be used.
    ///
    /// # Errors
    /// The version has no ages: software chooses the entries; or there are fewer ages than that.
    pub fn predict(&mut self, predictor: Predictor) -> Result<(), MigrationModelError> {
        for core in 0..self.gem5.cores() {
            self.gem5.write(core, Register::Younger, predictor.younger_than.into())?;
        }
        self.gem5.count_ages(predictor.period_lookups);
        Ok(())
    }

    /// The machine.
    pub fn gem5(&mut self) -> &mut Gem5 {
        &mut self.gem5
    }

    /// Another thread of the first process, on this core.
    ///
    /// # Errors
    /// No such core.
    pub fn spawn(&mut self, core: usize) -> Result<TaskId, MigrationModelError> {
        self.spawn_in(SimulatedProcessId::FIRST, core)
    }

    /// Another process, with nothing mapped.
    ///
    /// # Errors
    /// There is no room for its tables.
    pub fn process(&mut self) -> Result<SimulatedProcessId, MigrationModelError> {
        self.processes.add()
    }

    /// Another thread of a process, on this core.
    ///
    /// # Errors
    /// No such core or process.
    pub fn spawn_in(&mut self, process: SimulatedProcessId, core: usize) -> Result<TaskId, MigrationModelError> {
        let task = TaskId(self.tasks.len());
        self.queue(core)?;
        self.processes.enter(process, &mut self.gem5)?;
        self.tasks.push(LinuxTask { process, core, saved: None, ended: false });
        self.enqueue(task, core)?;
        Ok(task)
    }

    /// Whether it is running, and not queued.
    pub fn is_running(&self, task: TaskId) -> bool {
        let queue = self.tasks.get(task.0).and_then(|of| self.queues.get(of.core));
        queue.is_some_and(|queue| queue.current == Some(task))
    }

    /// The core it runs or waits on; none of a task that has ended.
    pub fn core_of(&self, task: TaskId) -> Option<usize> {
        self.tasks.get(task.0).filter(|task| !task.ended).map(|task| task.core)
    }

    /// What it takes along, if it was moved and did not run since.
    pub fn saved(&self, task: TaskId) -> Option<&Saved> {
        self.tasks.get(task.0)?.saved.as_ref()
    }

    /// Tasks that run or wait on a core.
    pub fn tasks_of(&self, core: usize) -> usize {
        self.queues.get(core).map_or(0, |queue| queue.queued.len() + usize::from(queue.current.is_some()))
    }

    /// The task that runs on a core.
    pub fn running(&self, core: usize) -> Option<TaskId> {
        self.queues.get(core)?.current
    }

    /// The task that waits longest there.
    pub fn waiting(&self, core: usize) -> Option<TaskId> {
        self.queues.get(core)?.queued.front().copied()
    }

    /// The machine, whose tables and ASID are a process's from now on.
    ///
    /// # Errors
    /// No such process.
    pub fn enter(&mut self, process: SimulatedProcessId) -> Result<&mut Gem5, MigrationModelError> {
        self.processes.enter(process, &mut self.gem5)?;
        Ok(&mut self.gem5)
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    pub(super) fn processes(&mut self) -> (&mut Processes, &mut Gem5) {
        (&mut self.processes, &mut self.gem5)
    }

    /// What tasks of a process take along.
    pub(super) fn saved_sets(&mut self, process: SimulatedProcessId) -> impl Iterator<Item = &mut Saved> {
        self.tasks.iter_mut().filter(move |task| task.process == process).filter_map(|task| task.saved.as_mut())
    }

    /// A running task's system call, as one that reads the clock, and its way back to its stack.
    ///
    /// # Errors
    /// The task is not running.
    pub fn system_call(&mut self, task: TaskId) -> Result<(), MigrationModelError> {
        let core = self.core_it_runs_on(task)?;
        self.enter_kernel(core)?;
        self.enter_process_of(task)?;
        self.gem5.touch(core, STACK_PAGE << PAGE_SHIFT)
    }

    /// A running task accesses pages of the program by their numbers: cycles.
    ///
    /// # Errors
    /// A page is not mapped, or the task is not running.
    pub fn access(&mut self, task: TaskId, pages: &[u32]) -> Result<u64, MigrationModelError> {
        let core = self.core_it_runs_on(task)?;
        self.enter_process_of(task)?;
        let start = self.gem5.cycles();
        for page in pages {
            self.gem5.instructions(USER_LOOP);
            self.gem5.touch(core, STACK_PAGE << PAGE_SHIFT)?;
            self.gem5.load(core, (FIRST_PAGE + page) << PAGE_SHIFT)?;
        }
        Ok(self.gem5.cycles() - start)
    }

    /// A running task executes steps of its program: cycles.
    ///
    /// # Errors
    /// A page is not mapped, or the task is not running.
    pub fn execute(&mut self, task: TaskId, steps: &[DataStep]) -> Result<u64, MigrationModelError> {
        let core = self.core_it_runs_on(task)?;
        self.enter_process_of(task)?;
        let start = self.gem5.cycles();
        for step in steps {
            self.gem5.instructions(step.instructions.into());
            if step.stores {
                self.gem5.store(core, step.va)?;
            } else {
                self.gem5.load(core, step.va)?;
            }
            self.gem5.repeat(core, step.repeats)?;
        }
        Ok(self.gem5.cycles() - start)
    }

    /// The task may run on this core alone: it is moved there if it is elsewhere.
    ///
    /// # Errors
    /// No such core or task.
    pub fn move_to(&mut self, task: TaskId, core: usize) -> Result<(), MigrationModelError> {
        let from = self.core_of(task).ok_or(MigrationModelError::Task)?;
        self.queue(core)?;
        self.enter_kernel(from)?;
        if from == core {
            return Ok(());
        }
        if self.is_running(task) {
            // The stopper thread takes the core: the task is put back into the queue, so that it can be moved.
            self.enter_kernel(from)?;
            let queue = self.queue(from)?;
            queue.current = None;
            queue.queued.push_front(task);
        }
        self.move_queued_task(task, from, core)?;
        self.schedule(from)
    }

    /// The end of a running task's turn: the next in its queue runs.
    ///
    /// # Errors
    /// No such core.
    pub fn preempt(&mut self, core: usize) -> Result<(), MigrationModelError> {
        self.enter_kernel(core)?;
        let queue = self.queue(core)?;
        if let Some(task) = queue.current.take() {
            queue.queued.push_back(task);
        }
        self.schedule(core)
    }

    /// The end of a running task: the next in its queue runs.
    ///
    /// # Errors
    /// The task is not running.
    pub fn exit(&mut self, task: TaskId) -> Result<(), MigrationModelError> {
        let core = self.core_it_runs_on(task)?;
        self.enter_kernel(core)?;
        self.queue(core)?.current = None;
        self.tasks[task.0].ended = true;
        self.schedule(core)
    }

    /// Saves the relevant entries into the task, sets the flag, and puts it into the other queue.
    ///
    /// A task that was moved before it ran keeps what it has: this core's TLB has none of its own.
    fn move_queued_task(&mut self, task: TaskId, from: usize, to: usize) -> Result<(), MigrationModelError> {
        self.queue(from)?.queued.retain(|queued| *queued != task);
        if let (Some(cap), None) = (self.cap, &self.tasks[task.0].saved) {
            self.enter_process_of(task)?;
            self.gem5.lines(MIGRATION_LINES);
            let room = BUFFER + task.0 as u32 * TASK_BYTES;
            self.tasks[task.0].saved = Some(self.gem5.save(self.version, from, room, cap)?);
        }
        self.tasks[task.0].core = to;
        self.enqueue(task, to)
    }

    fn enqueue(&mut self, task: TaskId, core: usize) -> Result<(), MigrationModelError> {
        let queue = self.queue(core)?;
        queue.queued.push_back(task);
        if queue.current.is_none() {
            self.schedule(core)?;
        }
        Ok(())
    }

    /// The first in the queue runs, if nothing does.
    fn schedule(&mut self, core: usize) -> Result<(), MigrationModelError> {
        self.enter_kernel(core)?;
        let queue = self.queue(core)?;
        if queue.current.is_none() {
            queue.current = queue.queued.pop_front();
            if let Some(task) = queue.current {
                self.finish_task_switch(task, core)?;
            }
        }
        Ok(())
    }

    fn finish_task_switch(&mut self, task: TaskId, core: usize) -> Result<(), MigrationModelError> {
        if let Some(saved) = self.tasks[task.0].saved.take() {
            self.enter_process_of(task)?;
            self.gem5.restore(self.version, core, &saved)?;
        }
        Ok(())
    }

    /// What every way through the kernel uses, by the tables of the task that runs there.
    fn enter_kernel(&mut self, core: usize) -> Result<(), MigrationModelError> {
        if let Some(task) = self.running(core) {
            self.enter_process_of(task)?;
        }
        others().try_for_each(|va| self.gem5.touch(core, va))
    }

    fn enter_process_of(&mut self, task: TaskId) -> Result<(), MigrationModelError> {
        let process = self.tasks.get(task.0).ok_or(MigrationModelError::Task)?.process;
        self.processes.enter(process, &mut self.gem5)
    }

    fn core_it_runs_on(&self, task: TaskId) -> Result<usize, MigrationModelError> {
        self.core_of(task).filter(|_| self.is_running(task)).ok_or(MigrationModelError::Task)
    }

    fn queue(&mut self, core: usize) -> Result<&mut RunQueue, MigrationModelError> {
        let cores = self.queues.len();
        self.queues.get_mut(core).ok_or(MigrationModelError::Core { core, cores })
    }
}
