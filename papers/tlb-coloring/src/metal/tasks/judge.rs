//! What the tasks saw, beside what the model of the machine says of the very same slices.

use lookaside_engine::{Setup, WalkModel};
use lookaside_machine::Machine;
use lookaside_techniques::color::model::{model, Job};
use lookaside_techniques::color::schedule::{End, Schedule, Slice};
use lookaside_techniques::color::work::Work;
use serde::Serialize;

use super::job::Log;
use super::timeline::Timeline;
use super::TasksError;

/// A job, measured and modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct JobRun {
    /// The job, from 1, over all turns.
    pub job: u64,
    /// It is the first of its task in a turn: more is cold then than its pages.
    pub begins_turn: bool,
    /// From its begin to its end, in core cycles, without the time that others ran, and that counting took.
    pub cycles: f64,
    /// Misses counted, of the level that is counted: in the first round and in those after others ran, and after these until few are found.
    pub misses: u64,
    /// Pages loaded while others ran: what missed there is not known.
    pub unseen_pages: u64,
    /// Misses in rounds that nothing came before, where there were two or more in a group.
    pub stray_misses: u64,
    /// Of a task that runs a program: pages that it touched since it began, and each time since it went on, added up. One that loads pages touches all of
    /// them each time.
    pub touched_pages: Option<u64>,
    /// Times that another task ran within.
    pub preemptions: u64,
    /// Interrupts from its begin to its end.
    pub interrupts: u64,
    /// Times within that something else ran for longer: another program, the host.
    pub others: u64,
    /// Times that it began or went on, and more than an eighth of its witness's pages were lost: pages in sets that no task uses.
    pub outside: u64,
    /// Pages of its own, of those that it touched, that no task took, if as large a share of them as of its witness's was lost each time that it began or went on.
    pub taken_pages: f64,
    /// It ended after its deadline.
    pub late: bool,
    /// Misses by the model, with the tasks' slices as they were and nothing else. A program is modelled as if it touched all of its pages each time.
    pub modelled_misses: u64,
}

impl JobRun {
    /// It missed no more than one page in eight (or one) each time that it began or went on, whoever took them.
    pub fn is_spared(&self, pages: usize) -> bool {
        self.misses as f64 <= self.off(pages)
    }

    /// What single passes of known misses are counted wrongly by: an eighth of the pages touched, or one, each time.
    fn off(&self, pages: usize) -> f64 {
        let times = 1 + self.preemptions as usize;
        let each = self.touched_pages.map_or(pages, |touched| touched as usize / times);
        ((each / 8).max(1) * times) as f64
    }

    /// Pages that it did not touch, which cannot miss, added up over the times that it began or went on.
    fn untouched(&self, pages: usize) -> f64 {
        let all = pages as u64 * (1 + self.preemptions);
        self.touched_pages.map_or(0, |touched| all.saturating_sub(touched)) as f64
    }

    /// Counted and modelled are the same but for the pages that nobody saw, those that were not touched, those that no task took, and, for each time that it
    /// begins or goes on, an eighth of the task's pages or one.
    pub fn agrees(&self, pages: usize) -> bool {
        let off = self.off(pages);
        let [counted, modelled, unseen] = [self.misses, self.modelled_misses, self.unseen_pages].map(|n| n as f64);
        counted <= modelled + self.taken_pages + off && modelled <= counted + unseen + self.untouched(pages) + off
    }
}

/// How ticks are read, and which misses are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub ticks_a_ns: f64,
    pub cycles_a_tick: f64,
    /// Misses of the last level; else of the first.
    pub by_walks: bool,
}

/// Joins the tasks' logs: jobs of each task, by its place in the set. `watched`: gaps of the thread that runs when none does. `rounds`: the words of each
/// task, in order, and how often it goes round them in a millisecond.
pub(super) fn judge(
    logs: &[Log],
    watched: &[[u64; 2]],
    rounds: &[(Vec<u64>, u64)],
    machine: &Machine,
    scale: Scale,
) -> Result<Vec<Vec<JobRun>>, TasksError> {
    let timeline = Timeline::of(logs, watched, scale.ticks_a_ns);
    let words: Vec<usize> = rounds.iter().map(|(round, _)| round.len()).collect();
    let (schedule, mut all) = slices(logs, &timeline, &words, scale);
    let works: Vec<Work> =
        rounds.iter().map(|(round, per_ms)| Work::stores(round, per_ms * round.len() as u64)).collect();
    let mut bare = machine.clone();
    // Where data lie changes no misses. Without caches a walker reads from memory.
    bare.caches.clear();
    bare.walker.first_cache_level = 1;
    let setup = Setup { walks: WalkModel::CountOnly, ..Setup::new(bare) };
    let jobs: Vec<Job> = model(setup, &schedule, &works, &[]).map_err(|error| TasksError(error.to_string()))?;
    for job in jobs.iter().filter(|job| job.job > 0) {
        let run = all.get_mut(job.task).and_then(|runs| runs.get_mut(job.job as usize - 1));
        if let Some(run) = run {
            run.modelled_misses = if scale.by_walks { job.walks } else { job.l1_misses };
        }
    }
    Ok(all)
}

