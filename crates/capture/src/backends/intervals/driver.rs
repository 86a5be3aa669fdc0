//! Decides when an interval begins, and of which thread it is.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use lookaside_host::Process;
use lookaside_stats::SplitMix64;

use super::follow::IntervalEnd;
use super::message::IntervalNews;
use super::phase::{PhaseWatch, RunPhase};
use super::stopped_thread::{NoCopy, StoppedThread};
use super::target::{Interval, IntervalOrder, TargetProcess};
use super::thread_speed::LengthChooser;
use crate::backends::sample::CollectorState;
use crate::request::Intervals;

/// The program's CPU time is looked at so often in a period, within these bounds: an interval begins late by a hundredth
/// of its period, and to look at many threads takes long.
const LOOKS: u32 = 100;
const LOOK: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(100)];
/// How often the program's processes are looked for, which takes longer.
const LOOK_FOR_PROCESSES: Duration = Duration::from_millis(200);
/// The part of an interval that warms the model up, of as many instructions as intervals have had so far. What is left
/// of the interval before is right for what is used all the time; the rest is soon replaced.
const WARM_UP_PART: u64 = 4;
/// Nanoseconds of a tick, where the kernel does not say it finer (proc(5), `USER_HZ`).
const TICK_NS: u64 = 10_000_000;

/// What the intervals came to.
#[derive(Clone, Debug, Default)]
pub(super) struct IntervalTally {
    pub(super) intervals: u64,
    pub(super) instructions: u64,
    /// How often each call ended an interval.
    pub(super) calls: HashMap<i64, u64>,
    pub(super) faults: u64,
    /// Ends where the copy did something else than the program.
    pub(super) elsewhere: u64,
    pub(super) other_ends: u64,
    /// The longest time that a thread stood still, and all of these together.
    pub(super) longest_stood: Duration,
    pub(super) stood: Duration,
    pub(super) cpu_ns: u64,
    /// Those that intervals are of.
    pub(super) threads: HashSet<(u32, u32)>,
    /// Why there was no interval, the last time.
    pub(super) why_none: Option<String>,
    /// What came of the moments and the length that were asked for.
    pub(super) asked: Vec<String>,
}

/// Makes intervals of a program, with the processes that it starts, until it has ended or nobody wants more.
pub(super) struct IntervalDriver {
    pub(super) pid: u32,
    pub(super) intervals: Intervals,
    pub(super) phase: PhaseWatch,
    pub(super) length: LengthChooser,
    pub(super) collector: Arc<CollectorState>,
    pub(super) news: Sender<IntervalNews>,
    /// Whether the program has ended.
    pub(super) has_ended: Box<dyn Fn() -> bool + Send>,
    /// It was there before us, and stays when we go.
    pub(super) is_attached: bool,
}

