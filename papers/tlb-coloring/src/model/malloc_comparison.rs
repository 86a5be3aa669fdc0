//! `malloc` against `tlb_malloc`: section 6.0.8, Figures 6.4 to 6.8, and Appendix A.

use std::ops::RangeInclusive;

use lookaside_harness::{in_parallel, ModelFindings, ModelResult, PaperCurve, RowFinding};
use lookaside_stats::SplitMix64;
use lookaside_techniques::color::model::JobOutcome;
use lookaside_techniques::color::tasks::TaskSet;
use lookaside_techniques::color::work::{on_own_lines, Work};

use super::coloring_bench::{
    average, choose, claim, jobs, malloc, mean, misses, round, task_set, value, ColoringBench, SystemPages, POOL,
    STORES_PER_MS,
};

/// A task: phase, period, execution; pages.
type SyntheticTask = (&'static str, &'static str, &'static str, usize);
/// T1 and T2 of Figures 6.4 to 6.8.
pub(crate) const FOURTEEN_PAGES: [SyntheticTask; 2] = [("1ms", "2ms", "0.385ms", 14), ("0ms", "16ms", "7.38ms", 14)];
/// The same of Appendix A.
const SIXTEEN_PAGES: [SyntheticTask; 2] = [("1ms", "2ms", "0.39ms", 16), ("0ms", "16ms", "7.8ms", 16)];

/// Runs of the figures.
const RUNS: usize = 10;
/// Jobs of T1 in a hyperperiod.
const JOBS: u64 = 8;
/// Hyperperiods of the misses' figures, and of the cycles'.
const HYPERPERIODS: u64 = 2;
const OF_CYCLES: u64 = 5;

/// The same runs with the pages of each allocator.
pub(super) struct AllocatorPair {
    pub(super) malloc: Vec<Vec<JobOutcome>>,
    pub(super) colored: Vec<Vec<JobOutcome>>,
}

/// What is run.
pub(super) struct AllocatorExperiment<'a> {
    pub(super) set: TaskSet,
    pub(super) hyperperiods: u64,
    pub(super) runs: usize,
    /// Pages that each task allocates.
    pub(super) pool: usize,
    /// A task's work on its pages.
    pub(super) work: &'a (dyn Fn(usize, &[u64]) -> ModelResult<Work> + Sync),
    /// Where in its page the system's n-th touches.
    pub(super) system: &'a (dyn Fn(&[u64]) -> Vec<u64> + Sync),
    /// Cycles are asked for, too.
    pub(super) with_cycles: bool,
}

impl AllocatorExperiment<'_> {
    pub(super) fn run(&self, lab: &ColoringBench) -> ModelResult<AllocatorPair> {
        let runs: Vec<(u64, &SystemPages)> = (1..).zip(lab.layouts(self.runs)).collect();
        let pairs = in_parallel(&runs, |(seed, layout)| self.pair(lab, *seed, layout));
        let (malloc, colored) = pairs.into_iter().collect::<ModelResult<Vec<_>>>()?.into_iter().unzip();
        Ok(AllocatorPair { malloc, colored })
    }

    /// A run with the pages of each allocator.
    fn pair(
        &self,
        lab: &ColoringBench,
        seed: u64,
        layout: &SystemPages,
    ) -> ModelResult<(Vec<JobOutcome>, Vec<JobOutcome>)> {
        let needs: Vec<usize> = self.set.tasks.iter().map(|task| task.pages.unwrap_or(0) as usize).collect();
        let mut random = SplitMix64::new(seed);
        let pools: Vec<_> = (0..needs.len()).map(|task| malloc(&mut random, task, self.pool)).collect();
        let chosen: Vec<_> =
            pools.into_iter().zip(&needs).map(|(pool, need)| choose(&mut random, pool, *need)).collect();
        Ok((self.one(lab, &chosen, layout)?, self.one(lab, &lab.isolated(layout, &needs)?, layout)?))
    }

    fn one(&self, lab: &ColoringBench, pages: &[Vec<u64>], layout: &SystemPages) -> ModelResult<Vec<JobOutcome>> {
        let works = pages.iter().enumerate().map(|(task, pages)| (self.work)(task, pages));
        let works: Vec<Work> = works.collect::<ModelResult<_>>()?;
        let system = (self.system)(&layout.noise);
        if self.with_cycles {
            lab.run(&self.set, self.hyperperiods, &works, &system)
        } else {
            lab.misses(&self.set, self.hyperperiods, &works, &system)
        }
    }
}

impl AllocatorPair {
    /// Misses of a task beyond its warm-up with coloured pages, in all jobs of all runs.
    pub(super) fn colored_misses(&self, task: usize) -> f64 {
        self.colored.iter().flat_map(|run| jobs(run, task, 1..=u64::MAX)).map(|job| job.l1_misses as f64).sum()
    }

    /// Misses of a task's jobs, on average, were each of its pages to miss once in each slice.
    pub(super) fn most_misses(&self, task: usize, pages: usize) -> f64 {
        let slices: Vec<f64> =
            self.malloc.iter().flat_map(|run| jobs(run, task, 1..=u64::MAX)).map(|job| job.slices as f64).collect();
        pages as f64 * mean(&slices)
    }
}

