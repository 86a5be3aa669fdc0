//! A task as a thread: its releases (Panchamukhi 2014, Algorithm 4), its jobs, and what each saw.

use std::sync::{Arc, Mutex, PoisonError};

use lookaside_probe::counter::{GroupTicks, GroupVerdict, PassMeter, TimedChain};

use super::program::Program;
use super::real_time::{now_ns, sleep_until};
use super::walked::Walked;

/// Gaps that are written down for each job, on average; more are counted.
const GAPS_A_JOB: usize = 32;

/// Longest wait for an answer to an interruption, or nearly.
const LONG_NS: u64 = 100_000_000;
/// Rounds after which the witness's pages are loaded too.
const REFRESH: u64 = 16;
/// Of the witness's pages more than one in so many lost is no counting by mistake.
const TAKEN: f64 = 8.0;
/// From here on a group missed in a round that nothing came before: less cannot be told from the timer's grain in as many rounds.
const STRAY: f64 = 1.5;
/// Rounds over a page until the code is there.
const SETTLE: usize = 4;

/// What a task's jobs do.
#[derive(Debug)]
pub(super) struct Body {
    pub chain: TimedChain,
    pub meter: PassMeter,
    /// Over pages in sets that no task uses, where there are some: what is lost of these, no task took.
    pub witness: Option<(TimedChain, PassMeter)>,
    /// Counts its misses and its witness's, in place of the meters, which then tell only what else ran.
    pub walks: Option<Counted>,
    /// Over a page that does not matter: see [`Body::settle`].
    pub scratch: TimedChain,
    /// Misses in a round up to which all pages are back: more than a warm round is counted to have by mistake.
    pub few: f64,
    /// A warm round, and how many of these make a job that loads pages.
    pub round_ns: f64,
    pub rounds: u64,
    /// What the jobs run in place of that. Only the task's thread locks it while there is one.
    pub program: Option<Mutex<Program>>,
    /// From here on something else ran between two looks of a program.
    pub look_ticks: u64,
    /// Release of the first job, and from release to release.
    pub phase_ns: u64,
    pub period_ns: u64,
}

/// A task among those whose walks are counted.
#[derive(Debug)]
pub(super) struct Counted {
    pub walked: Arc<Walked>,
    /// Who owns its pages there, and its witness's, if it has one.
    pub owners: Vec<usize>,
}

/// What a job saw. Times are ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct JobRecord {
    pub start: u64,
    pub end: u64,
    /// Of the ticks from start to end, those that counting took.
    pub counting: u64,
    /// It ended after the release of the next.
    pub late: bool,
    /// Misses in the first round and in each round after a gap, and in those after these until few are found.
    pub misses: f64,
    /// Pages that were loaded while something else ran: whether they missed is not known.
    pub unseen: u64,
    /// Shares of its witness's pages that were lost when it began, and each time that it went on, added up.
    pub witness_lost: f64,
    /// Times that it was more than an eighth.
    pub outside: u64,
    /// Misses in other rounds, where a group had two at least.
    pub stray: f64,
    /// Pages that its program touched since it began, and since it went on, added up.
    pub touched: u64,
}

/// What a task saw.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub jobs: Vec<JobRecord>,
    /// When something else ran, in the order of time.
    pub gaps: Vec<[u64; 2]>,
    /// Gaps that there was no room for.
    pub gaps_lost: u64,
}

impl JobRecord {
    /// Takes what was walked for in place of what was timed; nothing of that is unseen.
    fn count(&mut self, Counted { walked, owners }: &Counted) {
        let walks = walked.ends(owners);
        (self.misses, self.unseen) = (walks.first().map_or(0, |walks| walks.pages) as f64, 0);
        if let (Some(witness), Some(walks)) = (owners.get(1), walks.get(1)) {
            self.witness_lost = walks.pages as f64 / walked.pages(*witness) as f64;
            self.outside = walks.many;
        }
    }
}

impl Log {
    /// With room for so many jobs, whose memory is there at once: a page fault in a job would be a gap.
    pub(super) fn for_jobs(jobs: usize) -> Self {
        let mut log = Self { jobs: vec![JobRecord { start: 1, ..JobRecord::default() }; jobs], ..Self::default() };
        log.gaps = vec![[1; 2]; jobs.saturating_mul(GAPS_A_JOB)];
        log.jobs.clear();
        log.gaps.clear();
        log
    }
}

