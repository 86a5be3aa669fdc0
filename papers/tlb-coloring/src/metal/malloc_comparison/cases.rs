//! The paper's sets of tasks, fitted to a level of a machine.

use lookaside_machine::ColorLevel;
use lookaside_techniques::color::tasks::{Task, TaskSet};

use super::rows::{CaseRows, ROWS};
use crate::model::{figures_6_13_and_14, table_6_1, task_set, ProgramTask, FOURTEEN_PAGES};

/// Entries of the paper's level, 16 sets of 4 ways: what its tasks' pages are shares of.
const PAPERS_ENTRIES: u64 = 64;
/// Pages that each task of Figures 6.4 to 6.8 allocates; of the others, 64 over the number of tasks.
const POOL: u64 = 32;
/// A warm round takes at most so long a page: it is loaded twice, between stamps of a timer (about 25 ns each on the
/// development machine).
const PAGE_NS: u64 = 60;
/// Rounds over its pages that a job is to have at least: one that finds what was lost, one that could find it back.
pub(super) const ROUNDS: u64 = 2;
/// The paper's millisecond is no less here than that of its two tasks is ([`crate::metal::task_sets`]): switches take
/// microseconds.
const LEAST_MS_NS: u64 = 50_000;
/// The paper's millisecond is a multiple of this here, so that periods stay multiples of each other.
const GRAIN_NS: u64 = 1000;
/// The paper's millisecond where tasks run programs: T1's execution time in Figure 6.13 then holds a transform of 2048
/// numbers, which takes a processor of 4 GHz some 0.25 ms by estimate, each access followed; and T2's jobs are short
/// enough beside the kernel's ticks, 4 ms apart, for some to meet none.
const PROGRAM_MS_NS: u64 = 150_000;
/// Most pages that a page of a program's data is spread over: a line each.
const MOST_SPREAD: u64 = 64;
/// Time of a run with one kind of pages: T2 of Figure 6.4 then has some 150 jobs, most of them hit by the kernel's
/// ticks where these are 4 ms apart.
pub(super) const SPAN_NS: u64 = 500_000_000;
/// Runs of the paper's Figures 6.4 to 6.7, and of 6.9 to 6.14.
const RUNS: [u64; 2] = [10, 5];

/// A set of tasks, to be run with the pages of each allocator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AllocatorCase {
    /// Figures and table.
    pub what: &'static str,
    /// The tasks: their pages are the paper's share of the level, or programs' data; their times the paper's times a
    /// factor.
    pub set: TaskSet,
    /// Pages that each task asks of `malloc`, to draw its own among them.
    pub pool: u64,
    /// It runs with all tasks in the same sets, too: to see misses where they must be.
    pub in_same_sets: bool,
    /// How often, with other pages each time.
    pub runs: u64,
    /// Hyperperiods of a run.
    pub hyperperiods: u64,
}

/// All of them, for a level of a machine behind others of so many entries. The paper's millisecond is to be so many
/// nanoseconds at least.
///
/// # Errors
/// A time of the paper's is none; a test holds that they are.
pub(crate) fn cases(level: &ColorLevel, entries_before: u64, least_ms_ns: u64) -> Result<Vec<AllocatorCase>, String> {
    let entries = u64::from(level.sets) * u64::from(level.ways);
    let loading = std::iter::once(Vec::from(FOURTEEN_PAGES)).chain(table_6_1().map(times));
    let mut sets = Vec::new();
    for (number, tasks) in loading.enumerate() {
        let pool = if number == 0 { POOL } else { PAPERS_ENTRIES.div_ceil(tasks.len() as u64) };
        sets.push((fitted(&tasks, entries, least_ms_ns)?, share(pool, entries), RUNS[number.min(1)], false));
    }
    for tasks in figures_6_13_and_14() {
        let (set, spread) = programs(tasks, entries_before, least_ms_ns)?;
        sets.push((set, PAPERS_ENTRIES.div_ceil(tasks.len() as u64) * spread, RUNS[1], true));
    }
    let case = |(rows, (set, pool, runs, in_same_sets)): (&CaseRows, (TaskSet, u64, u64, bool))| {
        let hyperperiod_ns = set.hyperperiod().map_or(SPAN_NS, |time| time.nanos.max(1));
        AllocatorCase {
            what: rows.what,
            set,
            pool,
            in_same_sets,
            runs,
            hyperperiods: (SPAN_NS / hyperperiod_ns).max(2),
        }
    };
    Ok(ROWS.iter().zip(sets).map(case).collect())
}

/// Phase, period, execution and pages.
fn times(programs: &[ProgramTask]) -> Vec<(&'static str, &'static str, &'static str, usize)> {
    programs.iter().map(|&(_, phase, period, execution, pages)| (phase, period, execution, pages)).collect()
}

/// Pages of the paper's level as a share of one of so many entries.
fn share(pages: u64, entries: u64) -> u64 {
    (pages * entries / PAPERS_ENTRIES).max(1)
}

/// Tasks (phase, period, execution, pages) for a level of so many entries. The factor of all times is the least with
/// which each job holds [`ROUNDS`].
fn fitted(tasks: &[(&str, &str, &str, usize)], entries: u64, least_ms_ns: u64) -> Result<TaskSet, String> {
    let mut set = task_set(tasks).map_err(|error| error.to_string())?;
    for task in &mut set.tasks {
        task.pages = task.pages.map(|pages| share(pages, entries));
    }
    // What the paper's millisecond has to be for a task's rounds.
    let needed_ns = |task: &Task| {
        let rounds_ns = ROUNDS * task.pages.unwrap_or_default() * PAGE_NS;
        (rounds_ns * 1_000_000).div_ceil(task.execution.nanos.max(1))
    };
    let ms_ns = set.tasks.iter().map(needed_ns).fold(LEAST_MS_NS.max(least_ms_ns), u64::max).next_multiple_of(GRAIN_NS);
    scale(&mut set, ms_ns);
    Ok(set)
}

/// Tasks that run programs, and what their data are spread by: the least power of two at which all their pages together
/// are half as many again as the levels before have entries. There the task that runs puts the other's out, and what
/// the counted level lost shows.
fn programs(tasks: &[ProgramTask], entries_before: u64, least_ms_ns: u64) -> Result<(TaskSet, u64), String> {
    let mut set = task_set(&times(tasks)).map_err(|error| error.to_string())?;
    let pages: u64 = tasks.iter().map(|task| task.4 as u64).sum();
    let mut spread = 1;
    while 2 * pages * spread < 3 * entries_before && spread < MOST_SPREAD {
        spread *= 2;
    }
    for (task, (name, ..)) in set.tasks.iter_mut().zip(tasks) {
        task.program = Some((*name).into());
        task.data_pages = task.pages;
        task.pages = task.pages.map(|pages| pages * spread);
    }
    scale(&mut set, PROGRAM_MS_NS.max(least_ms_ns));
    Ok((set, spread))
}

/// Makes a millisecond of the paper's so long.
fn scale(set: &mut TaskSet, ms_ns: u64) {
    for task in &mut set.tasks {
        for time in [&mut task.phase, &mut task.period, &mut task.execution] {
            time.nanos = time.nanos * ms_ns / 1_000_000;
        }
    }
}