impl IntervalDriver {
    pub(super) fn run(mut self) -> IntervalTally {
        let mut tally = IntervalTally::default();
        let mut targets: HashMap<u32, TargetProcess> = HashMap::new();
        let mut clock = ProgramClock::new(self.pid);
        let mut cost = OwnCost::new();
        let mut held: Vec<Box<StoppedThread>> = Vec::new();
        let mut dice = SplitMix64::new(u64::from(self.pid));
        let every = self.intervals.every.as_nanos() as u64;
        // The first comes within the first half of a period: a short program has one, too.
        let mut next_ns = dice.below(every / 2 + 1);
        while !self.collector.stop.load(Ordering::Relaxed) && !(self.has_ended)() {
            let look = (self.intervals.every / LOOKS).clamp(LOOK[0], LOOK[1]);
            std::thread::sleep(if self.phase.waits_for_call() { LOOK[0] } else { look });
            held.retain_mut(|thread| thread.is_held());
            match self.phase.look() {
                RunPhase::Over if self.is_attached => break,
                RunPhase::Over => continue,
                RunPhase::Before => {
                    clock.look();
                    next_ns = clock.total_ns + dice.below(every / 2 + 1);
                    continue;
                }
                RunPhase::Within => clock.look(),
            }
            if clock.total_ns < next_ns {
                continue;
            }
            let Some((process, thread)) = clock.choose(&mut dice) else { continue };
            let target = targets
                .entry(process)
                .or_insert_with(|| TargetProcess::new(process, process == self.pid && !self.is_attached));
            let mut tell = |news| self.news.send(news).is_ok();
            let instructions = self.length.instructions((process, thread));
            let order = IntervalOrder {
                instructions,
                warm_up: tally.expected(instructions) / WARM_UP_PART,
                cpu_ns: clock.total_ns,
                wants_landmark: self.length.wants_landmarks(),
            };
            let (began_interval, began_ns) = (Instant::now(), clock.total_ns);
            let made = target.interval(thread, order, &mut tell);
            clock.copies.extend(target.ended());
            target.let_go(thread);
            let cost_ns = cost.add(began_interval.elapsed());
            match made {
                Ok(interval) => {
                    tally.add(interval);
                    self.length.measure((process, thread), interval.landmark.as_ref());
                    if interval.end == IntervalEnd::Stopped {
                        break;
                    }
                    // Between half and one and a half of the period: no rhythm of the program's is met again and again.
                    clock.look();
                    next_ns = clock.total_ns + every / 2 + dice.below(every + 1);
                    // The first translates most of the code, which is done once.
                    if let Some(budget) = self.intervals.budget.filter(|_| tally.intervals > 1) {
                        next_ns = next_ns.max(began_ns + (cost_ns / budget) as u64);
                    }
                    tally.threads.insert((process, thread));
                    clock.begin_anew();
                }
                Err(NoCopy::NotNow) => {}
                Err(NoCopy::Held(thread)) => held.push(thread),
                Err(NoCopy::Never(why)) => {
                    tally.why_none = Some(why);
                    next_ns = clock.total_ns + every;
                }
                Err(NoCopy::System(error)) => {
                    tally.why_none = Some(error.to_string());
                    next_ns = clock.total_ns + every;
                }
            }
        }
        // The kernel lets go of what is still held when this thread ends.
        held.retain_mut(|thread| thread.is_held());
        if !(self.has_ended)() {
            targets.iter_mut().for_each(|(&process, target)| target.let_go(process));
        }
        tally.cpu_ns = clock.total_ns;
        tally.asked = self.phase.remark().into_iter().chain(self.length.remark()).collect();
        tally
    }
}

impl IntervalTally {
    /// For the reader of the result.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let seconds = self.cpu_ns as f64 / 1e9;
        remarks.push(format!(
            "recorded: {} of the run, {:.1} M instructions of {seconds:.1} s of CPU time; counts are of these",
            count(self.intervals, "interval"),
            self.instructions as f64 / 1e6
        ));
        remarks.extend(self.asked.iter().cloned());
        if self.intervals == 0 && self.why_none.is_none() && self.asked.is_empty() {
            remarks
                .push("no interval: the program used too little CPU time, or waited whenever one was to begin".into());
        }
        if self.intervals > 0 {
            remarks.push(format!(
                "the program stood still for at most {:.1} ms at once, {:.1} ms in all",
                self.longest_stood.as_secs_f64() * 1e3,
                self.stood.as_secs_f64() * 1e3
            ));
        }
        if self.threads.len() > 1 {
            remarks.push(
                "each interval is of one thread, which has the caches that it shares with others to itself in the model: \
                 walks may find their tables there more often than in truth"
                    .into(),
            );
        }
        let calls: u64 = self.calls.values().sum();
        let mut most: Vec<_> = self.calls.iter().collect();
        most.sort_unstable_by_key(|&(number, times)| (std::cmp::Reverse(times), number));
        let most = most.iter().take(3).map(|&(&number, times)| format!("{} {times}", call_name(number)));
        let reasons = [
            (calls, format!("at a system call that a copy can't make ({})", most.collect::<Vec<_>>().join(", "))),
            (self.faults, "at a fault, or a write to memory that is shared".into()),
            (self.elsewhere, "where other threads, signals or the time led the copy elsewhere".into()),
            (self.other_ends, "at code that can't be followed".into()),
        ];
        let reasons = reasons.iter().filter(|(times, _)| *times > 0).map(|(times, where_)| format!("{times} {where_}"));
        let reasons: Vec<String> = reasons.collect();
        if !reasons.is_empty() {
            remarks.push(format!("intervals that ended early: {}", reasons.join("; ")));
        }
        remarks.extend(self.why_none.as_ref().map(|why| format!("intervals were left out: {why}")));
        remarks
    }

    /// Instructions of an interval by those so far; of the first, as many as are wanted.
    fn expected(&self, wanted: u64) -> u64 {
        self.instructions.checked_div(self.intervals).unwrap_or(wanted)
    }

    fn add(&mut self, interval: Interval) {
        self.intervals += 1;
        self.instructions += interval.instructions;
        self.stood += interval.stood;
        self.longest_stood = self.longest_stood.max(interval.stood);
        match interval.end {
            IntervalEnd::Complete => {}
            IntervalEnd::SystemCall(number) => *self.calls.entry(number).or_default() += 1,
            IntervalEnd::Signal(_) => self.faults += 1,
            IntervalEnd::Elsewhere => self.elsewhere += 1,
            IntervalEnd::Instruction | IntervalEnd::NoCode | IntervalEnd::Stopped => self.other_ends += 1,
        }
    }
}

