//! What the tasks saw, beside what the model of the machine says of the very same slices.

use lookaside_engine::{Setup, WalkModel};
use lookaside_machine::Machine;
use lookaside_techniques::color::model::{model, JobOutcome};
use lookaside_techniques::color::schedule::{End, Schedule, Slice};
use lookaside_techniques::color::work::Work;

use super::error::TaskRunError;
use super::job::TaskLog;
use super::task_run::JobRun;
use super::timeline::Timeline;

/// How ticks are read, and which misses are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockScale {
    pub ticks_a_ns: f64,
    pub cycles_a_tick: f64,
    /// Misses of the last level; else of the first.
    pub by_walks: bool,
}

/// Joins the tasks' logs: jobs of each task, by its place in the set. `watched`: gaps of the thread that runs when none
/// does. `rounds`: the words of each task, in order, and how often it goes round them in a millisecond.
pub(super) fn judge(
    logs: &[TaskLog],
    watched: &[[u64; 2]],
    rounds: &[(Vec<u64>, u64)],
    machine: &Machine,
    scale: ClockScale,
) -> Result<Vec<Vec<JobRun>>, TaskRunError> {
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
    let jobs: Vec<JobOutcome> =
        model(setup, &schedule, &works, &[]).map_err(|error| TaskRunError(error.to_string()))?;
    for job in jobs.iter().filter(|job| job.job > 0) {
        let run = all.get_mut(job.task).and_then(|runs| runs.get_mut(job.job as usize - 1));
        if let Some(run) = run {
            run.modelled_misses = if scale.by_walks { job.walks } else { job.l1_misses };
        }
    }
    Ok(all)
}

/// Who ran when, and the jobs but for what is modelled.
fn slices(logs: &[TaskLog], timeline: &Timeline, words: &[usize], scale: ClockScale) -> (Schedule, Vec<Vec<JobRun>>) {
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

    const SCALE: ClockScale = ClockScale { ticks_a_ns: 2.0, cycles_a_tick: 1.5, by_walks: false };

    /// Ticks of microseconds.
    fn us(times: [u64; 2]) -> [u64; 2] {
        times.map(|time| 1_000_000 + 2000 * time)
    }

    fn log(jobs: &[[u64; 2]], gaps: &[[u64; 2]]) -> TaskLog {
        let seen = |times: &[u64; 2]| {
            let [start, end] = us(*times);
            JobRecord { start, end, misses: 7.2, witness_lost: 0.25, ..JobRecord::default() }
        };
        TaskLog { jobs: jobs.iter().map(seen).collect(), gaps: gaps.iter().map(|gap| us(*gap)).collect(), gaps_lost: 0 }
    }

    /// T1 runs three times: within T2, after it, and once more after nobody. Four pages each, of one set of four ways
    /// or of two. Something interrupts it once, and once when none runs, which hits nobody; counting takes 10 us of a
    /// job.
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
