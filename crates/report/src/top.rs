//! Processes by what translation may cost them, and what is done about it: a row each.

use std::collections::BTreeMap;

use lookaside_runtime::bake::{Baked, Surveyed};

use crate::line::Style;
use crate::num;
use crate::table::{Column, Table};

/// Heads of the columns, in order.
pub const HEADS: [&str; 9] = [
    "process",
    "CPUs",
    "resident, MiB",
    "in huge pages",
    "page tables, MiB",
    "baked by",
    "rounds/s",
    "ns an entry",
    "helper's CPU",
];

/// The cells of a process; of rounds and entries only bakers from outside tell (`told`, by process).
pub fn cells(process: &Surveyed, told: &BTreeMap<u32, Baked>) -> [String; 9] {
    let none = || "–".to_string();
    let by = match process.helpers.as_slice() {
        [] => none(),
        [(by, _)] if *by == process.pid => "itself".into(),
        [(by, _)] => by.to_string(),
        more => format!("{} helpers", more.len()),
    };
    let helper_cpus: f64 = process.helpers.iter().map(|helper| helper.1).sum();
    let stats = told.get(&process.pid).map(|baked| baked.stats).filter(|_| !process.helpers.is_empty());
    let per = |what: u64, of: u64| if of == 0 { none() } else { num::rate(what as f64 / of as f64) };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    [
        format!("{} ({})", process.comm, process.pid),
        format!("{:.2}", process.cpus),
        num::grouped(process.resident_bytes >> 20),
        percent(process.huge_bytes as f64 / process.resident_bytes.max(1) as f64),
        format!("{:.1}", process.table_bytes as f64 / f64::from(1 << 20)),
        by,
        stats.map_or_else(none, |stats| per(stats.rounds * 1_000_000_000, stats.elapsed_nanos)),
        stats.map_or_else(none, |stats| per(stats.busy_nanos, stats.touches)),
        if process.helpers.is_empty() { none() } else { percent(helper_cpus) },
    ]
}

/// A table of all of them, for a terminal or a file.
pub fn render(processes: &[Surveyed], told: &BTreeMap<u32, Baked>, style: &Style) -> String {
    let left = |head: &&str| ["process", "baked by"].contains(head);
    let column = |head: &&str| if left(head) { Column::left(*head) } else { Column::right(*head) };
    let mut table = Table::new(HEADS.iter().map(column));
    for process in processes {
        table.row(cells(process, told).map(Into::into));
    }
    table.render(style)
}

#[cfg(test)]
mod tests {
    use lookaside_runtime::bake::Stats;

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
        };
        let stats =
            Stats { rounds: 500, touches: 1000, busy_nanos: 5000, elapsed_nanos: 2_000_000_000, ..Stats::default() };
        let baked = Baked {
            pid: 7,
            comm: "db".into(),
            running: true,
            let_go: false,
            mappings: 1,
            small_bytes: 0,
            stats,
            refused: None,
        };
        let told = BTreeMap::from([(7, baked)]);
        assert_eq!(
            cells(&alone, &told),
            ["db (7)", "1.50", "1,024", "25 %", "1.5", "–", "–", "–", "–"].map(String::from)
        );
        let helped = Surveyed { helpers: vec![(9, 0.25)], ..alone.clone() };
        assert_eq!(cells(&helped, &told)[5..], ["9", "250", "5.00", "25 %"].map(String::from));
        let itself = Surveyed { helpers: vec![(7, 0.25)], ..alone };
        assert_eq!(cells(&itself, &BTreeMap::new())[5..], ["itself", "–", "–", "25 %"].map(String::from));
    }
}
