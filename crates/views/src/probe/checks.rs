//! What others say of the same hardware: its counters, CPUID and sysfs.

use lookaside_probe::{CheckedClaim, Finding, HardwarePart, PartSize, ProbeReport, TriedEvent};
use lookaside_report::{Cell, Column, DocumentBlock, Paint, RichText, Section, Table};

use super::words::tlb;

/// The hardware counters that are proved to count misses, and whether they confirm the ways.
pub(super) fn counters(report: &ProbeReport) -> Section {
    let section = Section::new("Hardware counters");
    match &report.counters {
        Finding::Confirmed { value, .. } => {
            let confirmed = value.iter().filter(|tried| tried.proof.value().is_some()).flat_map(confirmations);
            section.with(rates(value)).with(DocumentBlock::List(confirmed.collect()))
        }
        of if *of == Finding::not_asked() => section,
        of => section.with(RichText::from(of.reason().unwrap_or_default())),
    }
}

fn rates(tried: &[TriedEvent]) -> Table {
    let mut table = Table::new([
        Column::left("counts per 1,000 accesses"),
        Column::left("event"),
        Column::right("2 pages"),
        Column::right("L1 misses"),
        Column::right("both levels miss"),
    ]);
    let count = |count: f64| Cell::number(count, format!("{count:.0}"));
    for counter in tried {
        let Some(proof) = counter.proof.value() else { continue };
        table.row([
            counter.event.name.into(),
            format!("r{:x}", counter.event.code).into(),
            count(proof.near_per_kilo_access),
            Cell::optional(proof.middle_per_kilo_access, count),
            count(proof.far_per_kilo_access),
        ]);
    }
    table
}

fn confirmations(counter: &TriedEvent) -> impl Iterator<Item = RichText> + '_ {
    counter.sets.iter().map(|set| {
        let (paint, confirms) =
            if set.confirms() { (Paint::Good, "confirms") } else { (Paint::Bad, "does not confirm") };
        RichText::from(format!("{} ", counter.event.name)).paint(paint, confirms).plain(format!(
            " the {} ways of the {}: {:.2} misses a round of {} pages of one set, {:.2} of {}",
            set.ways,
            tlb(set.level),
            set.fitting_per_round,
            set.ways,
            set.overflowing_per_round,
            set.ways + 1
        ))
    })
}

/// How many statements agree with the measurement, and every disagreement.
pub(super) fn claims(report: &ProbeReport) -> Section {
    let section = Section::new("CPUID and sysfs");
    let compared: Vec<&CheckedClaim> = report.claims.iter().filter(|claim| claim.agrees.is_some()).collect();
    if compared.is_empty() {
        return section;
    }
    let mut table = Table::new([
        Column::left("disagreement"),
        Column::left("measured").wrap(),
        Column::left("stated").wrap(),
        Column::left("by"),
    ]);
    for claim in compared.iter().filter(|claim| claim.agrees == Some(false)) {
        let measured = claim.measured.as_ref().map(|measured| shape(claim.stated.part, measured));
        let arrays =
            if claim.stated.arrays == 1 { String::new() } else { format!(" in {} arrays", claim.stated.arrays) };
        table.row([
            name(claim.stated.part).into(),
            measured.unwrap_or_default().into(),
            (shape(claim.stated.part, &claim.stated.shape) + &arrays).into(),
            claim.stated.source.as_str().into(),
        ]);
    }
    let agree = compared.iter().filter(|claim| claim.agrees == Some(true)).count();
    section
        .with(RichText::from(format!("{agree} of {} statements agree with the measurement.", compared.len())))
        .with(table)
}

fn name(part: HardwarePart) -> String {
    match part {
        HardwarePart::DataTlb { level, page_size } => format!("{}, {page_size} loads", tlb(level)),
        HardwarePart::DataCache { level } => format!("L{level} data cache"),
    }
}

fn shape(part: HardwarePart, shape: &PartSize) -> String {
    let amount = match part {
        HardwarePart::DataTlb { .. } => format!("{} entries", shape.amount),
        HardwarePart::DataCache { .. } if shape.amount < shape.most => {
            format!("{} to {} KiB", shape.amount >> 10, shape.most >> 10)
        }
        HardwarePart::DataCache { .. } => format!("{} KiB", shape.amount >> 10),
    };
    match shape.ways {
        Some((low, _)) if matches!(part, HardwarePart::DataTlb { .. }) && u64::from(low) == shape.amount => {
            format!("{amount}, fully associative")
        }
        Some((low, high)) if low == high => format!("{amount} of {low} ways"),
        Some((low, high)) => format!("{amount} of {low} to {high} ways"),
        None => amount,
    }
}
