//! A thread's moves to another CPU as a document: what its first accesses cost there, and what prefetching translations
//! gains or loses; the verdicts, charts over the number of pages, every case.

use lookaside_report::chart::{Axis, Lines, Point, Scale, Series};
use lookaside_report::{num, Cell, Chart, Column, Document, Medium, Paint, RichText, Section, Table};
use lookaside_stats::{Figure, LEAST_ROUNDS};

use crate::metal::{CaseTimes, MoveReport, Overall, Pays, Treatment, TreatmentTimes, RESAMPLES};

/// The `schema` of a [`MoveReport`]'s JSON.
pub const MIGRATION_SCHEMA: &str = "lookaside-migration/1";

/// The verdicts; a row a case on a terminal, charts and all figures on the page; what has to be known.
pub fn view(report: &MoveReport) -> Document {
    let mut document = Document::new("A thread moves to another CPU: does taking its translations along pay?", "");
    for remedy in Treatment::REMEDIES {
        if let Some(verdict) = verdict(report, remedy) {
            document.answer(RichText::new().strong(format!("Verdict on {}:", remedy.name())).plain(verdict));
        }
    }
    if let Some(why) = &report.halted {
        let cut_short = RichText::painted(Paint::Warn, format!("Cut short: {why}."));
        document.banner(cut_short.plain(" Figures are of the rounds that were complete."));
    }
    document.fact("measured", circumstances(report));
    if !report.cells.is_empty() {
        document.section(
            Section::unheaded("Cases").with(RichText::from(LEGEND)).with(cases(report)).only(Medium::Terminal),
        );
    }
    let overall = |cell: &CaseTimes, treatment: Treatment| cell.overall(treatment).map(|overall| overall.ns);
    document.section(
        Section::unheaded("Gained or lost overall, ns a page")
            .lead(
                "Access without − (restore + access with), each with its 95 % interval. Above 0 it pays. Sizes stand \
                 at even distances.",
            )
            .with(charts(report, &Treatment::REMEDIES, &overall))
            .only(Medium::Page),
    );
    let sums = |cell: &CaseTimes, treatment: Treatment| cell.told(treatment).map(sum);
    document.section(
        Section::unheaded("Restore and first accesses, ns a page")
            .lead(
                "Each page once, on the new CPU. Returns: the thread comes back to its own translations, so only \
                 cache misses remain.",
            )
            .with(charts(report, &Treatment::ALL, &sums))
            .only(Medium::Page),
    );
    document.section(Section::unheaded("Every case").with(every_case(report)).only(Medium::Page));
    document.section(method(report).only(Medium::Page));
    report.remarks.iter().for_each(|remark| document.note(remark));
    document
}

/// How to read the terminal's table.
const LEGEND: &str =
    "ns a page, medians over rounds, in parentheses 95 % intervals. nothing: first access to each page after the \
     move; translation: how much longer than when the thread returns to its own translations; direct, indirect, huge \
     pages: gained (+) or lost (-) overall, access without - (restore + access with)";

/// Where and how it was measured, in a sentence.
fn circumstances(report: &MoveReport) -> String {
    let rounds = match report.rounds == report.rounds_wanted {
        true => report.rounds.to_string(),
        false => format!("{} of {}", report.rounds, report.rounds_wanted),
    };
    format!(
        "a thread moves from CPU {} to CPU {}, which {}; {rounds} rounds in new orders (seed {}); the move by itself \
         takes {}; caches thrashed by {}",
        report.from_cpu,
        report.to_cpu,
        report.relation.words(),
        report.seed,
        num::seconds(report.move_ns / 1e9),
        num::bytes(report.thrash_bytes),
    )
}