/// What intervals cost.
struct OwnCost {
    own_ns: u64,
}

impl OwnCost {
    fn new() -> Self {
        Self { own_ns: own_cpu_ns() }
    }

    /// Nanoseconds since the interval before: our own CPU time, and a copy's, which runs for as long as the interval
    /// takes at the most.
    fn add(&mut self, interval: Duration) -> f64 {
        let now = own_cpu_ns();
        let own = now.saturating_sub(std::mem::replace(&mut self.own_ns, now));
        own as f64 + interval.as_nanos() as f64
    }
}

fn own_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU time of a program's threads.
struct ProgramClock {
    pid: u32,
    processes: Vec<u32>,
    looked: Instant,
    /// Copies of ours, which are children of the program's too.
    copies: HashSet<u32>,
    /// By process and thread: all of it, and that since the last interval.
    threads: HashMap<(u32, u32), (u64, u64)>,
    /// Also of threads that have ended.
    total_ns: u64,
}

impl ProgramClock {
    fn new(pid: u32) -> Self {
        let looked = Instant::now();
        let mut clock =
            Self { pid, processes: vec![pid], looked, copies: HashSet::new(), threads: HashMap::new(), total_ns: 0 };
        clock.look();
        // What it used before we came is not ours.
        clock.begin_anew();
        clock.total_ns = 0;
        clock
    }

    fn look(&mut self) {
        if self.looked.elapsed() > LOOK_FOR_PROCESSES {
            self.looked = Instant::now();
            self.processes = with_descendants(self.pid, &self.copies);
        }
        let mut seen = HashMap::new();
        for &process in &self.processes {
            for thread in Process::of(process).threads().unwrap_or_default() {
                let Some(now) = cpu_ns(process, thread) else { continue };
                let (before, since) = self.threads.get(&(process, thread)).copied().unwrap_or((0, 0));
                let more = now.saturating_sub(before);
                self.total_ns += more;
                seen.insert((process, thread), (now, since + more));
            }
        }
        self.threads = seen;
    }

    /// A thread, as likely as it used CPU time since the last interval.
    fn choose(&self, dice: &mut SplitMix64) -> Option<(u32, u32)> {
        let mut all: Vec<_> = self.threads.iter().map(|(&thread, &(_, since))| (thread, since)).collect();
        all.sort_unstable();
        let sum: u64 = all.iter().map(|(_, since)| since).sum();
        if sum == 0 {
            return None;
        }
        let mut at = dice.below(sum);
        all.into_iter()
            .find(|&(_, since)| {
                let is_it = at < since;
                at = at.saturating_sub(since);
                is_it
            })
            .map(|(thread, _)| thread)
    }

    fn begin_anew(&mut self) {
        self.threads.values_mut().for_each(|(_, since)| *since = 0);
    }
}

fn with_descendants(pid: u32, copies: &HashSet<u32>) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(&process) = all.get(at) {
        at += 1;
        let children = Process::of(process).children().unwrap_or_default();
        all.extend(children.into_iter().filter(|child| !copies.contains(child)));
    }
    all
}

fn cpu_ns(process: u32, thread: u32) -> Option<u64> {
    let thread = Process::of(process).thread(thread);
    let fine = thread.bytes("schedstat").ok();
    let fine = fine.and_then(|text| String::from_utf8(text).ok()?.split(' ').next()?.parse().ok());
    fine.or_else(|| Some(thread.stat().ok()?.cpu_ticks() * TICK_NS))
}

fn call_name(number: i64) -> String {
    let known = usize::try_from(number).ok().and_then(syscalls::Sysno::new);
    known.map_or_else(|| format!("call {number}"), |call| call.name().to_string())
}

fn count(n: u64, of: &str) -> String {
    format!("{n} {of}{}", if n == 1 { "" } else { "s" })
}
