//! The digital twin for a terminal: each pattern's cycles on the metal and in the model, and how far they differ.

use lookaside_probe::validate::{Validation, ValidationRow, MEDIAN_BOUND_PERCENT, WORST_BOUND_PERCENT};

use lookaside_report::num;
use lookaside_report::{Cell, Column, Table};
use lookaside_report::{Paint, Style};

/// The comparison as text: a row a pattern, what was left out and why, each family's errors, all errors.
pub fn render(validation: &Validation, style: &Style) -> String {
    let mut text = patterns(validation).render(style);
    let families = families(validation);
    if !families.is_empty() {
        text.push('\n');
        text += &families.render(style);
    }
    text += &shared(validation);
    for left in &validation.left_out {
        text += &format!("left out: {}: {}\n", left.name, left.reason);
    }
    if let Some(reason) = &validation.halted {
        text += &format!("ended early: {reason}\n");
    }
    text
}

/// How an error looks: within the bound of the median, of the worst, or of neither.
fn paint(error_percent: f64) -> Paint {
    match error_percent.abs() {
        e if e <= MEDIAN_BOUND_PERCENT => Paint::Good,
        e if e <= WORST_BOUND_PERCENT => Paint::Warn,
        _ => Paint::Bad,
    }
}

fn patterns(validation: &Validation) -> Table {
    let mut table = Table::new([
        Column::left("pattern, cycles an access"),
        Column::right("measured"),
        Column::right("runs from – to").optional(1),
        Column::right("modelled"),
        Column::right("translation").optional(2),
        Column::right("walks").optional(3),
        Column::right("last cache, MiB").optional(4),
        Column::right("error"),
    ]);
    for row in &validation.rows {
        table.row(cells(row));
    }
    table
}

fn cells(row: &ValidationRow) -> [Cell; 8] {
    [
        row.name.as_str().into(),
        num::rate(row.measured_cycles).into(),
        format!("{} – {}", num::rate(row.low_cycles), num::rate(row.high_cycles)).into(),
        num::rate(row.modelled.cycles).into(),
        num::rate(row.modelled.translation_cycles).into(),
        num::rate(row.modelled.walks_per_access).into(),
        row.last_cache_bytes.map_or(String::new(), mib).into(),
        match row.on_edge {
            true => Cell::from(format!("edge, {:+.1} %", row.error_percent)),
            false => Cell::painted(paint(row.error_percent), format!("{:+.1} %", row.error_percent)),
        },
    ]
}

/// Bytes in MiB.
fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / (1 << 20) as f64)
}

/// What the last cache was during the runs, and what is not judged for its sake.
fn shared(validation: &Validation) -> String {
    let Some(cache) = &validation.last_cache else { return String::new() };
    let mut text = format!(
        "the last cache held {} to {} MiB for us around the runs ({} in the description); modelled is what it held\n",
        mib(cache.least_bytes),
        mib(cache.most_bytes),
        mib(cache.described_bytes)
    );
    let edge = validation.rows.iter().filter(|row| row.on_edge).count();
    if let (1.., Some(all)) = (edge, &validation.with_edge) {
        text += &format!(
            "edge: {edge} patterns about as large as the last cache; whether they fit decides, and they are not in the errors above (with them the worst is {:.1} %)\n",
            all.worst_error_percent
        );
    }
    if let Some(described) = &validation.as_described {
        text += &format!(
            "with the last cache as described: median {:.1} %, worst {:.1} % ({}) over all patterns\n",
            described.median_error_percent, described.worst_error_percent, described.worst
        );
    }
    if validation.unsteady_runs > 0 {
        text += &format!("{} runs do not count: the last cache changed meanwhile\n", validation.unsteady_runs);
    }
    text
}

fn families(validation: &Validation) -> Table {
    let mut table = Table::new([
        Column::left("errors in percent of measured"),
        Column::right("patterns"),
        Column::right("median"),
        Column::right("worst"),
        Column::left("at").cut(24),
    ]);
    let each = validation.families.iter().map(|(family, summary)| (family.name(), summary));
    for (name, summary) in each.chain(validation.summary.iter().map(|summary| ("all", summary))) {
        table.row([
            name.into(),
            num::grouped(summary.rows as u64).into(),
            Cell::from(format!("{:.1} %", summary.median_error_percent)),
            Cell::painted(paint(summary.worst_error_percent), format!("{:.1} %", summary.worst_error_percent)),
            summary.worst.as_str().into(),
        ]);
    }
    table
}