/// What a remedy does, over all cases in which it was measured; `None`: in none.
fn verdict(report: &MoveReport, remedy: Treatment) -> Option<String> {
    let measured = || report.cells.iter().filter_map(|cell| Some((cell, cell.overall(remedy)?)));
    let count = |verdict| measured().filter(|(_, overall)| overall.verdict == verdict).count();
    let [all, pays, costs] = [measured().count(), count(Pays::Pays), count(Pays::Costs)];
    if all == 0 {
        return None;
    }
    let rest = format!("costs significantly in {costs}, neither in {}", all - pays - costs);
    if pays == 0 {
        return Some(format!(" pays significantly in none of {all} cases; {rest}."));
    }
    // A sentence of all cases would be a paragraph: of each group the fewest pages, and the rest is in the table.
    let mut groups: Vec<(String, u64, usize)> = Vec::new();
    for (cell, _) in measured().filter(|(_, overall)| overall.verdict == Pays::Pays) {
        let (group, pages) = (group(cell), cell.case.pages);
        match groups.last_mut().filter(|last| last.0 == group) {
            Some((_, least, count)) => (*least, *count) = ((*least).min(pages), *count + 1),
            None => groups.push((group, pages, 1)),
        }
    }
    let pages = |count| if count == 1 { "1 page".into() } else { format!("{} pages", num::grouped(count)) };
    let in_words = |(group, least, count): (String, u64, usize)| match count {
        1 => format!("{group}: with {}", pages(least)),
        _ => format!("{group}: {count} sizes, the least {}", pages(least)),
    };
    let groups: Vec<String> = groups.into_iter().map(in_words).collect();
    Some(format!(" pays significantly in {pays} of {all} cases ({}); {rest}.", groups.join("; ")))
}

/// Which cases a cell belongs to.
fn group(cell: &CaseTimes) -> String {
    let case = &cell.case;
    format!("{}, {} KiB apart, {}", case.pattern.name(), case.stride_bytes >> 10, case.caches.name())
}

/// Nanoseconds a page, with the interval.
fn interval(ns: &Figure, pages: u64, signed: bool) -> String {
    let [value, low, high] = [ns.value, ns.low, ns.high].map(|ns| num::rate(a_page(ns, pages)));
    let sign = if signed && ns.value > 0.0 { "+" } else { "" };
    format!("{sign}{value} ({low} … {high})")
}

fn a_page(ns: f64, pages: u64) -> f64 {
    ns / pages as f64
}

/// A row a case, in groups of those that differ in the number of pages alone.
fn cases(report: &MoveReport) -> Table {
    let mut table = Table::new([
        Column::right("pages"),
        Column::right("nothing"),
        Column::right("returns").optional(5),
        Column::right("translation").optional(1),
        Column::right("direct"),
        Column::right("restore + access").optional(2),
        Column::right("indirect"),
        Column::right("restore + access").optional(3),
        Column::right("huge pages"),
        Column::right("access").optional(4),
    ]);
    for cells in report.cells.chunk_by(|a, b| group(a) == group(b)) {
        cells.iter().take(1).for_each(|first| table.below(Paint::Strong, group(first)));
        for cell in cells {
            let pages = cell.case.pages;
            let access =
                |of: Treatment| Cell::optional(cell.told(of), |of| Cell::rate(a_page(of.access_ns.value, pages)));
            let parts = |of: Treatment| Cell::optional(cell.told(of), |of| parts(of, pages));
            let gained = |of: Treatment| Cell::optional(cell.overall(of), |of| gained(of, pages));
            table.row([
                Cell::count(pages),
                access(Treatment::Nothing),
                access(Treatment::Returns),
                Cell::optional(cell.translation_ns, |ns| Cell::rate(a_page(ns.value, pages))),
                gained(Treatment::Direct),
                parts(Treatment::Direct),
                gained(Treatment::Indirect),
                parts(Treatment::Indirect),
                gained(Treatment::Huge),
                access(Treatment::Huge),
            ]);
        }
    }
    table
}

fn parts(times: &TreatmentTimes, pages: u64) -> Cell {
    let restore = times.restore_ns.map_or(0.0, |ns| ns.value);
    format!("{} + {}", num::rate(a_page(restore, pages)), num::rate(a_page(times.access_ns.value, pages))).into()
}

fn gained(overall: Overall, pages: u64) -> Cell {
    Cell::number(a_page(overall.ns.value, pages), interval(&overall.ns, pages, true)).paint(paint(overall.verdict))
}

fn paint(verdict: Pays) -> Paint {
    match verdict {
        Pays::Pays => Paint::Good,
        Pays::Costs => Paint::Bad,
        Pays::Unclear => Paint::Dim,
    }
}