impl Body {
    /// The thread: warm-up, then job after job from a time of the steady clock on, until so many are done or `stop` says so before one.
    pub(super) fn run(&self, begin_ns: u64, jobs: usize, log: &mut Log, stop: &dyn Fn() -> bool) {
        self.chain.pass();
        let mut program = self.program.as_ref().map(|program| program.lock().unwrap_or_else(PoisonError::into_inner));
        for job in 0..jobs {
            let release = begin_ns + self.phase_ns + job as u64 * self.period_ns;
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
            let mut seen = self.job(log, program.as_deref_mut());
            seen.late = now_ns() > release + self.period_ns;
            log.jobs.push(seen);
        }
    }

    fn job(&self, log: &mut Log, program: Option<&mut Program>) -> JobRecord {
        let groups = self.chain.groups().len();
        let start = self.chain.timer().now();
        if let Some(Counted { walked, .. }) = &self.walks {
            walked.begins();
        }
        let begun = self.chain.timer().now();
        let seen = JobRecord { start, counting: begun.wrapping_sub(start), ..JobRecord::default() };
        let mut job = Job { body: self, log, seen, last: self.settle(), fresh: groups, found: 0.0 };
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

/// A job under way.
pub(super) struct Job<'a> {
    pub body: &'a Body,
    log: &'a mut Log,
    pub seen: JobRecord,
    /// The last stamp.
    pub last: u64,
    /// Groups until each was loaded once since the job began, or went on; and what was counted in these.
    pub fresh: usize,
    found: f64,
}

impl Job<'_> {
    /// Loads the task's pages, so often.
    fn rounds(&mut self, groups: usize) {
        for round in 1..=self.body.rounds {
            for group in 0..groups {
                self.load(group);
            }
            if round % REFRESH == 0 || round == self.body.rounds {
                self.look_at_witness(false);
            }
        }
    }

    /// One group of the task's pages.
    #[inline(always)]
    fn load(&mut self, group: usize) {
        let Body { chain, meter, few, .. } = self.body;
        let ticks = chain.step(group, &mut self.last);
        match meter.group(group, ticks) {
            GroupVerdict::Misses(misses) if self.fresh > 0 => {
                self.fresh -= 1;
                self.found += misses;
                if self.fresh == 0 {
                    self.seen.misses += self.found;
                    // Pages put each other out before all are back, but where the oldest goes.
                    self.fresh = if self.found > *few { chain.groups().len() } else { 0 };
                    self.found = 0.0;
                }
            }
            GroupVerdict::Misses(misses) if misses >= STRAY => self.seen.stray += misses,
            GroupVerdict::Misses(_) => (),
            GroupVerdict::Interrupted => {
                self.seen.unseen += u64::from(meter.pages(group));
                self.goes_on_after(ticks);
            }
        }
    }

    /// The witness's pages once: to see what was lost of them while the task did not run, or only so that they are no older than its own.
    pub(super) fn look_at_witness(&mut self, counts: bool) {
        let Some((chain, meter)) = &self.body.witness else { return };
        let (mut lost, mut pages) = (0.0, 0.0);
        for group in 0..chain.groups().len() {
            let ticks = chain.step(group, &mut self.last);
            match meter.group(group, ticks) {
                GroupVerdict::Misses(misses) => {
                    lost += misses;
                    pages += f64::from(meter.pages(group));
                }
                // What was lost of these is not known.
                GroupVerdict::Interrupted => self.interrupted(ticks),
            }
        }
        if counts && pages > 0.0 {
            self.seen.witness_lost += lost / pages;
            self.seen.outside += u64::from(TAKEN * lost > pages);
        }
    }

    /// Something else ran within this time, up to the last stamp.
    pub(super) fn goes_on_after(&mut self, ticks: GroupTicks) {
        self.interrupted(ticks);
        self.last = self.body.settle();
        self.look_at_witness(true);
    }

