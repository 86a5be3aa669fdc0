//! Section 6.0.8, same set against different sets: Figures 6.2 and 6.3.

use std::ops::RangeInclusive;

use lookaside_harness::{ModelFindings, ModelResult, PaperCurve, RowFinding};
use lookaside_techniques::color::model::JobOutcome;
use lookaside_techniques::color::schedule::{schedule, End};
use lookaside_techniques::color::work::Work;

use super::coloring_bench::{claim, jobs, mean, round, task_set, value, ColoringBench, STORES_PER_MS};

/// Pages of each task.
const PAGES: usize = 4;
/// Jobs of T1 in a hyperperiod.
const JOBS: u64 = 8;
/// Hyperperiods of Figure 6.3; the first two are Figure 6.2's.
const HYPERPERIODS: u64 = 5;

pub(super) fn run(lab: &ColoringBench, ran: &mut ModelFindings) -> ModelResult<()> {
    let set = task_set(&[("1ms", "2ms", "0.392ms", PAGES), ("0ms", "16ms", "7.88ms", PAGES)])?;
    let works = |pages: [Vec<u64>; 2]| pages.map(|pages| Work::stores(&pages, STORES_PER_MS));
    let same = works([lab.pages_of(1, 0, PAGES), lab.pages_of(1, PAGES, PAGES)]);
    let different = works([lab.pages_of(1, 0, PAGES), lab.pages_of(2, 0, PAGES)]);
    let same = lab.run(&set, HYPERPERIODS, &same, &[])?;
    let different = lab.run(&set, HYPERPERIODS, &different, &[])?;

    let second_task = schedule(&set, HYPERPERIODS)?.slices.into_iter().filter(|slice| slice.task == 1 && slice.job > 0);
    let second_task: Vec<_> = second_task.collect();
    let preempted = second_task.iter().filter(|slice| slice.end == End::Preempted).count() as f64;
    let response = second_task.iter().find(|slice| slice.end == End::Completed);
    let response_ms = response.map_or(0.0, |slice| (slice.start_ns + slice.length_ns) as f64 / 1e6);
    ran.findings.extend([
        ("fig-6.2-preempted", value(preempted / HYPERPERIODS as f64, "")),
        ("fig-6.2-response", value(response_ms, "switches take no time")),
        ("fig-6.2-t1", each(&same, 0, |among| among < 6, 1..=2 * JOBS)),
        ("fig-6.2-t1-after", each(&same, 0, |among| among >= 6, 1..=2 * JOBS)),
        ("fig-6.2-t2-first", each(&same, 1, |_| true, 1..=1)),
        ("fig-6.2-t2-later", each(&same, 1, |_| true, 2..=HYPERPERIODS)),
        ("fig-6.2-diff-t1", each(&different, 0, |_| true, 1..=2 * JOBS)),
        ("fig-6.2-diff-t2", each(&different, 1, |_| true, 1..=2)),
    ]);

    let cycles = |run: &[JobOutcome], numbers: RangeInclusive<u64>| -> Vec<f64> {
        jobs(run, 0, numbers).map(|job| job.cycles).collect()
    };
    let (preempting, alone) = (JOBS + 1..=JOBS + 5, JOBS + 7..=JOBS + 8);
    let difference = mean(&cycles(&same, preempting.clone())) - mean(&cycles(&different, preempting.clone()));
    let (spread, _) = range(&cycles(&different, JOBS + 1..=HYPERPERIODS * JOBS));
    let low = mean(&cycles(&same, alone.clone()));
    let (below, as_different) = (mean(&cycles(&same, preempting)) - low, low - mean(&cycles(&different, alone)));
    let sixth = mean(&cycles(&same, JOBS + 6..=JOBS + 6)) - low;
    ran.findings.extend([
        ("fig-6.3-difference", value(difference, "four misses; the penalty of one is an input, their number is not")),
        (
            "fig-6.3-low",
            claim(
                below > 0.0 && sixth > 0.0 && as_different == 0.0,
                format!(
                    "jobs 9 to 13 take {} cycles more than jobs 15 and 16, job 14 {}; these take as many as with different sets",
                    round(below),
                    round(sixth)
                ),
                "",
            ),
        ),
        (
            "fig-6.3-constant",
            claim(spread == 0.0, format!("cycles of jobs 9 to 40 differ by {}", round(spread)), "the number itself is the pace's"),
        ),
    ]);
    series(ran, [("same set", &same), ("different sets", &different)]);
    Ok(())
}

/// Misses that all these jobs have. `among`: the job's place in its hyperperiod, from 0.
fn each(run: &[JobOutcome], task: usize, among: impl Fn(u64) -> bool, numbers: RangeInclusive<u64>) -> RowFinding {
    let all = jobs(run, task, numbers).filter(|job| among((job.job - 1) % JOBS));
    let misses: Vec<f64> = all.map(|job| job.l1_misses as f64).collect();
    let (spread, most) = range(&misses);
    value(most, if spread == 0.0 { String::new() } else { format!("not in all of them: {misses:?}") })
}

/// How far the values lie apart, and the greatest.
fn range(values: &[f64]) -> (f64, f64) {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (most - values.iter().copied().fold(f64::INFINITY, f64::min), most)
}

fn series(ran: &mut ModelFindings, runs: [(&str, &Vec<JobOutcome>); 2]) {
    for (name, run) in runs {
        let mut add = |figure: &str, y: &str, points: Vec<(f64, f64)>| {
            let (name, x) = (format!("{figure}, {name}"), "job, the warm-up being 0".into());
            ran.series.push(PaperCurve { name, x, y: y.into(), points, intervals: Vec::new(), labels: Vec::new() });
        };
        let of = |task, numbers, y: fn(&JobOutcome) -> f64| {
            jobs(run, task, numbers).map(|job| (job.job as f64, y(job))).collect::<Vec<_>>()
        };
        let misses = |job: &JobOutcome| job.l1_misses as f64;
        add("Figure 6.2: T1", "L1 DTLB misses a job", of(0, 0..=2 * JOBS, misses));
        add("Figure 6.2: T2", "L1 DTLB misses a job", of(1, 0..=HYPERPERIODS, misses));
        add("Figure 6.3: T1", "cycles a job", of(0, 1..=HYPERPERIODS * JOBS, |job| job.cycles));
    }
}
