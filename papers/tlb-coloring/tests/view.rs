//! What is said of a hand-made experiment with tasks.

#[path = "../../harness/tests/support/drawn.rs"]
mod drawn;

use lookaside_machine::{preset, PageSize};
use lookaside_probe::counter::MeterAccuracy;
use lookaside_techniques::color::plan::plan;
use lookaside_techniques::color::tasks::TaskSet;
use lookaside_tlb_coloring::tasks::{
    CountedBy, JobRun, PagePlacement, ProgramRun, Scheduling, TaskRun, TaskSetReport, TaskSetRun,
};
use lookaside_tlb_coloring::view;

use drawn::{page, text, words};

/// Four jobs, two a hyperperiod: the first of a turn, one that nothing hit, one that an interrupt hit, and one that the
/// host did.
fn task(name: &str, misses: u64) -> TaskRun {
    let job = |job, interrupts, others| JobRun {
        job,
        begins_turn: job == 1,
        cycles: 5000.0 * job as f64,
        misses: misses * job,
        interrupts,
        others,
        taken_pages: 0.5,
        late: job == 4,
        modelled_misses: 2,
        ..JobRun::default()
    };
    let mut run = TaskRun {
        name: name.into(),
        rank: 1,
        pages: 8,
        most_in_a_set: 3,
        rounds: 17,
        program: None,
        miss_cycles: 31.25,
        known: MeterAccuracy { pages: 8, kept: [32, 32], kept_misses: -0.25, missed: [31, 30], missed_misses: 7.5 },
        gaps_lost: 6,
        summaries: Vec::new(),
        jobs_a_hyperperiod: 2,
        jobs: vec![job(1, 0, 0), job(2, 0, 0), job(3, 1, 0), job(4, 2, 1)],
    };
    run.summaries = run.summaries();
    run
}

fn report(scheduling: Scheduling, misses: u64) -> TaskSetReport {
    let set = "[[task]]\nname = \"T1\"\nperiod = \"2ms\"\nexecution = \"1ms\"\npages = 8\n";
    let set = TaskSet::parse(set, "t").expect("a set");
    TaskSetReport {
        machine: "made up".into(),
        level: "stlb".into(),
        counted_by: CountedBy::Timing,
        cpu: 5,
        scheduling,
        timer_remark: Some("the timer is slow".into()),
        hyperperiods: 2,
        runs: vec![TaskSetRun { placement: PagePlacement::SameSets, repeat: 1, tasks: vec![task("T\u{1b}", misses)] }],
        failed: None,
        plan: plan(&set, &preset("xeon-e5-2650").expect("a preset"), PageSize::K4).expect("a plan"),
    }
}

fn rows(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with("same sets  "));
    rows.map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect()
}

#[test]
fn a_program_stands_below_with_the_pages_that_its_jobs_touch() {
    let mut report = report(Scheduling::Fifo, 1);
    let task = &mut report.runs[0].tasks[0];
    task.program = Some(ProgramRun { name: "fft".into(), elements_a_job: 12_345, operations: 67_890, checksum: 0xabc });
    task.jobs.iter_mut().for_each(|job| job.touched_pages = Some(5 + job.job));
    task.summaries = task.summaries();
    let text = text(&view(&report), 200);
    // Jobs 2 to 4.
    let line = "· same sets, T\u{fffd}: fft, 12,345 elements a job on 8.0 pages (each time that it begins or goes on \
                added up); 67,890 operations in all, checksum 0000000000000abc\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn each_row_has_the_figures_of_its_jobs() {
    let report = report(Scheduling::Fifo, 1);
    let text = text(&view(&report), 200);
    let head = "Tasks' misses beside the model's: made up\n\
                1 of 1 jobs that nothing else hit missed as modelled. The model holds: at least 99 % did, of each task in \
                each run.\nmeasured  misses of stlb by timing; CPU 5, SCHED_FIFO, 2 hyperperiods\n";
    assert!(text.starts_with(head), "{text}");
    let expected = [
        [
            "same sets",
            "T\u{fffd}",
            "8",
            "3",
            "nothing",
            "1",
            "2.00",
            "2 – 2",
            "2.00",
            "0.50",
            "100.0 %",
            "0.0 %",
            "10.0",
            "0",
        ],
        [
            "same sets",
            "T\u{fffd}",
            "8",
            "3",
            "interrupts",
            "1",
            "3.00",
            "3 – 3",
            "2.00",
            "0.50",
            "100.0 %",
            "0.0 %",
            "15.0",
            "0",
        ],
        [
            "same sets",
            "T\u{fffd}",
            "8",
            "3",
            "others",
            "1",
            "4.00",
            "4 – 4",
            "2.00",
            "0.50",
            "0.0 %",
            "0.0 %",
            "20.0",
            "1",
        ],
    ];
    assert_eq!(rows(&text), expected, "{text}");
    for line in [
        "Medians by the job's place in a hyperperiod",
        "same sets, T\u{fffd}: 3 2 (modelled 2 2)",
        "· same sets, T\u{fffd}: a miss takes 31.2 cycles; where none of 8 pages misses -0.2 are counted, where all \
         do 7.5",
        "· the timer is slow",
        "· 6 interrupts more than there was room to write down: some jobs that were hit stand among the others",
    ] {
        assert!(text.lines().any(|is| is == line), "{line}\n{text}");
    }
    assert!(!text.contains('\u{1b}') && !text.contains("SCHED_FIFO (as root"), "{text}");
    assert!(report.holds());
}

#[test]
fn what_does_not_hold_and_who_had_no_right_is_said() {
    let report = report(Scheduling::Nice, 5);
    let text = text(&view(&report), 200);
    assert!(
        text.contains("0 of 1 jobs that nothing else hit missed as modelled. The model does not hold:")
            && text.contains("CPU 5, nice, ")
            && text.contains("· without the right to SCHED_FIFO"),
        "{text}"
    );
    assert_eq!(rows(&text)[0][10], "0.0 %", "{text}");
    assert!(!report.holds());
}

#[test]
fn the_page_has_every_row_and_draws_the_jobs_of_a_hyperperiod() {
    let page = page(&view(&report(Scheduling::Fifo, 1)));
    // Two places, each counted and modelled.
    assert_eq!((page.matches("<figure>").count(), page.matches("<circle").count()), (1, 4));
    let words = words(&page);
    for part in [
        "Tasks' misses beside the model's made up 1 of 1 jobs that nothing else hit missed as modelled.",
        "same sets T\u{fffd} 8 3 interrupts 1 3.00 3 – 3 2.00 0.50 100.0 % 0.0 % 15.0 0",
        "same sets, T\u{fffd} misses a job",
        "a miss takes 31.2 cycles",
        "the timer is slow",
    ] {
        assert!(words.contains(part), "{part:?} is not in {words}");
    }
}

/// A hyperperiod of many jobs is drawn on the page alone; where something hit every job, that is the answer.
#[test]
fn many_jobs_are_on_the_page_and_none_that_counts_is_said() {
    let mut report = report(Scheduling::Fifo, 1);
    let task = &mut report.runs[0].tasks[0];
    task.jobs_a_hyperperiod = 17;
    task.jobs.iter_mut().for_each(|job| job.interrupts = 1);
    task.summaries = task.summaries();
    let document = view(&report);
    let text = text(&document, 100);
    assert!(text.contains("\nSomething hit every job: nothing can be held against the model.\n"), "{text}");
    assert!(!text.contains("(modelled ") && page(&document).contains("<figure>"), "{text}");
    assert!(!report.holds());
}
