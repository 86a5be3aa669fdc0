//! What a trial found, and what was done about it; the journal of trials.

use lookaside_report::chart::{Axis, Lines, Look, Mark, Point, PointRow, Points, Scale, Series, Size};
use lookaside_report::{num, Cell, Chart, Column, Document, Medium, Paint, RichText, Section, Table};
use lookaside_runtime::trial::{
    Decision, JournalEntry, JournalState, Measure, MeasureEffect, PhaseRow, TrialReport, TrialVerdict, UndoneEntry,
};
use serde::Serialize;

/// Trials of one command, one after the other.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Trials {
    /// Each.
    pub trials: Vec<TrialReport>,
}

/// The journal.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct JournalList {
    /// Its entries, by number.
    pub trials: Vec<JournalEntry>,
}

/// What was taken back.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct UndoneTrials {
    /// Each trial that there was something of.
    pub undone: Vec<UndoneEntry>,
}

/// The answer, the measures, the phases.
pub fn view(trials: &Trials) -> Document {
    let who = trials.trials.first().map(processes).unwrap_or_default();
    let mut document = Document::new("Trial", who);
    for trial in &trials.trials {
        add(&mut document, trial);
    }
    document
}

fn add(document: &mut Document, trial: &TrialReport) {
    document.answer(RichText::painted(paint(trial.verdict), answer(trial)));
    if let Some(ended) = &trial.ended {
        document.cut_short(ended);
    }
    document.fact("tried", tried(trial));
    document.fact("judged by", judged_by(trial));
    document.fact("calls", calls(trial));
    document.section(Section::unheaded("Measures").with(measures(trial)));
    document.section(effects(trial).only(Medium::Page));
    document.section(over_time(trial).only(Medium::Page));
    document.section(Section::unheaded("Phases").with(phases(trial)).only(Medium::Page));
    document.section(method(trial).only(Medium::Page));
    trial.notes.iter().for_each(|note| document.note(note.clone()));
    if let Some(advice) = trial.advice.as_ref().filter(|_| trial.decision != Decision::TakenBack) {
        document.note(format!("It ends with the process. To have it again, {advice}."));
    } else if let Some(advice) = &trial.advice {
        document.note(format!("To have it, {advice}."));
    }
}

fn processes(trial: &TrialReport) -> String {
    let name = |at: usize| trial.processes.get(at).map(|process| format!("{} ({})", process.comm, process.pid));
    match (trial.processes.len(), name(0)) {
        (0 | 1, one) => one.unwrap_or_default(),
        (more, one) => format!("{} and {} more processes", one.unwrap_or_default(), more - 1),
    }
}

fn paint(verdict: TrialVerdict) -> Paint {
    match verdict {
        TrialVerdict::Helps => Paint::Good,
        TrialVerdict::Hurts => Paint::Bad,
        TrialVerdict::NoEffect => Paint::Strong,
        TrialVerdict::CantTell => Paint::Warn,
    }
}

/// What was found and done, in a line.
pub fn answer(trial: &TrialReport) -> String {
    let what = match trial.what.as_str() {
        "hugepages" => "Huge pages",
        "bake" => "Baking",
        other => other,
    };
    let verdict = match trial.verdict {
        TrialVerdict::Helps => format!("{what} help"),
        TrialVerdict::Hurts => format!("{what} hurt"),
        TrialVerdict::NoEffect => format!("{what} have no effect"),
        TrialVerdict::CantTell => format!("No effect of {} is shown", what.to_lowercase()),
    };
    // Of one thing.
    let verdict = if trial.what == "bake" { singular(&verdict) } else { verdict };
    let switches = num::counted(trial.switches as usize, "switch").replace("switchs", "switches");
    let by = format!("{switches} in {}", num::seconds(trial.seconds));
    let Some(effect) = &trial.effect else {
        return format!("Can't tell: there were too few phases, {by}. {}", done(trial));
    };
    let mut parts: Vec<String> = std::iter::once(effect).chain(trial.beside.first()).map(change).collect();
    if trial.what == "hugepages" {
        parts.push(added(trial.added_bytes));
    }
    format!("{verdict}: {}, by {by}. {}", parts.join(", "), done(trial))
}

/// What the metric did, and then the other measures.
fn all_effects(trial: &TrialReport) -> impl Iterator<Item = &MeasureEffect> {
    trial.effect.iter().chain(&trial.beside)
}

fn singular(verdict: &str) -> String {
    verdict.replace(" help", " helps").replace(" hurt", " hurts").replace(" have ", " has ")
}

