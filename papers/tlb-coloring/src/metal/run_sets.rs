//! The task sets of `reproduce tlb-coloring --metal`: run by the experiment, on this machine's geometry.

use lookaside_harness::Reproduction;
use lookaside_host::CpuInfo;
use lookaside_machine::{nearest_preset, preset, ColorLevel, CpuId, Machine, PageSize};
use lookaside_probe::{Halt, LevelReport, ProbeReport as Probed};
use lookaside_techniques::color::tasks::{Task, TaskSet};

use crate::metal::malloc_comparison::{self, AllocatorCase, AllocatorJobs, AllocatorRuns};
use crate::metal::task_sets::{self, CalmJob, TaskJobs, TwoTaskRuns};
use crate::metal::tasks::{
    counted_by, run, two_tasks, CountedBy, HitBy, JobRun, PagePlacement, TaskSetOptions, TaskSetReport, TaskSetRun,
    TURNS,
};

/// Hyperperiods of each run of the two tasks, some ten thousand jobs of T1 and a few seconds: where their misses are
/// timed, and where walks are counted.
const HYPERPERIODS: [u64; 2] = [3000, 1000];
/// The paper's millisecond is at least as long here where walks are counted: that takes 0.2 to 0.6 ms at each job's
/// end.
const COUNTED_MS_NS: u64 = 1_000_000;

/// Why measuring ends, once it does.
type Halted<'a> = &'a (dyn Fn() -> Option<Halt> + Sync);

/// Runs them on the TLBs of this machine, if they are known, and adds what comes of it. What was run when measuring
/// ends counts; `found` then says that it ended.
pub(super) fn add(
    found: &mut Reproduction,
    machine: Result<Machine, String>,
    seed: u64,
    halt: Halted<'_>,
    progress: &mut dyn FnMut(&str),
) {
    let why = found.halted.clone().or_else(|| halt().map(|halt| halt.to_string()));
    let here = match why {
        Some(why) => Err(format!("not reached: {why}")),
        None => machine.and_then(|machine| SetBench::new(machine, seed, halt)),
    };
    let tasks = here.as_ref().map_err(String::clone).and_then(|here| here.two(progress));
    task_sets::add(found, tasks.as_ref().map_err(String::as_str));
    let cases = here
        .as_ref()
        .map_err(String::clone)
        .and_then(|here| malloc_comparison::cases(&here.level, here.before, here.least_ms_ns()));
    match (&here, cases) {
        (Ok(here), Ok(cases)) => {
            let all: Vec<_> = cases.iter().map(|case| here.versus(case, progress)).collect();
            malloc_comparison::add(found, &all, "not measured");
        }
        (Err(why), _) => malloc_comparison::add(found, &[], why),
        (_, Err(why)) => malloc_comparison::add(found, &[], &why),
    }
    let cut = match here {
        Ok(here) => here.cut.into_inner(),
        Err(_) => halt().map(|halt| halt.to_string()),
    };
    if let Some(why) = cut {
        found.halted.get_or_insert(why);
    }
}

/// What all sets share.
struct SetBench<'a> {
    machine: Machine,
    /// The level whose misses are counted.
    level: ColorLevel,
    /// How they are counted.
    by: CountedBy,
    /// Entries of the levels before it.
    before: u64,
    seed: u64,
    halt: Halted<'a>,
    /// Why not all was run, where it was not.
    cut: std::cell::RefCell<Option<String>>,
}

impl<'a> SetBench<'a> {
    fn new(machine: Machine, seed: u64, halt: Halted<'a>) -> Result<Self, String> {
        let levels = machine.color_levels(PageSize::K4);
        let level = levels.iter().find(|level| level.sets > 1).ok_or("no TLB here has more than one set")?.clone();
        let before = levels.iter().take_while(|before| before.name != level.name);
        let before = before.map(|level| u64::from(level.sets) * u64::from(level.ways)).sum();
        let by = counted_by(&level, &levels);
        Ok(Self { machine, level, by, before, seed, halt, cut: None.into() })
    }

    /// What the paper's millisecond has to be at least, for counting to have room.
    fn least_ms_ns(&self) -> u64 {
        match self.by {
            CountedBy::Walks => COUNTED_MS_NS,
            CountedBy::Timing => 0,
        }
    }

