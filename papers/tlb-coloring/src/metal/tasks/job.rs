//! A task's jobs, and what each saw.

use std::sync::{Arc, Mutex};

use lookaside_probe::counter::{GroupTicks, GroupVerdict, PassMeter, TimedChain};

use super::page_walks::PageWalkCounter;
use super::program::TaskProgram;

/// Gaps that are written down for each job, on average; more are counted.
pub(super) const GAPS_A_JOB: usize = 32;

/// Rounds after which the witness's pages are loaded too.
const REFRESH: u64 = 16;
/// Of the witness's pages more than one in so many lost is no counting by mistake.
const TAKEN: f64 = 8.0;
/// From here on a group missed in a round that nothing came before: less cannot be told from the timer's grain in as
/// many rounds.
const STRAY: f64 = 1.5;
/// Rounds over a page until the code is there.
const SETTLE: usize = 4;

/// What a task's jobs do.
#[derive(Debug)]
pub(super) struct TaskBody {
    pub chain: TimedChain,
    pub meter: PassMeter,
    /// Over pages in sets that no task uses, where there are some: what is lost of these, no task took.
    pub witness: Option<(TimedChain, PassMeter)>,
    /// Counts its misses and its witness's, in place of the meters, which then tell only what else ran.
    pub walks: Option<Counted>,
    /// Over a page that does not matter: see [`TaskBody::settle`].
    pub scratch: TimedChain,
    /// Misses in a round up to which all pages are back: more than a warm round is counted to have by mistake.
    pub few: f64,
    /// A warm round, and how many of these make a job that loads pages.
    pub round_ns: f64,
    pub rounds: u64,
    /// What the jobs run in place of that. Only the task's thread locks it while there is one.
    pub program: Option<Mutex<TaskProgram>>,
    /// From here on something else ran between two looks of a program.
    pub look_ticks: u64,
    /// Release of the first job, and from release to release.
    pub phase_ns: u64,
    pub period_ns: u64,
}

/// A task among those whose walks are counted.
#[derive(Debug)]
pub(super) struct Counted {
    pub walked: Arc<PageWalkCounter>,
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
pub(super) struct TaskLog {
    pub jobs: Vec<JobRecord>,
    /// When something else ran, in the order of time.
    pub gaps: Vec<[u64; 2]>,
    /// Gaps that there was no room for.
    pub gaps_lost: u64,
}

impl JobRecord {
    /// Takes what was walked for in place of what was timed; nothing of that is unseen.
    pub(super) fn count(&mut self, Counted { walked, owners }: &Counted) {
        let walks = walked.ends(owners);
        (self.misses, self.unseen) = (walks.first().map_or(0, |walks| walks.pages) as f64, 0);
        if let (Some(witness), Some(walks)) = (owners.get(1), walks.get(1)) {
            self.witness_lost = walks.pages as f64 / walked.pages(*witness) as f64;
            self.outside = walks.many;
        }
    }
}

impl TaskLog {
    /// With room for so many jobs, whose memory is there at once: a page fault in a job would be a gap.
    pub(super) fn for_jobs(jobs: usize) -> Self {
        let mut log = Self { jobs: vec![JobRecord { start: 1, ..JobRecord::default() }; jobs], ..Self::default() };
        log.gaps = vec![[1; 2]; jobs.saturating_mul(GAPS_A_JOB)];
        log.jobs.clear();
        log.gaps.clear();
        log
    }
}

impl TaskBody {
    /// Brings back the code that times and judges, so that what it lost meanwhile is not taken for the pages'. Gives
    /// the tick after.
    #[inline(never)]
    pub(super) fn settle(&self) -> u64 {
        let mut last = self.chain.timer().now();
        for _ in 0..SETTLE {
            let ticks = self.scratch.step(0, &mut last);
            std::hint::black_box(self.meter.group(0, ticks));
        }
        last
    }
}

/// A job under way.
pub(super) struct RunningJob<'a> {
    pub body: &'a TaskBody,
    pub log: &'a mut TaskLog,
    pub seen: JobRecord,
    /// The last stamp.
    pub last: u64,
    /// Groups until each was loaded once since the job began, or went on; and what was counted in these.
    pub fresh: usize,
    pub found: f64,
}

impl RunningJob<'_> {
    /// Loads the task's pages, so often.
    pub(super) fn rounds(&mut self, groups: usize) {
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
        let TaskBody { chain, meter, few, .. } = self.body;
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

    /// The witness's pages once: to see what was lost of them while the task did not run, or only so that they are no
    /// older than its own.
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