fn done(trial: &TrialReport) -> String {
    match trial.decision {
        Decision::Kept => format!("Kept. Undo: lookaside undo {}", trial.number),
        Decision::TakenBack if trial.what == "bake" => "Ended.".into(),
        Decision::TakenBack => "Taken back.".into(),
        Decision::NotAllTakenBack => format!(
            "{} of {} huge pages could not be taken back. Try again: lookaside undo {}",
            trial.state_at_end.applied,
            trial.state_at_end.applied + trial.state_at_end.not_applied,
            trial.number
        ),
        Decision::Ended => "It ended, and all with it.".into(),
    }
}

/// `p99 −12 % (−15 to −9)`.
fn change(effect: &MeasureEffect) -> String {
    let part = |x: f64| format!("{:+.1}", 100.0 * x).replace('-', "−");
    let (low, high) = (part(effect.change.low), part(effect.change.high));
    format!("{} {}\u{a0}% ({low} to {high})", effect.name, part(effect.change.value))
}

fn added(bytes: i64) -> String {
    let sign = if bytes < 0 { "−" } else { "+" };
    format!("memory {sign}{}", num::bytes(bytes.unsigned_abs()))
}

fn tried(trial: &TrialReport) -> String {
    match (trial.windows, trial.windows_share) {
        (Some(windows), Some(share)) => format!(
            "huge pages for {} of 2 MiB, with {} of what was seen",
            num::counted(windows, "window"),
            num::percent(share)
        ),
        (Some(windows), None) => format!("huge pages for {} of the plan", num::counted(windows, "window")),
        (None, _) => "page-table entries kept in the caches by a helper of this command".into(),
    }
}

fn judged_by(trial: &TrialReport) -> String {
    let side = if trial.more_is_better { "more" } else { "less" };
    let why = trial.metric_reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    format!("{}; {side} is better{why}", trial.metric)
}

fn calls(trial: &TrialReport) -> String {
    let calls = &trial.calls;
    match calls.calls {
        0 => "none that the program waits for".into(),
        many => format!(
            "{}; the longest took {} to apply and {} to take back, and page faults of the program may have waited as long",
            num::grouped(many),
            num::seconds(calls.longest_apply_nanos as f64 / 1e9),
            num::seconds(calls.longest_take_back_nanos as f64 / 1e9)
        ),
    }
}

/// A value of a measure.
fn value(measure: Measure, x: f64) -> String {
    match measure {
        Measure::CpuTime => format!("{x:.3}\u{a0}CPUs"),
        Measure::CpuTimePerWrite | Measure::CpuTimePerPass | Measure::Instructions => num::seconds(x),
        Measure::Samples => format!("{x:.3}"),
        _ => num::rate(x),
    }
}

fn measures(trial: &TrialReport) -> Table {
    let interval = format!("{:.0} % interval", 100.0 * trial.confidence);
    let columns = [
        Column::left("measure").cut(40),
        Column::right("without"),
        Column::right("with"),
        Column::right("change"),
        Column::left(interval),
        Column::right("pairs").optional(1),
    ];
    let mut table = Table::new(columns).caption("Medians of all phases that count");
    for effect in all_effects(trial) {
        let part = |x: f64| format!("{:+.1}\u{a0}%", 100.0 * x).replace('-', "−");
        table.row([
            Cell::from(effect.name.as_str()),
            Cell::number(effect.off, value(effect.measure, effect.off)),
            Cell::number(effect.on, value(effect.measure, effect.on)),
            Cell::number(effect.change.value, part(effect.change.value)),
            format!("{} to {}", part(effect.change.low), part(effect.change.high)).into(),
            Cell::count(effect.pairs as u64),
        ]);
    }
    table
}

fn effects(trial: &TrialReport) -> Section {
    let row = |label: String, effect: &MeasureEffect| PointRow {
        label,
        value: Some(
            Point::new(0.0, 100.0 * effect.change.value).between(100.0 * effect.change.low, 100.0 * effect.change.high),
        ),
        ..PointRow::default()
    };
    let mut rows: Vec<PointRow> = all_effects(trial).map(|effect| row(effect.name.clone(), effect)).collect();
    for (effect, name) in trial.halves.iter().zip(["… first halves of phases", "… second halves"]) {
        rows.extend(effect.as_ref().map(|effect| row(name.to_string(), effect)));
    }
    let points = Points { x: Axis::new("change, %", Scale::Linear), reference: Some(0.0), rows };
    Section::unheaded("What changed")
        .lead(format!("Change with its {:.0} % interval. Dashed: none.", 100.0 * trial.confidence))
        .with(Chart::points("change, %", points))
}

