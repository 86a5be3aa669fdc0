//! The coloring paper's task sets (Panchamukhi 2014, section 6.0.8) on this machine: what their jobs say of its
//! conclusions. [`super::run_sets`] runs the tasks.

use lookaside_harness::metal::MetalFindings;
use lookaside_harness::Reproduction;

/// Jobs that nothing else hit, below which nothing is said.
pub(super) const LEAST_JOBS: usize = 100;
/// Share of the jobs that a conclusion has to hold in.
pub(super) const NEARLY_ALL: f64 = 0.99;
/// "None" is one page in so many, which single passes are counted wrongly by.
pub(super) const NONE: f64 = 8.0;

/// A job that nothing but the tasks hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CalmJob {
    /// Which job of its hyperperiod, from 1.
    pub place: u64,
    /// Misses counted, and modelled.
    pub misses: [f64; 2],
    /// Pages that no task took: as large a share as was lost of pages in sets that no task uses.
    pub taken: f64,
    /// Times that it began or went on.
    pub parts: u64,
    /// Pages that it touched, the same again counted again each time that it went on.
    pub touched: f64,
    /// Core cycles.
    pub cycles: f64,
}

/// A task's jobs in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TaskJobs {
    /// Those that nothing else hit.
    pub calm: Vec<CalmJob>,
    /// How many others there were.
    pub hit: usize,
}

/// What the runs came to: T1 and T2 of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TwoTaskRuns {
    /// How it was done, a line each.
    pub how: Vec<String>,
    /// Pages of each task.
    pub pages: u64,
    /// Core cycles of a miss.
    pub miss_cycles: f64,
    /// Each task while the other touches no pages.
    pub alone: [TaskJobs; 2],
    /// Different sets.
    pub apart: [TaskJobs; 2],
    /// The same sets.
    pub same: [TaskJobs; 2],
}

/// Adds the rows to what else the paper's experiments gave.
pub(super) fn add(found: &mut Reproduction, tasks: Result<&TwoTaskRuns, &str>) {
    let mut ran = MetalFindings::default();
    let reason = match tasks {
        Err(reason) => reason,
        Ok(tasks) => {
            found.assumptions.extend(tasks.how.iter().cloned());
            judge(tasks, &mut ran);
            "not measured"
        }
    };
    found.rows.extend(ran.rows(VALUES, &found.paper, reason));
}

/// The rows.
pub(super) const VALUES: &str = include_str!("../../values/tasks.toml");

fn judge(tasks: &TwoTaskRuns, ran: &mut MetalFindings) {
    let none = tasks.pages as f64 / NONE;
    // Those that the other task ran before or within: it must have taken something.
    let followed = |jobs: &TaskJobs| -> Vec<CalmJob> {
        jobs.calm.iter().filter(|job| job.misses[1] >= tasks.pages as f64 / 2.0).copied().collect()
    };
    for (task, id) in ["same-t1", "same-t2"].into_iter().enumerate() {
        let jobs = followed(&tasks.same[task]);
        share(ran, id, &jobs, &tasks.same[task], |job| 2.0 * job.misses[0] >= job.misses[1], None);
    }
    for (task, id) in ["apart-t1", "apart-t2"].into_iter().enumerate() {
        let jobs = &tasks.apart[task];
        let spared = |job: &CalmJob, taken: f64| job.misses[0] <= none * job.parts as f64 + taken;
        // That no task took them is known of as many pages as sets of no task lost, if the index function is right; so
        // the share without that is said, too.
        share(ran, id, &jobs.calm, jobs, |job| spared(job, job.taken), Some(&|job| spared(job, 0.0)));
    }
    let few = |jobs: &[&TaskJobs]| jobs.iter().map(|jobs| jobs.calm.len()).min().filter(|jobs| *jobs < LEAST_JOBS);
    let too_few = |jobs: usize| format!("nothing else hit only {jobs} jobs, {LEAST_JOBS} are needed");
    let misses = |jobs: &TaskJobs| median(jobs.calm.iter().map(|job| job.misses[0]));
    let [alone, apart] = [&tasks.alone, &tasks.apart];
    match few(&[&alone[0], &alone[1], &apart[0], &apart[1]]) {
        Some(jobs) => ran.nothing(&["between"], &too_few(jobs)),
        None => {
            let medians = [0, 1].map(|task| [misses(&apart[task]), misses(&alone[task])]);
            let text = |[apart, alone]: [f64; 2]| format!("{apart:.0} ({alone:.0} alone)");
            let found = format!("T1 {}, T2 {} of {} pages", text(medians[0]), text(medians[1]), tasks.pages);
            let parts = |jobs: &TaskJobs| median(jobs.calm.iter().map(|job| job.parts as f64));
            let within =
                |(task, [apart_misses, alone]): (usize, &[f64; 2])| apart_misses - alone <= none * parts(&apart[task]);
            let holds = medians.iter().enumerate().all(within);
            ran.claim(
                "between",
                holds,
                found,
                "what a task loses alone the system or the core's other users take; this needs no right index",
            );
        }
    }
    let same = TaskJobs { calm: followed(&tasks.same[0]), hit: 0 };
    match few(&[&same, &apart[0]]) {
        Some(jobs) => ran.nothing(&["cycles"], &too_few(jobs)),
        None => {
            let cycles = |jobs: &TaskJobs| median(jobs.calm.iter().map(|job| job.cycles));
            let longer = cycles(&same) - cycles(&apart[0]);
            let penalties = longer / tasks.miss_cycles / tasks.pages as f64;
            let found =
                format!("{longer:.0} cycles longer: {penalties:.2} penalties of {:.1} a page", tasks.miss_cycles);
            ran.claim("cycles", (0.5..=1.5).contains(&penalties), found, "medians");
        }
    }
}

