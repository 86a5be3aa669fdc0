//! What fills and evicts the TLBs' entries.

use lookaside_probe::effects::{
    EntryOwnership, FillLevel, LevelEvictions, LostEntries, NeighbourCpu, SetEvictions, StoreEntries, SwitchLosses,
    TlbSharing,
};
use lookaside_probe::{Finding, ProbeReport};
use lookaside_report::chart::{Axis, Lines, Look, Point, Scale, Series};
use lookaside_report::{Cell, Chart, Column, Fact, Paint, Table};

use super::words::{fact, followed, said, tlb};

/// Sets that are named where several stand out.
const WORST_SETS: usize = 6;

/// Stores, prefetches, switches, other CPUs.
pub(super) fn facts(report: &ProbeReport) -> Vec<Fact> {
    let Some(effects) = &report.effects else { return Vec::new() };
    let stores = said(&effects.stores, |stores| match stores {
        StoreEntries::Shared => "share the entries of loads".into(),
        StoreEntries::Apart => "have entries of their own in the L1 DTLB".into(),
    });
    let mut facts = vec![fact("stores", stores)];
    for prefetch in &effects.prefetches {
        let fills = said(&prefetch.fills, |fill| match fill {
            FillLevel::L1 => "walks and fills the L1 DTLB and the L2 TLB".into(),
            FillLevel::Stlb => "walks and fills the L2 TLB alone".into(),
            FillLevel::Nothing => "fills neither level".into(),
        });
        let faults = said(&prefetch.faults, |faults| match faults {
            0 => "a page without a frame does not fault".into(),
            faults => format!("{faults} faults in 2048 prefetches of pages without a frame"),
        });
        facts.push(fact(format!("prefetch {}", prefetch.hint.word()), followed(fills, "; ", faults)));
    }
    for (by, kept) in [
        ("system call", &effects.system_call),
        ("switch of threads", &effects.thread_switch),
        ("switch of processes", &effects.process_switch),
    ] {
        let lost = |lost: &LostEntries| format!("{:.1} to {:.1} of {}", lost.low, lost.high, lost.of);
        let words = |kept: &SwitchLosses| {
            format!("evicts {} entries of the L1 DTLB, {} of the L2 TLB", lost(&kept.l1), lost(&kept.stlb))
        };
        facts.push(fact(by, said(kept, words)));
    }
    match effects.neighbours.as_deref() {
        None => {}
        Some([]) => facts.push(fact("other CPUs", "none that a thread may run on".into())),
        Some(cpus) => facts.extend(cpus.iter().map(neighbour)),
    }
    facts
}

/// What a busy thread on another CPU does to the entries.
fn neighbour(neighbour: &NeighbourCpu) -> Fact {
    let core = match neighbour.sibling {
        Some(true) => "same core",
        Some(false) => "another core",
        None => "unknown core",
    };
    let takes = said(&neighbour.takes, |takes| match (takes.l1, takes.stlb) {
        (false, false) => "evicts no entries".into(),
        (true, false) => "evicts entries of the L1 DTLB".into(),
        (false, true) => "evicts entries of the L2 TLB".into(),
        (true, true) => "evicts entries of both levels".into(),
    });
    let whose = |sharing: &TlbSharing| match sharing.entries {
        EntryOwnership::Shared => "both threads use the same entries",
        EntryOwnership::Tagged => "each thread uses its own entries, and they compete for room",
        EntryOwnership::Partitioned => "each thread has its own part of the entries",
        EntryOwnership::Apart => "each thread has its own TLB",
    };
    let words = match neighbour.sharing.is_unasked() {
        true => takes,
        false => followed(takes, "; L2 TLB: ", said(&neighbour.sharing, |sharing| whose(sharing).into())),
    };
    fact(format!("busy CPU {}, {core}", neighbour.cpu), words)
}

/// What each level's evictions come from.
fn causes(level: &LevelEvictions) -> [(&'static str, &Finding<SetEvictions>); 3] {
    [
        ("system call", &level.per_system_call),
        ("context switch", &level.per_context_switch),
        ("second", &level.per_second),
    ]
}

fn disturbed(report: &ProbeReport) -> impl Iterator<Item = (&'static str, &'static str, &Finding<SetEvictions>)> {
    let levels = report.effects.iter().flat_map(|effects| &effects.disturbed);
    levels.flat_map(|level| causes(level).map(|(per, finding)| (tlb(level.level), per, finding)))
}

/// The sets that lose entries.
pub(super) fn evictions(report: &ProbeReport) -> Table {
    let mut table = Table::new([
        Column::left("TLB"),
        Column::left("evictions per"),
        Column::right("sets affected"),
        Column::left("most evictions, by set").wrap(),
    ]);
    for (tlb, per, finding) in disturbed(report) {
        let (affected, most) = match finding {
            Finding::Confirmed { value, .. } => sets(value),
            Finding::NotDetermined { reason, .. } => (Cell::painted(Paint::Warn, "not determined"), reason.clone()),
        };
        table.row([tlb.into(), per.into(), affected, most.into()]);
    }
    table
}

fn sets(found: &SetEvictions) -> (Cell, String) {
    let mut worst: Vec<(usize, f64)> = found.by_set.iter().copied().enumerate().collect();
    worst.retain(|(_, evictions)| *evictions > 0.0);
    worst.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named: Vec<String> = worst.iter().take(WORST_SETS).map(|(set, n)| format!("{set} ({n:.1})")).collect();
    let affected = Cell::number(worst.len() as f64, format!("{} of {}", worst.len(), found.by_set.len()));
    match worst.is_empty() {
        true => (affected, format!("none by {:.1} or more", found.least)),
        false => (affected, named.join(", ")),
    }
}

/// Evictions of every set, where any is affected.
pub(super) fn charts(report: &ProbeReport) -> Vec<Chart> {
    let affected = disturbed(report).filter_map(|(tlb, per, finding)| Some((tlb, per, finding.value()?)));
    let chart = |(tlb, per, found): (&str, &str, &SetEvictions)| {
        let points = found.by_set.iter().enumerate().map(|(set, evictions)| Point::new(set as f64, *evictions));
        let series = Series::new("", points.collect()).look(Look::Dots);
        let y = Axis::new(format!("evictions per {per}"), Scale::Linear);
        Chart::lines(format!("{tlb}, per {per}"), Lines::new(Axis::new("set", Scale::Linear), y).with(series))
    };
    affected.filter(|(_, _, found)| found.disturbed_sets() > 0).map(chart).collect()
}