    /// Section 6.0.8's two tasks in the same set and in different ones.
    fn two(&self, progress: &mut dyn FnMut(&str)) -> Result<TwoTaskRuns, String> {
        let options = TaskSetOptions {
            hyperperiods: HYPERPERIODS[usize::from(self.by == CountedBy::Walks)],
            cpu: None,
            level: Some(self.level.name.clone()),
            placements: vec![PagePlacement::Alone, PagePlacement::Planned, PagePlacement::SameSets],
            repeats: 1,
            turns: TURNS,
            pool: None,
            seed: self.seed,
        };
        let set = two_tasks(&self.level, self.before == 0, self.by);
        let report = self.run(&set, &options, progress)?;
        Ok(tasks(&set, &report, self.ended(&report, &options)))
    }

    /// `malloc` against the coloured heap.
    fn versus(&self, case: &AllocatorCase, progress: &mut dyn FnMut(&str)) -> Result<AllocatorRuns, String> {
        let options = TaskSetOptions {
            hyperperiods: case.hyperperiods,
            cpu: None,
            level: Some(self.level.name.clone()),
            placements: match case.in_same_sets {
                true => vec![PagePlacement::Malloc, PagePlacement::Planned, PagePlacement::SameSets],
                false => vec![PagePlacement::Malloc, PagePlacement::Planned],
            },
            repeats: case.runs,
            turns: 1,
            pool: Some(case.pool),
            seed: self.seed,
        };
        let report = self.run(&case.set, &options, &mut |step: &str| progress(&format!("{}: {step}", case.what)))?;
        Ok(pairs(case, &report, self.ended(&report, &options)))
    }

    fn run(
        &self,
        set: &TaskSet,
        options: &TaskSetOptions,
        progress: &mut dyn FnMut(&str),
    ) -> Result<TaskSetReport, String> {
        if let Some(halt) = (self.halt)() {
            let why = halt.to_string();
            self.cut.borrow_mut().get_or_insert_with(|| why.clone());
            return Err(format!("not reached: {why}"));
        }
        let halt = self.halt;
        run(set, &self.machine, options, &|| halt().is_some(), progress).map_err(|error| error.to_string())
    }

    /// Why a report has not all that was asked for; `None`: it has.
    fn ended(&self, report: &TaskSetReport, options: &TaskSetOptions) -> Option<String> {
        let runs = options.placements.len() as u64 * options.repeats;
        if report.runs.len() as u64 == runs && report.runs.iter().all(|run| is_whole(run, options.hyperperiods)) {
            return None;
        }
        if report.failed.is_some() {
            return report.failed.clone();
        }
        let why = (self.halt)().map_or_else(|| "ended early".into(), |halt| halt.to_string());
        self.cut.borrow_mut().get_or_insert_with(|| why.clone());
        Some(why)
    }
}

fn is_whole(run: &TaskSetRun, hyperperiods: u64) -> bool {
    run.tasks.iter().all(|task| task.jobs.len() as u64 == task.jobs_a_hyperperiod * hyperperiods)
}

/// This machine with the TLB levels that the paper's microbenchmarks were found to have; they all have to be known.
pub(super) fn described(levels: Vec<LevelReport>, seed: u64) -> Result<Machine, String> {
    if levels.is_empty() {
        return Err("its TLBs were not looked for".into());
    }
    let report = Probed { seed, levels, ..Probed::default() };
    if let Some((what, why)) = report.missing().into_iter().find(|(what, _)| what.starts_with("geometry")) {
        return Err(format!("{what}: {why}"));
    }
    let (nearest, _) = nearest_preset(&CpuId::from_cpuinfo(CpuInfo::here().text()));
    let base = preset(nearest).map_err(|error| error.to_string())?;
    Ok(report.machine(&base))
}

