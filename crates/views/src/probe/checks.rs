//! What others say of the same hardware, in words: its counters, CPUID and sysfs.

use lookaside_probe::{CheckedClaim, Finding, HardwarePart, PartSize, ProbeReport, TriedEvent};

use super::tlb;

/// What hardware counters say about it.
pub(super) fn counters(report: &ProbeReport) -> Vec<String> {
    let Some(counters) = report.counters.value() else {
        let reason = report.counters.reason().unwrap_or_default();
        let asked = report.counters != Finding::not_asked();
        return asked.then(|| format!("hardware counters: {reason}")).into_iter().collect();
    };
    counters.iter().flat_map(counter).collect()
}

fn counter(counted: &TriedEvent) -> Vec<String> {
    let Some(proof) = counted.proof.value() else { return Vec::new() };
    let count = |count: Option<f64>| count.map_or("–".into(), |count| format!("{count:.0}"));
    let mut lines = vec![format!(
        "counter {} (r{:x}) counts: {:.0}, {} and {:.0} per kilo access to 2 pages, to pages that miss L1, to pages that \
         miss both levels",
        counted.event.name,
        counted.event.code,
        proof.near_per_kilo_access,
        count(proof.middle_per_kilo_access),
        proof.far_per_kilo_access
    )];
    for set in &counted.sets {
        lines.push(format!(
            "  {} the {} ways of {}: {:.2} misses a round of {} pages of one set, {:.2} of {}",
            if set.confirms() { "confirms" } else { "does not confirm" },
            set.ways,
            tlb(set.level),
            set.fitting_per_round,
            set.ways,
            set.overflowing_per_round,
            set.ways + 1
        ));
    }
    lines
}

/// Every disagreement, measurement first.
pub(super) fn claims(report: &ProbeReport) -> Vec<String> {
    let compared: Vec<&CheckedClaim> = report.claims.iter().filter(|claim| claim.agrees.is_some()).collect();
    let disagree = compared.iter().filter(|claim| claim.agrees == Some(false));
    let mut lines: Vec<String> = disagree.filter_map(|claim| disagreement(claim)).collect();
    if !compared.is_empty() {
        let (all, wrong) = (compared.len(), lines.len());
        let said = format!("{} of {all} statements of CPUID and sysfs about it agree with this", all - wrong);
        lines.insert(0, if wrong == 0 { said } else { said + "; these do not:" });
    }
    lines
}

fn disagreement(claim: &CheckedClaim) -> Option<String> {
    let measured = shape(claim.stated.part, claim.measured.as_ref()?);
    let stated = shape(claim.stated.part, &claim.stated.shape);
    let arrays = match claim.stated.arrays {
        1 => String::new(),
        arrays => format!(" in {arrays} arrays"),
    };
    let name = match claim.stated.part {
        HardwarePart::DataTlb { level, page_size } => format!("{}, {page_size} loads", tlb(level)),
        HardwarePart::DataCache { level } => format!("L{level} data cache"),
    };
    Some(format!("  {name}: measured {measured}; {} says {stated}{arrays}", claim.stated.source))
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
