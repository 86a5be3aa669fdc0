//! A run of a set: pages placed, meters calibrated, threads, and what they saw beside the model.

use lookaside_machine::{ColorLevel, Machine};
use lookaside_probe::counter::{Meter, TimedChain, Timer};
use lookaside_techniques::color::plan::Plan;
use lookaside_techniques::color::tasks::TaskSet;
use lookaside_techniques::color::work::PAGE_BYTES;

use super::foreign::Foreign;
use super::job::{Body, Log};
use super::judge::{judge, JobRun, Scale};
use super::place::{place, Placed, Placement};
use super::real_time::{become_task, bind, now_ns, Partner, Scheduling, Watch};
use super::witness::Witnesses;
use super::{Run, TaskRun, TasksError};

/// Pages of a group: few, so that what is lost with an interrupt is little; enough for a miss of each to be far beyond the timer's grain.
const GROUP: usize = 8;
/// A round in which one page in so many misses is as good as warm: single passes are counted wrongly by as much.
const FEW: usize = 16;
/// Warm rounds of which the fastest says how many fill a job.
const ROUNDS: usize = 64;
/// From here on a round of a task that does not count was interrupted: its preemptions are known all the same.
const INTERRUPTED_NS: f64 = 1000.0;
/// Rounds in the shortest execution time of a task that are modelled; preemption leaves few slices shorter than a twentieth of that.
const ROUNDS_MODELLED: f64 = 20.0;
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
        let all: Vec<usize> = (0..self.set.tasks.len()).collect();
        // Those whose pages count, in each run.
        let counted: Vec<&[usize]> = match placement {
            Placement::Alone => all.chunks(1).collect(),
            _ => vec![&all],
        };
        let mut tasks = Vec::new();
        for counted in counted {
            tasks.extend(self.run_once(placement, &placed, counted, hyperperiods, stop, progress)?);
        }
        Ok(Run { placement, tasks })
    }

    /// One run in which these tasks touch their pages; gives what they saw.
    fn run_once(
        &self,
        placement: Placement,
        placed: &Placed,
        counted: &[usize],
        hyperperiods: u64,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<TaskRun>, TasksError> {
        progress(&format!("{}: meters", placement.name()));
        let watch = Watch::on(self.cpu, self.timer);
        // What the scratch chains go through: two words a task.
        let mut scratch = vec![[0u64; 2]; self.set.tasks.len()];
        let own: Vec<[*mut u64; 2]> = scratch.iter_mut().map(|[first, second]| [&raw mut *first, second]).collect();
        let words: Vec<&[[*mut u64; 2]]> = (0..)
            .zip(&placed.words)
            .map(|(task, words)| if counted.contains(&task) { &words[..] } else { &own[task..=task] })
            .collect();
        let used = placed.words.iter().flatten().map(|words| self.level.set_of(words[0] as u64 / PAGE_BYTES)).collect();
        let witnesses = Witnesses::new(self.level, &used, words.len(), self.seed)?;
        let mut bodies = self.bodies(&words, &own, &witnesses, counted, hyperperiods)?;
        let seconds = (self.hyperperiod_ns as f64 * hyperperiods as f64 / 1e9).ceil();
        progress(&format!("{}: the tasks run, {seconds} s", placement.name()));
        let logs = self.threads(&mut bodies, stop)?;
        let watched = watch.end();
        progress(&format!("{}: the same in the model", placement.name()));
        let of = |(words, body): (&&[[*mut u64; 2]], &Body)| {
            (words.iter().map(|words| words[0] as u64).collect(), self.rounds_per_ms(body))
        };
        let rounds: Vec<(Vec<u64>, u64)> = words.iter().zip(&bodies).map(of).collect();
        let cycles_a_tick = self.timer.cycles_per_tick;
        let by_walks = self.before() > 0;
        let scale = Scale { ticks_a_ns: 1.0 / self.timer.ns(1), cycles_a_tick, by_walks };
        let jobs = judge(&logs, &watched, &rounds, self.machine, scale)?;
        let tasks = jobs.into_iter().enumerate().zip(bodies).zip(&logs);
        let tasks = tasks.map(|(((task, jobs), body), log)| (task, self.task(task, &rounds[task].0, body, log, jobs)));
        Ok(tasks.filter(|(task, _)| counted.contains(task)).map(|(_, run)| run).collect())
    }

    /// Entries of the levels before the one that is counted.
    fn before(&self) -> usize {
        let before = self.levels.iter().take_while(|level| level.name != self.level.name);
        before.map(|level| level.sets as usize * level.ways as usize).sum()
    }

    /// The tasks, those that count calibrated; releases begin at 0. `words`: what each goes through; `own`: two words of each that do not matter.
    fn bodies(
        &self,
        words: &[&[[*mut u64; 2]]],
        own: &[[*mut u64; 2]],
        witnesses: &Witnesses,
        counted: &[usize],
        hyperperiods: u64,
    ) -> Result<Vec<Body>, TasksError> {
        let foreign = Foreign::new(self.level, self.before())?;
        let mut partner = Partner::on(self.cpu)?;
        let mut bodies = Vec::new();
        for (i, ((task, words), own)) in self.set.tasks.iter().zip(words).zip(own).enumerate() {
            // SAFETY: the words are this task's alone, as long as the caller's pages live. (Where both chains are of the same words, they are linked alike.)
            let [chain, scratch] = [(*words, GROUP), (&[*own][..], 1)]
                .map(|(words, size)| unsafe { TimedChain::link(self.timer, words, size) });
            let meter = match counted.contains(&i) {
                true => foreign
                    .calibrate(&chain, words, &mut || partner.switch())
                    .map_err(|error| TasksError(format!("task {}: {error}", task.name)))?,
                false => Meter::blind(&chain.groups().collect::<Vec<_>>(), INTERRUPTED_NS / self.timer.ns(1)),
            };
            let witness = witnesses.words.as_ref().filter(|_| counted.contains(&i)).map(|words| &words[i]);
            let witness = witness.map(|words| -> Result<_, TasksError> {
                // SAFETY: the words are this task's alone, as long as the caller's witnesses live.
                let chain = unsafe { TimedChain::link(self.timer, words, GROUP) };
                let meter = foreign.calibrate(&chain, words, &mut || partner.switch());
                let meter = meter.map_err(|error| TasksError(format!("task {}, witness: {error}", task.name)))?;
                Ok((chain, meter))
            });
            let witness = witness.transpose()?;
            let round = (0..ROUNDS).map(|_| chain.pass().iter().map(|ticks| ticks.whole()).sum::<f64>());
            let round_ns = (round.fold(f64::INFINITY, f64::min) * self.timer.ns(1)).max(1.0);
            let rounds = (task.execution.nanos as f64 / round_ns).max(1.0) as u64;
            let jobs = (self.hyperperiod_ns / task.period.nanos * hyperperiods) as usize;
            let few = (words.len() / FEW).max(1) as u32;
            let (first_ns, period_ns) = (task.phase.nanos, task.period.nanos);
            bodies.push(Body { chain, meter, witness, scratch, few, round_ns, rounds, first_ns, period_ns, jobs });
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

    /// Rounds of a task in a millisecond of the model: as many as it makes, or fewer that misses do not depend on.
    fn rounds_per_ms(&self, body: &Body) -> u64 {
        let shortest = self.set.tasks.iter().map(|task| task.execution.nanos).min().unwrap_or_default().max(1);
        let enough = ROUNDS_MODELLED * 1e6 / shortest as f64;
        (1e6 / body.round_ns).min(enough).ceil() as u64
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