/// Each page's first bytes.
pub(super) fn first_bytes(pages: &[u64]) -> Vec<u64> {
    pages.to_vec()
}

pub(super) fn run(lab: &ColoringBench, ran: &mut ModelFindings) -> ModelResult<()> {
    let first = |_: usize, pages: &[u64]| Ok(Work::stores(pages, STORES_PER_MS));
    let case = |tasks: &[SyntheticTask], hyperperiods| -> ModelResult<_> {
        let set = task_set(tasks)?;
        let with_cycles = hyperperiods == OF_CYCLES;
        Ok(AllocatorExperiment {
            set,
            hyperperiods,
            runs: RUNS,
            pool: POOL,
            work: &first,
            system: &first_bytes,
            with_cycles,
        })
    };
    let fourteen = case(&FOURTEEN_PAGES, HYPERPERIODS)?.run(lab)?;
    figures_6_4_to_6_7(&fourteen, ran);
    let sixteen = case(&SIXTEEN_PAGES, HYPERPERIODS)?.run(lab)?;
    appendix_a_1(&sixteen, ran);

    let conflicting = case(&FOURTEEN_PAGES, OF_CYCLES)?;
    let own = |task: usize, pages: &[u64]| Ok(Work::stores(&on_own_lines(pages, 14 * task), STORES_PER_MS));
    let system = |pages: &[u64]| on_own_lines(pages, 2 * 14);
    let apart = AllocatorExperiment { work: &own, system: &system, set: conflicting.set.clone(), ..conflicting };
    cycles(&apart.run(lab)?, &conflicting.run(lab)?, lab.l1_penalty(), ran);
    Ok(())
}

fn figures_6_4_to_6_7(all: &AllocatorPair, ran: &mut ModelFindings) {
    let of = |numbers| misses(&all.malloc, 0, numbers);
    let both = |a: u64, b: u64| -> Vec<f64> { of(a..=a).iter().zip(of(b..=b)).map(|(a, b)| (a + b) / 2.0).collect() };
    let system = "T2 has ended: only the system is in the way";
    ran.findings.extend([
        ("fig-6.4-1-2", average(&of(1..=2), "")),
        ("fig-6.4-3-5", average(&of(3..=5), "the paper's jobs 1 to 4 preempt T2 all alike, and differ")),
        ("fig-6.4-6-8", average(&both(6, 8), system)),
        ("fig-6.4-7", average(&of(7..=7), system)),
        ("fig-6.4-second", similar(&all.malloc)),
        ("fig-6.5", value(all.colored_misses(0), "in all jobs of all runs")),
        ("fig-6.5-identical", identical(all, 0)),
        (
            "fig-6.6",
            average(&misses(&all.malloc, 1, 1..=HYPERPERIODS), "preempted four times: five times its pages come back"),
        ),
        ("fig-6.7", value(all.colored_misses(1), "in all jobs of all runs")),
        ("fig-6.7-identical", identical(all, 1)),
    ]);
    curves("Figures 6.4 and 6.5", all, ran);
}

fn appendix_a_1(all: &AllocatorPair, ran: &mut ModelFindings) {
    let of = |numbers| misses(&all.malloc, 0, numbers);
    ran.findings.extend([
        ("a.1-t1", average(&of(1..=6), "")),
        ("a.1-t1-7", average(&of(7..=7), "job 8's are the same: T2 has ended")),
        ("a.1-t1-8", average(&of(8..=8), "")),
        ("a.1-second", similar(&all.malloc)),
        ("a.1-t1-tlb", value(all.colored_misses(0), "in all jobs of all runs")),
        (
            "a.1-t2",
            average(&misses(&all.malloc, 1, 1..=HYPERPERIODS), "preempted five times: six times its pages come back"),
        ),
        ("a.1-t2-tlb", value(all.colored_misses(1), "in all jobs of all runs")),
    ]);
    curves("Figures A.1 and A.2", all, ran);
}

/// T1's jobs of the second hyperperiod are like those of the first: each average within a quarter.
fn similar(runs: &[Vec<JobOutcome>]) -> RowFinding {
    let of = |hyperperiod: u64| -> Vec<f64> {
        (1..=JOBS).map(|job| job + hyperperiod * JOBS).map(|job| round(mean(&misses(runs, 0, job..=job)))).collect()
    };
    let (first, second) = (of(0), of(1));
    let holds = first.iter().zip(&second).all(|(a, b)| (a - b).abs() <= 0.25 * a);
    claim(holds, format!("{first:?}, then {second:?}"), "each job's average within a quarter")
}

