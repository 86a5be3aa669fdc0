//! Jobs summed up, by what hit them.

use lookaside_stats::median;

use super::task_run::{HitBy, JobRun, JobSummary, TaskRun};

impl TaskRun {
    /// Its jobs by what hit them; none for a kind that there are no jobs of. The first job of each turn is in none:
    /// what is cold then is not the pages only.
    pub fn summaries(&self) -> Vec<JobSummary> {
        HitBy::ALL.into_iter().filter_map(|hit_by| self.summary(hit_by)).collect()
    }

    fn summary(&self, hit_by: HitBy) -> Option<JobSummary> {
        let jobs: Vec<&JobRun> = self.jobs.iter().filter(|job| !job.begins_turn && job.hit_by() == hit_by).collect();
        let mean =
            |figure: fn(&JobRun) -> f64| jobs.iter().map(|job| figure(job)).sum::<f64>() / jobs.len().max(1) as f64;
        let misses = || jobs.iter().map(|job| job.misses);
        Some(JobSummary {
            hit_by,
            jobs: jobs.len(),
            agree: jobs.iter().filter(|job| job.agrees(self.pages)).count(),
            spared: jobs.iter().filter(|job| job.is_spared(self.pages)).count(),
            late: jobs.iter().filter(|job| job.late).count(),
            misses: [mean(|job| job.misses as f64), misses().min()? as f64, misses().max()? as f64],
            modelled_misses: mean(|job| job.modelled_misses as f64),
            touched_pages: jobs
                .iter()
                .all(|job| job.touched_pages.is_some())
                .then(|| mean(|job| job.touched_pages.unwrap_or_default() as f64)),
            taken_pages: mean(|job| job.taken_pages),
            unseen_pages: mean(|job| job.unseen_pages as f64),
            cycles: median(jobs.iter().map(|job| job.cycles))?,
        })
    }

    /// Medians of the misses counted and modelled in each job of a hyperperiod, of jobs that others did not hit and
    /// that begin no turn; `None` where there is no such job (Panchamukhi 2014, Figure 6.2).
    pub fn by_place(&self) -> Vec<Option<[f64; 2]>> {
        let places = self.jobs_a_hyperperiod as usize;
        let of = |place: usize| {
            let there = self.jobs.iter().filter(|job| (job.job as usize - 1) % places == place);
            let jobs: Vec<&JobRun> = there.filter(|job| !job.begins_turn && job.hit_by() != HitBy::Others).collect();
            let [counted, modelled] = [|job: &JobRun| job.misses, |job: &JobRun| job.modelled_misses];
            Some([median(jobs.iter().map(|job| counted(job)))?, median(jobs.iter().map(|job| modelled(job)))?])
        };
        (0..places).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use lookaside_probe::counter::MeterAccuracy;

    use super::*;

    /// Of a task of so many pages that sees so many jobs in a hyperperiod.
    fn task_run(pages: usize, jobs_a_hyperperiod: u64, jobs: Vec<JobRun>) -> TaskRun {
        TaskRun {
            name: "T".into(),
            rank: 1,
            pages,
            most_in_a_set: 1,
            rounds: 1,
            program: None,
            miss_cycles: 1.0,
            known: MeterAccuracy::default(),
            gaps_lost: 0,
            jobs_a_hyperperiod,
            summaries: Vec::new(),
            jobs,
        }
    }

    #[test]
    fn jobs_are_counted_by_what_hit_them_and_none_is_dropped() {
        let job = |job, misses, interrupts, others| JobRun {
            job,
            begins_turn: job == 1,
            misses,
            interrupts,
            others,
            cycles: job as f64,
            modelled_misses: 8,
            ..JobRun::default()
        };
        let jobs = vec![
            job(1, 99, 0, 0),
            job(2, 8, 0, 0),
            job(3, 9, 0, 0),
            job(4, 0, 3, 0),
            job(5, 8, 0, 0),
            job(6, 99, 1, 1),
            job(7, 99, 0, 2),
            JobRun { outside: 1, ..job(8, 30, 0, 0) },
        ];
        let run = task_run(8, 2, jobs);
        let told: Vec<_> =
            run.summaries().iter().map(|s| (s.hit_by, s.jobs, s.agree, s.spared, s.misses, s.cycles)).collect();
        let expected = [
            (HitBy::Nothing, 3, 3, 0, [25.0 / 3.0, 8.0, 9.0], 3.0),
            (HitBy::Unseen, 1, 0, 0, [30.0, 30.0, 30.0], 8.0),
            (HitBy::Interrupts, 1, 0, 1, [0.0, 0.0, 0.0], 4.0),
            (HitBy::Others, 2, 0, 0, [99.0, 99.0, 99.0], 6.5),
        ];
        assert_eq!(told, expected);
        assert_eq!(told.iter().map(|told| told.1).sum::<usize>(), run.jobs.len() - 1);
        // Places of jobs 2 to 8, but for what others hit: 3 and 5, then 2, 4 and 8.
        assert_eq!(run.by_place(), [Some([8.5, 8.0]), Some([8.0, 8.0])]);
    }

    #[test]
    fn a_job_agrees_within_an_eighth_of_its_pages_each_time_it_goes_on() {
        let job = |misses, unseen_pages, preemptions| JobRun {
            misses,
            unseen_pages,
            preemptions,
            modelled_misses: 48,
            ..JobRun::default()
        };
        for (misses, unseen, preemptions, agrees) in [
            (48, 0, 0, true),
            (50, 0, 0, true),
            (51, 0, 0, false),
            (45, 0, 0, false),
            (45, 1, 0, true),
            (51, 9, 0, false),
            (51, 0, 1, true),
        ] {
            assert_eq!(job(misses, unseen, preemptions).agrees(16), agrees, "{misses} {unseen} {preemptions}");
        }
        // What no task took is nobody's fault.
        assert!(JobRun { taken_pages: 1.0, ..job(51, 0, 0) }.agrees(16));
        // Of a program's pages: an eighth of those that it touched; and what it did not touch cannot miss.
        let program = |touched_pages, misses| JobRun { touched_pages: Some(touched_pages), ..job(misses, 0, 1) };
        assert!(program(48, 50).agrees(24) && program(16, 16).agrees(24) && !program(16, 13).agrees(24));
        assert!(program(48, 54).agrees(24) && !program(48, 55).agrees(24) && !program(16, 51).agrees(24));
        // Of few pages, one.
        let few = JobRun { misses: 1, ..JobRun::default() };
        assert!(few.agrees(4) && !JobRun { misses: 2, ..few }.agrees(4));
    }
}
