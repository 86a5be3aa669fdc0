//! A task as a thread: its releases (Panchamukhi 2014, Algorithm 4), its jobs, and what each saw.

use lookaside_probe::counter::{Judged, Meter, TimedChain};

use super::real_time::{now_ns, sleep_until};

/// Gaps that are written down for each job, on average; more are counted.
const GAPS_A_JOB: usize = 32;

/// Longest wait for an answer to an interruption, or nearly.
const LONG_NS: u64 = 100_000_000;
/// Rounds over a page until the code is there.
const SETTLE: usize = 4;

/// What a task's jobs do.
#[derive(Debug)]
pub(super) struct Body {
    pub chain: TimedChain,
    pub meter: Meter,
    /// Over a page that does not matter: see [`Body::settle`].
    pub scratch: TimedChain,
    /// Misses in a round up to which all pages are back: more than a warm round is counted to have by mistake.
    pub few: u32,
    /// A warm round, and how many of these make a job.
    pub round_ns: f64,
    pub rounds: u64,
    /// Release of the first job and from release to release, in nanoseconds of the steady clock.
    pub first_ns: u64,
    pub period_ns: u64,
    pub jobs: usize,
}

/// What a job saw. Times are ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub start: u64,
    pub end: u64,
    /// It ended after the release of the next.
    pub late: bool,
    /// Misses in the first round and in each round after a gap, and in those after these until few are found.
    pub misses: u64,
    /// Pages that were loaded while something else ran: whether they missed is not known.
    pub unseen: u64,
    /// Misses in other rounds, two in a group at least: fewer cannot be told from the timer's grain in as many rounds.
    pub stray: u64,
}

/// What a task saw.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub jobs: Vec<Seen>,
    /// When something else ran, in the order of time.
    pub gaps: Vec<[u64; 2]>,
    /// Gaps that there was no room for.
    pub gaps_lost: u64,
}

impl Log {
    /// With room for so many jobs, whose memory is there at once: a page fault in a job would be a gap.
    pub(super) fn for_jobs(jobs: usize) -> Self {
        let mut log = Self { jobs: vec![Seen { start: 1, ..Seen::default() }; jobs], ..Self::default() };
        log.gaps = vec![[1; 2]; jobs.saturating_mul(GAPS_A_JOB)];
        log.jobs.clear();
        log.gaps.clear();
        log
    }
}

impl Body {
    /// The thread: warm-up, then job after job, until all are done or `stop` says so before one.
    pub(super) fn run(&self, log: &mut Log, stop: &dyn Fn() -> bool) {
        self.chain.pass();
        for job in 0..self.jobs {
            let release = self.first_ns + job as u64 * self.period_ns;
            // A long wait is cut, so that it can be ended; the last part is slept in one, since waking up leaves traces.
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
            let mut seen = self.job(log);
            seen.late = now_ns() > release + self.period_ns;
            log.jobs.push(seen);
        }
    }

    fn job(&self, log: &mut Log) -> Seen {
        let groups = self.chain.groups().len();
        let mut last = self.chain.timer().now();
        let mut seen = Seen { start: last, ..Seen::default() };
        last = self.settle();
        // Groups until each was loaded once since the job began, or went on; and what was counted in these.
        let (mut fresh, mut found) = (groups, 0);
        for _ in 0..self.rounds {
            for group in 0..groups {
                let ticks = self.chain.step(group, &mut last);
                match self.meter.group(group, ticks) {
                    Judged::Misses(misses) if fresh > 0 => {
                        fresh -= 1;
                        found += misses;
                        if fresh == 0 {
                            seen.misses += u64::from(found);
                            // Pages put each other out before all are back, but where the oldest goes.
                            fresh = if found > self.few { groups } else { 0 };
                            found = 0;
                        }
                    }
                    Judged::Misses(0 | 1) => (),
                    Judged::Misses(misses) => seen.stray += u64::from(misses),
                    Judged::Interrupted => {
                        seen.misses += u64::from(found);
                        (fresh, found) = (groups, 0);
                        seen.unseen += u64::from(self.meter.pages(group));
                        let start = last.wrapping_sub(ticks.shot + ticks.control + ticks.before);
                        if log.gaps.len() < log.gaps.capacity() {
                            log.gaps.push([start, last]);
                        } else {
                            log.gaps_lost += 1;
                        }
                        last = self.settle();
                    }
                }
            }
        }
        seen.misses += u64::from(found);
        seen.end = last;
        seen
    }