/// Misses are the same in each run, by job, the warm-up's too.
fn identical(all: &AllocatorPair, task: usize) -> RowFinding {
    let of =
        |run: &Vec<JobOutcome>| jobs(run, task, 0..=u64::MAX).map(|job| (job.job, job.l1_misses)).collect::<Vec<_>>();
    let mut runs: Vec<_> = all.colored.iter().map(of).collect();
    let warm_up = runs.first().and_then(|run| run.first()).map_or(0, |job| job.1);
    let number = runs.len();
    runs.sort();
    runs.dedup();
    let found = match runs.len() {
        1 => format!("{number} runs are the same; {warm_up} misses in the warm-up"),
        different => format!("{different} different ones among {number} runs"),
    };
    claim(runs.len() == 1, found, "")
}

/// Figures 6.8, A.7 and A.9.
fn cycles(apart: &AllocatorPair, conflicting: &AllocatorPair, penalty: f64, ran: &mut ModelFindings) {
    // In the first hyperperiod caches still warm up.
    let counted = JOBS + 1..=OF_CYCLES * JOBS;
    let of = |run: &[JobOutcome]| {
        jobs(run, 0, counted.clone()).map(|job| (job.l1_misses as f64, job.cycles)).collect::<Vec<_>>()
    };
    let spread = |run: &Vec<JobOutcome>| {
        let cycles: Vec<f64> = of(run).into_iter().map(|job| job.1).collect();
        cycles.iter().copied().fold(0.0, f64::max) - cycles.iter().copied().fold(f64::INFINITY, f64::min)
    };
    let most = |runs: &[Vec<JobOutcome>]| runs.iter().map(spread).fold(0.0, f64::max);
    // What is not the L1 penalty's.
    let rest =
        |run: &Vec<JobOutcome>| of(run).iter().map(|(misses, cycles)| cycles - penalty * misses).collect::<Vec<_>>();
    let explained = apart.malloc.iter().map(rest).all(|rest| rest.windows(2).all(|pair| pair[0] == pair[1]));
    let stalls = |runs: &[Vec<JobOutcome>]| {
        let sum =
            |of: fn(&JobOutcome) -> f64| runs.iter().flat_map(|run| jobs(run, 0, counted.clone())).map(of).sum::<f64>();
        1000.0 * sum(|job| job.cycles - job.translation_cycles - job.accesses as f64) / sum(|job| job.accesses as f64)
    };
    let in_each =
        |of: fn(&AllocatorPair) -> &Vec<Vec<JobOutcome>>| [of(apart), of(conflicting)].map(|runs| round(stalls(runs)));
    let [with, without] = [in_each(|v| &v.malloc), in_each(|v| &v.colored)];
    ran.findings.extend([
        (
            "fig-6.8-malloc",
            claim(
                most(&apart.malloc) > 0.0 && explained,
                format!("a job's cycles differ by up to {} in a run, by {penalty} a miss in all of them", round(most(&apart.malloc))),
                "lines are of their own, so that nothing else differs in the model",
            ),
        ),
        (
            "fig-6.8-tlb",
            claim(most(&apart.colored) == 0.0, format!("a job's cycles differ by {}", round(most(&apart.colored))), ""),
        ),
        (
            "a.7-lines",
            claim(
                with[0] == 0.0 && without[0] == 0.0 && with[1] > 0.0 && without[1] > 0.0,
                format!(
                    "{} and {} cycles of stalls a kilo access at first bytes (malloc, tlb_malloc), {} and {} on own lines",
                    with[1], without[1], with[0], without[0]
                ),
                "",
            ),
        ),
        (
            "a.7-fluctuates",
            claim(
                most(&conflicting.colored) > 0.0 && most(&conflicting.malloc) > 0.0,
                format!(
                    "a job's cycles differ by up to {} with malloc, {} with tlb_malloc",
                    round(most(&conflicting.malloc)),
                    round(most(&conflicting.colored))
                ),
                "from the second hyperperiod on; under LRU 14 lines in a set of 8 ways miss on every access, in all jobs alike. The processor's policy and \
                 the frames are not published",
            ),
        ),
    ]);
    for (name, run) in [("malloc", apart.malloc.first()), ("tlb_malloc", apart.colored.first())] {
        let points = run.map_or(Vec::new(), |run| (1..).map(f64::from).zip(of(run).iter().map(|job| job.1)).collect());
        ran.series.push(PaperCurve {
            name: format!("Figure 6.8: T1, {name}, a run"),
            x: "job".into(),
            y: "cycles a job".into(),
            points,
            intervals: Vec::new(),
            labels: Vec::new(),
        });
    }
}

/// T1's average misses by job.
fn curves(figures: &str, all: &AllocatorPair, ran: &mut ModelFindings) {
    for (name, runs) in [("malloc", &all.malloc), ("tlb_malloc", &all.colored)] {
        let numbers: RangeInclusive<u64> = 0..=HYPERPERIODS * JOBS;
        ran.series.push(PaperCurve {
            name: format!("{figures}: T1, {name}, average"),
            x: "job, the warm-up being 0".into(),
            y: "L1 DTLB misses a job".into(),
            points: numbers.map(|job| (job as f64, mean(&misses(runs, 0, job..=job)))).collect(),
            intervals: Vec::new(),
            labels: Vec::new(),
        });
    }
}
