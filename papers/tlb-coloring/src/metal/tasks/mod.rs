//! Sets of real-time tasks on the metal (Panchamukhi 2014, Algorithm 4): periodic threads of one CPU, each with pages
//! of chosen sets, whose jobs count their own TLB misses; and the same slices in the engine.
//!
//! A job loads its pages round after round, for as long as its task's execution time says. Misses of the last level are
//! counted by the walks that page tables show (`page_walks`), where the system tells of them. Else rounds are timed in
//! groups; the first round, and the one after something else ran, tell what was lost
//! ([`lookaside_probe::counter::PassMeter`]).

mod bench;
mod control_pages;
mod error;
mod foreign_pages;
mod job;
mod judge;
mod options;
mod page_placement;
mod page_walks;
mod placement_run;
mod program;
mod program_job;
mod real_time;
mod summary;
mod task_run;
mod task_thread;
mod timeline;
mod turns;
mod two_tasks;

use lookaside_host::ReferencedBits;
use lookaside_machine::{ColorLevel, Machine, PageSize};
use lookaside_probe::counter::Timer;
use lookaside_probe::HostMachine;
use lookaside_techniques::color::plan::{plan, ColorPlan};
use lookaside_techniques::color::tasks::TaskSet;
use schemars::JsonSchema;
use serde::Serialize;

use bench::{MissCounting, TaskBench};
pub use error::TaskRunError;
pub use options::{TaskSetOptions, TURNS};
pub use page_placement::PagePlacement;
pub use program::ProgramRun;
pub use real_time::Scheduling;
pub use task_run::{HitBy, JobRun, JobSummary, TaskRun, TaskSetRun};
pub use two_tasks::two_tasks;

/// How misses are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedBy {
    /// Exactly, by the bits that a walk sets in the page tables: misses of the last level, where the system counts such
    /// bits.
    Walks,
    /// By the time that loads take.
    Timing,
}

/// How the misses of a level of these are counted here.
pub fn counted_by(level: &ColorLevel, levels: &[ColorLevel]) -> CountedBy {
    match levels.last().is_some_and(|last| last.name == level.name) && ReferencedBits::here().is_ok() {
        true => CountedBy::Walks,
        false => CountedBy::Timing,
    }
}

/// What was seen.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TaskSetReport {
    /// Name of the machine.
    pub machine: String,
    /// The TLB array whose misses are counted.
    pub level: String,
    /// How they are counted.
    pub counted_by: CountedBy,
    /// The CPU of the tasks.
    pub cpu: usize,
    /// How they take turns.
    pub scheduling: Scheduling,
    /// What is to be said about the timer, where something is.
    pub timer_remark: Option<String>,
    /// Hyperperiods that were asked for.
    pub hyperperiods: u64,
    /// The runs.
    pub runs: Vec<TaskSetRun>,
    /// Why there are no more repeats, where one could not be made.
    pub failed: Option<String>,
    /// The plan that the first placement is by.
    pub plan: ColorPlan,
}

/// Runs a set whose tasks all have their pages said, on this machine. `stop` is asked before each job.
///
/// # Errors
/// The set cannot be planned for, or run; one line.
pub fn run(
    set: &TaskSet,
    machine: &Machine,
    options: &TaskSetOptions,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &mut dyn FnMut(&str),
) -> Result<TaskSetReport, TaskRunError> {
    let hyperperiod_ns = check(set, options)?;
    let (timer, timer_remark) = Timer::here().map_err(|error| TaskRunError(error.to_string()))?;
    let plan = plan(set, machine, PageSize::K4).map_err(|error| TaskRunError(error.to_string()))?;
    let levels = machine.color_levels(PageSize::K4);
    let level = counted(&levels, options.level.as_deref())?;
    let elements = set.tasks.iter().map(|task| program::elements_a_job(task, options.seed, timer));
    let elements = elements.collect::<Result<Vec<_>, TaskRunError>>()?;
    let here = lookaside_harness::cpus::allowed();
    let idlest = || HostMachine::idlest_cpu().map_err(|error| TaskRunError(error.to_string()));
    let cpu = options.cpu.map_or_else(idlest, Ok)?;
    real_time::bind(&[cpu])?;
    let scheduling = real_time::scheduling();
    let levels = &levels[..];
    let counted_by = counted_by(level, levels);
    let counting = match counted_by {
        CountedBy::Walks => MissCounting::Walks,
        CountedBy::Timing => {
            MissCounting::Timing(|foreign, chain, words, switch| foreign.calibrate(chain, words, switch))
        }
    };
    let lab = TaskBench { set, machine, timer, level, levels, cpu, scheduling, hyperperiod_ns, counting, elements };
    let runs = lab.run(options, &plan, stop, progress);
    real_time::bind(&here)?;
    let (runs, failed) = runs?;
    Ok(TaskSetReport {
        machine: machine.name.clone(),
        level: level.name.clone(),
        counted_by,
        cpu,
        scheduling,
        timer_remark,
        hyperperiods: options.hyperperiods,
        runs,
        failed: failed.map(|why| why.to_string()),
        plan,
    })
}