fn tasks(set: &TaskSet, report: &TaskSetReport, ended: Option<String>) -> TwoTaskRuns {
    let run = |placement| report.runs.iter().find(|run| run.placement == placement);
    let jobs = |placement| [0, 1].map(|task| run(placement).map_or_else(TaskJobs::default, |run| jobs(run, task)));
    let miss_cycles = run(PagePlacement::SameSets).and_then(|run| run.tasks.first()).map(|task| task.miss_cycles);
    let pages = set.tasks.first().and_then(|task| task.pages).unwrap_or_default();
    let mut how = vec![format!(
        "task sets: {} (phase, period, execution), {pages} pages each, {} hyperperiods of each placement in turns, on CPU {}; misses of {} by \
         {}; jobs that interrupts or others hit and the first of each turn counted apart{}{}",
        set.tasks.iter().map(times).collect::<Vec<_>>().join(" and "),
        report.hyperperiods,
        report.cpu,
        report.level,
        match report.counted_by {
            CountedBy::Walks => "walks",
            CountedBy::Timing => "timing",
        },
        kept(report, &[("", PagePlacement::Planned)]),
        ended.map(|why| format!("; {why}: not all were run")).unwrap_or_default()
    )];
    how.extend(report.remarks());
    TwoTaskRuns {
        how,
        pages,
        miss_cycles: miss_cycles.unwrap_or_default(),
        alone: jobs(PagePlacement::Alone),
        apart: jobs(PagePlacement::Planned),
        same: jobs(PagePlacement::SameSets),
    }
}

/// How many of the first task's pages are counted as missed that were loaded right before: what counting itself puts
/// out, and the core's other users meanwhile.
fn kept(report: &TaskSetReport, placements: &[(&str, PagePlacement)]) -> String {
    let of = |(what, placement): &(&str, PagePlacement)| {
        let tasks = report.runs.iter().filter(|run| run.placement == *placement).filter_map(|run| run.tasks.first());
        let known: Vec<_> = tasks.map(|task| (task, task.known.kept_misses)).collect();
        let mean = known.iter().map(|(_, misses)| misses).sum::<f64>() / known.len() as f64;
        known.first().map(|(task, _)| format!("{mean:.1} of {}'s {}{what}", task.name, task.known.pages))
    };
    let said: Vec<String> = placements.iter().filter_map(of).collect();
    match said.is_empty() {
        true => String::new(),
        false => format!("; of pages loaded right before are counted as missed: {}", said.join(", ")),
    }
}

fn times(task: &Task) -> String {
    format!("{} ({}, {}, {})", task.name, task.phase, task.period, task.execution)
}

/// A set's runs, those that all placements have.
fn pairs(case: &AllocatorCase, report: &TaskSetReport, ended: Option<String>) -> AllocatorRuns {
    let of = |repeat, placement| report.runs.iter().find(|run| run.repeat == repeat && run.placement == placement);
    let all = |run: &TaskSetRun| (0..run.tasks.len()).map(|task| jobs(run, task)).collect();
    let pair = |repeat| {
        let (malloc, coloured) = (of(repeat, PagePlacement::Malloc)?, of(repeat, PagePlacement::Planned)?);
        let same_sets = if case.in_same_sets { all(of(repeat, PagePlacement::SameSets)?) } else { Vec::new() };
        Some(AllocatorJobs { malloc: all(malloc), coloured: all(coloured), same_sets })
    };
    let runs: Vec<AllocatorJobs> = (1..=case.runs).filter_map(pair).collect();
    let with_pages = |task: &Task| {
        let (times, pages) = (times(task), task.pages.unwrap_or_default());
        match (&task.program, task.data_pages) {
            (Some(program), Some(data)) => format!("{times}, {program} on {data} pages of data spread over {pages}"),
            _ => format!("{times}, {pages} pages"),
        }
    };
    let mut how = vec![format!(
        "{}: {}; {} runs of {} hyperperiods with each kind of pages; with malloc drawn anew among {} each{}{}",
        case.what,
        case.set.tasks.iter().map(with_pages).collect::<Vec<_>>().join("; "),
        runs.len(),
        case.hyperperiods,
        case.pool,
        kept(report, &[(" coloured", PagePlacement::Planned), (" with malloc", PagePlacement::Malloc)]),
        ended.map(|why| format!("; {why}: {} were to be run", case.runs)).unwrap_or_default()
    )];
    how.extend(report.remarks());
    AllocatorRuns { how, runs }
}

fn jobs(run: &TaskSetRun, task: usize) -> TaskJobs {
    let Some(task) = run.tasks.get(task) else { return TaskJobs::default() };
    let all: Vec<&JobRun> = task.jobs.iter().filter(|job| !job.begins_turn).collect();
    // What hit unseen is known by how much it took.
    let is_calm = |job: &&&JobRun| matches!(job.hit_by(), HitBy::Nothing | HitBy::Unseen);
    let calm: Vec<CalmJob> =
        all.iter().filter(is_calm).map(|job| calm_job(job, task.pages, task.jobs_a_hyperperiod.max(1))).collect();
    TaskJobs { hit: all.len() - calm.len(), calm }
}