    /// Brings back the code that times and judges, so that what it lost meanwhile is not taken for the pages'. Gives the tick after.
    #[inline(never)]
    fn settle(&self) -> u64 {
        let mut last = self.chain.timer().now();
        for _ in 0..SETTLE {
            let ticks = self.scratch.step(0, &mut last);
            std::hint::black_box(self.meter.group(0, ticks));
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use lookaside_probe::counter::{Ticks, Timer};

    use super::*;

    #[test]
    fn jobs_come_in_order_after_their_releases_and_stop_when_told() {
        let timer = Timer::here().expect("a timer");
        let mut words = vec![[0u64; 512]; 20];
        let pages: Vec<[*mut u64; 2]> = words.iter_mut().map(|page| [&raw mut page[0], &raw mut page[64]]).collect();
        // SAFETY: words of ours.
        let [chain, scratch] = [8, 20].map(|size| unsafe { TimedChain::link(timer, &pages, size) });
        let passes = |shot| vec![vec![Ticks { shot, ..Ticks::default() }; 3]; 16];
        // So far apart that nothing here is a miss, or takes so long that it was interrupted.
        let meter = Meter::calibrate(&[8, 8, 4], &passes(0), &passes(1 << 50)).expect("told apart");
        let first_ns = now_ns() + 1_000_000;
        let body =
            Body { chain, meter, scratch, few: 1, round_ns: 1.0, rounds: 3, first_ns, period_ns: 200_000, jobs: 5 };
        let mut log = Log::for_jobs(5);
        body.run(&mut log, &|| now_ns() < first_ns);
        let told = log.jobs.iter().map(|job| (job.misses, job.unseen, job.stray)).collect::<Vec<_>>();
        assert_eq!((told, log.gaps.len(), log.gaps_lost), (vec![(0, 0, 0); 5], 0, 0));
        assert!(log.jobs.windows(2).all(|jobs| jobs[0].start < jobs[0].end && jobs[0].end < jobs[1].start));
        let last_release = first_ns + 4 * 200_000;
        assert!(now_ns() >= last_release, "a job began before its release");
        // Stopped before the third.
        let asked = std::cell::Cell::new(0);
        let mut log = Log::for_jobs(5);
        body.run(&mut log, &|| asked.replace(asked.get() + 1) == 2);
        assert_eq!(log.jobs.len(), 2);
        // Not an hour later either.
        let far = Body { first_ns: now_ns() + 3_600_000_000_000, ..body };
        let began = now_ns();
        far.run(&mut log, &|| now_ns() > began + 1_000_000);
        assert_eq!(log.jobs.len(), 2);
    }

    #[test]
    fn an_interrupted_group_is_a_gap_and_its_pages_are_unseen() {
        let timer = Timer::here().expect("a timer");
        let mut words = [[0u64; 64]; 4];
        let pages: Vec<[*mut u64; 2]> = words.iter_mut().map(|page| [&raw mut page[0], &raw mut page[8]]).collect();
        // SAFETY: words of ours.
        let [chain, scratch] = [2, 4].map(|size| unsafe { TimedChain::link(timer, &pages, size) });
        // So near that any time is an interrupt: all groups are gaps, as many as there is room for.
        let ticks = |shot, control| vec![vec![Ticks { shot, control, before: 0 }; 2]; 16];
        let meter = Meter::calibrate(&[2, 2], &ticks(0, 0), &ticks(1, 0)).expect("told apart");
        let body = Body {
            chain,
            meter,
            scratch,
            few: 1,
            round_ns: 1.0,
            rounds: 40,
            first_ns: now_ns(),
            period_ns: u64::MAX / 4,
            jobs: 1,
        };
        let mut log = Log::for_jobs(1);
        body.run(&mut log, &|| false);
        assert_eq!((log.jobs[0].unseen, log.jobs[0].misses), (160, 0));
        assert_eq!(log.gaps.len() as u64 + log.gaps_lost, 80);
        assert_eq!(log.gaps.len(), GAPS_A_JOB);
        assert!(log.gaps.iter().all(|gap| gap[0] < gap[1]) && log.gaps.windows(2).all(|two| two[0][1] <= two[1][0]));
    }
}
