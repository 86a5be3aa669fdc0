//! The coloring paper's sets of tasks with `malloc`'s pages against coloured ones (Panchamukhi 2014, Figures 6.4 to
//! 6.14) on this machine: how they are fitted to its geometry, and what their jobs say of the paper's conclusions.
//! [`super::run_sets`] runs them.

mod cases;
mod rows;
#[cfg(test)]
mod tests;

use lookaside_harness::metal::{estimate, Estimate, MetalFindings};
use lookaside_harness::{PaperCurve, Reproduction};

use super::penalty::mean;
use super::task_sets::{median, percent, CalmJob, TaskJobs, LEAST_JOBS, NEARLY_ALL, NONE};
pub(super) use cases::{cases, AllocatorCase};
pub(super) use rows::AllocatorJobs;
use rows::{CaseRows, JobsOf, RowTasks, ROWS};

/// Jobs of a run that nothing else hit, below which it has no mean.
const LEAST_JOBS_A_RUN: usize = 10;
/// "The same" are means that differ by less than one page in so many: single rounds are counted wrongly by as much.
const SAME: f64 = 16.0;

/// A set's runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AllocatorRuns {
    /// How they were done, a line each.
    pub how: Vec<String>,
    /// The runs, those that there was time for.
    pub runs: Vec<AllocatorJobs>,
}

/// The values.
pub(super) const VALUES: &str = include_str!("../../values/malloc_comparison.toml");

/// Adds the rows to what else the paper's experiments gave. `cases`: what each of [`cases`] came to, in their order, or
/// why it was not run; where there are none at all, `reason` says why.
pub(super) fn add(found: &mut Reproduction, cases: &[Result<AllocatorRuns, String>], reason: &str) {
    let mut ran = MetalFindings::default();
    for (rows, case) in ROWS.iter().zip(cases) {
        let about = rows.misses.iter().chain(rows.same_sets).chain(rows.none).chain(rows.same).map(|(id, _)| *id);
        match case {
            Ok(versus) => {
                // What is so of the machine is so of each set.
                let is_new = |line: &&String| !found.assumptions.contains(line);
                let new: Vec<String> = versus.how.iter().filter(is_new).cloned().collect();
                found.assumptions.extend(new);
                judge(rows, versus, &mut ran);
            }
            Err(reason) => ran.nothing(&about.chain(rows.cycles).collect::<Vec<_>>(), reason),
        }
    }
    found.rows.extend(ran.rows(VALUES, &found.paper, reason));
    found.series.append(&mut ran.series);
}

fn judge(rows: &CaseRows, versus: &AllocatorRuns, ran: &mut MetalFindings) {
    for about in rows.misses {
        claim(ran, about, versus, |task| misses(versus, task, AllocatorJobs::malloc));
    }
    for about in rows.same_sets {
        claim(ran, about, versus, |task| misses(versus, task, AllocatorJobs::same_sets));
    }
    for about in rows.none {
        claim(ran, about, versus, |task| none(versus, task));
    }
    for about in rows.same {
        claim(ran, about, versus, |task| same(versus, task));
    }
    if let Some(id) = rows.cycles {
        let about: RowTasks = (id, &[0]);
        claim(ran, &about, versus, |task| cycles(versus, task));
    }
    ran.series.extend(rows.curves.iter().map(|&(name, of)| curve(versus, name, of)));
}

/// What a row's claim comes to for one task: the words and whether it holds; or why nothing can be said.
type ClaimFinding = Result<(String, bool), String>;

/// A claim that holds if it does for each task of which enough is known; the others are named.
fn claim(
    ran: &mut MetalFindings,
    &(id, tasks): &RowTasks,
    versus: &AllocatorRuns,
    each: impl Fn(usize) -> ClaimFinding,
) {
    let name = |task: &usize| format!("T{}", task + 1);
    let all: Vec<(String, ClaimFinding)> = tasks.iter().map(|task| (name(task), each(*task))).collect();
    let known: Vec<String> =
        all.iter().filter_map(|(name, found)| Some(format!("{name} {}", found.as_ref().ok()?.0))).collect();
    let mut notes: Vec<String> =
        all.iter().filter_map(|(name, found)| Some(format!("{name}: {}", found.as_ref().err()?))).collect();
    if known.is_empty() {
        return ran.nothing(&[id], &notes.join("; "));
    }
    let hit = |task: &usize| {
        let [malloc, coloured] = [AllocatorJobs::malloc, AllocatorJobs::coloured].map(|of| hit(versus, *task, of));
        format!("{} {malloc} and {coloured}", name(task))
    };
    let hit: Vec<String> = tasks.iter().map(hit).collect();
    notes.push(format!(
        "jobs more that interrupts, other programs or the host hit (malloc, coloured): {}",
        hit.join(", ")
    ));
    let holds = all.iter().all(|(_, found)| !matches!(found, Ok((_, false))));
    ran.claim(id, holds, known.join(", "), notes.join("; "));
}

/// The jobs of all runs that nothing else hit, if they are enough.
fn calm(versus: &AllocatorRuns, task: usize, of: JobsOf) -> Result<Vec<CalmJob>, String> {
    let all = versus.runs.iter().filter_map(|run| of(run, task));
    let calm: Vec<CalmJob> = all.flat_map(|jobs| jobs.calm.iter().copied()).collect();
    if calm.len() < LEAST_JOBS {
        let hit = hit(versus, task, of);
        return Err(format!("nothing else hit only {} jobs, {LEAST_JOBS} are needed; {hit} were hit", calm.len()));
    }
    Ok(calm)
}