/// A claim on nearly all jobs; `strict`: the same with nothing excused.
fn share(
    ran: &mut MetalFindings,
    id: &'static str,
    jobs: &[CalmJob],
    of: &TaskJobs,
    holds: impl Fn(&CalmJob) -> bool,
    strict: Option<&dyn Fn(&CalmJob) -> bool>,
) {
    if jobs.len() < LEAST_JOBS {
        let told =
            format!("nothing else hit only {} such jobs, {LEAST_JOBS} are needed; {} were hit", jobs.len(), of.hit);
        return ran.nothing(&[id], &told);
    }
    let share =
        |holds: &dyn Fn(&CalmJob) -> bool| jobs.iter().filter(|job| holds(job)).count() as f64 / jobs.len() as f64;
    let [counted, modelled] = [0, 1].map(|which| median(jobs.iter().map(|job| job.misses[which])));
    let all = share(&holds);
    let mut found = format!("{} of {} jobs", percent(all), jobs.len());
    if let Some(strict) = strict {
        found += &format!(" ({} whoever took their pages)", percent(share(strict)));
    }
    found += &format!("; median {counted:.0}, modelled {modelled:.0}");
    let note = format!("{} jobs more were hit by interrupts, other programs or the host", of.hit);
    ran.claim(id, all >= NEARLY_ALL, found, note);
}

/// Cut, not rounded: what falls short of nearly all must not read as if it did not.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", (1000.0 * share + 1e-9).floor() / 10.0)
}

