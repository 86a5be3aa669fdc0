//! The first lines: what ran, how it was seen, on which machine, and what translation costs there.

use lookaside_engine::Side;
use lookaside_techniques::{Analysis, Seeing};

use crate::analysis_facts::{self as facts, Totals};
use lookaside_report::num;
use lookaside_report::text;
use lookaside_report::{Cell, Column, Table};
use lookaside_report::{Line, Paint};

/// What ran, how it was seen, the machine and why, the OS model, how it ended.
pub fn lines(analysis: &Analysis, width: usize) -> Vec<Line> {
    let mut lines = vec![Line::of(Paint::Strong, text::cut_middle(&text::clean(&facts::command(analysis)), width))];
    let machine = &analysis.machine;
    let mut known_as = machine.name.clone();
    if !machine.description.is_empty() {
        known_as += &format!(", {}", machine.description);
    }
    if !analysis.machine_reason.is_empty() {
        known_as += &format!("; {}", analysis.machine_reason);
    }
    let (kind, words) = facts::seeing(&analysis.seeing);
    let mut facts: Vec<(&str, Paint, String)> = vec![
        ("seen", if facts::is_sampled(analysis) { Paint::Warn } else { Paint::Plain }, format!("{kind}: {words}")),
        ("machine", Paint::Plain, known_as),
    ];
    if !facts::is_sampled(analysis) {
        facts.push(("model", Paint::Plain, facts::os(analysis)));
    }
    if let Some((words, false)) = facts::ending(analysis) {
        facts.push(("ending", Paint::Warn, words));
    }
    if !analysis.complete {
        facts.push(("CUT SHORT", Paint::Warn, "this is what was known until then; the notes say where".into()));
    }
    for (label, paint, words) in facts {
        for (i, part) in text::wrap(&text::clean(&words), width - 10).into_iter().enumerate() {
            let label = if i == 0 { label } else { "" };
            lines.push(Line::of(Paint::Dim, format!("{label:<10}")).with(paint, part));
        }
    }
    lines
}

/// What translation costs; of a sampled program, what its time tells.
pub fn cost(analysis: &Analysis, width: usize) -> Vec<Line> {
    match analysis.seeing {
        Seeing::Exact { .. } => exact(analysis, width),
        Seeing::Sampled { period_ns, samples, .. } => sampled(analysis, period_ns, samples, width),
    }
}

fn exact(analysis: &Analysis, width: usize) -> Vec<Line> {
    let totals = Totals::of(analysis);
    let paint = if totals.worth_it() { Paint::Bad } else { Paint::Good };
    let mut verdict = totals.verdict();
    let time = facts::cycles_seconds(totals.translation_cycles, &analysis.machine);
    if totals.worth_it() && time.is_finite() {
        verdict += &format!(
            " At {} MHz: {} of {}.",
            num::short(analysis.machine.clock_mhz),
            num::seconds(time),
            num::seconds(facts::cycles_seconds(totals.modelled_cycles, &analysis.machine))
        );
    }
    let mut lines: Vec<Line> = text::wrap(&verdict, width).into_iter().map(|part| Line::of(paint, part)).collect();
    if totals.accesses == 0 {
        return lines;
    }
    lines.extend(rates(analysis).lines(width));
    if facts::sum(&totals.by_server) > 0 {
        let total = facts::sum(&totals.by_server) as f64;
        let servers: Vec<String> = totals
            .by_server
            .iter()
            .map(|(name, n)| format!("{} {}", text::clean(name), num::percent(num::share(*n as f64, total))))
            .collect();
        let words = format!("references of walks served by {}", servers.join(" · "));
        lines.extend(text::wrap(&words, width).into_iter().map(|part| Line::of(Paint::Plain, part)));
    }
    lines
}

/// Rates of loads and stores, and of fetches where they were recorded.
fn rates(analysis: &Analysis) -> Table {
    let outcome = &analysis.outcome;
    let mut table = Table::new([
        Column::left("per 1,000 of"),
        Column::right("in all").optional(1),
        Column::right("cycles"),
        Column::right("L1 misses"),
        Column::right("walks"),
        Column::right("refs a walk"),
    ]);
    let mut row = |name: &str, side: &Side| {
        let cost = &side.cost;
        let per_kilo = |n: f64| Cell::from(num::rate(num::per_kilo(n, side.accesses)));
        table.row([
            name.into(),
            num::grouped(side.accesses).into(),
            Cell::painted(Paint::Strong, num::rate(num::per_kilo(cost.cycles(), side.accesses))),
            per_kilo(cost.l1_misses as f64),
            per_kilo(cost.walks as f64),
            num::rate(num::share(cost.walk_references as f64, cost.walks as f64)).into(),
        ]);
    };
    row("loads and stores", &outcome.data);
    if outcome.fetch.accesses > 0 {
        row("instruction fetches", &outcome.fetch);
    }
    table
}

fn sampled(analysis: &Analysis, period_ns: u64, samples: u64, width: usize) -> Vec<Line> {
    let words = if samples == 0 {
        "No sample was taken: the program used too little time to say anything of it.".to_string()
    } else {
        format!(
            "ESTIMATE of where {} of the program's time went. Shares below are of all samples: time, not translation alone.",
            num::seconds(facts::sampled_seconds(samples, period_ns))
        )
    };
    let mut lines: Vec<Line> = text::wrap(&words, width).into_iter().map(|part| Line::of(Paint::Warn, part)).collect();
    let command = text::clean(&facts::command(analysis));
    let exact = "Counts, walks and what would help: lookaside analyze --exact -- ";
    let exact = exact.to_string() + &text::cut_end(&command, width.saturating_sub(exact.len()).max(12));
    lines.extend(text::wrap(&exact, width).into_iter().map(|part| Line::of(Paint::Dim, part)));
    lines
}
