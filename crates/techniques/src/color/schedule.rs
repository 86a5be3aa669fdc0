//! A set of tasks on one core under a fixed-priority, preemptive scheduler, in virtual time.
//!
//! Times are whole nanoseconds; switching takes none. A job runs for its task's execution time, misses included. At one
//! instant a job ends first, then jobs are released, then the most important one runs. Jobs of one task run in the
//! order of their release: one that is late makes the next wait, as in Panchamukhi 2014, Algorithm 4.

use super::tasks::TaskSet;

/// Who runs when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// In the order of time: first each task's warm-up, in the order of the set.
    pub slices: Vec<Slice>,
    /// Jobs that had not ended by the release of their task's next, in the order of that time, then of the set.
    pub overruns: Vec<Overrun>,
    /// Its end; what runs then is cut off.
    pub horizon_ns: u64,
}

/// A job runs for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The task's place in the set.
    pub task: usize,
    /// The job, from 1; 0 is the warm-up before time 0 (section 6.0.8), in which each page is touched once.
    pub job: u64,
    /// When it begins.
    pub start_ns: u64,
    /// How long it runs; 0 for a warm-up.
    pub length_ns: u64,
    /// The job begins here.
    pub first: bool,
    /// Why it ends.
    pub end: End,
}

/// Why a slice ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The job is done.
    Completed,
    /// A more important task's job begins.
    Preempted,
    /// The schedule ends.
    Horizon,
}

/// A job that is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// The task's place in the set.
    pub task: usize,
    /// The job.
    pub job: u64,
    /// When its task's next job was released.
    pub deadline_ns: u64,
}

/// Most jobs of a schedule: more would take gigabytes.
pub(crate) const MAX_JOBS: u64 = 1 << 20;

/// Longest schedule, in nanoseconds (a century and a half): sums of times stay below 2^64.
const MAX_NS: u64 = 1 << 62;

/// Why there is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// It would be too long.
    #[error("{hyperperiods} hyperperiods of these tasks have more than {MAX_JOBS} jobs; ask for fewer, or choose periods with a smaller common multiple")]
    TooLong {
        /// As asked.
        hyperperiods: u64,
    },
}

/// What the scheduler knows of a task.
struct TaskState {
    next_release_ns: u64,
    /// Jobs released so far.
    released: u64,
    /// Of these, the ones that have ended.
    ended: u64,
    /// What is left to run of the first that has not.
    left_ns: u64,
    /// It has run.
    begun: bool,
}

impl TaskState {
    fn is_ready(&self) -> bool {
        self.ended < self.released
    }
}

/// Runs a set for a number of hyperperiods from time 0 on. A first job that is released later than a period runs later.
///
/// # Errors
/// There are more than 2^20 jobs.
pub fn schedule(set: &TaskSet, hyperperiods: u64) -> Result<Schedule, ScheduleError> {
    let horizon_ns = horizon(set, hyperperiods).ok_or(ScheduleError::TooLong { hyperperiods })?;
    let order = set.by_priority();
    let mut slices: Vec<Slice> = (0..set.tasks.len())
        .map(|task| Slice { task, job: 0, start_ns: 0, length_ns: 0, first: true, end: End::Completed })
        .collect();
    let mut overruns = Vec::new();
    let first = |task: &super::tasks::Task| TaskState {
        next_release_ns: task.phase.nanos,
        released: 0,
        ended: 0,
        left_ns: task.execution.nanos,
        begun: false,
    };
    let mut states: Vec<TaskState> = set.tasks.iter().map(first).collect();
    // The slice under way.
    let mut current: Option<Slice> = None;
    let mut now = 0;
    while now < horizon_ns {
        for (task, (state, of)) in states.iter_mut().zip(&set.tasks).enumerate() {
            if state.next_release_ns == now {
                if state.is_ready() {
                    overruns.push(Overrun { task, job: state.released, deadline_ns: now });
                }
                state.released += 1;
                state.next_release_ns += of.period.nanos;
            }
        }
        let release = states.iter().map(|state| state.next_release_ns).fold(horizon_ns, u64::min);
        let Some(&task) = order.iter().find(|&&task| states[task].is_ready()) else {
            now = release;
            continue;
        };
        if let Some(mut preempted) = current.take_if(|slice| slice.task != task) {
            preempted.end = End::Preempted;
            slices.push(preempted);
        }
        let state = &mut states[task];
        let run_ns = state.left_ns.min(release - now);
        let slice = current.get_or_insert(Slice {
            task,
            job: state.ended + 1,
            start_ns: now,
            length_ns: 0,
            first: !state.begun,
            end: End::Completed,
        });
        slice.length_ns += run_ns;
        state.left_ns -= run_ns;
        state.begun = true;
        now += run_ns;
        if state.left_ns == 0 {
            slices.extend(current.take());
            state.ended += 1;
            state.left_ns = set.tasks[task].execution.nanos;
            state.begun = false;
        }
    }
    slices.extend(current.map(|slice| Slice { end: End::Horizon, ..slice }));
    for (task, state) in states.iter().enumerate() {
        if state.next_release_ns == horizon_ns && state.is_ready() {
            overruns.push(Overrun { task, job: state.released, deadline_ns: horizon_ns });
        }
    }
    Ok(Schedule { slices, overruns, horizon_ns })
}

