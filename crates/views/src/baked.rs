//! What a baker of other processes did, for a terminal.

use lookaside_runtime::bake::{ProcessReport, Ranking};

use lookaside_report::num;
use lookaside_report::Style;
use lookaside_report::{Column, Table};

/// What became of a process, where it is not baked any more.
fn state(baked: &ProcessReport) -> &'static str {
    match (baked.running, baked.let_go) {
        (false, _) => ", ended",
        (true, true) => ", let go",
        (true, false) => "",
    }
}

/// By what the processes of the whole system were chosen, in a line.
pub fn ranked(ranking: &Ranking) -> String {
    match (&ranking.event, &ranking.no_pmu) {
        (Some(event), _) => format!("ranked by walk cycles a second: {event}\n"),
        (None, why) => {
            let why = why.as_deref().unwrap_or_default();
            format!("ranked by page-table bytes × CPUs: walk cycles are not counted: {why}\n")
        }
    }
}

/// A row a process; then those that could not be baked, and why.
pub fn render(report: &[ProcessReport], style: &Style) -> String {
    if report.is_empty() {
        return "no process was there\n".into();
    }
    let mut table = Table::new([
        Column::left("process"),
        Column::right("small pages, MiB"),
        Column::right("mappings").optional(2),
        Column::right("rounds"),
        Column::right("rounds/s"),
        Column::right("ns an entry").optional(1),
        Column::right("share of a CPU"),
        Column::right("failed calls").optional(3),
    ]);
    for baked in report {
        let stats = &baked.stats;
        let seconds = stats.elapsed_nanos as f64 / 1e9;
        let per = |what: f64, of: f64| if of > 0.0 { what / of } else { 0.0 };
        table.row([
            format!("{} ({}{})", baked.comm, baked.pid, state(baked)).into(),
            num::grouped(baked.small_bytes >> 20).into(),
            num::grouped(baked.mappings as u64).into(),
            num::grouped(stats.rounds).into(),
            num::rate(per(stats.rounds as f64, seconds)).into(),
            num::rate(per(stats.busy_nanos as f64, stats.touches as f64)).into(),
            format!("{:.1} %", 100.0 * per(stats.busy_nanos as f64, stats.elapsed_nanos as f64)).into(),
            num::grouped(stats.failed_calls).into(),
        ]);
    }
    let mut text = table.render(style);
    for baked in report {
        if let Some(reason) = &baked.refused {
            text += &format!("not baked: {} ({}): {reason}\n", baked.comm, baked.pid);
        }
    }
    text
}