/// Who ran when, and the jobs but for what is modelled.
fn slices(logs: &[Log], timeline: &Timeline, words: &[usize], scale: Scale) -> (Schedule, Vec<Vec<JobRun>>) {
    let base = logs.iter().filter_map(|log| log.jobs.first()).map(|job| job.start).min().unwrap_or_default();
    let ns = |ticks: u64| (ticks.saturating_sub(base) as f64 / scale.ticks_a_ns) as u64;
    let mut schedule = Schedule::default();
    for task in 0..logs.len() {
        schedule.slices.push(Slice { task, job: 0, start_ns: 0, length_ns: 0, first: true, end: End::Completed });
    }
    let mut all = Vec::new();
    for (task, (log, gaps)) in logs.iter().zip(&timeline.gaps).enumerate() {
        let mut runs = Vec::new();
        let mut gaps = gaps.iter().peekable();
        for (number, job) in (1..).zip(&log.jobs) {
            let (mut from, mut gone, mut preemptions, mut times) = (job.start, job.counting, 0, 1u32);
            let mut slice = |from: u64, to: u64, first, end| {
                let length_ns = ns(to) - ns(from);
                schedule.slices.push(Slice { task, job: number, start_ns: ns(from), length_ns, first, end });
            };
            while let Some(gap) = gaps.next_if(|gap| gap.start < job.end) {
                gone += gap.end - gap.start;
                times += 1;
                if gap.preempted {
                    slice(from, gap.start, preemptions == 0, End::Preempted);
                    (from, preemptions) = (gap.end, preemptions + 1);
                }
            }
            slice(from, job.end, preemptions == 0, End::Completed);
            let [interrupts, others] = timeline.disturbed(job.start, job.end);
            runs.push(JobRun {
                job: number,
                begins_turn: number == 1,
                cycles: (job.end - job.start).saturating_sub(gone) as f64 * scale.cycles_a_tick,
                misses: job.misses.round() as u64,
                unseen_pages: job.unseen,
                stray_misses: job.stray.round() as u64,
                preemptions,
                interrupts,
                others,
                outside: job.outside,
                touched_pages: (job.touched > 0).then_some(job.touched),
                taken_pages: job.witness_lost.max(0.0)
                    * if job.touched > 0 { job.touched as f64 / f64::from(times) } else { words[task] as f64 },
                late: job.late,
                modelled_misses: 0,
            });
        }
        all.push(runs);
    }
    // Warm-ups are first: the sort is stable.
    schedule.slices.sort_by_key(|slice| (slice.job != 0, slice.start_ns));
    schedule.horizon_ns =
        schedule.slices.iter().map(|slice| slice.start_ns + slice.length_ns).max().unwrap_or_default();
    (schedule, all)
}

#[cfg(test)]
mod tests {
    use lookaside_machine::preset;

    use super::super::job::JobRecord;
    use super::*;

    const SCALE: Scale = Scale { ticks_a_ns: 2.0, cycles_a_tick: 1.5, by_walks: false };

    /// Ticks of microseconds.
    fn us(times: [u64; 2]) -> [u64; 2] {
        times.map(|time| 1_000_000 + 2000 * time)
    }

    fn log(jobs: &[[u64; 2]], gaps: &[[u64; 2]]) -> Log {
        let seen = |times: &[u64; 2]| {
            let [start, end] = us(*times);
            JobRecord { start, end, misses: 7.2, witness_lost: 0.25, ..JobRecord::default() }
        };
        Log { jobs: jobs.iter().map(seen).collect(), gaps: gaps.iter().map(|gap| us(*gap)).collect(), gaps_lost: 0 }
    }

    /// T1 runs three times: within T2, after it, and once more after nobody. Four pages each, of one set of four ways or of two. Something interrupts it once, and once when
    /// none runs, which hits nobody; counting takes 10 us of a job.
    #[test]
    fn what_is_modelled_follows_who_ran() {
        let mut logs =
            [log(&[[1000, 1400], [3000, 3400], [5000, 5400]], &[[3100, 3102]]), log(&[[0, 2400]], &[[990, 1410]])];
        logs[0].jobs[1].counting = 20_000;
        let machine = preset("xeon-e5-2650").expect("a preset");
        for (other, expected) in [(0, [vec![4, 4, 0], vec![4]]), (1, [vec![0, 0, 0], vec![0]])] {
            let pages = |task: u64, set: u64| (0..4).map(|k| (16 * (4 * task + k) + set) << 12).collect::<Vec<u64>>();
            let rounds = [(pages(0, 0), 1000), (pages(1, other), 1000)];
            let watched = [us([2990, 3410]), us([4000, 4010]), us([4990, 5410])];
            let found = judge(&logs, &watched, &rounds, &machine, SCALE).expect("a model");
            let modelled: Vec<Vec<u64>> =
                found.iter().map(|runs| runs.iter().map(|run| run.modelled_misses).collect()).collect();
            assert_eq!(modelled, expected, "T2 in set {other}");
            let told: Vec<_> = found[0]
                .iter()
                .map(|run| (run.job, run.begins_turn, run.preemptions, run.interrupts, run.others))
                .collect();
            assert_eq!(told, [(1, true, 0, 0, 0), (2, false, 0, 1, 0), (3, false, 0, 0, 0)]);
            assert_eq!((found[1][0].preemptions, found[1][0].interrupts), (1, 0));
            // Ticks without the gaps' and counting's, times cycles a tick; a quarter of four pages.
            assert_eq!((found[0][1].cycles, found[1][0].cycles), (388.0 * 3000.0, 1980.0 * 3000.0));
            assert_eq!((found[0][0].misses, found[0][0].taken_pages), (7, 1.0));
        }
    }
}