/// The hyperperiod, in nanoseconds, of a set that can run.
fn check(set: &TaskSet, options: &TaskSetOptions) -> Result<u64, TaskRunError> {
    let bad = |why: String| Err(TaskRunError(why));
    if let Some(task) = set.tasks.iter().find(|task| task.trace.is_some()) {
        return bad(format!("task {}: a recording does not run; write its pages", task.name));
    }
    set.tasks.iter().try_for_each(program::check)?;
    let Some(hyperperiod) = set.hyperperiod() else {
        return bad("the periods' least common multiple is beyond 2^63 ns; choose others".into());
    };
    let jobs = |task: &lookaside_techniques::color::tasks::Task| {
        let hyperperiods = u128::from(options.hyperperiods) * u128::from(options.repeats);
        u128::from(hyperperiod.nanos / task.period.nanos) * hyperperiods
    };
    if set.tasks.iter().map(jobs).sum::<u128>() > u128::from(MOST_JOBS) {
        return bad(format!(
            "{} hyperperiods of these tasks have more than {MOST_JOBS} jobs; ask for fewer",
            options.hyperperiods
        ));
    }
    Ok(hyperperiod.nanos)
}

/// Most jobs of a run: their logs stay in memory.
const MOST_JOBS: u64 = 1 << 18;

/// The array that is counted.
fn counted<'a>(levels: &'a [ColorLevel], name: Option<&str>) -> Result<&'a ColorLevel, TaskRunError> {
    let found = match name {
        Some(name) => levels.iter().find(|level| level.name == name),
        None => levels.iter().find(|level| level.sets > 1).or(levels.first()),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = levels.iter().map(|level| level.name.as_str()).collect();
        TaskRunError(format!("the machine has no TLB {}; it has {}", name.unwrap_or_default(), names.join(", ")))
    })
}

impl TaskSetReport {
    /// What the reader should know, a line each.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.timer_remark.iter().cloned().collect();
        remarks.extend(self.failed.iter().map(|why| format!("no more runs: {why}")));
        if self.scheduling == Scheduling::Nice {
            remarks.push(
                "without the right to SCHED_FIFO (as root, or CAP_SYS_NICE) the tasks have plain priorities: a less important one may run beside a more important one"
                    .into(),
            );
        }
        if !self.plan.is_isolated() {
            let full = self.plan.levels.iter().filter(|level| !level.isolated).map(|level| level.name.as_str());
            remarks.push(format!("the plan does not isolate the tasks in {}", full.collect::<Vec<_>>().join(", ")));
        }
        let policy = self.plan.levels.iter().find(|level| level.name == self.level).map(|level| level.replacement);
        if policy == Some(lookaside_machine::Replacement::Random) {
            remarks.push(format!("{} is said to replace at random, or nobody knows how: then the model's figures for shared sets are one draw", self.level));
        }
        let lost: u64 = self.runs.iter().flat_map(|run| &run.tasks).map(|task| task.gaps_lost).sum();
        if lost > 0 {
            remarks.push(format!("{lost} interrupts more than there was room to write down: some jobs that were hit stand among the others"));
        }
        remarks
    }

    /// In each run, of the jobs that nothing else hit at least 99 in 100 missed as modelled, and there are some.
    pub fn holds(&self) -> bool {
        let tasks = self.runs.iter().flat_map(|run| &run.tasks);
        let calm = tasks.map(|task| task.summaries.iter().find(|summary| summary.hit_by == HitBy::Nothing));
        let holds = |summary: &JobSummary| 100 * summary.agree >= 99 * summary.jobs;
        let (mut some, mut all) = (false, true);
        for summary in calm.flatten() {
            (some, all) = (true, all && holds(summary));
        }
        some && all
    }
}

#[cfg(test)]
mod tests {
    use lookaside_techniques::color::tasks::TaskSet;

    use super::*;

    #[test]
    fn what_cannot_run_is_refused() {
        let options = TaskSetOptions {
            hyperperiods: 10,
            cpu: None,
            level: Some("l3".into()),
            placements: vec![PagePlacement::Planned],
            repeats: 1,
            turns: TURNS,
            pool: None,
            seed: 1,
        };
        let machine = lookaside_machine::preset("xeon-e5-2650").expect("a preset");
        let task = |more: &str| format!("[[task]]\nname = \"T\"\nperiod = \"2ms\"\nexecution = \"1ms\"\n{more}\n");
        for (tasks, level, said) in [
            (task("pages = 4\nprogram = \"fft\""), Some("l3"), "the machine has no TLB l3; it has l1d-4k, stlb"),
            (
                task("pages = 4\nprogram = \"bubblesort\""),
                None,
                "task T: \"bubblesort\": no such workload; there are adpcm, bubble-sort, ",
            ),
            (task("pages = 2\nprogram = \"fft\""), None, "task T: 8192 bytes: this workload has 12K to 1M"),
            (task("pages = 512\nprogram = \"fft\""), None, "task T: 2097152 bytes: this workload has 12K to 1M"),
            // 2^52 and 3: in bytes 3 pages, of 64 bits.
            (
                task("pages = 4503599627370499\nprogram = \"fft\""),
                None,
                "task T: 18446744073709551615 bytes: this workload has 12K to 1M",
            ),
            (task("trace = \"t.lkt\""), None, "task T: a recording does not run; write its pages"),
            (task("pages = 4"), Some("l3"), "the machine has no TLB l3; it has l1d-4k, stlb"),
            (
                task("pages = 4").replace("2ms", "1us").replace("1ms", "1us"),
                None,
                "10000000000 hyperperiods of these tasks have more",
            ),
        ] {
            let set = TaskSet::parse(&tasks, "t").expect("a set");
            let hyperperiods = if level.is_some() || tasks.contains("trace") { 10 } else { 10_000_000_000 };
            let options = TaskSetOptions { level: level.map(Into::into), hyperperiods, ..options.clone() };
            let error = run(&set, &machine, &options, &|| false, &mut |_| ()).expect_err(said).to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
