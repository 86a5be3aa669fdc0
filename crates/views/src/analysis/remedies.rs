//! What would help: ranked, each row with how to get it.

use lookaside_report::{num, Bar, Cell, Column, Paint, Section, Table};
use lookaside_techniques::{Analysis, Remedy};

use super::seeing::is_sampled;
use super::totals::{near, Savings, Totals};

/// Shares of translation cycles between which a remedy makes no difference worth a colour.
const NO_DIFFERENCE: f64 = 0.01;

/// The table, best first.
pub fn section(analysis: &Analysis) -> Section {
    let heading = if is_sampled(analysis) { "WHAT WOULD HELP (ESTIMATE)" } else { "WHAT WOULD HELP" };
    let mut table = Table::new([
        Column::left(heading).cut(40),
        Column::right("of cost"),
        Column::right("of all cycles"),
        Column::right("walks left").optional(1),
        Column::left("how to get it").remark(),
    ])
    .caption("What would help, best first")
    .shown(6, 1)
    .of("remedy", "remedies");
    let totals = Totals::of(analysis);
    for remedy in &analysis.remedies {
        let savings = Savings::of(remedy, &totals);
        let saved = savings.of_translation;
        let paint = match saved {
            saved if saved >= NO_DIFFERENCE => Paint::Good,
            saved if saved <= -NO_DIFFERENCE => Paint::Bad,
            _ => Paint::Plain,
        };
        let caveat = match caveat(remedy) {
            words if words.is_empty() => words,
            words => format!(" ({words})"),
        };
        table.row([
            Cell::from(&remedy.what).paint(Paint::Strong),
            Cell::number(saved, format!("{}{}", near(remedy), with_interval(&savings)))
                .paint(paint)
                .bar(Bar::saving(saved)),
            Cell::number(savings.of_all, change(savings.of_all)).paint(paint),
            Cell::share(savings.walks_left),
            Cell::painted(Paint::Dim, format!("→ {}{caveat}", how(remedy))),
        ]);
    }
    Section::unheaded("What would help")
        .lead(
            "The model run again with one thing changed, over the same accesses: the change of translation cycles \
             and of all modelled cycles, and the walks of the unchanged run that remain. A long run is computed over \
             windows of it: the 95 % interval of the whole run's change stands in brackets.",
        )
        .with(table)
}

/// How to get it.
pub fn how(remedy: &Remedy) -> &str {
    match remedy.how.is_empty() {
        true => "needs another machine",
        false => &remedy.how,
    }
}

/// What has to be known to judge a row: its caveat, and over how much it was computed.
fn caveat(remedy: &Remedy) -> String {
    let mut parts = Vec::new();
    parts.extend(remedy.bloat_bytes.map(|bytes| bytes >> 20).filter(|mib| *mib > 0).map(|mib| format!("+{mib} MiB")));
    if !remedy.caveat.is_empty() {
        parts.push(remedy.caveat.clone());
    }
    if remedy.approximate {
        parts.push(
            "approximate: accesses that hit with base pages were not recorded; --granularity line is exact".into(),
        );
    }
    if remedy.accesses_share < 0.9995 {
        let windows = match remedy.windows {
            0 => String::new(),
            1 => "1 window, ".into(),
            windows => format!("{windows} windows, "),
        };
        parts.push(format!("computed over {windows}{} of the accesses", num::percent(remedy.accesses_share)));
    }
    parts.join("; ")
}

/// A saving of translation cycles as a change, with its interval where there is one: `−92.1 % (−91.8 to −92.4 %)`.
fn with_interval(savings: &Savings) -> String {
    let words = change(savings.of_translation);
    match savings.interval.map(|ends| ends.map(change)) {
        None => words,
        Some([least, most]) if least == words && most == words => words,
        Some([least, most]) => format!("{words} ({} to {most})", least.trim_end_matches("\u{a0}%")),
    }
}

/// A saving as the change that it makes: 92.1 % saved is `−92.1 %`.
fn change(saved: f64) -> String {
    if saved == 0.0 || !saved.is_finite() {
        return num::percent(saved);
    }
    let sign = if saved > 0.0 { "−" } else { "+" };
    format!("{sign}{}", num::percent(saved.abs()))
}
