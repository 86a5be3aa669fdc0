//! Runs of a set: pages placed, meters calibrated, threads in turns, and what they saw beside the model.

use std::rc::Rc;

use lookaside_probe::counter::MeterAccuracy;
use lookaside_stats::SplitMix64;
use lookaside_techniques::color::plan::ColorPlan;
use lookaside_techniques::color::work::PAGE_BYTES;

use super::bench::{MissCounting, TaskBench};
use super::error::TaskRunError;
use super::job::{TaskBody, TaskLog};
use super::judge::{judge, ClockScale};
use super::options::TaskSetOptions;
use super::page_placement::{place, PagePlacement};
use super::page_walks::FirstInText;
use super::placement_run::PlacementRun;
use super::real_time::{become_task, bind, now_ns, Watch};
use super::task_run::{JobRun, TaskRun, TaskSetRun};

/// From the threads' begin to the first release: they have to be there.
const LEAD_NS: u64 = 20_000_000;

impl TaskBench<'_> {
    /// Runs the set with each placement, so often; the calling thread is on the tasks' CPU. What ran until `stop` said
    /// so is given, and what ran before a repeat that could not be: then why is given, too.
    pub(super) fn run(
        &self,
        options: &TaskSetOptions,
        plan: &ColorPlan,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &mut dyn FnMut(&str),
    ) -> Result<(Vec<TaskSetRun>, Option<TaskRunError>), TaskRunError> {
        let mut runs = Vec::new();
        for repeat in (1..=options.repeats).take_while(|_| !stop()) {
            let mut progress = |step: &str| match options.repeats {
                1 => progress(step),
                repeats => progress(&format!("run {repeat} of {repeats}, {step}")),
            };
            match self.repeat(repeat, options, plan, stop, &mut progress) {
                Ok(more) => runs.extend(more),
                Err(why) if runs.is_empty() => return Err(why),
                Err(why) => return Ok((runs, Some(why))),
            }
        }
        Ok((runs, None))
    }

    /// One of the times that pages are placed anew: the placements in turns. With one turn each placement's pages are
    /// gone before the next's come, since counting walks goes through all that are there.
    fn repeat(
        &self,
        repeat: u64,
        options: &TaskSetOptions,
        plan: &ColorPlan,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<TaskSetRun>, TaskRunError> {
        let seed = options.seed.wrapping_add(repeat - 1);
        let mut random = SplitMix64::new(seed);
        let mut placements = options.placements.clone();
        let mut together = placements.len();
        if options.hyperperiods.min(options.turns) == 1 {
            random.shuffle(&mut placements);
            together = 1;
        }
        let mut runs = Vec::new();
        for placements in placements.chunks(together.max(1)) {
            let options = TaskSetOptions { placements: placements.to_vec(), ..options.clone() };
            runs.extend(self.in_turns(repeat, &options, plan, &mut random, stop, progress)?);
        }
        runs.sort_by_key(|run| options.placements.iter().position(|placement| *placement == run.placement));
        Ok(runs)
    }

    /// Placements whose pages are all there until the last turn ends.
    fn in_turns(
        &self,
        repeat: u64,
        options: &TaskSetOptions,
        plan: &ColorPlan,
        random: &mut SplitMix64,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<TaskSetRun>, TaskRunError> {
        let seed = options.seed.wrapping_add(repeat - 1);
        let mut arms = Vec::new();
        let first = matches!(self.counting, MissCounting::Walks).then(FirstInText::take);
        for placement in options.placements.iter().take_while(|_| !stop()) {
            progress(&format!("{}: pages", placement.name()));
            arms.extend(self.arms(*placement, plan, options.pool, seed)?);
        }
        drop(first);
        let (turns, hyperperiods) = (options.hyperperiods.min(options.turns), options.hyperperiods);
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
        let of = |placement: &PagePlacement| TaskSetRun {
            placement: *placement,
            repeat,
            tasks: arms.iter().filter(|arm| arm.placement == *placement).flat_map(|arm| self.tasks(arm)).collect(),
        };
        Ok(options.placements.iter().map(of).filter(|run| !run.tasks.is_empty()).collect())
    }

    /// A placement's: one, or one for each task that is alone.
    fn arms(
        &self,
        placement: PagePlacement,
        plan: &ColorPlan,
        pool: Option<u64>,
        seed: u64,
    ) -> Result<Vec<PlacementRun<'_>>, TaskRunError> {
        let placed = Rc::new(place(placement, self.set, plan, self.level, pool, seed)?);
        let all: Vec<usize> = (0..self.set.tasks.len()).collect();
        let counted: Vec<&[usize]> = match placement {
            PagePlacement::Alone => all.chunks(1).collect(),
            _ => vec![&all],
        };
        counted.into_iter().map(|counted| PlacementRun::new(self, placement, placed.clone(), counted, seed)).collect()
    }

    /// Meters for as quiet or busy a machine as this is now, so many hyperperiods of a placement, and what they came
    /// to.
    fn turn(
        &self,
        arm: &mut PlacementRun,
        hyperperiods: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), TaskRunError> {
        let walked = arm.walked.clone();
        let _apart = walked.as_ref().map(|walked| walked.apart()).transpose()?;
        arm.calibrate(self)?;
        let watch = Watch::on(self.cpu, self.timer);
        if let Some(walked) = &walked {
            walked.anew();
        }
        let logs = self.threads(&arm.bodies, hyperperiods, stop)?;
        arm.check()?;
        let watched = watch.end();
        let cycles_a_tick = self.timer.cycles_per_tick;
        let by_walks = self.before() > 0;
        let scale = ClockScale { ticks_a_ns: 1.0 / self.timer.ns(1), cycles_a_tick, by_walks };
        let jobs = judge(&logs, &watched, &arm.rounds, self.machine, scale)?;
        for (task, (jobs, log)) in jobs.into_iter().zip(&logs).enumerate() {
            let before = arm.jobs[task].len() as u64;
            arm.jobs[task].extend(jobs.into_iter().map(|job| JobRun { job: before + job.job, ..job }));
            arm.gaps_lost[task] += log.gaps_lost;
        }
        Ok(())
    }

    /// One thread a task, each at its priority, for so many hyperperiods; gives what they saw.
    fn threads(
        &self,
        bodies: &[TaskBody],
        hyperperiods: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<TaskLog>, TaskRunError> {
        let order = self.set.by_priority();
        let jobs = |body: &TaskBody| (self.hyperperiod_ns / body.period_ns * hyperperiods) as usize;
        let mut logs: Vec<TaskLog> = bodies.iter().map(|body| TaskLog::for_jobs(jobs(body))).collect();
        let begin_ns = now_ns() + LEAD_NS;
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (task, (body, log)) in bodies.iter().zip(&mut logs).enumerate() {
                let rank = order.iter().position(|other| *other == task).unwrap_or_default();
                threads.push(scope.spawn(move || {
                    bind(&[self.cpu])?;
                    if !become_task(self.scheduling, rank, self.set.tasks.len()) {
                        return Err(TaskRunError("the system takes back the right to a priority".into()));
                    }
                    body.run(begin_ns, jobs(body), log, stop);
                    Ok(())
                }));
            }
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(TaskRunError("a task's thread ended before its time".into())))
            })
        })?;
        Ok(logs)
    }

    /// What a placement's tasks whose pages count saw.
    fn tasks(&self, arm: &PlacementRun) -> Vec<TaskRun> {
        arm.counted.iter().map(|task| self.task(arm, *task)).collect()
    }

    fn task(&self, arm: &PlacementRun, task: usize) -> TaskRun {
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
            rounds: if body.program.is_some() { 0 } else { body.rounds },
            program: arm.program(task),
            miss_cycles: arm.miss_ticks(task) * self.timer.cycles_per_tick,
            known: MeterAccuracy::of_all(arm.known[task].iter().map(|passes| &passes.known)),
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
    use std::sync::PoisonError;

    use lookaside_host::ReferencedBits;
    use lookaside_machine::{preset, PageSize};
    use lookaside_probe::counter::{GroupTicks, PassMeter, TimedChain, Timer};
    use lookaside_techniques::color::plan::plan;
    use lookaside_techniques::color::tasks::TaskSet;

    use super::super::foreign_pages::ForeignPages;
    use super::super::page_walks::tests::ALONE;
    use super::super::real_time::scheduling;
    use super::*;

    /// With this seed no meter comes about from the third on.
    const FAILS: u64 = 77;
    /// With this one walks are counted.
    const WALKS: u64 = 78;

    thread_local! {
        static METERS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// Takes what nobody measured for a meter: a miss would take 200 ns, an interrupt some 16 us.
    fn made_up(
        _: &ForeignPages<'_>,
        chain: &TimedChain,
        _: &[[*mut u64; 2]],
        _: &mut dyn FnMut(),
    ) -> Result<PassMeter, TaskRunError> {
        let pages: Vec<usize> = chain.groups().collect();
        let miss_ticks = 200.0 / chain.timer().ns(1);
        let pass = |miss: f64| {
            pages.iter().map(move |&pages| GroupTicks { shot: (miss * pages as f64) as u64, ..GroupTicks::default() })
        };
        let passes = |miss| vec![pass(miss).collect::<Vec<GroupTicks>>(); 16];
        PassMeter::calibrate(&pages, &passes(0.0), &passes(miss_ticks), 0.0)
            .map_err(|error| TaskRunError(error.to_string()))
    }

    fn failing(
        foreign: &ForeignPages<'_>,
        chain: &TimedChain,
        words: &[[*mut u64; 2]],
        switch: &mut dyn FnMut(),
    ) -> Result<PassMeter, TaskRunError> {
        METERS.set(METERS.get() + 1);
        match METERS.get() {
            ..3 => made_up(foreign, chain, words, switch),
            _ => Err(TaskRunError("noise".into())),
        }
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

    const PLACEMENTS: [PagePlacement; 3] = [PagePlacement::SameSets, PagePlacement::Alone, PagePlacement::Planned];

    /// In ten turns, once.
    fn options(hyperperiods: u64) -> TaskSetOptions {
        TaskSetOptions {
            hyperperiods,
            cpu: None,
            level: None,
            placements: PLACEMENTS.to_vec(),
            repeats: 1,
            turns: 10,
            pool: None,
            seed: 3,
        }
    }

    /// Runs the set's threads, wherever the tests run: what is counted there is nobody's business, what is modelled is.
    fn runs(options: &TaskSetOptions, stop: &(dyn Fn() -> bool + Sync)) -> (Vec<TaskSetRun>, Vec<String>) {
        runs_of(SET, &[None; 2], options, stop)
    }

    /// `elements`: those of a job of each task that runs a program.
    fn runs_of(
        text: &str,
        elements: &[Option<u64>],
        options: &TaskSetOptions,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> (Vec<TaskSetRun>, Vec<String>) {
        let set = TaskSet::parse(text, "t").expect("a set");
        let machine = preset("xeon-e5-2650").expect("a preset");
        let plan = plan(&set, &machine, PageSize::K4).expect("a plan");
        assert!(plan.is_isolated());
        let levels = machine.color_levels(PageSize::K4);
        let here = lookaside_harness::cpus::allowed();
        let cpu = *here.last().expect("a CPU");
        bind(&[cpu]).expect("a CPU of ours");
        let lab = TaskBench {
            set: &set,
            machine: &machine,
            timer: Timer::here().expect("a timer").0,
            level: &levels[0],
            levels: &levels,
            cpu,
            scheduling: scheduling(),
            hyperperiod_ns: 2_000_000,
            counting: match options.seed {
                FAILS => MissCounting::Timing(failing),
                WALKS => MissCounting::Walks,
                _ => MissCounting::Timing(made_up),
            },
            elements: elements.to_vec(),
        };
        let mut told = Vec::new();
        let found = lab.run(options, &plan, stop, &mut |step| told.push(step.to_string()));
        bind(&here).expect("our CPUs");
        let (runs, failed) = found.expect("runs");
        assert_eq!(failed.is_some(), options.seed == FAILS, "{failed:?}");
        (runs, told)
    }

    #[test]
    fn placements_take_turns_and_every_job_is_there_beside_the_model() {
        let (runs, told) = runs(&options(12), &|| false);
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
                // Two tasks of eight pages in three sets of four ways: each puts the other's out.
                assert_eq!(
                    missed > 0,
                    run.placement == PagePlacement::SameSets,
                    "{} {}",
                    run.placement.name(),
                    task.name
                );
                let expected = if run.placement == PagePlacement::SameSets { 3 } else { 1 };
                assert!(task.most_in_a_set <= 4 && task.most_in_a_set >= expected, "{}", task.most_in_a_set);
            }
        }
        let turns: Vec<&String> = told.iter().filter(|step| step.starts_with("turn ")).collect();
        assert_eq!(turns.len(), 10 * 4);
        let of =
            |turn: usize| turns[4 * turn..4 * turn + 4].iter().map(|step| step.split(": ").last()).collect::<Vec<_>>();
        assert!((1..10).any(|turn| of(turn) != of(0)), "their order changes");
    }

    /// Every pass whose translations were put out is counted whole, of each task of each placement in each turn; and no
    /// job misses more than it loads, each time that it goes on.
    #[test]
    fn walks_are_counted_where_the_system_can() {
        if ReferencedBits::here().is_err() {
            eprintln!("LEFT OUT: this system counts no referenced bits");
            return;
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (runs, _) = runs(&TaskSetOptions { seed: WALKS, ..options(12) }, &|| false);
        assert_eq!(runs.len(), 3);
        for task in runs.iter().flat_map(|run| &run.tasks) {
            let (known, pages) = (&task.known, task.pages as u64);
            assert_eq!((known.pages, task.jobs.len() as u64), (8, 12 * task.jobs_a_hyperperiod));
            assert!(known.missed[0] >= 10 && known.missed[1] >= known.missed[0] * 9 / 10, "{known:?}");
            assert!(known.missed_misses > 7.0 && known.kept_misses <= known.missed_misses, "{known:?}");
            // Once each time that it begins or goes on, and where priorities are nice values a job of T1's that had
            // begun before may end within, and be counted then.
            let most = |job: &JobRun| (2 + job.preemptions) * pages;
            assert!(task.jobs.iter().all(|job| job.misses <= most(job)), "{:?}", task.jobs);
            assert!(task.jobs.iter().all(|job| job.unseen_pages == 0 && job.taken_pages.is_finite()));
        }
    }

    /// Two programs, and one task that loads pages.
    #[test]
    fn programs_results_are_right_wherever_their_data_lie() {
        let text = SET.replacen("pages = 8", "pages = 10\nprogram = \"fft\"", 1).replacen(
            "pages = 8",
            "pages = 20\nprogram = \"adpcm\"\ndata_pages = 5",
            1,
        ) + "[[task]]\nname = \"T3\"\nperiod = \"2ms\"\nexecution = \"20us\"\npages = 6\n";
        let set = TaskSet::parse(&text, "t").expect("a set");
        let placements = [&PLACEMENTS[..], &[PagePlacement::Malloc]].concat();
        let all = TaskSetOptions { placements, ..options(12) };
        let (runs, _) = runs_of(&text, &[Some(4000), Some(30_000), None], &all, &|| false);
        assert_eq!(runs.len(), 4);
        for run in &runs {
            let [first, second, third] = &run.tasks[..] else { panic!("three tasks") };
            assert!(third.program.is_none() && third.rounds > 0);
            assert!(third.jobs.iter().all(|job| job.touched_pages.is_none()));
            for (task, of) in [(first, &set.tasks[0]), (second, &set.tasks[1])] {
                let program = task.program.as_ref().expect("a program");
                assert!(
                    super::super::program_job::tests::is_right(program, of, all.seed),
                    "{} {}",
                    task.name,
                    run.placement.name()
                );
                assert_eq!(task.program, runs[0].tasks[if of.name == "T1" { 0 } else { 1 }].program);
                assert_eq!((task.rounds, task.pages as u64), (0, of.pages.expect("pages")));
                assert_eq!(task.jobs.len() as u64, 12 * task.jobs_a_hyperperiod);
                assert!(task.jobs.iter().all(|job| job.touched_pages >= Some(1)));
            }
        }
    }

    #[test]
    fn what_ran_before_the_stop_is_given() {
        let asked = AtomicU64::new(0);
        let (runs, told) = runs(&options(12), &|| asked.fetch_add(1, Ordering::Relaxed) > 40);
        assert_eq!(runs.len(), 3);
        let jobs: usize = runs.iter().flat_map(|run| &run.tasks).map(|task| task.jobs.len()).sum();
        assert!(jobs > 0 && jobs < 40, "{jobs}");
        assert!(!told.iter().any(|step| step.starts_with("turn 10")), "{told:?}");
    }

    #[test]
    fn repeats_place_the_pages_anew() {
        let two = TaskSetOptions {
            placements: vec![PagePlacement::Malloc, PagePlacement::Planned],
            repeats: 3,
            turns: 1,
            pool: Some(32),
            ..options(2)
        };
        let (runs, told) = runs(&two, &|| false);
        let of = |run: &TaskSetRun| (run.repeat, run.placement, run.tasks.iter().map(|task| task.jobs.len()).collect());
        let expected = (1..=3).flat_map(|repeat| {
            two.placements.iter().map(move |placement| (repeat, *placement, vec![4, 2])).collect::<Vec<_>>()
        });
        let all: Vec<(u64, PagePlacement, Vec<usize>)> = runs.iter().map(of).collect();
        assert_eq!(all, expected.collect::<Vec<_>>());
        assert!(runs.iter().flat_map(|run| &run.tasks).all(|task| task.pages == 8));
        assert!(told.iter().any(|step| step == "run 3 of 3, turn 1 of 1: malloc"), "{told:?}");
        // A placement's pages come when the one before had its turn.
        let lays: Vec<bool> = told.iter().map(|step| step.ends_with(": pages")).collect();
        assert_eq!(lays, [true, false].repeat(6), "{told:?}");
    }

    /// Two tasks, and too few sets for witnesses: two meters a run.
    #[test]
    fn what_ran_before_a_repeat_that_fails_is_given() {
        let some = TaskSetOptions {
            placements: vec![PagePlacement::Planned],
            repeats: 3,
            turns: 1,
            seed: FAILS,
            ..options(2)
        };
        METERS.set(0);
        let (runs, _) = runs(&some, &|| false);
        assert_eq!(runs.iter().map(|run| run.repeat).collect::<Vec<_>>(), [1]);
        assert_eq!(METERS.get(), 3);
    }
}
