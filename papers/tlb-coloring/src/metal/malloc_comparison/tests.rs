//! Cases on the presets' levels, and rows of made-up runs.

use lookaside_harness::RowVerdict;
use lookaside_machine::{preset, PageSize};
use lookaside_techniques::color::plan::plan;
use lookaside_techniques::color::tasks::{TaskSet, Time};

use super::cases::{ROUNDS, SPAN_NS};
use super::*;

#[test]
fn on_the_papers_machine_pages_are_the_papers() {
    let machine = preset("xeon-e5-2650").expect("a preset");
    let levels = machine.color_levels(PageSize::K4);
    let cases = cases(&levels[0], 0, 0).expect("cases");
    let told: Vec<(&str, Vec<u64>, u64, u64)> = cases
        .iter()
        .map(|case| {
            let pages = case.set.tasks.iter().filter_map(|task| task.pages).collect();
            (case.what, pages, case.pool, case.runs)
        })
        .collect();
    let expected = [
        ("Figures 6.4 to 6.8", vec![14, 14], 32, 10),
        ("Table 6.1, two tasks", vec![16, 16], 32, 5),
        ("Table 6.1, three tasks", vec![4, 7, 2], 22, 5),
        ("Table 6.1, four tasks", vec![2, 2, 1, 2], 16, 5),
        ("Figure 6.13", vec![10, 10], 32, 5),
        ("Figure 6.14", vec![9, 3], 32, 5),
    ];
    assert_eq!(told, expected);
    // The paper's times a twentieth: 14 pages are loaded in less.
    let us = |time: Time| time.nanos as f64 / 1000.0;
    let first: Vec<[f64; 3]> =
        cases[0].set.tasks.iter().map(|task| [us(task.phase), us(task.period), us(task.execution)]).collect();
    assert_eq!(first, [[50.0, 100.0, 19.25], [0.0, 800.0, 369.0]]);
    assert_eq!(cases[0].hyperperiods, 625);
}

#[test]
fn programs_are_the_papers_and_their_data_spread_where_another_level_is_before() {
    // 64 entries, or 96, before the level: 20 pages are spread over 160, 12 over 96 or 192.
    for (before, spread) in [(0, [1, 1]), (64, [8, 8]), (96, [8, 16]), (100_000, [64, 64])] {
        let machine = preset("ryzen-5900x").expect("a preset");
        let cases = cases(&machine.color_levels(PageSize::K4)[1], before, 0).expect("cases");
        for ((case, programs), spread) in cases[4..].iter().zip([["fft", "adpcm"], ["fir", "adpcm"]]).zip(spread) {
            let names: Vec<Option<&str>> = case.set.tasks.iter().map(|task| task.program.as_deref()).collect();
            assert_eq!(names, programs.map(Some), "{}", case.what);
            assert!(case.set.tasks.iter().all(|task| task.spread() == spread), "{before}");
            assert!(case.in_same_sets && case.pool == 32 * spread);
            // A file of it would be read.
            let text = toml::to_string(&case.set).expect("a text");
            assert_eq!(TaskSet::parse(&text, "t").expect("a set"), case.set);
        }
        assert!(cases[..4]
            .iter()
            .all(|case| !case.in_same_sets && case.set.tasks.iter().all(|task| task.program.is_none())));
    }
}

#[test]
fn on_a_larger_level_shares_are_kept_and_each_job_has_its_rounds() {
    // Its first level has one set: no time goes into who shares which.
    let machine = preset("ryzen-5900x").expect("a preset");
    let level = machine.color_levels(PageSize::K4).swap_remove(1);
    let entries = u64::from(level.sets * level.ways);
    for case in cases(&level, 64, 0).expect("cases") {
        let pages: u64 = case.set.tasks.iter().filter_map(|task| task.pages).sum();
        assert!(2 * pages <= entries, "{}: {pages} pages of {entries}", case.what);
        let first = &case.set.tasks[0];
        assert!(first.pages.expect("pages") <= case.pool);
        for task in &case.set.tasks {
            let rounds_ns = ROUNDS * task.pages.expect("pages") * 60;
            assert!(task.execution.nanos >= rounds_ns && task.execution < task.period, "{task:?}");
        }
        let hyperperiod = case.set.hyperperiod().expect("periods that have one").nanos;
        assert!((SPAN_NS / 2..=SPAN_NS).contains(&(case.hyperperiods * hyperperiod)), "{}", case.what);
        let plan = plan(&case.set, &machine, PageSize::K4).expect("a plan");
        let found = plan.levels.iter().find(|found| found.name == level.name).expect("the level");
        assert!(found.isolated, "{}", case.what);
    }
}

