//! Tasks that run a program ([`crate::programs`]): where its data lie, and how much of it a job does.

use std::ptr::NonNull;

use lookaside_probe::counter::Timer;
use lookaside_techniques::color::tasks::Task;
use lookaside_techniques::color::work::PAGE_BYTES;
use lookaside_workloads::{Chunks, Followed, Follower, Next, Touched, Workload, WorkloadSpec};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::TaskRunError;
use crate::programs::{task as plain, task_in};

/// Elements of which a program's pace is told.
const PACED: u64 = 1 << 21;
pub(super) const PAGE: usize = PAGE_BYTES as usize;

/// What came of a program.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ProgramRun {
    /// Its name.
    pub name: String,
    /// Elements of its arrays that a job touches, the same again counted again: as many as its execution time holds.
    /// The last part of the work that was begun is done.
    pub elements_a_job: u64,
    /// Operations that all jobs did; what one is, the program says.
    pub operations: u64,
    /// Of its results: the same wherever its data lay, after as many jobs.
    pub checksum: u64,
}

/// A program under way.
pub(super) struct TaskProgram {
    pub(super) workload: Box<dyn Workload>,
    pub(super) touched: Touched,
    /// Of each chunk its page's group.
    pub(super) groups: Vec<usize>,
    pub(super) elements_a_job: u64,
}

impl std::fmt::Debug for TaskProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("name", &self.workload.name()).finish_non_exhaustive()
    }
}

/// What is asked of the workloads: it never ends.
pub(super) fn spec(task: &Task, seed: u64) -> WorkloadSpec {
    let data = task.pages.unwrap_or_default() / task.spread();
    WorkloadSpec { seed, rounds: u32::MAX.into(), ..WorkloadSpec::new(data.saturating_mul(PAGE_BYTES)) }
}

fn failed(task: &Task) -> impl Fn(lookaside_workloads::WorkloadError) -> TaskRunError + '_ {
    |error| TaskRunError(format!("task {}: {error}", task.name))
}

/// A task that runs a program can: there is one of that name and size.
pub(super) fn check(task: &Task) -> Result<(), TaskRunError> {
    let Some(name) = &task.program else { return Ok(()) };
    plain(name, &spec(task, 1)).map(|_| ()).map_err(failed(task))
}

/// Elements of each task's program that its execution time holds, by what it takes here in memory of its own, looks
/// included; `None`: it loads pages.
pub(super) fn elements_a_job(task: &Task, seed: u64, timer: Timer) -> Result<Option<u64>, TaskRunError> {
    let Some(name) = &task.program else { return Ok(None) };
    let mut workload = plain(name, &spec(task, seed)).map_err(failed(task))?;
    let (mut touched, mut looking) = (Touched::new(workload.chunks()), PaceFollower { timer, stamps: 0 });
    let began = timer.now();
    while touched.elements() < PACED {
        workload.follow(&mut Followed { touched: &mut touched, follower: &mut looking });
    }
    let ns = timer.ns(timer.now().wrapping_sub(began)).max(1.0);
    Ok(Some((task.execution.nanos as f64 / ns * touched.elements() as f64).max(1.0) as u64))
}

/// Looks at the timer, as who counts does.
struct PaceFollower {
    timer: Timer,
    stamps: u64,
}

impl Follower for PaceFollower {
    fn first_touch(&mut self, _: usize) -> Next {
        Next::On
    }

    fn look(&mut self) -> Next {
        self.stamps ^= std::hint::black_box(self.timer.now());
        Next::On
    }
}

/// Spreads a program's data over these pages, which are the task's alone: a chunk on each that it needs.
pub(super) fn spread(task: &Task, name: &str, mut pages: Vec<usize>) -> Result<Chunks, TaskRunError> {
    // Arrays lie in a row where the pages do.
    pages.sort_unstable();
    let spread = task.spread() as usize;
    let bytes = PAGE / spread;
    // At another place in each page, or all would meet in few sets of the data caches.
    let at = |(i, page): (usize, &usize)| NonNull::new((page + i % spread * bytes) as *mut u8);
    let mut chunks = Chunks { bytes, at: pages.iter().enumerate().filter_map(at).collect() };
    // SAFETY: the task's own pages, which nobody uses yet.
    let workload = unsafe { task_in(name, &spec(task, 1), chunks.clone()) }.map_err(failed(task))?;
    chunks.at.truncate(workload.chunks());
    Ok(chunks)
}

impl TaskProgram {
    /// In these chunks; `groups`: the group of each one's page.
    ///
    /// # Safety
    /// The chunks are the program's alone as long as it lives.
    pub(super) unsafe fn new(
        task: &Task,
        name: &str,
        (chunks, groups): (&Chunks, Vec<usize>),
        elements_a_job: u64,
        seed: u64,
    ) -> Result<Self, TaskRunError> {
        // SAFETY: the caller's.
        let workload = unsafe { task_in(name, &spec(task, seed), chunks.clone()) }.map_err(failed(task))?;
        Ok(Self { touched: Touched::new(workload.chunks()), workload, groups, elements_a_job })
    }

    /// What came of it so far.
    pub(super) fn ran(&self) -> ProgramRun {
        ProgramRun {
            name: self.workload.name().into(),
            elements_a_job: self.elements_a_job,
            operations: self.workload.operations(),
            checksum: self.workload.checksum(),
        }
    }
}
