//! Runs of a set: pages placed, meters calibrated, threads in turns, and what they saw beside the model.

use std::rc::Rc;

use lookaside_machine::{ColorLevel, Machine};
use lookaside_probe::counter::{Meter, TimedChain, Timer};
use lookaside_techniques::color::plan::Plan;
use lookaside_techniques::color::tasks::TaskSet;
use lookaside_techniques::color::work::PAGE_BYTES;
use lookaside_workloads::Random;

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
const LEAD_NS: u64 = 20_000_000;
/// Turns that each placement has: what changes meanwhile, the neighbours above all, meets them all alike.
const TURNS: u64 = 10;

/// How a meter for a chain over these words comes about; the last switches to another thread and back.
pub(super) type Calibrate =
    fn(&Foreign<'_>, &TimedChain, &[[*mut u64; 2]], &mut dyn FnMut()) -> Result<Meter, TasksError>;

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
    pub calibrate: Calibrate,
}

/// A placement, ready to run: of these tasks' pages, the others touch none.
struct Arm {
    placement: Placement,
    counted: Vec<usize>,
    bodies: Vec<Body>,
    /// Of each task, the words that it goes through and how often it does in a millisecond of the model.
    rounds: Vec<(Vec<u64>, u64)>,
    /// What the bodies go through; the words that do not matter are two a task.
    _placed: Rc<Placed>,
    _own: Vec<[u64; 2]>,
    _witnesses: Witnesses,
    /// What they saw so far, by task.
    jobs: Vec<Vec<JobRun>>,
    gaps_lost: Vec<u64>,
}

