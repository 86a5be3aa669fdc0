//! What a baker of other processes did.

use lookaside_report::{num, Cell, Column, Document, Section, Table};
use lookaside_runtime::bake::{ProcessReport, Ranking};
use serde::Serialize;

/// What became of each process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct BakedProcesses {
    /// The processes, those that ended too.
    pub processes: Vec<ProcessReport>,
    /// Share of a CPU that the command itself used since the start, to look for processes and their memory.
    pub looks_cpu_share: f64,
}

/// What became of a process, where it is not baked any more.
fn state(baked: &ProcessReport) -> &'static str {
    match (baked.running, baked.let_go) {
        (false, _) => ", ended",
        (true, true) => ", let go",
        (true, false) => "",
    }
}

/// By what the processes of the whole system were chosen, in a line.
fn ranked(ranking: &Ranking) -> String {
    match (&ranking.event, &ranking.no_pmu) {
        (Some(event), _) => format!("ranked by walk cycles a second: {event}"),
        (None, why) => {
            let why = why.as_deref().unwrap_or_default();
            format!("ranked by page-table bytes × CPUs, since walk cycles can't be counted: {why}")
        }
    }
}

/// A row a process; those that could not be baked, and why; by what they were chosen, if they were; what looking for
/// them cost.
pub fn view(baked: &BakedProcesses, ranking: Option<&Ranking>) -> Document {
    let report = &baked.processes;
    let mut document = Document { titled: false, ..Document::new("Baked processes", "") };
    if report.is_empty() {
        document.answer("No process was found.");
    } else {
        document.section(Section::unheaded("Processes").with(processes(report)));
        let looks = num::percent(baked.looks_cpu_share);
        document.note(format!("finding processes and their memory took another {looks} of a CPU"));
    }
    for baked in report {
        if let Some(reason) = &baked.refused {
            document.note(format!("not baked: {} ({}): {reason}", baked.comm, baked.pid));
        }
    }
    ranking.into_iter().for_each(|ranking| document.note(ranked(ranking)));
    document
}

fn processes(report: &[ProcessReport]) -> Table {
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
            Cell::count(baked.small_bytes >> 20),
            Cell::count(baked.mappings as u64),
            Cell::count(stats.rounds),
            Cell::rate(per(stats.rounds as f64, seconds)),
            Cell::rate(per(stats.busy_nanos as f64, stats.touches as f64)),
            Cell::share(per(stats.cpu_nanos as f64, stats.elapsed_nanos as f64)),
            Cell::count(stats.failed_calls),
        ]);
    }
    table
}
