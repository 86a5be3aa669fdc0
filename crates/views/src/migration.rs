//! A thread's moves to another CPU, for a terminal: what its first accesses cost there, and what prefetching translations gains or loses.

use lookaside_stats::Figure;
use lookaside_tlb_migration::metal::{Cell as Measured, Overall, Pays, Report, Treatment, TreatmentTimes};

use lookaside_report::{num, text};
use lookaside_report::{Cell, Column, Table};
use lookaside_report::{Line, Paint, Style};

/// The report as text: where it was measured, a row a case, what has to be known, the verdicts.
pub fn render(report: &Report, style: &Style) -> String {
    let lines = |said: Vec<(Paint, String)>| {
        let wrapped = said.iter().flat_map(|(paint, words)| {
            text::wrap(&text::clean(words), style.columns()).into_iter().map(|part| Line::of(*paint, part))
        });
        lookaside_report::render_lines(&wrapped.collect::<Vec<_>>(), style)
    };
    let mut out = lines(vec![(Paint::Dim, circumstances(report)), (Paint::Dim, LEGEND.into())]);
    out.push('\n');
    if !report.cells.is_empty() {
        out += &table(report).render(style);
        out.push('\n');
    }
    let mut said: Vec<(Paint, String)> =
        report.remarks.iter().map(|remark| (Paint::Warn, format!("remark: {remark}"))).collect();
    said.extend(report.halted.iter().map(|why| (Paint::Warn, format!("CUT SHORT: {why}"))));
    said.extend(Treatment::REMEDIES.into_iter().filter_map(|way| Some((Paint::Strong, verdict(report, way)?))));
    out + &lines(said)
}

/// How to read the table.
const LEGEND: &str = "ns a page, medians over rounds, in parentheses 95 % intervals. nothing: first access to each page after the move; translation: how much longer than when the thread returns to its own \
     translations; direct, indirect, huge pages: gained (+) or lost (-) overall, access without - (restore + access with)";

/// Where and how it was measured, in a sentence.
pub(crate) fn circumstances(report: &Report) -> String {
    let rounds = match report.rounds == report.rounds_wanted {
        true => report.rounds.to_string(),
        false => format!("{} of {}", report.rounds, report.rounds_wanted),
    };
    format!(
        "measured: a thread moves from CPU {} to CPU {}, which {}; {rounds} rounds in new orders (seed {}); the move by itself takes {}; caches thrashed by {}",
        report.from_cpu,
        report.to_cpu,
        report.relation.words(),
        report.seed,
        num::seconds(report.move_ns / 1e9),
        num::bytes(report.thrash_bytes),
    )
}

/// What a remedy does, over all cases in which it was measured; `None`: in none.
pub(crate) fn verdict(report: &Report, way: Treatment) -> Option<String> {
    let measured = || report.cells.iter().filter_map(|cell| Some((cell, cell.overall(way)?)));
    let count = |verdict| measured().filter(|(_, overall)| overall.verdict == verdict).count();
    let [all, pays, costs] = [measured().count(), count(Pays::Pays), count(Pays::Costs)];
    if all == 0 {
        return None;
    }
    let name = way.name();
    let rest = format!("costs significantly in {costs}, neither in {}", all - pays - costs);
    if pays == 0 {
        return Some(format!("Verdict on {name}: pays significantly in none of {all} cases; {rest}"));
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
    let told = |(group, least, count): (String, u64, usize)| match count {
        1 => format!("{group}: with {}", pages(least)),
        _ => format!("{group}: {count} sizes, the least {}", pages(least)),
    };
    let groups: Vec<String> = groups.into_iter().map(told).collect();
    Some(format!("Verdict on {name}: pays significantly in {pays} of {all} cases ({}); {rest}", groups.join("; ")))
}

/// Which cases a cell belongs to.
pub(crate) fn group(cell: &Measured) -> String {
    let case = &cell.case;
    format!("{}, {} KiB apart, {}", case.pattern.name(), case.stride_bytes >> 10, case.caches.name())
}

/// Nanoseconds a page, with the interval.
pub(crate) fn interval(ns: &Figure, pages: u64, signed: bool) -> String {
    let [value, low, high] = [ns.value, ns.low, ns.high].map(|ns| num::rate(ns / pages as f64));
    let sign = if signed && ns.value > 0.0 { "+" } else { "" };
    format!("{sign}{value} ({low} … {high})")
}

fn table(report: &Report) -> Table {
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
    let mut last = String::new();
    for cell in &report.cells {
        let group = group(cell);
        if group != last {
            table.below(Paint::Strong, &group);
            last = group;
        }
        let pages = cell.case.pages;
        let access = |way: Treatment| {
            cell.told(way).map_or(num::NONE.into(), |told| num::rate(a_page(told.access_ns.value, pages)))
        };
        let parts = |way: Treatment| cell.told(way).map_or(num::NONE.into(), |told| parts(told, pages));
        table.row([
            num::grouped(pages).into(),
            access(Treatment::Nothing).into(),
            access(Treatment::Returns).into(),
            cell.translation_ns.map_or(num::NONE.into(), |ns| num::rate(a_page(ns.value, pages))).into(),
            overall(cell.overall(Treatment::Direct), pages),
            parts(Treatment::Direct).into(),
            overall(cell.overall(Treatment::Indirect), pages),
            parts(Treatment::Indirect).into(),
            overall(cell.overall(Treatment::Huge), pages),
            access(Treatment::Huge).into(),
        ]);
    }
    table
}

fn parts(told: &TreatmentTimes, pages: u64) -> String {
    let restore = told.restore_ns.map_or(0.0, |ns| ns.value);
    format!("{} + {}", num::rate(a_page(restore, pages)), num::rate(a_page(told.access_ns.value, pages)))
}

fn a_page(ns: f64, pages: u64) -> f64 {
    ns / pages as f64
}

fn overall(overall: Option<Overall>, pages: u64) -> Cell {
    let Some(overall) = overall else { return num::NONE.into() };
    let paint = match overall.verdict {
        Pays::Pays => Paint::Good,
        Pays::Costs => Paint::Bad,
        Pays::Unclear => Paint::Dim,
    };
    Cell::painted(paint, interval(&overall.ns, pages, true))
}
