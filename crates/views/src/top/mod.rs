//! Processes by what translation costs them, and what is done about it: a row each.

mod groups;
mod rows;

use std::collections::BTreeMap;

use lookaside_report::{num, Column, Document, DocumentBlock, Medium, Section, Table};
use lookaside_runtime::bake::ProcessReport;
use lookaside_runtime::hugepages::SmallReason;
use lookaside_techniques::translation_share::TranslationShare;
use serde::Serialize;

pub use groups::{control_groups, TopGroup};
pub use rows::{sort, SmallBytes, TopRow};

/// All processes at one moment.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TopProcesses {
    /// A row each, the likely dearest first.
    pub processes: Vec<TopRow>,
    /// The same by control group; empty where groups were not asked for.
    pub control_groups: Vec<TopGroup>,
    /// The machine that shares of translation are estimated with, and where its description is from; `null`: nothing was
    /// sampled.
    pub machine: Option<String>,
    /// What could not be told, and why.
    pub notes: Vec<String>,
}

/// Heads of the columns, in order: short, so that a terminal of 100 columns has room for those that are always there.
pub const HEADS: [&str; 11] = [
    "process",
    "CPUs",
    "translation",
    "RAM, MiB",
    "huge",
    "why small",
    "tables, MiB",
    "rounds/s",
    "ns/entry",
    "helper",
    "baked by",
];
/// The first column of bakers.
const BAKERS: usize = 7;

/// How many of the columns are shown: where nobody bakes, those of bakers are left out.
pub fn columns(rows: &[TopRow]) -> usize {
    match rows.iter().any(|row| !row.process.helpers.is_empty()) {
        true => HEADS.len(),
        false => BAKERS,
    }
}

/// The cells of a process; `told`, by process, is what its bakers told of the time that is meant.
pub fn cells(row: &TopRow, told: &BTreeMap<u32, ProcessReport>) -> [String; 11] {
    let process = &row.process;
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
    let [cpus, translation, resident, huge, why, tables] = memory_cells(
        process.cpus,
        row.translation.as_ref(),
        [process.resident_bytes, process.huge_bytes, process.table_bytes],
        &row.small_pages,
    );
    [
        format!("{} ({})", process.comm, process.pid),
        cpus,
        translation,
        resident,
        huge,
        why,
        tables,
        stats.map_or_else(none, |stats| per(stats.rounds as f64 * 1e9, stats.elapsed_nanos)),
        stats.map_or_else(none, |stats| per(stats.busy_nanos as f64, stats.touches)),
        if process.helpers.is_empty() { none() } else { percent(helper_cpus) },
        by,
    ]
}

/// What stands where nothing is known.
fn none() -> String {
    "–".to_string()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The cells that processes and groups have alike.
fn memory_cells(
    cpus: f64,
    translation: Option<&TranslationShare>,
    [resident, huge, tables]: [u64; 3],
    small: &[SmallBytes],
) -> [String; 6] {
    let of_translation = |share: &TranslationShare| {
        format!("{} ({:.0}–{:.0})", percent(share.share), 100.0 * share.low, 100.0 * share.high)
    };
    let most = small.iter().max_by_key(|one| one.bytes).filter(|one| one.bytes > 0);
    [
        format!("{cpus:.2}"),
        translation.map_or_else(none, of_translation),
        num::grouped(resident >> 20),
        percent(huge as f64 / resident.max(1) as f64),
        most.map_or_else(none, |one| one.reason.word().into()),
        format!("{:.1}", tables as f64 / f64::from(1 << 20)),
    ]
}

/// A table of all of them, by control group where those were asked for.
pub fn view(all: &TopProcesses, told: &BTreeMap<u32, ProcessReport>) -> Document {
    let mut document = Document { titled: false, ..Document::new("Processes by translation", "") };
    let groups = &all.control_groups;
    if groups.is_empty() {
        let mut table = Table::new(HEADS[..BAKERS].iter().map(column));
        let mut bakers = Table::new(HEADS[..1].iter().chain(&HEADS[BAKERS..]).map(column));
        for row in &all.processes {
            let cells = cells(row, told);
            table.row(cells[..BAKERS].iter().cloned().map(Into::into));
            if !row.process.helpers.is_empty() {
                bakers.row(cells[..1].iter().chain(&cells[BAKERS..]).cloned().map(Into::into));
            }
        }
        document.section(Section::unheaded("Processes").with(table));
        if !bakers.is_empty() {
            document.section(Section::unheaded("Bakers").with(bakers));
        }
    } else {
        document.section(Section::unheaded("Control groups").with(table_of_groups(groups)));
    }
    let small = small_table(all);
    if !small.is_empty() {
        let details = DocumentBlock::Details("Why memory is in small pages, MiB".into(), vec![small.into()]);
        document.section(Section::unheaded("Small pages").only(Medium::Page).with(details));
    }
    let machine = all.machine.iter().map(|machine| format!("translation: estimated from samples with {machine}"));
    machine.chain(all.notes.iter().cloned()).for_each(|note| document.note(note));
    document
}

fn column(head: &&str) -> Column {
    match *head {
        "process" => Column::left(*head).cut(16),
        "control group" => Column::left(*head).cut(16),
        "baked by" | "why small" => Column::left(*head),
        _ => Column::right(*head),
    }
}

fn table_of_groups(groups: &[TopGroup]) -> Table {
    let heads = ["control group", "processes"].into_iter().chain(HEADS[1..BAKERS].iter().copied());
    let mut table = Table::new(heads.map(|head| column(&head)));
    for group in groups {
        let name = if group.control_group.is_empty() { "(none)" } else { &group.control_group };
        let bytes = [group.resident_bytes, group.huge_bytes, group.table_bytes];
        let cells = memory_cells(group.cpus, group.translation.as_ref(), bytes, &group.small_pages);
        table.row([name.to_string(), num::grouped(group.processes)].into_iter().chain(cells).map(Into::into));
    }
    table
}

/// Bytes by reason of each process that was looked at.
fn small_table(all: &TopProcesses) -> Table {
    let has =
        |reason: &SmallReason| all.processes.iter().flat_map(|row| &row.small_pages).any(|one| one.reason == *reason);
    let reasons: Vec<SmallReason> = SmallReason::ALL.into_iter().filter(has).collect();
    let heads = std::iter::once("process").chain(reasons.iter().map(|reason| reason.name()));
    let mut table = Table::new(heads.map(|head| column(&head)));
    for row in all.processes.iter().filter(|row| !row.small_pages.is_empty()) {
        let bytes = |reason: &SmallReason| {
            let one = row.small_pages.iter().find(|one| one.reason == *reason);
            one.map_or_else(none, |one| format!("{:.1}", one.bytes as f64 / f64::from(1 << 20)))
        };
        let name = format!("{} ({})", row.process.comm, row.process.pid);
        table.row(std::iter::once(name).chain(reasons.iter().map(bytes)).map(Into::into));
    }
    table
}

#[cfg(test)]
mod tests;
