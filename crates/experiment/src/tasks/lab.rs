//! A run of a set: pages placed, meters calibrated, threads, and what they saw beside the model.

use lookaside_machine::{ColorLevel, Machine};
use lookaside_probe::counter::{TimedChain, Timer};
use lookaside_techniques::color::plan::Plan;
use lookaside_techniques::color::tasks::TaskSet;
use lookaside_techniques::color::work::PAGE_BYTES;

use super::foreign::Foreign;
use super::job::{Body, Log};
use super::judge::{judge, JobRun, Scale};
use super::place::{place, Placed, Placement};
use super::real_time::{become_task, bind, now_ns, Partner, Scheduling, Watch};
use super::{Run, TaskRun, TasksError};

/// Pages of a group: few, so that what is lost with an interrupt is little; enough for a miss of each to be far beyond the timer's grain.
const GROUP: usize = 8;
/// A round in which one page in so many misses is as good as warm: single passes are counted wrongly by as much.
const FEW: usize = 16;
/// Warm rounds of which the fastest says how many fill a job.
const ROUNDS: usize = 64;
/// From the threads' begin to the first release: they have to be there.
const LEAD_NS: u64 = 50_000_000;

/// What the runs share.
pub(super) struct Lab<'a> {
    pub set: &'a TaskSet,
    pub machine: &'a Machine,
    pub timer: Timer,
    /// The level that is counted, among all.
    pub level: &'a ColorLevel,
    pub levels: &'a [ColorLevel],
    pub cpu: usize,
    pub scheduling: Scheduling,
    pub hyperperiod_ns: u64,
    pub seed: u64,
}

impl Lab<'_> {
    /// Runs the set; the calling thread is on the tasks' CPU.
    pub(super) fn run(
        &self,
        placement: Placement,
        plan: &Plan,
        hyperperiods: u64,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &mut dyn FnMut(&str),
    ) -> Result<Run, TasksError> {
        let placed = place(placement, self.set, plan, self.level, self.seed)?;
        progress(&format!("{}: meters", placement.name()));
        let watch = Watch::on(self.cpu, self.timer);
        // What the scratch chains go through: two words a task.
        let mut scratch = vec![[0u64; 2]; self.set.tasks.len()];
        let mut bodies = self.bodies(&placed, &mut scratch, hyperperiods)?;
        let seconds = (self.hyperperiod_ns as f64 * hyperperiods as f64 / 1e9).ceil();
        progress(&format!("{}: the tasks run, {seconds} s", placement.name()));
        let logs = self.threads(&mut bodies, stop)?;
        let watched = watch.end();
        progress(&format!("{}: the same in the model", placement.name()));
        let rounds: Vec<Vec<u64>> =
            placed.words.iter().map(|words| words.iter().map(|words| words[0] as u64).collect()).collect();
        let cycles_a_tick = self.timer.cycles_per_tick;
        let by_walks = self.before() > 0;
        let scale = Scale { ticks_a_ns: 1.0 / self.timer.ns(1), cycles_a_tick, by_walks };
        let jobs = judge(&logs, &watched, &rounds, self.machine, scale)?;
        let tasks = jobs.into_iter().enumerate().zip(bodies).zip(&logs);
        let tasks = tasks.map(|(((task, jobs), body), log)| self.task(task, &rounds[task], body, log, jobs)).collect();
        Ok(Run { placement, tasks })
    }

    /// Entries of the levels before the one that is counted.
    fn before(&self) -> usize {
        let before = self.levels.iter().take_while(|level| level.name != self.level.name);
        before.map(|level| level.sets as usize * level.ways as usize).sum()
    }

    /// The tasks, calibrated; releases begin at 0.
    fn bodies(&self, placed: &Placed, scratch: &mut [[u64; 2]], hyperperiods: u64) -> Result<Vec<Body>, TasksError> {
        let foreign = Foreign::new(self.level, self.before())?;
        let mut partner = Partner::on(self.cpu)?;
        let mut bodies = Vec::new();
        for ((task, words), scratch) in self.set.tasks.iter().zip(&placed.words).zip(scratch) {
            // SAFETY: the words are this task's alone, as long as `placed` lives.
            let chain = unsafe { TimedChain::link(self.timer, words, GROUP) };
            let [first, second] = scratch;
            // SAFETY: two words of the caller's, which outlive the bodies.
            let scratch = unsafe { TimedChain::link(self.timer, &[[first, second]], 1) };
            let meter = foreign.calibrate(&chain, words, &mut || partner.switch());
            let meter = meter.map_err(|error| TasksError(format!("task {}: {error}", task.name)))?;
            let round = (0..ROUNDS).map(|_| chain.pass().iter().map(|ticks| ticks.whole()).sum::<f64>());
            let round_ns = round.fold(f64::INFINITY, f64::min) * self.timer.ns(1);
            let rounds = (task.execution.nanos as f64 / round_ns.max(1.0)).max(1.0) as u64;
            let jobs = (self.hyperperiod_ns / task.period.nanos * hyperperiods) as usize;
            let few = (words.len() / FEW).max(1) as u32;
            let (first_ns, period_ns) = (task.phase.nanos, task.period.nanos);
            bodies.push(Body { chain, meter, scratch, few, rounds, first_ns, period_ns, jobs });
        }
        Ok(bodies)
    }

    /// One thread a task, each at its priority; gives what they saw.
    fn threads(&self, bodies: &mut [Body], stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<Log>, TasksError> {
        let order = self.set.by_priority();
        let begin = now_ns() + LEAD_NS;
        bodies.iter_mut().for_each(|body| body.first_ns += begin);
        let mut logs: Vec<Log> = bodies.iter().map(|body| Log::for_jobs(body.jobs)).collect();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (task, (body, log)) in bodies.iter().zip(&mut logs).enumerate() {
                let rank = order.iter().position(|other| *other == task).unwrap_or_default();
                threads.push(scope.spawn(move || {
                    bind(&[self.cpu])?;
                    if !become_task(self.scheduling, rank, self.set.tasks.len()) {
                        return Err(TasksError("the system takes back the right to a priority".into()));
                    }
                    body.run(log, stop);
                    Ok(())
                }));
            }
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(TasksError("a task's thread ended before its time".into())))
            })
        })?;
        Ok(logs)
    }

    fn task(&self, task: usize, words: &[u64], body: Body, log: &Log, jobs: Vec<JobRun>) -> TaskRun {
        let mut in_set = vec![0; self.level.sets as usize];
        words.iter().for_each(|word| in_set[self.level.set_of(word / PAGE_BYTES) as usize] += 1);
        let of = &self.set.tasks[task];
        let rank = self.set.by_priority().iter().position(|other| *other == task).unwrap_or_default() + 1;
        let mut run = TaskRun {
            name: of.name.clone(),
            rank,
            pages: words.len(),
            most_in_a_set: in_set.into_iter().max().unwrap_or_default(),
            rounds: body.rounds,
            miss_cycles: body.meter.miss_ticks * self.timer.cycles_per_tick,
            meter: body.meter,
            gaps_lost: log.gaps_lost,
            jobs_a_hyperperiod: self.hyperperiod_ns / of.period.nanos,
            summaries: Vec::new(),
            jobs,
        };
        run.summaries = run.summaries();
        run
    }
}