/// Jobs that all have so many misses, in so many parts, of 16 pages each time.
fn jobs(misses: f64, parts: u64, cycles: f64) -> TaskJobs {
    let touched = 16.0 * parts as f64;
    TaskJobs { calm: vec![CalmJob { place: 1, misses: [misses, 0.0], taken: 0.0, parts, touched, cycles }; 60], hit: 7 }
}

/// As the paper saw it: T1 and others of 16 pages, T2 preempted four times; the runs with malloc differ, and so do T1's
/// jobs.
fn papers(tasks: usize) -> AllocatorRuns {
    let run = |run: u64| {
        let mut malloc: Vec<TaskJobs> =
            (0..tasks).map(|task| jobs(4.0 + run as f64, if task == 1 { 5 } else { 1 }, 1000.0)).collect();
        malloc[1].calm.iter_mut().for_each(|job| job.misses[0] *= 5.0);
        for (i, job) in malloc[0].calm.iter_mut().enumerate() {
            job.cycles += 30.0 * (i % 4) as f64;
        }
        let coloured = (0..tasks).map(|task| jobs(0.0, if task == 1 { 5 } else { 1 }, 1000.0)).collect();
        let same_sets = (0..tasks).map(|_| jobs(12.0, 1, 1000.0)).collect();
        AllocatorJobs { malloc, coloured, same_sets }
    };
    AllocatorRuns { how: vec!["on one CPU".into()], runs: (0..5).map(run).collect() }
}

fn all() -> Vec<Result<AllocatorRuns, String>> {
    [2, 2, 3, 4, 2, 2].map(|tasks| Ok(papers(tasks))).into()
}

fn rows(cases: &[Result<AllocatorRuns, String>]) -> Vec<lookaside_harness::PaperRow> {
    let mut found = Reproduction { paper: "tlb-coloring".into(), ..Reproduction::default() };
    add(&mut found, cases, "not reached: the time is up");
    // What is said of each set alike stands once.
    let told = cases.iter().any(Result::is_ok).then(|| "on one CPU".to_string());
    assert_eq!(found.assumptions, Vec::from_iter(told));
    found.rows
}

/// Rows that differ when Figures 6.4 to 6.8 are changed so.
fn differing(change: impl Fn(&mut AllocatorJobs)) -> Vec<String> {
    let mut first = papers(2);
    first.runs.iter_mut().for_each(change);
    let rows = rows(&[Ok(first)]);
    rows.into_iter().filter(|row| row.verdict == RowVerdict::Differs).map(|row| row.place).collect()
}

#[test]
fn the_papers_conclusions_hold_for_what_it_saw() {
    let rows = rows(&all());
    let (beyond, judged): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.place == "beyond the paper");
    assert_eq!((beyond.len(), judged.len()), (2, 22));
    assert!(beyond.iter().all(|row| row.verdict == RowVerdict::Beyond), "{beyond:?}");
    assert!(format!("{:?}", beyond[0].ours).contains("T2 12.0 a job, 75.0 % of the pages touched"), "{:?}", beyond[0]);
    for row in &judged {
        assert_eq!(row.verdict, RowVerdict::Holds, "{row:?}");
        assert!(row.note.contains("35 and 35"), "{row:?}");
    }
    let found = |at: usize| format!("{:?}", judged[at].ours);
    assert!(found(0).contains("T1 6.0 a job, 37.5 % of the pages touched"), "{}", found(0));
    assert!(found(1).contains("T1 100.0 % of 300 jobs (100.0 % whoever took their pages), median 0"), "{}", found(1));
    assert!(found(2).contains("T1 0.0 over 5 runs (malloc 1.6)"), "{}", found(2));
    assert!(found(3).contains("T2 30.0 a job, 37.5 %"), "{}", found(3));
    assert!(found(6).contains("0 around 1000, with malloc 90 around 1045"), "{}", found(6));
    assert!(found(13).contains("T1 6.0") && found(13).contains("T4 6.0"), "{}", found(13));
}

