//! Response times of fixed-priority preemptive tasks on one core, and how often each is interrupted.
//!
//! The response time of a job is at most the least `R` with `R = C + sum over tasks above of ceil(R / T) C` (Joseph and
//! Pandya, "Finding response times in a real-time system", 1986; Audsley et al., "Applying new scheduling theory to
//! static priority pre-emptive scheduling", 1993): all tasks released at once is the worst that can be, whatever the
//! phases. It holds for tasks that neither wait for each other nor suspend themselves, and where `execution` is all
//! that a job takes.

use super::tasks::{TaskSet, Time};

/// Most rounds until a response time has to stand still. Each adds one job at least; some hundred are usual.
const MAX_ROUNDS: u32 = 20_000;

/// What a response-time analysis says of a set of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Responses {
    times: Vec<Option<Time>>,
    releases: Vec<Option<Vec<u64>>>,
}

impl Responses {
    /// Analyses a set; tasks by their positions in it.
    pub fn of(set: &TaskSet) -> Self {
        let order = set.by_priority();
        let mut times = vec![None; set.tasks.len()];
        let mut releases = vec![None; set.tasks.len()];
        for (rank, &task) in order.iter().enumerate() {
            let above = &order[..rank];
            // Jobs of a task that misses its deadline pile up: nothing is said of those below it.
            let Some(time) = response(set, task, above) else { break };
            let mut released = vec![0; set.tasks.len()];
            for &other in above {
                released[other] = jobs_within(time, set.tasks[other].period);
            }
            times[task] = Some(Time { nanos: time });
            releases[task] = Some(released);
        }
        Self { times, releases }
    }

    /// Longest time from a job's release to its end; `None` where it may be longer than the period, of this task or of
    /// one above it.
    pub fn time(&self, task: usize) -> Option<Time> {
        self.times.get(task).copied().flatten()
    }

    /// Most jobs of each other task (by position) that are released from a job's release to its end, and may interrupt
    /// it; 0 for those below it. `None` as in [`Responses::time`].
    pub fn releases(&self, task: usize) -> Option<&[u64]> {
        self.releases.get(task)?.as_deref()
    }
}

/// Releases of a period in a half-open interval of some length, at most; in nanoseconds.
fn jobs_within(nanos: u64, period: Time) -> u64 {
    nanos.div_ceil(period.nanos.max(1))
}

/// Nanoseconds; `None` where they are more than the period, or did not stand still in time.
fn response(set: &TaskSet, task: usize, above: &[usize]) -> Option<u64> {
    let task = &set.tasks[task];
    let mut time = task.execution.nanos;
    for _ in 0..MAX_ROUNDS {
        if time > task.period.nanos {
            return None;
        }
        // Times are below 2^62 and tasks at most 256: the sum fits.
        let jobs = above.iter().map(|&other| {
            let other = &set.tasks[other];
            u128::from(jobs_within(time, other.period)) * u128::from(other.execution.nanos)
        });
        let next = u64::try_from(u128::from(task.execution.nanos) + jobs.sum::<u128>()).ok()?;
        if next == time {
            return Some(time);
        }
        time = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tasks::{TaskSet, Time};
    use super::Responses;

    fn tasks(rows: &[(&str, &str)]) -> TaskSet {
        let task = |(i, (period, execution)): (usize, &(&str, &str))| {
            format!("[[task]]\nname = \"T{i}\"\nperiod = \"{period}\"\nexecution = \"{execution}\"\npages = 1\n")
        };
        TaskSet::parse(&rows.iter().enumerate().map(task).collect::<String>(), "t").expect("tasks")
    }

    #[test]
    fn the_papers_tasks_are_preempted_five_times() {
        // Section 6.0.8; appendix A.2: "T2's response time exceeds 9.84ms and is interrupted by five preemptions of
        // T1".
        let responses = Responses::of(&tasks(&[("2ms", "0.392ms"), ("16ms", "7.88ms")]));
        assert_eq!(responses.time(0), Some(Time { nanos: 392_000 }));
        assert_eq!(responses.time(1), Some(Time { nanos: 9_840_000 }));
        assert_eq!(responses.releases(0), Some(&[0, 0][..]));
        assert_eq!(responses.releases(1), Some(&[5, 0][..]));
    }

    #[test]
    fn nothing_is_said_below_a_task_that_is_late() {
        let responses = Responses::of(&tasks(&[("4ms", "2ms"), ("6ms", "4ms"), ("100ms", "0ms")]));
        assert_eq!(responses.time(0), Some(Time { nanos: 2_000_000 }));
        assert_eq!((responses.time(1), responses.time(2)), (None, None));
        assert_eq!(responses.releases(2), None);
    }

    #[test]
    fn what_does_not_settle_is_not_waited_for() {
        let responses = Responses::of(&tasks(&[("1000001ns", "1000000ns"), ("2000000s", "1s")]));
        assert_eq!(responses.time(1), None);
    }

    #[test]
    fn a_job_may_take_all_of_its_period_and_no_more() {
        let responses = Responses::of(&tasks(&[("4ms", "2ms"), ("8ms", "4ms")]));
        assert_eq!(responses.time(1), Some(Time { nanos: 8_000_000 }));
        assert_eq!(responses.releases(1), Some(&[2, 0][..]));
        let responses = Responses::of(&tasks(&[("4ms", "2ms"), ("8ms", "4.000001ms")]));
        assert_eq!((responses.time(1), responses.releases(1)), (None, None));
    }
}