impl Lab<'_> {
    /// Runs the set with each placement; the calling thread is on the tasks' CPU. What ran until `stop` said so is given.
    pub(super) fn run(
        &self,
        placements: &[Placement],
        plan: &Plan,
        hyperperiods: u64,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<Run>, TasksError> {
        let mut arms = Vec::new();
        for placement in placements.iter().take_while(|_| !stop()) {
            progress(&format!("{}: meters", placement.name()));
            arms.extend(self.arms(*placement, plan)?);
        }
        let turns = hyperperiods.min(TURNS);
        let mut random = Random::new(self.seed);
        for turn in 0..turns {
            let hyperperiods = hyperperiods / turns + u64::from(turn < hyperperiods % turns);
            let mut order: Vec<usize> = (0..arms.len()).collect();
            random.shuffle(&mut order);
            for arm in order.into_iter().take_while(|_| !stop()) {
                let arm = &mut arms[arm];
                progress(&format!("turn {} of {turns}: {}", turn + 1, arm.placement.name()));
                self.turn(arm, hyperperiods, stop)?;
            }
        }
        let of = |placement: &Placement| Run {
            placement: *placement,
            tasks: arms.iter().filter(|arm| arm.placement == *placement).flat_map(|arm| self.tasks(arm)).collect(),
        };
        Ok(placements.iter().map(of).filter(|run| !run.tasks.is_empty()).collect())
    }

    /// A placement's: one, or one for each task that is alone.
    fn arms(&self, placement: Placement, plan: &Plan) -> Result<Vec<Arm>, TasksError> {
        let placed = Rc::new(place(placement, self.set, plan, self.level, self.seed)?);
        let all: Vec<usize> = (0..self.set.tasks.len()).collect();
        let counted: Vec<&[usize]> = match placement {
            Placement::Alone => all.chunks(1).collect(),
            _ => vec![&all],
        };
        counted.into_iter().map(|counted| self.arm(placement, placed.clone(), counted)).collect()
    }

    fn arm(&self, placement: Placement, placed: Rc<Placed>, counted: &[usize]) -> Result<Arm, TasksError> {
        let tasks = self.set.tasks.len();
        let mut scratch = vec![[0u64; 2]; tasks];
        let own: Vec<[*mut u64; 2]> = scratch.iter_mut().map(|[first, second]| [&raw mut *first, second]).collect();
        let words: Vec<&[[*mut u64; 2]]> = (0..)
            .zip(&placed.words)
            .map(|(task, words)| if counted.contains(&task) { &words[..] } else { &own[task..=task] })
            .collect();
        let used = placed.words.iter().flatten().map(|words| self.level.set_of(words[0] as u64 / PAGE_BYTES)).collect();
        let witnesses = Witnesses::new(self.level, &used, tasks, self.seed)?;
        let bodies = self.bodies(&words, &own, &witnesses, counted)?;
        let of = |(words, body): (&&[[*mut u64; 2]], &Body)| {
            (words.iter().map(|words| words[0] as u64).collect(), self.rounds_per_ms(body))
        };
        Ok(Arm {
            placement,
            counted: counted.to_vec(),
            rounds: words.iter().zip(&bodies).map(of).collect(),
            bodies,
            _placed: placed,
            _own: scratch,
            _witnesses: witnesses,
            jobs: vec![Vec::new(); tasks],
            gaps_lost: vec![0; tasks],
        })
    }

    /// So many hyperperiods of a placement, and what they came to.
    fn turn(&self, arm: &mut Arm, hyperperiods: u64, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), TasksError> {
        let watch = Watch::on(self.cpu, self.timer);
        let logs = self.threads(&arm.bodies, hyperperiods, stop)?;
        let watched = watch.end();
        let cycles_a_tick = self.timer.cycles_per_tick;
        let by_walks = self.before() > 0;
        let scale = Scale { ticks_a_ns: 1.0 / self.timer.ns(1), cycles_a_tick, by_walks };
        let jobs = judge(&logs, &watched, &arm.rounds, self.machine, scale)?;
        for (task, (jobs, log)) in jobs.into_iter().zip(&logs).enumerate() {
            let before = arm.jobs[task].len() as u64;
            arm.jobs[task].extend(jobs.into_iter().map(|job| JobRun { job: before + job.job, ..job }));
            arm.gaps_lost[task] += log.gaps_lost;
        }
        Ok(())
    }

    /// Entries of the levels before the one that is counted.
    fn before(&self) -> usize {
        let before = self.levels.iter().take_while(|level| level.name != self.level.name);
        before.map(|level| level.sets as usize * level.ways as usize).sum()
    }

    /// The tasks, those that count calibrated. `words`: what each goes through; `own`: two words of each that do not matter.
    fn bodies(
        &self,
        words: &[&[[*mut u64; 2]]],
        own: &[[*mut u64; 2]],
        witnesses: &Witnesses,
        counted: &[usize],
    ) -> Result<Vec<Body>, TasksError> {
        let foreign = Foreign::new(self.level, self.before())?;
        let mut partner = Partner::on(self.cpu)?;
        let mut bodies = Vec::new();
        for (i, ((task, words), own)) in self.set.tasks.iter().zip(words).zip(own).enumerate() {
            // SAFETY: the words are this task's alone, as long as the caller's pages live. (Where both chains are of the same words, they are linked alike.)
            let [chain, scratch] = [(*words, GROUP), (&[*own][..], 1)]
                .map(|(words, size)| unsafe { TimedChain::link(self.timer, words, size) });
            let meter = match counted.contains(&i) {
                true => (self.calibrate)(&foreign, &chain, words, &mut || partner.switch())
                    .map_err(|error| TasksError(format!("task {}: {error}", task.name)))?,
                false => Meter::blind(&chain.groups().collect::<Vec<_>>(), INTERRUPTED_NS / self.timer.ns(1)),
            };
            let witness = witnesses.words.as_ref().filter(|_| counted.contains(&i)).map(|words| &words[i]);
            let witness = witness.map(|words| -> Result<_, TasksError> {
                // SAFETY: the words are this task's alone, as long as the caller's witnesses live.
                let chain = unsafe { TimedChain::link(self.timer, words, GROUP) };
                let meter = (self.calibrate)(&foreign, &chain, words, &mut || partner.switch());
                let meter = meter.map_err(|error| TasksError(format!("task {}, witness: {error}", task.name)))?;
                Ok((chain, meter))
            });
            let witness = witness.transpose()?;
            let round = (0..ROUNDS).map(|_| chain.pass().iter().map(|ticks| ticks.whole()).sum::<f64>());
            let round_ns = (round.fold(f64::INFINITY, f64::min) * self.timer.ns(1)).max(1.0);
            let rounds = (task.execution.nanos as f64 / round_ns).max(1.0) as u64;
            let few = (words.len() / FEW).max(1) as u32;
            let (phase_ns, period_ns) = (task.phase.nanos, task.period.nanos);
            bodies.push(Body { chain, meter, witness, scratch, few, round_ns, rounds, phase_ns, period_ns });
        }
        Ok(bodies)
    }

    /// One thread a task, each at its priority, for so many hyperperiods; gives what they saw.
    fn threads(
        &self,
        bodies: &[Body],
        hyperperiods: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Log>, TasksError> {
        let order = self.set.by_priority();
        let jobs = |body: &Body| (self.hyperperiod_ns / body.period_ns * hyperperiods) as usize;
        let mut logs: Vec<Log> = bodies.iter().map(|body| Log::for_jobs(jobs(body))).collect();
        let begin_ns = now_ns() + LEAD_NS;
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (task, (body, log)) in bodies.iter().zip(&mut logs).enumerate() {
                let rank = order.iter().position(|other| *other == task).unwrap_or_default();
                threads.push(scope.spawn(move || {
                    bind(&[self.cpu])?;
                    if !become_task(self.scheduling, rank, self.set.tasks.len()) {
                        return Err(TasksError("the system takes back the right to a priority".into()));
                    }
                    body.run(begin_ns, jobs(body), log, stop);
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

    /// What a placement's tasks whose pages count saw.
    fn tasks(&self, arm: &Arm) -> Vec<TaskRun> {
        arm.counted.iter().map(|task| self.task(arm, *task)).collect()
    }

    fn task(&self, arm: &Arm, task: usize) -> TaskRun {
        let (body, (words, _)) = (&arm.bodies[task], &arm.rounds[task]);
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
            meter: body.meter.clone(),
            gaps_lost: arm.gaps_lost[task],
            jobs_a_hyperperiod: self.hyperperiod_ns / of.period.nanos,
            summaries: Vec::new(),
            jobs: arm.jobs[task].clone(),
        };
        run.summaries = run.summaries();
        run
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use lookaside_machine::{preset, PageSize};
    use lookaside_probe::counter::Ticks;
    use lookaside_techniques::color::plan::plan;

    use super::super::real_time::{cpus, scheduling};
    use super::*;

    /// Takes what nobody measured for a meter: a miss would take 200 ns, an interrupt some 16 us.
    fn made_up(
        _: &Foreign<'_>,
        chain: &TimedChain,
        _: &[[*mut u64; 2]],
        _: &mut dyn FnMut(),
    ) -> Result<Meter, TasksError> {
        let pages: Vec<usize> = chain.groups().collect();
        let miss_ticks = 200.0 / chain.timer().ns(1);
        let pass = |miss: f64| {
            pages.iter().map(move |&pages| Ticks { shot: (miss * pages as f64) as u64, ..Ticks::default() })
        };
        let passes = |miss| vec![pass(miss).collect::<Vec<Ticks>>(); 16];
        Meter::calibrate(&pages, &passes(0.0), &passes(miss_ticks)).map_err(|error| TasksError(error.to_string()))
    }

    const SET: &str = "
        [[task]]
        name = \"T1\"
        phase = \"0.5ms\"
        period = \"1ms\"
        execution = \"20us\"
        pages = 8
        [[task]]
        name = \"T2\"
        period = \"2ms\"
        execution = \"1ms\"
        pages = 8
    ";

    /// Runs the set's threads, wherever the tests run: what is counted there is nobody's business, what is modelled is.
    fn runs(hyperperiods: u64, stop: &(dyn Fn() -> bool + Sync)) -> (Vec<Run>, Vec<String>) {
        let set = TaskSet::parse(SET, "t").expect("a set");
        let machine = preset("xeon-e5-2650").expect("a preset");
        let plan = plan(&set, &machine, PageSize::K4).expect("a plan");
        assert!(plan.is_isolated());
        let levels = machine.color_levels(PageSize::K4);
        let here = cpus();
        let cpu = *here.last().expect("a CPU");
        bind(&[cpu]).expect("a CPU of ours");
        let lab = Lab {
            set: &set,
            machine: &machine,
            timer: Timer::here().expect("a timer").0,
            level: &levels[0],
            levels: &levels,
            cpu,
            scheduling: scheduling(),
            hyperperiod_ns: 2_000_000,
            seed: 3,
            calibrate: made_up,
        };
        let placements = [Placement::SameSets, Placement::Alone, Placement::Planned];
        let mut told = Vec::new();
        let runs = lab.run(&placements, &plan, hyperperiods, stop, &mut |step| told.push(step.to_string()));
        bind(&here).expect("our CPUs");
        (runs.expect("runs"), told)
    }

    #[test]
    fn placements_take_turns_and_every_job_is_there_beside_the_model() {
        let (runs, told) = runs(12, &|| false);
        assert_eq!(
            runs.iter().map(|run| run.placement.name()).collect::<Vec<_>>(),
            ["same sets", "by the plan, alone", "by the plan"]
        );
        for run in &runs {
            for (task, jobs_a_hyperperiod, pages) in [(0, 2, 8), (1, 1, 8)] {
                let task = &run.tasks[task];
                assert_eq!((task.jobs_a_hyperperiod, task.pages), (jobs_a_hyperperiod, pages));
                let numbers: Vec<u64> = task.jobs.iter().map(|job| job.job).collect();
                assert_eq!(numbers, (1..=12 * jobs_a_hyperperiod).collect::<Vec<_>>());
                // Ten turns: two of two hyperperiods, then of one.
                let begun: Vec<u64> = task
                    .jobs
                    .iter()
                    .filter(|job| job.begins_turn)
                    .map(|job| (job.job - 1) / jobs_a_hyperperiod)
                    .collect();
                assert_eq!(begun, [0, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
                let calm = task.jobs.iter().filter(|job| !job.begins_turn);
                let missed: u64 = calm.map(|job| job.modelled_misses).sum();
                // Two tasks of eight pages in two sets of four ways: each puts the other's out.
                assert_eq!(missed > 0, run.placement == Placement::SameSets, "{} {}", run.placement.name(), task.name);
                let expected = if run.placement == Placement::SameSets { 4 } else { 1 };
                assert!(task.most_in_a_set <= 4 && task.most_in_a_set >= expected, "{}", task.most_in_a_set);
            }
        }
        let turns: Vec<&String> = told.iter().filter(|step| step.starts_with("turn ")).collect();
        assert_eq!(turns.len(), 10 * 4);
        let of =
            |turn: usize| turns[4 * turn..4 * turn + 4].iter().map(|step| step.split(": ").last()).collect::<Vec<_>>();
        assert!((1..10).any(|turn| of(turn) != of(0)), "their order changes");
    }

    #[test]
    fn what_ran_before_the_stop_is_given() {
        let asked = AtomicU64::new(0);
        let (runs, told) = runs(12, &|| asked.fetch_add(1, Ordering::Relaxed) > 40);
        assert_eq!(runs.len(), 3);
        let jobs: usize = runs.iter().flat_map(|run| &run.tasks).map(|task| task.jobs.len()).sum();
        assert!(jobs > 0 && jobs < 40, "{jobs}");
        assert!(!told.iter().any(|step| step.starts_with("turn 10")), "{told:?}");
    }
}
