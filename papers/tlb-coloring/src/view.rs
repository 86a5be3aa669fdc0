//! Runs of real-time tasks as a document: the tasks' jobs, what hit them, and their misses beside the model's.

use lookaside_report::chart::{Axis, Lines, Look, Point, Scale, Series};
use lookaside_report::{num, Cell, Chart, Column, Document, DocumentBlock, Medium, Paint, RichText, Section, Table};

use crate::tasks::{CountedBy, HitBy, JobSummary, Scheduling, TaskRun, TaskSetReport, TaskSetRun};

/// The `schema` of a [`TaskSetReport`]'s JSON.
pub const TASKS_SCHEMA: &str = "lookaside-tasks/1";

/// Jobs of a hyperperiod that a terminal shows one by one.
const MOST_PLACES: usize = 16;

/// The verdict, the jobs by what hit them, misses by the job's place, how misses were counted.
pub fn view(report: &TaskSetReport) -> Document {
    let mut document = Document::new("Tasks' misses beside the model's", &report.machine);
    document.answer(answer(report));
    document.fact("measured", circumstances(report));
    document.section(Section::unheaded("Jobs by what hit them").lead(JOBS).with(jobs(report)));
    let places = || report.runs.iter().flat_map(|run| run.tasks.iter().map(move |task| (run, task)));
    let few = |task: &TaskRun| task.jobs_a_hyperperiod as usize <= MOST_PLACES;
    let charts = |wanted: bool| -> Vec<Chart> {
        places().filter(|(_, task)| few(task) == wanted).map(|(run, task)| by_place(run, task)).collect()
    };
    let heading = "Medians by the job's place in a hyperperiod";
    document.section(Section::new(heading).lead(PLACES).with(charts(true)));
    document.section(Section::new(heading).lead(PLACES).with(charts(false)).only(Medium::Page));
    let programs = places().filter_map(|(run, task)| program(run, task)).collect();
    document.section(Section::new("What the tasks' programs did").with(DocumentBlock::List(programs)));
    let known = places().map(|(run, task)| known(run, task, report.counted_by)).collect();
    document.section(Section::new("Passes whose misses are known").with(DocumentBlock::List(known)));
    report.remarks().into_iter().for_each(|remark| document.note(remark));
    document
}

/// How to read the table.
const JOBS: &str =
    "Of jobs that nothing else hit, misses of at least 99 % are to be as modelled: within an eighth of the pages \
     each time that the job begins or goes on. Outside: pages of a job that no task took, by its witness. Spared: \
     jobs that missed next to nothing, whoever took it. The first job of each turn is left out.";

/// How to read the charts.
const PLACES: &str = "Of jobs that others did not hit and that begin no turn. Solid: counted; dashed: modelled.";

/// Whether the jobs that nothing else hit missed as modelled.
fn answer(report: &TaskSetReport) -> RichText {
    let tasks = report.runs.iter().flat_map(|run| &run.tasks);
    let calm = || tasks.clone().flat_map(|task| &task.summaries).filter(|summary| summary.hit_by == HitBy::Nothing);
    let [jobs, agree] = [|of: &JobSummary| of.jobs, |of: &JobSummary| of.agree].map(|of| calm().map(of).sum::<usize>());
    if jobs == 0 {
        return RichText::painted(Paint::Warn, "Something hit every job: nothing can be held against the model.");
    }
    let (paint, verdict) = match report.holds() {
        true => (Paint::Good, "The model holds: at least 99 % did, of each task in each run."),
        false => (Paint::Bad, "The model does not hold: that takes 99 %, of each task in each run."),
    };
    let [agree, jobs] = [agree, jobs].map(|n| num::grouped(n as u64));
    RichText::from(format!("{agree} of {jobs} jobs that nothing else hit missed as modelled. ")).paint(paint, verdict)
}

/// What was counted and how, in a sentence.
fn circumstances(report: &TaskSetReport) -> String {
    let turns = match report.scheduling {
        Scheduling::Fifo => "SCHED_FIFO",
        Scheduling::Nice => "nice",
    };
    let by = match report.counted_by {
        CountedBy::Walks => "walks",
        CountedBy::Timing => "timing",
    };
    let hyperperiods = num::grouped(report.hyperperiods);
    format!("misses of {} by {by}; CPU {}, {turns}, {hyperperiods} hyperperiods", report.level, report.cpu)
}