/// The median of figures; not a number where there are none.
pub(super) fn median(figures: impl Iterator<Item = f64>) -> f64 {
    lookaside_stats::median(figures).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_harness::RowVerdict;

    fn jobs(misses: f64, modelled: f64, parts: u64, cycles: f64) -> TaskJobs {
        TaskJobs {
            calm: vec![CalmJob { place: 1, misses: [misses, modelled], taken: 0.0, parts, touched: 0.0, cycles }; 200],
            hit: 7,
        }
    }

    fn empty() -> Reproduction {
        Reproduction {
            paper: "tlb-coloring".into(),
            cite: String::new(),
            machine: String::new(),
            measured: true,
            assumptions: Vec::new(),
            rows: Vec::new(),
            series: Vec::new(),
            halted: None,
        }
    }

    /// As the paper saw it: all hold. Then each is disturbed.
    #[test]
    fn conclusions_hold_where_they_do() {
        let papers = TwoTaskRuns {
            pages: 4,
            miss_cycles: 7.5,
            alone: [jobs(0.0, 0.0, 1, 1000.0), jobs(0.0, 0.0, 1, 9000.0)],
            apart: [jobs(0.0, 0.0, 1, 1000.0), jobs(0.0, 0.0, 6, 9000.0)],
            same: [jobs(4.0, 4.0, 1, 1030.0), jobs(24.0, 24.0, 6, 9180.0)],
            ..TwoTaskRuns::default()
        };
        let verdicts = |tasks: &TwoTaskRuns| {
            let mut found = empty();
            add(&mut found, Ok(tasks));
            found.rows.iter().map(|row| row.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(&papers), [RowVerdict::Holds; 6]);
        let mut found = empty();
        add(&mut found, Ok(&papers));
        let texts: Vec<String> = found.rows.iter().map(|row| format!("{:?}", row.ours)).collect();
        assert!(
            texts[2].contains("100.0 % of 200 jobs (100.0 % whoever took their pages); median 0, modelled 0"),
            "{texts:?}"
        );
        assert!(texts[0].contains("100.0 % of 200 jobs; median 4, modelled 4"), "{texts:?}");
        let changed = |change: fn(&mut TwoTaskRuns)| {
            let mut tasks = papers.clone();
            change(&mut tasks);
            let differ =
                verdicts(&tasks).into_iter().enumerate().filter(|(_, verdict)| *verdict == RowVerdict::Differs);
            differ.map(|(row, _)| row).collect::<Vec<_>>()
        };
        assert_eq!(changed(|tasks| (0..3).for_each(|i| tasks.same[0].calm[i].misses[0] = 1.0)), [0]);
        assert_eq!(changed(|tasks| (0..2).for_each(|i| tasks.same[0].calm[i].misses[0] = 1.0)), [0usize; 0]);
        assert_eq!(changed(|tasks| tasks.same[1] = jobs(11.0, 24.0, 6, 9000.0)), [1]);
        assert_eq!(changed(|tasks| tasks.apart[0] = jobs(1.0, 0.0, 1, 1000.0)), [2, 4]);
        // Pages in sets that no task uses were lost too.
        let taken = |tasks: &mut TwoTaskRuns| {
            tasks.apart[1] = jobs(4.0, 0.0, 6, 9000.0);
            tasks.apart[1].calm.iter_mut().for_each(|job| job.taken = 1.0);
            tasks.alone[1] = tasks.apart[1].clone();
        };
        assert_eq!(changed(taken), [0usize; 0]);
        let mut excused = papers.clone();
        taken(&mut excused);
        let mut found = empty();
        add(&mut found, Ok(&excused));
        let text = format!("{:?}", found.rows[3].ours);
        assert!(text.contains("100.0 % of 200 jobs (0.0 % whoever took their pages)"), "{text}");
        assert_eq!(changed(|tasks| tasks.apart[1].calm.truncate(150)), [0usize; 0]);
        assert_eq!(changed(|tasks| tasks.apart[1] = jobs(3.0, 0.0, 6, 9000.0)), [0usize; 0]);
        assert_eq!(changed(|tasks| tasks.apart[1] = jobs(4.0, 0.0, 6, 9000.0)), [3, 4]);
        assert_eq!(changed(|tasks| tasks.same[0] = jobs(4.0, 4.0, 1, 1050.0)), [5]);
    }

    #[test]
    fn what_falls_short_reads_so() {
        assert_eq!([1.0, 0.99, 0.98999, 0.5, 0.0].map(percent), ["100.0 %", "99.0 %", "98.9 %", "50.0 %", "0.0 %"]);
    }

    #[test]
    fn too_little_says_nothing() {
        let mut found = empty();
        add(&mut found, Ok(&TwoTaskRuns { pages: 4, miss_cycles: 7.5, ..TwoTaskRuns::default() }));
        add(&mut found, Err("not reached: the time is up"));
        assert_eq!(found.rows.len(), 12);
        assert!(found.rows.iter().all(|row| row.ours.is_none()));
        assert!(found.rows[11].note.contains("the time is up"), "{:?}", found.rows[11]);
    }
}