/// The end, if it is not too far.
fn horizon(set: &TaskSet, hyperperiods: u64) -> Option<u64> {
    let horizon = set.hyperperiod()?.nanos.checked_mul(hyperperiods).filter(|horizon| *horizon <= MAX_NS)?;
    let jobs = set.tasks.iter().map(|task| horizon.saturating_sub(task.phase.nanos).div_ceil(task.period.nanos.max(1)));
    // At most 2^62 each, of a few hundred tasks.
    (jobs.map(u128::from).sum::<u128>() <= u128::from(MAX_JOBS)).then_some(horizon)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tasks::{Task, Time};
    use super::*;

    /// The same, a nanosecond at a time, over a list of all jobs.
    fn tick_by_tick(set: &TaskSet, hyperperiods: u64) -> Schedule {
        struct Job {
            task: usize,
            job: u64,
            release: u64,
            left: u64,
            begun: bool,
            done: bool,
        }
        let horizon = set.hyperperiod().expect("small").nanos * hyperperiods;
        let mut jobs: Vec<Job> = Vec::new();
        for (task, of) in set.tasks.iter().enumerate() {
            for job in 1.. {
                let release = of.phase.nanos + (job - 1) * of.period.nanos;
                if release >= horizon {
                    break;
                }
                jobs.push(Job { task, job, release, left: of.execution.nanos, begun: false, done: false });
            }
        }
        let rank = |task: usize| {
            let of = &set.tasks[task];
            (of.priority.map_or(of.period.nanos, u64::from), task)
        };
        let mut all = Schedule { horizon_ns: horizon, ..Schedule::default() };
        for task in 0..set.tasks.len() {
            all.slices.push(Slice { task, job: 0, start_ns: 0, length_ns: 0, first: true, end: End::Completed });
        }
        // Nanoseconds that were run one after the other, then joined.
        let mut ticks: Vec<Slice> = Vec::new();
        for now in 0..=horizon {
            for late in jobs.iter().filter(|j| !j.done && j.release + set.tasks[j.task].period.nanos == now) {
                all.overruns.push(Overrun { task: late.task, job: late.job, deadline_ns: now });
            }
            if now == horizon {
                break;
            }
            loop {
                let ready = jobs.iter_mut().filter(|j| !j.done && j.release <= now);
                let Some(job) = ready.min_by_key(|j| (rank(j.task), j.job)) else { break };
                let length = job.left.min(1);
                job.left -= length;
                job.done = job.left == 0;
                let end = if job.done { End::Completed } else { End::Preempted };
                ticks.push(Slice {
                    task: job.task,
                    job: job.job,
                    start_ns: now,
                    length_ns: length,
                    first: !job.begun,
                    end,
                });
                job.begun = true;
                if length == 1 {
                    break;
                }
            }
        }
        let mut joined: Vec<Slice> = Vec::new();
        for tick in ticks {
            match joined.last_mut() {
                Some(last) if (last.task, last.job) == (tick.task, tick.job) => {
                    last.length_ns += tick.length_ns;
                    last.end = tick.end;
                }
                _ => joined.push(tick),
            }
        }
        if let Some(last) = joined.last_mut().filter(|last| last.end == End::Preempted) {
            last.end = End::Horizon;
        }
        all.slices.extend(joined);
        all
    }

    fn task(name: usize, phase: u64, period: u64, execution: u64, priority: Option<u32>) -> Task {
        let time = |nanos| Time { nanos };
        Task {
            name: format!("T{name}"),
            priority,
            phase: time(phase),
            period: time(period),
            execution: time(execution),
            pages: Some(1),
            contiguous_pages: 1,
            accesses: None,
            trace: None,
            program: None,
            data_pages: None,
        }
    }

    fn sets() -> impl Strategy<Value = TaskSet> {
        let periods = prop::sample::select(vec![1u64, 2, 3, 4, 5, 6, 8, 12]);
        let one = (0..15u64, periods, 0..=100u64, 0..3u32);
        (prop::collection::vec(one, 1..5), any::<bool>()).prop_map(|(tasks, rated)| TaskSet {
            tasks: tasks
                .into_iter()
                .enumerate()
                .map(|(i, (phase, period, part, priority))| {
                    task(i, phase, period, period * part / 100, (!rated).then_some(priority))
                })
                .collect(),
        })
    }

    proptest! {
        #[test]
        fn it_is_what_goes_by_tick_by_tick(set in sets(), hyperperiods in 0..4u64) {
            prop_assert_eq!(schedule(&set, hyperperiods).expect("few jobs"), tick_by_tick(&set, hyperperiods));
        }
    }

    /// Panchamukhi 2014, section 6.0.8: T2 is preempted five times a job, and jobs 7 and 8 of T1 come after its end.
    #[test]
    fn the_papers_first_set() {
        let ms = 1_000_000;
        let set = TaskSet { tasks: vec![task(1, ms, 2 * ms, 392_000, None), task(2, 0, 16 * ms, 7_880_000, None)] };
        let all = schedule(&set, 2).expect("few jobs");
        assert_eq!((all.horizon_ns, &all.overruns[..]), (32 * ms, &[][..]));
        let of = |task, job| all.slices.iter().filter(move |s| (s.task, s.job) == (task, job));
        for job in 1..=2 {
            assert_eq!(of(1, job).filter(|s| s.end == End::Preempted).count(), 5);
            let last = of(1, job).next_back().expect("a slice");
            assert_eq!((last.start_ns + last.length_ns, last.end), ((job - 1) * 16 * ms + 9_840_000, End::Completed));
            assert_eq!(of(1, job).map(|s| s.length_ns).sum::<u64>(), 7_880_000);
        }
        assert_eq!(of(0, 16).map(|s| (s.start_ns, s.length_ns)).collect::<Vec<_>>(), [(31 * ms, 392_000)]);
    }

    #[test]
    fn what_is_late_is_told() {
        // T2 has 1 of every 2 ns, and needs 3 in 4.
        let set = TaskSet { tasks: vec![task(1, 0, 2, 1, None), task(2, 0, 4, 3, None)] };
        let all = schedule(&set, 2).expect("few jobs");
        let late = |job, deadline_ns| Overrun { task: 1, job, deadline_ns };
        assert_eq!(all.overruns, [late(1, 4), late(2, 8)]);
        assert_eq!(all.slices.last().map(|s| (s.task, s.job, s.end)), Some((1, 2, End::Horizon)));
    }

    #[test]
    fn what_would_take_for_ever_is_refused() {
        let set = TaskSet { tasks: vec![task(1, 0, 1, 0, None), task(2, 0, 1 << 21, 0, None)] };
        let error = schedule(&set, 1).expect_err("too long").to_string();
        assert!(error.starts_with("1 hyperperiods of these tasks have more than 1048576 jobs"), "{error}");
        let set = TaskSet { tasks: vec![task(1, 0, 1 << 61, 0, None)] };
        assert!(schedule(&set, 2).is_ok() && schedule(&set, 3).is_err() && schedule(&set, u64::MAX).is_err());
    }
}
