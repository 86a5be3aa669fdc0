//! A task as a thread: its releases (Panchamukhi 2014, Algorithm 4).

use std::sync::PoisonError;

use super::job::{Counted, JobRecord, RunningJob, TaskBody, TaskLog};
use super::program::TaskProgram;
use super::real_time::{now_ns, sleep_until};

/// Longest wait for an answer to an interruption, or nearly.
const LONG_NS: u64 = 100_000_000;

impl TaskBody {
    /// The thread: warm-up, then job after job from a time of the steady clock on, until so many are done or `stop`
    /// says so before one.
    pub(super) fn run(&self, begin_ns: u64, jobs: usize, log: &mut TaskLog, stop: &dyn Fn() -> bool) {
        self.chain.pass();
        let mut program = self.program.as_ref().map(|program| program.lock().unwrap_or_else(PoisonError::into_inner));
        for job in 0..jobs {
            let release = begin_ns + self.phase_ns + job as u64 * self.period_ns;
            // A long wait is cut, so that it can be ended; the last part is slept in one, since waking up leaves
            // traces.
            while now_ns() + 2 * LONG_NS < release {
                if stop() {
                    return;
                }
                sleep_until(now_ns() + LONG_NS);
            }
            sleep_until(release);
            if stop() {
                return;
            }
            let mut seen = self.job(log, program.as_deref_mut());
            seen.late = now_ns() > release + self.period_ns;
            log.jobs.push(seen);
        }
    }

    fn job(&self, log: &mut TaskLog, program: Option<&mut TaskProgram>) -> JobRecord {
        let groups = self.chain.groups().len();
        let start = self.chain.timer().now();
        if let Some(Counted { walked, .. }) = &self.walks {
            walked.begins();
        }
        let begun = self.chain.timer().now();
        let seen = JobRecord { start, counting: begun.wrapping_sub(start), ..JobRecord::default() };
        let mut job = RunningJob { body: self, log, seen, last: self.settle(), fresh: groups, found: 0.0 };
        job.look_at_witness(true);
        match program {
            Some(program) => {
                program.job(&mut job);
                job.look_at_witness(false);
            }
            None => job.rounds(groups),
        }
        job.seen.misses += job.found;
        job.seen.end = job.last;
        let mut seen = job.seen;
        if let Some(counted) = &self.walks {
            seen.count(counted);
            let end = self.chain.timer().now();
            seen.counting += end.wrapping_sub(seen.end);
            seen.end = end;
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use lookaside_probe::counter::{GroupTicks, PassMeter, TimedChain, Timer};

    use super::super::job::GAPS_A_JOB;
    use super::*;

    /// A task over words of the caller's, two in each row, whose passes with and without misses would take so much
    /// longer.
    fn body(words: &mut [[u64; 128]], size: usize, miss_ticks: u64) -> TaskBody {
        let (timer, _) = Timer::here().expect("a timer");
        let pages: Vec<[*mut u64; 2]> = words.iter_mut().map(|page| [&raw mut page[0], &raw mut page[64]]).collect();
        // SAFETY: words of the caller's, which it keeps as long as the task.
        let [chain, scratch] = [size, pages.len()].map(|size| unsafe { TimedChain::link(timer, &pages, size) });
        let groups: Vec<usize> = chain.groups().collect();
        let passes = |shot| vec![vec![GroupTicks { shot, ..GroupTicks::default() }; groups.len()]; 16];
        let meter = PassMeter::calibrate(&groups, &passes(0), &passes(miss_ticks), 0.0).expect("told apart");
        TaskBody {
            chain,
            meter,
            scratch,
            witness: None,
            walks: None,
            few: 1.0,
            round_ns: 1.0,
            rounds: 3,
            program: None,
            look_ticks: u64::MAX,
            phase_ns: 0,
            period_ns: 200_000,
        }
    }

    #[test]
    fn jobs_come_in_order_after_their_releases_and_stop_when_told() {
        let mut words = vec![[0; 128]; 20];
        // So far apart that nothing here is a miss, or takes so long that it was interrupted.
        let body = body(&mut words, 8, 1 << 50);
        let begin_ns = now_ns() + 1_000_000;
        let mut log = TaskLog::for_jobs(5);
        body.run(begin_ns, 5, &mut log, &|| now_ns() < begin_ns);
        let told = log.jobs.iter().map(|job| (job.misses.abs() < 1e-6, job.unseen, job.stray)).collect::<Vec<_>>();
        assert_eq!((told, log.gaps.len(), log.gaps_lost), (vec![(true, 0, 0.0); 5], 0, 0));
        assert!(log.jobs.windows(2).all(|jobs| jobs[0].start < jobs[0].end && jobs[0].end < jobs[1].start));
        assert!(now_ns() >= begin_ns + 4 * 200_000, "a job began before its release");
        // Stopped before the third.
        let asked = std::cell::Cell::new(0);
        let mut log = TaskLog::for_jobs(5);
        body.run(begin_ns, 5, &mut log, &|| asked.replace(asked.get() + 1) == 2);
        assert_eq!(log.jobs.len(), 2);
        // Not an hour later either.
        let began = now_ns();
        body.run(began + 3_600_000_000_000, 5, &mut log, &|| now_ns() > began + 1_000_000);
        assert_eq!(log.jobs.len(), 2);
    }

    #[test]
    fn an_interrupted_group_is_a_gap_and_its_pages_are_unseen() {
        let mut words = vec![[0; 128]; 4];
        // So near that any time is an interrupt: all groups are gaps, as many as there is room for.
        let body = TaskBody { rounds: 40, ..body(&mut words, 2, 1) };
        let mut log = TaskLog::for_jobs(1);
        body.run(now_ns(), 1, &mut log, &|| false);
        assert_eq!((log.jobs[0].unseen, log.jobs[0].misses), (160, 0.0));
        assert_eq!(log.gaps.len() as u64 + log.gaps_lost, 80);
        assert_eq!(log.gaps.len(), GAPS_A_JOB);
        assert!(log.gaps.iter().all(|gap| gap[0] < gap[1]) && log.gaps.windows(2).all(|two| two[0][1] <= two[1][0]));
    }

    #[test]
    fn the_witness_is_looked_at_whenever_the_job_goes_on() {
        let (mut words, mut others) = (vec![[0; 128]; 4], vec![[0; 128]; 8]);
        let TaskBody { chain, meter, .. } = body(&mut others, 4, 1 << 50);
        // One for which the time of any pass is that of misses.
        let passes = |control| vec![vec![GroupTicks { control, ..GroupTicks::default() }; 2]; 16];
        let all = PassMeter::calibrate(&[4, 4], &passes(1 << 40), &passes(0), 0.0).expect("told apart");
        let mut witnessed = body(&mut words, 2, 1 << 50);
        let mut look = |witness| {
            witnessed.witness = Some(witness);
            let mut log = TaskLog::for_jobs(1);
            witnessed.run(now_ns(), 1, &mut log, &|| false);
            ((log.jobs[0].witness_lost * 1000.0).round(), log.jobs[0].outside, log.gaps.len())
        };
        assert_eq!(look((chain, meter)), (0.0, 0, 0));
        let TaskBody { chain, .. } = body(&mut others, 4, 1 << 50);
        assert_eq!(look((chain, all)), (1000.0, 1, 0));
        // Interrupted in both groups: nothing is known of what was lost. Two gaps at the begin, two at the end.
        let mut near = vec![[0; 128]; 8];
        let TaskBody { chain, meter, .. } = body(&mut near, 4, 1);
        assert_eq!(look((chain, meter)), (0.0, 0, 4));
    }
}
