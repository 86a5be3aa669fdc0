//! Who ran when on the tasks' CPU, by what each thread there saw of its own time: gaps between its stamps in which
//! others ran.

use lookaside_stats::median;

use super::job::TaskLog;

/// Time in a gap beside the tasks' own and what switching takes, up to which it is an interrupt: beyond, another
/// program ran, or the host took the CPU. On the development machine a tick of the kernel takes 2 to 5 us, and where
/// the host takes the CPU it is mostly 30 us and more.
const INTERRUPT_NS: f64 = 20_000.0;

/// What a gap was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// Ticks.
    pub start: u64,
    pub end: u64,
    /// A task's job began in it.
    pub preempted: bool,
    /// Longer than the tasks' jobs, what switching takes, and an interrupt.
    pub others: bool,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Timeline {
    /// Each task's gaps, in the order of time.
    pub gaps: Vec<Vec<Gap>>,
    /// Gaps of any thread there in which no task's job began, or others ran too; in the order of time.
    pub disturbances: Vec<Gap>,
}

impl Timeline {
    /// From the tasks' logs, and the gaps of the thread that runs when no task does.
    pub(super) fn of(logs: &[TaskLog], watched: &[[u64; 2]], ticks_a_ns: f64) -> Self {
        let within = |task: Option<usize>, gaps: &[[u64; 2]]| -> Vec<GapJobs> {
            let jobs = OtherJobs::of(logs, task);
            gaps.iter().map(|&[start, end]| jobs.within(start, end)).collect()
        };
        let gaps: Vec<Vec<GapJobs>> = (0..).zip(logs).map(|(task, log)| within(Some(task), &log.gaps)).collect();
        let watched = within(None, watched);
        // What switching to a job and back takes is told by most of those in which nothing else happened.
        let switches = gaps.iter().flatten().chain(&watched).filter(|gap| gap.jobs == 1).map(|gap| gap.rest);
        let switch_ticks = median(switches).unwrap_or_default();
        let interrupt_ticks = ticks_a_ns * INTERRUPT_NS;
        let judge = |gap: &GapJobs| gap.judged(switch_ticks, interrupt_ticks);
        let gaps: Vec<Vec<Gap>> = gaps.iter().map(|gaps| gaps.iter().map(judge).collect()).collect();
        let all = gaps.iter().flatten().copied().chain(watched.iter().map(judge));
        let mut disturbances: Vec<Gap> = all.filter(|gap| !gap.preempted || gap.others).collect();
        disturbances.sort_by_key(|gap| gap.start);
        Self { gaps, disturbances }
    }

    /// Interrupts, and times that others ran, between two ticks.
    pub(super) fn disturbed(&self, from: u64, to: u64) -> [u64; 2] {
        // A gap may be long: those that began before and reach in are looked for as far back as the longest.
        let first = self.disturbances.partition_point(|gap| gap.start < from);
        let reach = self.disturbances[..first].iter().rev().take(REACH).filter(|gap| gap.end > from);
        let within = self.disturbances[first..].iter().take_while(|gap| gap.start < to);
        within.chain(reach).fold([0; 2], |[interrupts, others], gap| match gap.others {
            true => [interrupts, others + 1],
            false => [interrupts + 1, others],
        })
    }
}

/// Gaps that began earlier and may still last: as many as there are threads would do; tasks are at most 256.
const REACH: usize = 257;

/// Jobs of all tasks but one: begin and end, in the order of their begin.
struct OtherJobs(Vec<[u64; 2]>);

impl OtherJobs {
    fn of(logs: &[TaskLog], but: Option<usize>) -> Self {
        let others = logs.iter().enumerate().filter(|(task, _)| Some(*task) != but);
        let mut jobs: Vec<[u64; 2]> =
            others.flat_map(|(_, log)| log.jobs.iter().map(|job| [job.start, job.end])).collect();
        jobs.sort_unstable();
        Self(jobs)
    }

    fn within(&self, start: u64, end: u64) -> GapJobs {
        let first = self.0.partition_point(|job| job[0] < start);
        let begun = self.0[first..].iter().take_while(|job| job[0] < end);
        // Jobs nest: a more important one's time is within that of the one it interrupts.
        let (mut own, mut until, mut jobs) = (0, start, 0);
        for &[from, to] in begun {
            let (from, to) = (from.max(until), to.min(end));
            own += to.saturating_sub(from);
            until = until.max(to);
            jobs += 1;
        }
        GapJobs { start, end, jobs, rest: end - start - own }
    }
}

/// A gap, the jobs that began in it, and the ticks beside theirs.
#[derive(Clone, Copy, Debug)]
struct GapJobs {
    start: u64,
    end: u64,
    jobs: u32,
    rest: u64,
}

impl GapJobs {
    fn judged(&self, switch_ticks: f64, interrupt_ticks: f64) -> Gap {
        let usual = f64::from(self.jobs) * switch_ticks + interrupt_ticks;
        Gap { start: self.start, end: self.end, preempted: self.jobs > 0, others: self.rest as f64 > usual }
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::JobRecord;
    use super::*;

    fn log(jobs: &[[u64; 2]], gaps: &[[u64; 2]]) -> TaskLog {
        let jobs = jobs.iter().map(|&[start, end]| JobRecord { start, end, ..JobRecord::default() }).collect();
        TaskLog { jobs, gaps: gaps.to_vec(), gaps_lost: 0 }
    }

    #[test]
    fn jobs_interrupts_and_others_are_told_apart() {
        // Two tasks; a tick is a nanosecond. T2 runs from 0 to 700 us: T1 in it three times, an interrupt, and
        // something else after T1's third.
        let us = |times: [u64; 2]| times.map(|time| time * 1000);
        let first = log(&[us([100, 110]), us([300, 310]), us([500, 510])], &[]);
        let second = log(&[us([0, 700])], &[us([97, 113]), us([200, 205]), us([297, 314]), us([497, 600])]);
        // Idle after: the host takes the CPU once.
        let watched = [us([698, 750]), us([800, 803]), us([900, 960])];
        let timeline = Timeline::of(&[first, second], &watched, 1.0);
        let told: Vec<_> = timeline.gaps[1].iter().map(|gap| (gap.preempted, gap.others)).collect();
        assert_eq!(told, [(true, false), (false, false), (true, false), (true, true)]);
        let told: Vec<_> = timeline.disturbances.iter().map(|gap| (gap.start / 1000, gap.others)).collect();
        assert_eq!(told, [(200, false), (497, true), (698, true), (800, false), (900, true)]);
        assert_eq!(timeline.disturbed(0, 190_000), [0, 0]);
        assert_eq!(timeline.disturbed(110_000, 300_000), [1, 0]);
        assert_eq!(timeline.disturbed(520_000, 699_000), [0, 2]);
        assert_eq!(timeline.disturbed(751_000, 1_000_000), [1, 1]);
    }

    #[test]
    fn jobs_within_jobs_count_once() {
        let third = log(&[[0, 400_000]], &[[90_000, 310_000]]);
        let second = log(&[[100_000, 300_000]], &[]);
        let first = log(&[[150_000, 200_000]], &[]);
        let gaps = Timeline::of(&[first, second, third], &[], 1.0).gaps;
        assert_eq!((gaps[2][0].preempted, gaps[2][0].others), (true, false));
    }
}
