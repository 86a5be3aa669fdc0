//! What the probe measured of a machine's translation hardware.
//!
//! Each part of the probe has a function here that gives its section. A value that is not determined says why.

mod checks;
mod effects;
mod memory;
mod timing;
mod words;

use lookaside_machine::PageSize;
use lookaside_probe::{LevelReport, ProbeReport, TlbPolicy};
use lookaside_report::{num, Cell, Column, Document, Medium, Paint, RichText, Section, Table};

use crate::machine;
use words::{cell, cycles, geometry, reason, tlb};

/// The hardware, part by part; what was not measured.
pub fn view(report: &ProbeReport) -> Document {
    let cpu = report.cpu.map_or(String::new(), |cpu| format!("CPU {cpu}"));
    let mut document = Document::new("Translation hardware as measured", cpu);
    document.answer(answer(report));
    report
        .remarks
        .iter()
        .for_each(|remark| document.banner(RichText::painted(Paint::Warn, "Beware:").plain(format!(" {remark}."))));
    if let Some(reason) = &report.halted {
        document.cut_short(reason);
    }
    document.fact("method", method(report));
    document.section(Section::unheaded("TLBs").with(tlbs(report)));
    document.section(Section::new("What an entry covers").with(memory::coverage(report)));
    document.section(Section::new("What fills and empties the TLBs").with(effects::facts(report)));
    document.section(Section::unheaded("Evictions by the system").with(effects::evictions(report)));
    document.section(Section::unheaded("Evictions by set").with(effects::charts(report)).only(Medium::Page));
    document.section(Section::new("Data caches and memory").with(memory::caches(report)));
    document.section(Section::unheaded("Load latency").with(memory::latencies(report)).only(Medium::Page));
    document.section(Section::new("Page-table walks").with(memory::walks(report)));
    document.section(Section::unheaded("Walk caches").with(memory::walk_cache_charts(report)).only(Medium::Page));
    let reads = Section::new("Reads, streams and page faults");
    document.section(timing::tables(report).into_iter().fold(reads, Section::with).with(timing::facts(report)));
    let origins = report.origins.iter().flat_map(machine::origins::facts).collect::<Vec<_>>();
    document.section(Section::new("Where the description's values are from").with(origins));
    document.section(checks::counters(report));
    document.section(checks::claims(report));
    document.note(format!("Not measured: {}.", report.not_looked_for().join(", ")));
    document
}

fn answer(report: &ProbeReport) -> RichText {
    match report.missing().len() {
        0 => RichText::painted(Paint::Good, "Every value that was measured is determined."),
        missing => RichText::painted(Paint::Warn, format!("{} not determined.", num::counted(missing, "value"))),
    }
}

fn method(report: &ProbeReport) -> String {
    let (cycles, seed, measurements) = (report.cycles_per_tick, report.seed, num::grouped(report.measurements));
    format!("{measurements} measurements, {cycles:.3} core cycles a timer tick, seed {seed}")
}

/// All TLB levels by page size, then what serves stores where that is apart.
fn tlbs(report: &ProbeReport) -> Table {
    let mut table = Table::new([
        Column::left("TLB"),
        Column::left("accesses"),
        Column::left("entries").wrap(),
        Column::left("a miss adds"),
        Column::left("replacement").wrap(),
        Column::left("not determined").remark(),
    ]);
    let large = report.large.iter().flat_map(|large| &large.levels);
    let gigantic = report.gigantic.iter().flat_map(|found| found.levels.iter().zip(&found.parts));
    let whole = gigantic.filter(|(_, part)| part.value() == Some(&PageSize::G1)).map(|(level, _)| level);
    for level in report.levels.iter().chain(large).chain(whole) {
        table.row(level_cells(level));
    }
    if let Some(effects) = report.effects.as_ref().filter(|effects| !effects.store_level.is_unasked()) {
        let why = reason("entries", &effects.store_level).unwrap_or_default();
        let entries = cell(&effects.store_level, geometry);
        table.row(["L1 DTLB".into(), "4K stores".into(), entries, Cell::none(), Cell::none(), why.into()]);
    }
    table
}

fn level_cells(level: &LevelReport) -> [Cell; 6] {
    let why = [
        reason("entries", &level.geometry),
        reason("a miss", &level.miss_cycles),
        reason("replacement", &level.policy),
    ];
    [
        tlb(level.level).into(),
        format!("{} loads", level.page_size).into(),
        cell(&level.geometry, geometry),
        cell(&level.miss_cycles, cycles),
        cell(&level.policy, TlbPolicy::to_string),
        why.into_iter().flatten().collect::<Vec<_>>().join("; ").into(),
    ]
}