/// Restore and access together; the interval is the access's, moved, and is not drawn.
fn sum(times: &TreatmentTimes) -> Figure {
    let value = times.restore_ns.map_or(0.0, |ns| ns.value) + times.access_ns.value;
    Figure { value, low: value, high: value }
}

/// A chart for each pattern, stride and caches: a line a treatment, ns a page over pages.
fn charts(
    report: &MoveReport,
    treatments: &[Treatment],
    value: &dyn Fn(&CaseTimes, Treatment) -> Option<Figure>,
) -> Vec<Chart> {
    let point = |cell: &CaseTimes, treatment: Treatment| {
        let pages = cell.case.pages;
        match value(cell, treatment) {
            Some(ns) => {
                Point::new(pages as f64, a_page(ns.value, pages)).between(a_page(ns.low, pages), a_page(ns.high, pages))
            }
            None => Point::new(pages as f64, f64::NAN),
        }
    };
    let chart = |cells: &[CaseTimes]| {
        let line = |treatment: &Treatment| {
            Series::new(treatment.name(), cells.iter().map(|cell| point(cell, *treatment)).collect())
        };
        let lines = Lines::new(Axis::new("pages", Scale::Even), Axis::new("ns a page", Scale::Auto));
        Chart::lines(group(&cells[0]), Lines { series: treatments.iter().map(line).collect(), ..lines })
    };
    report.cells.chunk_by(|a, b| group(a) == group(b)).map(chart).collect()
}

fn every_case(report: &MoveReport) -> Table {
    let mut table = Table::new([
        Column::left("case"),
        Column::right("pages"),
        Column::left("treatment"),
        Column::right("prefetches"),
        Column::right("restore"),
        Column::right("first access"),
        Column::right("next access, another line"),
        Column::right("overall"),
        Column::right("overall, ns a page"),
        Column::left("significant"),
    ])
    .caption("ns for all pages of a row, medians with 95 % intervals");
    let figure = |ns: Figure| Cell::number(ns.value, format!("{:.0} ({:.0} … {:.0})", ns.value, ns.low, ns.high));
    for cell in &report.cells {
        let pages = cell.case.pages;
        for times in &cell.ways {
            let word = match times.overall.map(|overall| overall.verdict) {
                Some(Pays::Pays) => "pays",
                Some(Pays::Costs) => "costs",
                Some(Pays::Unclear) => "unclear",
                None => "",
            };
            let paint = times.overall.map_or(Paint::Plain, |overall| paint(overall.verdict));
            table.row([
                group(cell).into(),
                Cell::count(pages),
                times.way.name().into(),
                Cell::count(times.prefetches),
                Cell::optional(times.restore_ns, figure),
                figure(times.access_ns),
                Cell::number(times.again_ns, format!("{:.0}", times.again_ns)),
                Cell::optional(times.overall.map(|overall| overall.ns), figure),
                Cell::optional(times.overall, |overall| gained(overall, pages)),
                Cell::painted(paint, word),
            ]);
        }
    }
    table
}

fn method(report: &MoveReport) -> Section {
    Section::unheaded("How this was made")
        .with(RichText::from(format!(
            "For each measurement the thread touches its pages on the new CPU, reads {} there where caches are to be \
             thrashed, goes to the old CPU, has all TLBs drop its translations, touches its pages again and moves. \
             Then prefetches and first accesses are timed one after the other. Direct: one prefetch a page. \
             Indirect: one for each 64-byte line of page-table entries, since a program can't touch the tables \
             themselves. Where the thread returns, translations are dropped before it touches its pages on the new \
             CPU.",
            num::bytes(report.thrash_bytes)
        )))
        .with(RichText::from(format!(
            "Each round measured everything once, in an order drawn anew. Intervals are percentile bootstraps of \
             medians: {RESAMPLES} draws of whole rounds, seed {}. Each holds by itself with 95 %: of forty cases \
             without effect one may seem to pay, and one to cost. Nothing is called significant of fewer than \
             {LEAST_ROUNDS} rounds.",
            report.seed
        )))
}