fn jobs(report: &TaskSetReport) -> Table {
    let mut table = Table::new([
        Column::left("placement"),
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
    for (run, task) in report.runs.iter().flat_map(|run| run.tasks.iter().map(move |task| (run, task))) {
        for summary in &task.summaries {
            let share = |part: usize| num::share(part as f64, summary.jobs as f64);
            let paint = match summary.hit_by {
                HitBy::Nothing if share(summary.agree) >= 0.99 => Paint::Good,
                HitBy::Nothing => Paint::Bad,
                _ => Paint::Plain,
            };
            let [mean, least, most] = summary.misses;
            table.row([
                run.placement.name().into(),
                Cell::from(&task.name),
                Cell::count(task.pages as u64),
                Cell::count(task.most_in_a_set as u64),
                hit_by(summary.hit_by).into(),
                Cell::count(summary.jobs as u64),
                Cell::rate(mean),
                Cell::number(most, format!("{least:.0} – {most:.0}")),
                Cell::rate(summary.modelled_misses),
                Cell::rate(summary.taken_pages),
                Cell::share(share(summary.agree)).paint(paint),
                Cell::share(share(summary.spared)),
                Cell::rate(summary.cycles / 1000.0),
                Cell::count(summary.late as u64),
            ]);
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

/// `planned, T1`.
fn name(run: &TaskSetRun, task: &TaskRun) -> String {
    format!("{}, {}", run.placement.name(), task.name)
}

/// A task's misses by the job's place in the hyperperiod; empty where no place has any.
fn by_place(run: &TaskSetRun, task: &TaskRun) -> Chart {
    let places = task.by_place();
    let of = |at: usize| places.iter().map(move |place| place.map_or(f64::NAN, |both| both[at]));
    let [counted, modelled] = [0, 1].map(|at| {
        let misses = of(at).map(|misses| if misses.is_finite() { format!("{misses:.0}") } else { num::NONE.into() });
        misses.collect::<Vec<String>>().join(" ")
    });
    let series = |name: &str, at: usize| {
        Series::new(name, (1u32..).zip(of(at)).map(|(place, misses)| Point::new(place.into(), misses)).collect())
    };
    let scale = if places.len() <= MOST_PLACES { Scale::Even } else { Scale::Linear };
    let lines = Lines::new(Axis::new("job of the hyperperiod", scale), Axis::new("misses a job", Scale::Auto))
        .with(series("counted", 0))
        .with(series("modelled", 1).look(Look::Model));
    Chart::lines(name(run, task), lines).in_words(format!("{}: {counted} (modelled {modelled})", name(run, task)))
}

/// What a task's program did.
fn program(run: &TaskSetRun, task: &TaskRun) -> Option<RichText> {
    let program = task.program.as_ref()?;
    let jobs: usize = task.summaries.iter().map(|summary| summary.jobs).sum();
    let of = |summary: &JobSummary| summary.touched_pages.unwrap_or_default() * summary.jobs as f64;
    let touched = task.summaries.iter().map(of).sum::<f64>() / jobs.max(1) as f64;
    Some(RichText::from(format!(
        "{}: {}, {} elements a job on {touched:.1} pages (each time that it begins or goes on added up); {} \
         operations in all, checksum {:016x}",
        name(run, task),
        program.name,
        num::grouped(program.elements_a_job),
        num::grouped(program.operations),
        program.checksum,
    )))
}

/// How passes were counted whose misses are known.
fn known(run: &TaskSetRun, task: &TaskRun, by: CountedBy) -> RichText {
    let known = &task.known;
    let of = known.pages;
    let [kept, missed] = match by {
        CountedBy::Walks => [format!("of {of} pages loaded over and over"), "with all translations put out".into()],
        CountedBy::Timing => [format!("where none of {of} pages misses"), "where all do".into()],
    };
    RichText::from(format!(
        "{}: a miss takes {:.1} cycles; {kept} {:.1} are counted, {missed} {:.1}",
        name(run, task),
        task.miss_cycles,
        known.kept_misses,
        known.missed_misses,
    ))
}
