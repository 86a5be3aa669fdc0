//! What would help: ranked, each row with how to get it.

use lookaside_techniques::Analysis;

use crate::analysis_facts::{self as facts, Savings};
use lookaside_report::num;
use lookaside_report::{Cell, Column, Table};
use lookaside_report::{Line, Paint};

/// Shares of translation cycles between which a remedy makes no difference worth a colour.
const NO_DIFFERENCE: f64 = 0.01;

/// The table, `top` rows of it.
pub fn lines(analysis: &Analysis, top: usize, width: usize) -> Vec<Line> {
    if analysis.remedies.is_empty() || top == 0 {
        return Vec::new();
    }
    let heading = if facts::is_sampled(analysis) { "WHAT WOULD HELP (ESTIMATE)" } else { "WHAT WOULD HELP" };
    let mut table = Table::new([
        Column::left(heading).cut(40),
        Column::right("of cost"),
        Column::right("of all cycles"),
        Column::right("walks left").optional(1),
    ]);
    for remedy in analysis.remedies.iter().take(top) {
        let savings = Savings::of(remedy);
        let paint = match savings.of_translation {
            saved if saved >= NO_DIFFERENCE => Paint::Good,
            saved if saved <= -NO_DIFFERENCE => Paint::Bad,
            _ => Paint::Plain,
        };
        table.row([
            Cell::painted(Paint::Strong, &remedy.what),
            Cell::painted(paint, format!("{}{}", facts::near(remedy), change(savings.of_translation))),
            Cell::painted(paint, change(savings.of_all)),
            num::percent(savings.walks_left).into(),
        ]);
        let how = if remedy.how.is_empty() { "not to be had on this machine" } else { &remedy.how };
        let caveat = facts::remedy_caveat(remedy);
        table.below(Paint::Dim, if caveat.is_empty() { format!("→ {how}") } else { format!("→ {how} ({caveat})") });
    }
    let mut lines = table.lines(width);
    if analysis.remedies.len() > top {
        let more = analysis.remedies.len() - top;
        lines.push(Line::of(Paint::Dim, format!("{more} more with --top {} or --html", analysis.remedies.len())));
    }
    lines
}

/// A saving as the change that it makes: 92.1 % saved is `−92.1 %`.
fn change(saved: f64) -> String {
    if saved == 0.0 || !saved.is_finite() {
        return num::percent(saved);
    }
    let sign = if saved > 0.0 { "−" } else { "+" };
    format!("{sign}{}", num::percent(saved.abs()))
}
