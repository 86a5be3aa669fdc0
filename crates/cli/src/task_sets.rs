//! The task sets of `reproduce tlb-coloring --metal`: run by the experiment, on this machine's geometry.

use lookaside_experiment::tasks::{run, two_tasks, HitBy, JobRun, Options, Placement, Report, Run, TURNS};
use lookaside_machine::{nearest_preset, preset, CpuId, Machine, PageSize};
use lookaside_papers::task_sets::{self, CalmJob, TaskJobs, Tasks};
use lookaside_papers::Reproduction;
use lookaside_probe::{probe, Halt, Host, Options as Probing, Step};
use lookaside_techniques::color::tasks::{Task, TaskSet};

/// Hyperperiods of each run: some ten thousand jobs of T1, a few seconds.
const HYPERPERIODS: u64 = 3000;
/// Runs them, and adds what comes of it.
pub fn add(
    found: &mut Reproduction,
    memory_bytes: u64,
    seed: u64,
    halt: &(dyn Fn() -> Option<Halt> + Sync),
    progress: &mut dyn FnMut(&str),
) {
    let why = found.halted.clone().or_else(|| halt().map(|halt| halt.to_string()));
    let tasks = match why {
        Some(why) => Err(format!("not reached: {why}")),
        None => measured(memory_bytes, seed, halt, progress),
    };
    task_sets::add(found, tasks.as_ref().map_err(String::as_str));
}

fn measured(
    memory_bytes: u64,
    seed: u64,
    halt: &(dyn Fn() -> Option<Halt> + Sync),
    progress: &mut dyn FnMut(&str),
) -> Result<Tasks, String> {
    let machine = described(memory_bytes, seed, halt, progress)?;
    let levels = machine.color_levels(PageSize::K4);
    let level = levels.iter().find(|level| level.sets > 1).ok_or("no TLB here has more than one set")?;
    let is_first = levels.first().is_some_and(|first| first.name == level.name);
    let set = two_tasks(level, is_first);
    let placements = vec![Placement::Alone, Placement::Planned, Placement::SameSets, Placement::Malloc];
    let options = Options {
        hyperperiods: HYPERPERIODS,
        cpu: None,
        level: Some(level.name.clone()),
        placements,
        repeats: 1,
        turns: TURNS,
        pool: None,
        seed,
    };
    let report = run(&set, &machine, &options, &|| halt().is_some(), progress).map_err(|error| error.to_string())?;
    if let Some(halt) = halt() {
        return Err(format!("not reached: {halt}"));
    }
    Ok(tasks(&set, &report))
}

/// The levels of this machine, as the probe finds them.
fn described(
    memory_bytes: u64,
    seed: u64,
    halt: &dyn Fn() -> Option<Halt>,
    progress: &mut dyn FnMut(&str),
) -> Result<Machine, String> {
    let mut host = Host::new(memory_bytes).map_err(|error| error.to_string())?;
    let options = Probing { only: Some(Step::L2), seed, ..Probing::default() };
    let report = probe(&mut host, &options, halt, progress);
    if let Some((what, why)) = report.missing().into_iter().find(|(what, _)| what.starts_with("geometry")) {
        return Err(format!("{what}: {why}"));
    }
    let (nearest, _) = nearest_preset(&CpuId::running());
    let base = preset(nearest).map_err(|error| error.to_string())?;
    Ok(report.machine(&base))
}

fn tasks(set: &TaskSet, report: &Report) -> Tasks {
    let run = |placement| report.runs.iter().find(|run| run.placement == placement);
    let jobs = |placement| [0, 1].map(|task| run(placement).map_or_else(TaskJobs::default, |run| jobs(run, task)));
    let miss_cycles = run(Placement::SameSets).and_then(|run| run.tasks.first()).map(|task| task.miss_cycles);
    let pages = set.tasks.first().and_then(|task| task.pages).unwrap_or_default();
    let times = |task: &Task| format!("{} ({}, {}, {})", task.name, task.phase, task.period, task.execution);
    let mut how = vec![format!(
        "task sets: {} (phase, period, execution), {pages} pages each, {HYPERPERIODS} hyperperiods of each placement in turns, on CPU {}; misses of {} by \
         timing; jobs that interrupts or others hit and the first of each turn counted apart",
        set.tasks.iter().map(times).collect::<Vec<_>>().join(" and "),
        report.cpu,
        report.level
    )];
    how.extend(report.remarks());
    Tasks {
        how,
        pages,
        miss_cycles: miss_cycles.unwrap_or_default(),
        alone: jobs(Placement::Alone),
        apart: jobs(Placement::Planned),
        same: jobs(Placement::SameSets),
        malloc: jobs(Placement::Malloc),
    }
}

fn jobs(run: &Run, task: usize) -> TaskJobs {
    let all: Vec<&JobRun> =
        run.tasks.get(task).map_or(&[][..], |task| &task.jobs[..]).iter().filter(|job| !job.begins_turn).collect();
    // What hit unseen is known by how much it took.
    let is_calm = |job: &&&JobRun| matches!(job.hit_by(), HitBy::Nothing | HitBy::Unseen);
    let calm: Vec<CalmJob> = all.iter().filter(is_calm).map(|job| calm_job(job)).collect();
    TaskJobs { hit: all.len() - calm.len(), calm }
}

fn calm_job(job: &JobRun) -> CalmJob {
    let misses = [job.misses, job.modelled_misses].map(|misses| misses as f64);
    CalmJob { misses, taken: job.taken_pages, parts: 1 + job.preemptions, cycles: job.cycles }
}