fn calm_job(job: &JobRun, pages: usize, places: u64) -> CalmJob {
    let place = job.job.saturating_sub(1) % places + 1;
    let misses = [job.misses, job.modelled_misses].map(|misses| misses as f64);
    let parts = 1 + job.preemptions;
    // One that loads pages touches all of them.
    let touched = job.touched_pages.unwrap_or(pages as u64 * parts) as f64;
    CalmJob { place, misses, taken: job.taken_pages, parts, touched, cycles: job.cycles }
}

#[cfg(test)]
mod tests {
    use crate::metal::tasks::{CountedBy, Scheduling, TaskRun};
    use lookaside_probe::counter::MeterAccuracy;
    use lookaside_probe::{Finding, Geometry};
    use lookaside_techniques::color::plan::plan;

    use super::*;

    /// Two hyperperiods of a task: the first job of the turn, one that nothing hit, one that the witness was hit in,
    /// one that an interrupt hit.
    fn task(misses: u64) -> TaskRun {
        let job = |job, outside, interrupts| JobRun {
            job,
            begins_turn: job == 1,
            cycles: 100.0,
            misses: misses + job,
            preemptions: 3,
            interrupts,
            outside,
            taken_pages: 0.5,
            ..JobRun::default()
        };
        TaskRun {
            name: "T".into(),
            rank: 1,
            pages: 8,
            most_in_a_set: 1,
            rounds: 2,
            program: None,
            miss_cycles: 30.0,
            known: MeterAccuracy { pages: 32, kept_misses: misses as f64 / 2.0, ..MeterAccuracy::default() },
            gaps_lost: 0,
            summaries: Vec::new(),
            jobs_a_hyperperiod: 2,
            jobs: vec![job(1, 0, 0), job(2, 0, 0), job(3, 1, 0), job(4, 0, 1)],
        }
    }

    /// Without the levels there is no machine to speak of, and the preset is none.
    #[test]
    fn tasks_run_on_levels_that_were_found() {
        let found = |masks: &[u64], ways: u32| Geometry {
            entries: ways << masks.len(),
            ways,
            sets: 1 << masks.len(),
            masks: masks.to_vec(),
        };
        let level = |level: u32, geometry: Finding<Geometry>| LevelReport {
            level,
            page_size: PageSize::K4,
            geometry,
            miss_cycles: Finding::not_asked(),
            policy: Finding::not_asked(),
            trials: Vec::new(),
        };
        let first = || level(1, Finding::confirmed(found(&[], 96), Vec::new()));
        let second = Finding::confirmed(found(&[1, 2, 4, 512], 7), Vec::new());
        let machine = described(vec![first(), level(2, second)], 1).expect("a machine");
        let here = SetBench::new(machine, 1, &|| None).expect("sets");
        assert_eq!((here.before, here.level.sets, here.level.ways), (96, 16, 7));
        assert_eq!(here.level.set_of(512 + 2), here.level.set_of(1024 + 512 + 2));
        let unknown = level(2, Finding::not_determined("noise"));
        assert_eq!(described(vec![first(), unknown], 1), Err("geometry of level 2: noise".into()));
        assert!(described(Vec::new(), 1).is_err());
    }

    fn case() -> AllocatorCase {
        let machine = preset("xeon-e5-2650").expect("a preset");
        let first =
            malloc_comparison::cases(&machine.color_levels(PageSize::K4)[0], 0, 0).expect("cases").swap_remove(0);
        AllocatorCase { runs: 3, hyperperiods: 2, ..first }
    }

    fn report(runs: Vec<TaskSetRun>) -> TaskSetReport {
        let machine = preset("xeon-e5-2650").expect("a preset");
        TaskSetReport {
            machine: "made up".into(),
            level: "stlb".into(),
            counted_by: CountedBy::Timing,
            cpu: 1,
            scheduling: Scheduling::Fifo,
            timer_remark: None,
            hyperperiods: 2,
            runs,
            failed: None,
            plan: plan(&case().set, &machine, PageSize::K4).expect("a plan"),
        }
    }

    fn run_of(repeat: u64, placement: PagePlacement, misses: u64) -> TaskSetRun {
        TaskSetRun { placement, repeat, tasks: vec![task(misses), task(misses + 10)] }
    }