fn hit(versus: &AllocatorRuns, task: usize, of: JobsOf) -> usize {
    versus.runs.iter().filter_map(|run| of(run, task)).map(|jobs| jobs.hit).sum()
}

fn sum(jobs: &[CalmJob], figure: fn(&CalmJob) -> f64) -> f64 {
    jobs.iter().map(figure).sum()
}

fn counted(job: &CalmJob) -> f64 {
    job.misses[0]
}

fn touched(job: &CalmJob) -> f64 {
    job.touched
}

/// More than one page in eight of those touched, on average, each time that a job begins or goes on.
fn misses(versus: &AllocatorRuns, task: usize, of: JobsOf) -> ClaimFinding {
    let jobs = calm(versus, task, of)?;
    let share = sum(&jobs, counted) / sum(&jobs, touched).max(1.0);
    let a_job = sum(&jobs, counted) / jobs.len() as f64;
    let found = format!("{a_job:.1} a job, {} of the pages touched", percent(share.max(0.0)));
    Ok((found, share > 1.0 / NONE))
}

/// Coloured: at most one page in eight each time, beyond what its witness lost, in nearly all jobs. And the share
/// without that excuse.
fn none(versus: &AllocatorRuns, task: usize) -> ClaimFinding {
    let jobs = calm(versus, task, AllocatorJobs::coloured)?;
    let most = |job: &CalmJob| touched(job) / NONE;
    let share =
        |spared: &dyn Fn(&CalmJob) -> bool| jobs.iter().filter(|job| spared(job)).count() as f64 / jobs.len() as f64;
    let [all, strict] = [share(&|job| counted(job) <= most(job) + job.taken), share(&|job| counted(job) <= most(job))];
    let median = median(jobs.iter().map(counted));
    let (all_words, strict_words) = (percent(all), percent(strict));
    let found =
        format!("{all_words} of {} jobs ({strict_words} whoever took their pages), median {median:.0}", jobs.len());
    Ok((found, all >= NEARLY_ALL))
}

/// Coloured: the runs' means deviate by less than one in sixteen of the pages touched. Beside it `malloc`'s.
fn same(versus: &AllocatorRuns, task: usize) -> ClaimFinding {
    let runs = means(versus, task, AllocatorJobs::coloured);
    if runs.len() < 2 {
        return Err(format!("{} runs have {LEAST_JOBS_A_RUN} jobs that nothing else hit, 2 are needed", runs.len()));
    }
    let pages = mean(&runs.iter().map(|run| run[1]).collect::<Vec<_>>()).0;
    let deviation = |runs: &[[f64; 2]]| mean(&runs.iter().map(|run| run[0]).collect::<Vec<_>>()).1;
    let malloc = means(versus, task, AllocatorJobs::malloc);
    let beside = if malloc.len() < 2 { "not known".to_string() } else { format!("{:.1}", deviation(&malloc)) };
    let found = format!("{:.1} over {} runs (malloc {beside})", deviation(&runs), runs.len());
    Ok((found, deviation(&runs) <= pages / SAME))
}

/// Of each run that has enough jobs, their mean misses, and the mean of the pages that they touched.
fn means(versus: &AllocatorRuns, task: usize, of: JobsOf) -> Vec<[f64; 2]> {
    let jobs = versus.runs.iter().filter_map(|run| of(run, task)).filter(|jobs| jobs.calm.len() >= LEAST_JOBS_A_RUN);
    jobs.map(|jobs| [counted, touched].map(|figure| sum(&jobs.calm, figure) / jobs.calm.len() as f64)).collect()
}

/// Cycles lie closer together with coloured pages: the range of the middle four fifths of the jobs.
fn cycles(versus: &AllocatorRuns, task: usize) -> ClaimFinding {
    let [malloc, coloured] = [calm(versus, task, AllocatorJobs::malloc)?, calm(versus, task, AllocatorJobs::coloured)?]
        .map(|jobs| estimate(jobs.iter().map(|job| job.cycles).collect()));
    let [wide, narrow] = [&malloc, &coloured].map(|cycles| cycles.high - cycles.low);
    let found = format!("{narrow:.0} around {:.0}, with malloc {wide:.0} around {:.0}", coloured.median, malloc.median);
    Ok((found, narrow < wide))
}

/// T1's misses by the job's place in its hyperperiod: the median of the runs' means, and how far these lie apart.
fn curve(versus: &AllocatorRuns, name: &str, of: JobsOf) -> PaperCurve {
    let runs: Vec<&TaskJobs> = versus.runs.iter().filter_map(|run| of(run, 0)).collect();
    let last = runs.iter().flat_map(|jobs| &jobs.calm).map(|job| job.place).max().unwrap_or_default();
    let (mut points, mut intervals) = (Vec::new(), Vec::new());
    for place in 1..=last {
        let there = |jobs: &&TaskJobs| -> Option<f64> {
            let there: Vec<f64> = jobs.calm.iter().filter(|job| job.place == place).map(counted).collect();
            (!there.is_empty()).then(|| there.iter().sum::<f64>() / there.len() as f64)
        };
        let means: Vec<f64> = runs.iter().filter_map(there).collect();
        if !means.is_empty() {
            let Estimate { median, low, high } = estimate(means);
            points.push((place as f64, median));
            intervals.push((low, high));
        }
    }
    let (x, y) =
        ("job of a hyperperiod that nothing else hit".into(), "misses a job, median of the runs' means".into());
    PaperCurve { name: name.into(), x, y, points, intervals, labels: Vec::new() }
}
