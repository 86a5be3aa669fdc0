//! Experiments on the metal for a terminal: the tasks' jobs, what hit them, and their misses beside the model's.

use lookaside_tlb_coloring::tasks::{CountedBy, HitBy, Report, Run, Scheduling, Summary, TaskRun};

use lookaside_report::num;
use lookaside_report::text;
use lookaside_report::{Cell, Column, Table};
use lookaside_report::{Paint, Style};

/// Jobs of a hyperperiod that are printed one by one.
const MOST_PLACES: usize = 16;

/// Runs of a set of tasks as text.
pub fn tasks(report: &Report, style: &Style) -> String {
    let turns = match report.scheduling {
        Scheduling::Fifo => "SCHED_FIFO",
        Scheduling::Nice => "nice",
    };
    let (machine, level, cpu, hyperperiods) = (&report.machine, &report.level, report.cpu, report.hyperperiods);
    let by = match report.counted_by {
        CountedBy::Walks => "walks",
        CountedBy::Timing => "timing",
    };
    let mut text = format!("{machine}: misses of {level} by {by}; CPU {cpu}, {turns}, {hyperperiods} hyperperiods\n\n");
    text += &jobs(report).render(style);
    for run in &report.runs {
        text += &places(run);
    }
    text.push('\n');
    for run in &report.runs {
        for task in &run.tasks {
            text += &known(run, task, report.counted_by);
            text += &program(run, task);
        }
    }
    for remark in report.remarks() {
        text += &format!("remark: {}\n", text::clean(&remark));
    }
    text
}

fn jobs(report: &Report) -> Table {
    let mut table = Table::new([
        Column::left("pages"),
        Column::left("task"),
        Column::right("pages").optional(5),
        Column::right("in a set").optional(2),
        Column::left("hit by"),
        Column::right("jobs"),
        Column::right("misses a job"),
        Column::right("least – most").optional(1),
        Column::right("modelled"),
        Column::right("outside"),
        Column::right("as modelled"),
        Column::right("spared"),
        Column::right("kcycles a job").optional(3),
        Column::right("late").optional(4),
    ]);
    for run in &report.runs {
        for task in &run.tasks {
            for summary in &task.summaries {
                let share = summary.agree as f64 / summary.jobs.max(1) as f64;
                let paint = match summary.hit_by {
                    HitBy::Nothing if share >= 0.99 => Paint::Good,
                    HitBy::Nothing => Paint::Bad,
                    _ => Paint::Plain,
                };
                let [mean, least, most] = summary.misses;
                table.row([
                    run.placement.name().into(),
                    task.name.as_str().into(),
                    task.pages.to_string().into(),
                    task.most_in_a_set.to_string().into(),
                    hit_by(summary.hit_by).into(),
                    num::grouped(summary.jobs as u64).into(),
                    num::rate(mean).into(),
                    format!("{least:.0} – {most:.0}").into(),
                    num::rate(summary.modelled_misses).into(),
                    num::rate(summary.taken_pages).into(),
                    Cell::painted(paint, num::percent(share)),
                    num::percent(summary.spared as f64 / summary.jobs.max(1) as f64).into(),
                    num::rate(summary.cycles / 1000.0).into(),
                    num::grouped(summary.late as u64).into(),
                ]);
            }
        }
    }
    table
}

fn hit_by(what: HitBy) -> &'static str {
    match what {
        HitBy::Nothing => "nothing",
        HitBy::Unseen => "unseen",
        HitBy::Interrupts => "interrupts",
        HitBy::Others => "others",
    }
}

/// Each task's misses by the job's place in the hyperperiod, where these are few.
fn places(run: &Run) -> String {
    let mut text = String::new();
    for task in &run.tasks {
        let places = task.by_place();
        if places.len() > MOST_PLACES || places.iter().all(Option::is_none) {
            continue;
        }
        let row = |at: usize| {
            let figures = places.iter().map(|place| place.map_or(num::NONE.into(), |both| format!("{:.0}", both[at])));
            figures.collect::<Vec<String>>().join(" ")
        };
        let (pages, name) = (run.placement.name(), text::clean(&task.name));
        text += &format!(
            "{pages}, {name}: medians by the job's place in a hyperperiod: {} (modelled {})\n",
            row(0),
            row(1)
        );
    }
    text
}

/// What a task's program did.
fn program(run: &Run, task: &TaskRun) -> String {
    let Some(program) = &task.program else { return String::new() };
    let jobs: usize = task.summaries.iter().map(|summary| summary.jobs).sum();
    let of = |summary: &Summary| summary.touched_pages.unwrap_or_default() * summary.jobs as f64;
    let touched = task.summaries.iter().map(of).sum::<f64>() / jobs.max(1) as f64;
    format!(
        "{}, {}: {}, {} elements a job on {touched:.1} pages (each time that it begins or goes on added up); {} operations in all, checksum {:016x}\n",
        run.placement.name(),
        text::clean(&task.name),
        text::clean(&program.name),
        num::grouped(program.elements_a_job),
        num::grouped(program.operations),
        program.checksum,
    )
}

/// How passes were counted whose misses are known.
fn known(run: &Run, task: &TaskRun, by: CountedBy) -> String {
    let known = &task.known;
    let of = known.pages;
    let [kept, missed] = match by {
        CountedBy::Walks => [format!("of {of} pages loaded over and over"), "with all translations put out".into()],
        CountedBy::Timing => [format!("where none of {of} pages misses"), "where all do".into()],
    };
    format!(
        "{}, {}: a miss takes {:.1} cycles; {kept} {:.1} are counted, {missed} {:.1}\n",
        run.placement.name(),
        text::clean(&task.name),
        task.miss_cycles,
        known.kept_misses,
        known.missed_misses,
    )
}
