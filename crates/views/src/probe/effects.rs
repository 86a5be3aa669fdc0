//! What fills and empties the levels, in words.

use lookaside_probe::effects::{
    EntryOwnership, FillLevel, LevelEvictions, LostEntries, NeighbourCpu, SetEvictions, StoreEntries, SwitchLosses,
    TlbSharing,
};
use lookaside_probe::{Finding, ProbeReport};

use super::{geometry, said, tlb};

/// Sets that are named where several stand out.
const WORST_SETS: usize = 6;

/// What else fills and empties the levels.
pub(super) fn effects(report: &ProbeReport) -> Vec<String> {
    let Some(effects) = &report.effects else { return Vec::new() };
    let mut lines = vec![format!(
        "stores: {}",
        said(&effects.stores, |stores| match stores {
            StoreEntries::Shared => "share the entries of loads".into(),
            StoreEntries::Apart =>
                format!("have entries of their own in the L1 DTLB: {}", said(&effects.store_level, geometry)),
        })
    )];
    if !effects.store_level.is_unasked() {
        lines.push(format!("L1 DTLB, 4K stores: {}", said(&effects.store_level, geometry)));
    }
    for prefetch in &effects.prefetches {
        let fills = said(&prefetch.fills, |fill| match fill {
            FillLevel::L1 => "walks, and fills the L1 DTLB and the L2 TLB".into(),
            FillLevel::Stlb => "walks, and fills the L2 TLB only".into(),
            FillLevel::Nothing => "fills neither level".into(),
        });
        let faults = said(&prefetch.faults, |faults| match faults {
            0 => "a page without a frame does not fault".into(),
            faults => format!("{faults} faults in 2048 prefetches of pages without a frame"),
        });
        lines.push(format!("prefetch {}: {fills}; {faults}", prefetch.hint.word()));
    }
    for (what, kept) in [
        ("a system call", &effects.system_call),
        ("a switch to another thread and back", &effects.thread_switch),
        ("a switch to another process and back", &effects.process_switch),
    ] {
        let lost = |lost: &LostEntries| format!("{:.1} to {:.1} of {}", lost.low, lost.high, lost.of);
        let words =
            |kept: &SwitchLosses| format!("{} in the L1 DTLB, {} in the L2 TLB", lost(&kept.l1), lost(&kept.stlb));
        lines.push(format!("entries lost by {what}: {}", said(kept, words)));
    }
    match &effects.neighbours {
        None => {}
        Some(none) if none.is_empty() => {
            lines.push("other CPUs: none that a thread may run on: no sibling here".into())
        }
        Some(cpus) => lines.extend(cpus.iter().map(neighbour)),
    }
    lines.extend(effects.disturbed.iter().flat_map(disturbed));
    lines
}

fn neighbour(neighbour: &NeighbourCpu) -> String {
    let told = match neighbour.sibling {
        Some(true) => "a thread of this core, the system says",
        Some(false) => "of another core, the system says",
        None => "the system does not say of which core",
    };
    let takes = said(&neighbour.takes, |takes| match (takes.l1, takes.stlb) {
        (false, false) => "takes no entries here".into(),
        (true, false) => "takes entries of the L1 DTLB".into(),
        (false, true) => "takes entries of the L2 TLB".into(),
        (true, true) => "takes entries of both levels".into(),
    });
    let whose = |sharing: &TlbSharing| match sharing.entries {
        EntryOwnership::Shared => "entries are shared by both threads",
        EntryOwnership::Tagged => "each thread uses entries of its own, and they compete for room",
        EntryOwnership::Partitioned => "each thread has its own part of the entries",
        EntryOwnership::Apart => "each thread has entries of its own",
    };
    let sharing = match neighbour.sharing.is_unasked() {
        true => String::new(),
        false => format!("; L2 TLB: {}", said(&neighbour.sharing, |sharing| whose(sharing).into())),
    };
    format!("a busy thread on CPU {} ({told}): {takes}{sharing}", neighbour.cpu)
}

fn disturbed(level: &LevelEvictions) -> Vec<String> {
    let line = |by: &str, finding: &Finding<SetEvictions>| {
        let words = |found: &SetEvictions| {
            let mut worst: Vec<(usize, f64)> = found.by_set.iter().copied().enumerate().collect();
            worst.retain(|(_, evictions)| *evictions > 0.0);
            worst.sort_by(|a, b| b.1.total_cmp(&a.1));
            let named: Vec<String> = worst.iter().take(WORST_SETS).map(|(set, n)| format!("{set} ({n:.1})")).collect();
            let all = found.by_set.len();
            match worst.len() {
                0 => format!("none of {all} sets stands out by {:.1}", found.least),
                count => format!("{count} of {all} sets stand out, most: {}", named.join(", ")),
            }
        };
        format!("{}, evictions a set and {by}: {}", tlb(level.level), said(finding, words))
    };
    vec![
        line("system call", &level.per_system_call),
        line("context switch", &level.per_context_switch),
        line("second", &level.per_second),
    ]
}