    #[test]
    fn runs_that_both_allocators_have_are_pairs_and_jobs_that_were_hit_are_counted() {
        let runs = vec![
            run_of(1, PagePlacement::Planned, 0),
            run_of(1, PagePlacement::Malloc, 50),
            run_of(2, PagePlacement::Malloc, 60),
            run_of(3, PagePlacement::Malloc, 70),
            run_of(3, PagePlacement::Planned, 20),
        ];
        let versus = pairs(&case(), &report(runs), Some("interrupted".into()));
        assert!(versus.how[0].starts_with("Figures 6.4 to 6.8: T1 ("), "{:?}", versus.how);
        assert!(versus.how[0].ends_with("; 2 runs of 2 hyperperiods with each kind of pages; with malloc drawn anew among 32 each; of pages loaded right before are counted as missed: 5.0 of T's 32 coloured, 30.0 of T's 32 with malloc; interrupted: 3 were to be run"));
        let [first, second] = &versus.runs[..] else { panic!("{:?}", versus.runs) };
        let calm = |place, misses: f64| CalmJob {
            place,
            misses: [misses, 0.0],
            taken: 0.5,
            parts: 4,
            touched: 32.0,
            cycles: 100.0,
        };
        assert_eq!(first.coloured[0], TaskJobs { calm: vec![calm(2, 2.0), calm(1, 3.0)], hit: 1 });
        assert_eq!(first.malloc[1], TaskJobs { calm: vec![calm(2, 62.0), calm(1, 63.0)], hit: 1 });
        assert_eq!(second.malloc[0].calm[0].misses[0], 72.0);
    }

    #[test]
    fn a_programs_jobs_are_of_the_pages_that_they_touched_and_of_all_placements() {
        let mut ran = run_of(1, PagePlacement::SameSets, 5);
        ran.tasks[0].jobs.iter_mut().for_each(|job| job.touched_pages = Some(9));
        let runs = vec![run_of(1, PagePlacement::Malloc, 0), run_of(1, PagePlacement::Planned, 0), ran];
        let case = AllocatorCase { in_same_sets: true, ..case() };
        let versus = pairs(&case, &report(runs.clone()), None);
        let [pair] = &versus.runs[..] else { panic!("{:?}", versus.runs) };
        assert_eq!((pair.same_sets[0].calm[0].touched, pair.same_sets[1].calm[0].touched), (9.0, 32.0));
        assert!(pairs(&case, &report(runs[..2].to_vec()), None).runs.is_empty());
    }

    #[test]
    fn what_was_cut_short_is_said() {
        let machine = preset("xeon-e5-2650").expect("a preset");
        let level = machine.color_levels(PageSize::K4).swap_remove(0);
        let halt = || Some(Halt::TimeUp);
        let here = || SetBench {
            machine: machine.clone(),
            level: level.clone(),
            by: CountedBy::Timing,
            before: 0,
            seed: 1,
            halt: &halt,
            cut: None.into(),
        };
        let options = |repeats| TaskSetOptions {
            hyperperiods: 2,
            cpu: None,
            level: None,
            placements: vec![PagePlacement::Malloc],
            repeats,
            turns: 1,
            pool: None,
            seed: 1,
        };
        let whole = report(vec![run_of(1, PagePlacement::Malloc, 0)]);
        let all = here();
        assert_eq!((all.ended(&whole, &options(1)), all.cut.into_inner()), (None, None));
        // A repeat less than asked for, or a job.
        let why = Some(Halt::TimeUp.to_string());
        let less = here();
        assert_eq!((less.ended(&whole, &options(2)), less.cut.into_inner()), (why.clone(), why.clone()));
        let mut short = whole.clone();
        short.runs[0].tasks[1].jobs.pop();
        assert_eq!(here().ended(&short, &options(1)), why);
        // A repeat that could not be made ends nothing else.
        let failed = TaskSetReport { failed: Some("noise".into()), ..whole };
        let some = here();
        assert_eq!((some.ended(&failed, &options(2)), some.cut.into_inner()), (Some("noise".into()), None));
        // Nothing is begun after.
        let late = here();
        assert_eq!(late.versus(&case(), &mut |_| ()), Err(format!("not reached: {}", Halt::TimeUp)));
        assert_eq!(late.cut.into_inner(), why);
    }
}