    /// Something else ran within this time; the round that was under way begins anew.
    fn interrupted(&mut self, ticks: GroupTicks) {
        self.seen.misses += self.found;
        (self.fresh, self.found) = (self.body.chain.groups().len(), 0.0);
        if self.log.gaps.len() < self.log.gaps.capacity() {
            self.log.gaps.push([self.last.wrapping_sub(ticks.whole() as u64), self.last]);
        } else {
            self.log.gaps_lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use lookaside_probe::counter::{GroupTicks, Timer};

    use super::*;

    /// A task over words of the caller's, two in each row, whose passes with and without misses would take so much longer.
    fn body(words: &mut [[u64; 128]], size: usize, miss_ticks: u64) -> Body {
        let (timer, _) = Timer::here().expect("a timer");
        let pages: Vec<[*mut u64; 2]> = words.iter_mut().map(|page| [&raw mut page[0], &raw mut page[64]]).collect();
        // SAFETY: words of the caller's, which it keeps as long as the task.
        let [chain, scratch] = [size, pages.len()].map(|size| unsafe { TimedChain::link(timer, &pages, size) });
        let groups: Vec<usize> = chain.groups().collect();
        let passes = |shot| vec![vec![GroupTicks { shot, ..GroupTicks::default() }; groups.len()]; 16];
        let meter = PassMeter::calibrate(&groups, &passes(0), &passes(miss_ticks), 0.0).expect("told apart");
        Body {
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
        let mut log = Log::for_jobs(5);
        body.run(begin_ns, 5, &mut log, &|| now_ns() < begin_ns);
        let told = log.jobs.iter().map(|job| (job.misses.abs() < 1e-6, job.unseen, job.stray)).collect::<Vec<_>>();
        assert_eq!((told, log.gaps.len(), log.gaps_lost), (vec![(true, 0, 0.0); 5], 0, 0));
        assert!(log.jobs.windows(2).all(|jobs| jobs[0].start < jobs[0].end && jobs[0].end < jobs[1].start));
        assert!(now_ns() >= begin_ns + 4 * 200_000, "a job began before its release");
        // Stopped before the third.
        let asked = std::cell::Cell::new(0);
        let mut log = Log::for_jobs(5);
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
        let body = Body { rounds: 40, ..body(&mut words, 2, 1) };
        let mut log = Log::for_jobs(1);
        body.run(now_ns(), 1, &mut log, &|| false);
        assert_eq!((log.jobs[0].unseen, log.jobs[0].misses), (160, 0.0));
        assert_eq!(log.gaps.len() as u64 + log.gaps_lost, 80);
        assert_eq!(log.gaps.len(), GAPS_A_JOB);
        assert!(log.gaps.iter().all(|gap| gap[0] < gap[1]) && log.gaps.windows(2).all(|two| two[0][1] <= two[1][0]));
    }

    #[test]
    fn the_witness_is_looked_at_whenever_the_job_goes_on() {
        let (mut words, mut others) = (vec![[0; 128]; 4], vec![[0; 128]; 8]);
        let Body { chain, meter, .. } = body(&mut others, 4, 1 << 50);
        // One for which the time of any pass is that of misses.
        let passes = |control| vec![vec![GroupTicks { control, ..GroupTicks::default() }; 2]; 16];
        let all = PassMeter::calibrate(&[4, 4], &passes(1 << 40), &passes(0), 0.0).expect("told apart");
        let mut witnessed = body(&mut words, 2, 1 << 50);
        let mut look = |witness| {
            witnessed.witness = Some(witness);
            let mut log = Log::for_jobs(1);
            witnessed.run(now_ns(), 1, &mut log, &|| false);
            ((log.jobs[0].witness_lost * 1000.0).round(), log.jobs[0].outside, log.gaps.len())
        };
        assert_eq!(look((chain, meter)), (0.0, 0, 0));
        let Body { chain, .. } = body(&mut others, 4, 1 << 50);
        assert_eq!(look((chain, all)), (1000.0, 1, 0));
        // Interrupted in both groups: nothing is known of what was lost. Two gaps at the begin, two at the end.
        let mut near = vec![[0; 128]; 8];
        let Body { chain, meter, .. } = body(&mut near, 4, 1);
        assert_eq!(look((chain, meter)), (0.0, 0, 4));
    }
}