fn over_time(trial: &TrialReport) -> Section {
    let counts = |phase: &&PhaseRow| phase.left_out.is_none();
    let point = |pair: &[PhaseRow]| {
        let of = |on| pair.iter().filter(counts).find(|phase| phase.on == on).and_then(|phase| phase.value);
        Some(Point::new(pair[0].at_seconds, 100.0 * (of(true)? / of(false)? - 1.0)))
    };
    let points = trial.phases.chunks_exact(2).filter_map(point).collect();
    let lines = Lines {
        x: Axis::new("seconds", Scale::Linear),
        y: Axis::new("change, %", Scale::Linear),
        series: vec![Series { name: "a pair of phases".into(), points, look: Look::Dots }],
        marks: Vec::new(),
        levels: vec![Mark { at: 0.0, name: "none".into() }],
        x_range: None,
        y_range: None,
        size: Size::Large,
    };
    let lead = format!("Change of the metric ({}) within each pair of phases.", trial.metric);
    Section::unheaded("Over time").lead(lead).with(Chart::lines("change, %", lines))
}

fn phases(trial: &TrialReport) -> Table {
    let columns = [
        Column::right("pair"),
        Column::left("applied"),
        Column::right("at"),
        Column::right(&trial.metric),
        Column::right("CPUs"),
        Column::right("in memory"),
        Column::right("applied at the end"),
        Column::left("left out"),
    ];
    let measure = trial.effect.as_ref().map_or(Measure::NumbersMean, |effect| effect.measure);
    let mut table = Table::new(columns).caption("Every phase");
    for phase in &trial.phases {
        let PhaseRow { pair, on, at_seconds, value: of, cpus, resident_bytes, applied_share, left_out } = phase;
        table.row([
            Cell::count(u64::from(*pair)),
            if *on { "yes" } else { "no" }.into(),
            Cell::seconds(*at_seconds),
            Cell::optional(*of, |x| Cell::number(x, value(measure, x))),
            Cell::rate(*cpus),
            Cell::bytes(*resident_bytes),
            Cell::share(*applied_share),
            left_out.as_deref().unwrap_or_default().into(),
        ]);
    }
    table
}

fn method(trial: &TrialReport) -> Section {
    Section::unheaded("How this was made").with(RichText::from(format!(
        "It was applied and taken back in pairs of phases of {}, of which the first {} do not count; chance decided \
         which of a pair came first (seed {}). A change is Hodges and Lehmann's estimate over the logarithms of each \
         pair's ratio; its interval belongs to Wilcoxon's signed-rank test, and holds the true change in {:.0} of 100 \
         trials. It helps or hurts where that interval does not hold 0.",
        num::seconds(trial.phase_seconds),
        num::seconds(trial.settle_seconds),
        trial.seed,
        100.0 * trial.confidence
    )))
}

/// The journal as a table.
pub fn journal(list: &JournalList) -> Document {
    let columns = [
        Column::right("trial"),
        Column::left("what"),
        Column::left("processes").cut(30),
        Column::left("state"),
        Column::left("found").cut(60),
    ];
    let mut table = Table::new(columns);
    for entry in &list.trials {
        let names = entry.processes.iter().map(|process| format!("{} ({})", process.identity.comm, process.pid));
        table.row([
            Cell::count(entry.number),
            Cell::from(entry.what.as_str()),
            names.collect::<Vec<_>>().join(", ").into(),
            state(entry).into(),
            entry.said.as_deref().unwrap_or_default().into(),
        ]);
    }
    let mut document = Document { titled: false, ..Document::new("Trials", "") };
    if list.trials.is_empty() {
        document.answer("There was no trial.");
    }
    document.section(Section::unheaded("Trials").with(table));
    document
}

fn state(entry: &JournalEntry) -> &'static str {
    match entry.state {
        JournalState::TakenBack => "taken back",
        _ if entry.is_left_over() => "left over: its command was killed",
        JournalState::Running if entry.command.is_same() => "going on",
        _ if !entry.has_something() => "gone with its processes",
        JournalState::Kept | JournalState::Running => "kept",
    }
}

/// What was taken back, in a line for each trial.
pub fn undone(undone: &UndoneTrials) -> Document {
    let mut document = Document { titled: false, ..Document::new("Undone", "") };
    if undone.undone.is_empty() {
        document.answer("Nothing was left over. lookaside undo N takes back what trial N kept; --list shows all.");
    }
    for one in &undone.undone {
        let huge = num::counted(one.split, "huge page");
        let mut line = format!("Trial {}: {huge} made small again.", one.entry.number);
        if one.split == 0 && one.refused.is_empty() {
            line = format!("Trial {}: nothing of it was left.", one.entry.number);
        }
        one.refused.iter().for_each(|why| line += &format!(" Refused: {why}."));
        document.answer(line);
    }
    document
}