#[test]
fn what_does_not_hold_differs() {
    let none: [&str; 0] = [];
    assert_eq!(differing(|_| ()), none);
    assert_eq!(
        differing(|pair| pair.malloc[0] = jobs(1.9, 1, 1000.0)),
        ["Figure 6.4, section 6.0.8", "Figure 6.8, section 6.0.8"]
    );
    // Each time that it goes on: T2's misses are of five parts.
    assert_eq!(differing(|pair| pair.malloc[1] = jobs(9.9, 5, 1000.0)), ["Figure 6.6, section 6.0.8"]);
    assert_eq!(differing(|pair| pair.malloc[1] = jobs(10.1, 5, 1000.0)), none);
    assert_eq!(differing(|pair| pair.coloured[0] = jobs(2.1, 1, 1000.0)), ["Figure 6.5, section 6.0.8"]);
    assert_eq!(differing(|pair| pair.coloured[0] = jobs(2.0, 1, 1000.0)), none);
    assert_eq!(differing(|pair| pair.coloured[1] = jobs(10.1, 5, 1000.0)), ["Figure 6.7, section 6.0.8"]);
    // One job of a hundred may miss.
    let some = |pair: &mut AllocatorJobs, number: usize| {
        pair.coloured[0].calm = vec![pair.coloured[0].calm[0]; 100];
        pair.coloured[0].calm[..number].iter_mut().for_each(|job| job.misses[0] = 16.0);
    };
    assert_eq!(differing(|pair| some(pair, 1)), none);
    assert_eq!(differing(|pair| some(pair, 2)), ["Figure 6.5, section 6.0.8"]);
    // What its witness lost, no task took.
    let taken = |pair: &mut AllocatorJobs| {
        pair.coloured[0] = jobs(5.0, 1, 1000.0);
        pair.coloured[0].calm.iter_mut().for_each(|job| job.taken = 3.0);
    };
    assert_eq!(differing(taken), none);
    assert_eq!(differing(|pair| pair.coloured[0].calm[0].cycles = 5000.0), none);
    assert_eq!(
        differing(|pair| pair.coloured[0]
            .calm
            .iter_mut()
            .zip(0..)
            .for_each(|(job, i)| job.cycles = f64::from(i) * 9.0)),
        ["Figure 6.8, section 6.0.8"]
    );
}

#[test]
fn runs_that_differ_are_not_the_same() {
    let apart = |by: f64| {
        let mut first = papers(2);
        for (i, run) in first.runs.iter_mut().enumerate() {
            run.coloured[0] = jobs(by * (i % 2) as f64, 1, 1000.0);
        }
        let rows = rows(&[Ok(first)]);
        (rows[1].verdict, rows[2].verdict)
    };
    // Of 16 pages a deviation of one: means 0 and 1.7 deviate by 0.93, 0 and 1.9 by 1.04.
    assert_eq!(apart(1.7), (RowVerdict::Holds, RowVerdict::Holds));
    assert_eq!(apart(1.9), (RowVerdict::Holds, RowVerdict::Differs));
}

#[test]
fn what_is_not_known_is_named_and_the_rest_judged() {
    // T2's jobs were all hit: T1 says what is said.
    let mut two = papers(2);
    for run in &mut two.runs {
        run.malloc[1] = TaskJobs { calm: Vec::new(), hit: 28 };
        run.coloured[1] = TaskJobs { calm: Vec::new(), hit: 28 };
    }
    let rows = rows(&[Ok(two.clone()), Ok(two), Err("not reached: interrupted".into())]);
    let about = |place: &str| rows.iter().filter(|row| row.place == place).collect::<Vec<_>>();
    let t2 = about("Figure 6.6, section 6.0.8")[0];
    assert!(
        t2.ours.is_none() && t2.note.contains("T2: nothing else hit only 0 jobs, 100 are needed; 140 were hit"),
        "{t2:?}"
    );
    let table = about("Table 6.1, Figures 6.9 to 6.12");
    assert_eq!(table.len(), 9);
    for row in &table[..3] {
        assert_eq!(row.verdict, RowVerdict::Holds, "{row:?}");
        assert!(row.note.contains("T2: ") && row.note.contains("T1 35 and 35, T2 140 and 140"), "{row:?}");
    }
    assert!(table[3..6].iter().all(|row| row.note == "not reached: interrupted"), "{table:?}");
    assert!(table[6..].iter().all(|row| row.note == "not reached: the time is up"), "{table:?}");
}

/// Figures 6.4 and 6.5: a point for each job of a hyperperiod, over the runs' means.
#[test]
fn curves_are_of_the_runs_means_by_the_jobs_place() {
    let mut first = papers(2);
    for (run, by) in first.runs.iter_mut().zip(0..) {
        // Every other job is the second of its hyperperiod, and misses by the run.
        run.malloc[0].calm.iter_mut().skip(1).step_by(2).for_each(|job| {
            (job.place, job.misses[0]) = (2, f64::from(by));
        });
        run.malloc[0].calm.iter_mut().step_by(2).for_each(|job| job.misses[0] = 7.0);
    }
    let mut found = Reproduction::default();
    add(&mut found, &[Ok(first)], "not reached");
    let [malloc, coloured] = &found.series[..] else { panic!("{:?}", found.series) };
    assert!(malloc.name.starts_with("Figure 6.4: T1") && coloured.name.starts_with("Figure 6.5: T1"));
    assert_eq!(malloc.points, [(1.0, 7.0), (2.0, 2.0)]);
    assert_eq!(malloc.intervals, [(7.0, 7.0), (0.0, 4.0)]);
    assert_eq!(coloured.points, [(1.0, 0.0)]);
}
