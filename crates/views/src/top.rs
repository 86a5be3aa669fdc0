//! Processes by what translation may cost them, and what is done about it: a row each.

use std::collections::BTreeMap;

use lookaside_report::{num, Column, Document, Section, Table};
use lookaside_runtime::bake::{ProcessReport, Surveyed};
use serde::Serialize;

/// All processes at one moment.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TopProcesses {
    /// A row each, the likely dearest first.
    pub processes: Vec<TopRow>,
}

/// A process and, where it is baked, what its baker did since it began.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TopRow {
    /// What the system tells of it.
    #[serde(flatten)]
    pub process: Surveyed,
    /// What its baker did; `null`: it is not baked, or the baker does not tell.
    pub baked: Option<ProcessReport>,
}

/// Heads of the columns, in order: short, so that a terminal of 100 columns has room for all.
pub const HEADS: [&str; 9] =
    ["process", "CPUs", "RAM, MiB", "huge", "tables, MiB", "rounds/s", "ns/entry", "helper", "baked by"];

/// The cells of a process; `told`, by process, is what its bakers told of the time that is meant.
pub fn cells(process: &Surveyed, told: &BTreeMap<u32, ProcessReport>) -> [String; 9] {
    let none = || "–".to_string();
    let told = told.get(&process.pid).filter(|_| !process.helpers.is_empty());
    let state = told.and_then(|baked| baked.within.as_ref()).map(|within| format!(", {}", within.state));
    let by = match process.helpers.as_slice() {
        [] => none(),
        [(by, _)] if *by == process.pid => format!("itself{}", state.unwrap_or_default()),
        [(by, _)] => by.to_string(),
        more => format!("{} helpers", more.len()),
    };
    let helper_cpus: f64 = process.helpers.iter().map(|helper| helper.1).sum();
    let stats = told.map(|baked| baked.stats);
    let per = |what: f64, of: u64| if of == 0 { none() } else { num::rate(what / of as f64) };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    [
        format!("{} ({})", process.comm, process.pid),
        format!("{:.2}", process.cpus),
        num::grouped(process.resident_bytes >> 20),
        percent(process.huge_bytes as f64 / process.resident_bytes.max(1) as f64),
        format!("{:.1}", process.table_bytes as f64 / f64::from(1 << 20)),
        stats.map_or_else(none, |stats| per(stats.rounds as f64 * 1e9, stats.elapsed_nanos)),
        stats.map_or_else(none, |stats| per(stats.busy_nanos as f64, stats.touches)),
        if process.helpers.is_empty() { none() } else { percent(helper_cpus) },
        by,
    ]
}

/// A table of all of them.
pub fn view(processes: &[Surveyed], told: &BTreeMap<u32, ProcessReport>) -> Document {
    let column = |head: &&str| match *head {
        "process" => Column::left(*head).cut(16),
        "baked by" => Column::left(*head),
        _ => Column::right(*head),
    };
    let mut table = Table::new(HEADS.iter().map(column));
    for process in processes {
        table.row(cells(process, told).map(Into::into));
    }
    let mut document = Document { titled: false, ..Document::new("Processes by page tables", "") };
    document.section(Section::unheaded("Processes").with(table));
    document
}

#[cfg(test)]
mod tests {
    use lookaside_runtime::bake::{BakeStats, HelperStatus};

    use super::*;

    #[test]
    fn who_bakes_and_how_is_told() {
        let alone = Surveyed {
            pid: 7,
            comm: "db".into(),
            cpus: 1.5,
            resident_bytes: 1 << 30,
            huge_bytes: 256 << 20,
            table_bytes: 3 << 19,
            helpers: Vec::new(),
            started_ticks: 0,
        };
        let stats = BakeStats {
            rounds: 500,
            touches: 1000,
            busy_nanos: 5000,
            elapsed_nanos: 2_000_000_000,
            ..BakeStats::default()
        };
        let baked = ProcessReport {
            pid: 7,
            comm: "db".into(),
            running: true,
            let_go: false,
            mappings: 1,
            small_bytes: 0,
            stats,
            refused: None,
            within: None,
            rank: None,
        };
        let told = BTreeMap::from([(7, baked)]);
        assert_eq!(
            cells(&alone, &told),
            ["db (7)", "1.50", "1,024", "25 %", "1.5", "–", "–", "–", "–"].map(String::from)
        );
        let helped = Surveyed { helpers: vec![(9, 0.25)], ..alone.clone() };
        assert_eq!(cells(&helped, &told)[5..], ["250", "5.00", "25 %", "9"].map(String::from));
        let itself = Surveyed { helpers: vec![(7, 0.25)], ..alone };
        assert_eq!(cells(&itself, &BTreeMap::new())[5..], ["–", "–", "25 %", "itself"].map(String::from));
        let within = HelperStatus {
            bake: "auto".into(),
            backend: "module".into(),
            state: "warm".into(),
            pause_nanos: 0,
            after_pause_nanos: None,
            right_after_nanos: None,
        };
        // Whatever a program says of itself, it is shown.
        let stats = BakeStats { rounds: u64::MAX, touches: 1, busy_nanos: u64::MAX, elapsed_nanos: 1, ..stats };
        let told = BTreeMap::from([(7, ProcessReport { stats, within: Some(within), ..told[&7].clone() })]);
        assert_eq!(cells(&itself, &told)[8], "itself, warm");
    }
}
