//! What the probe found, for people.
//!
//! A part of the probe has a function here that gives its lines; [`render`] puts them one below the other. Lines that
//! begin with spaces belong to the line above them.

use lookaside_machine::PageSize;
use lookaside_probe::effects::{Disturbed, Entries, Fill, Kept, Lost, NeighbourCpu, SetEvictions, Sharing, Stores};
use lookaside_probe::{
    Claim, Counted, Finding, Geometry, Held, LevelReport, Part, Policy, Report, Seen, Shape, WalkCacheReport,
};

use crate::line::Style;
use crate::text;

/// Sets that are named where several stand out.
const WORST_SETS: usize = 6;

/// All that was found, one line a fact; what is not known says why.
pub fn render(report: &Report, style: &Style) -> String {
    let parts = [
        head(report),
        levels(report),
        effects(report),
        caches(report),
        walks(report),
        walk_caches(report),
        covers(report),
        spread(report),
        large(report),
        gigantic(report),
        counters(report),
        claims(report),
        end(report),
    ];
    let mut out = String::new();
    for line in parts.iter().flatten() {
        wrapped(&mut out, line, style);
    }
    out
}

/// Appends a line, what does not fit below it and further in.
fn wrapped(out: &mut String, line: &str, style: &Style) {
    let line = text::clean(line);
    let indent = line.len() - line.trim_start().len();
    for (i, part) in text::wrap(&line, style.columns() - indent - 4).iter().enumerate() {
        let part = if style.unicode { part.clone() } else { text::ascii(part) };
        out.push_str(&" ".repeat(if i == 0 { indent } else { indent + 4 }));
        out.push_str(&part);
        out.push('\n');
    }
}

fn head(report: &Report) -> Vec<String> {
    let cpu = report.cpu.map_or(String::new(), |cpu| format!("CPU {cpu}; "));
    let (cycles, seed, measurements) = (report.cycles_per_tick, report.seed, report.measurements);
    let mut lines = vec![format!("{cpu}{cycles:.3} core cycles a tick; seed {seed}; {measurements} measurements")];
    lines.extend(report.remarks.iter().map(|remark| format!("beware: {remark}")));
    lines
}

fn levels(report: &Report) -> Vec<String> {
    report.levels.iter().flat_map(level).collect()
}

fn level(level: &LevelReport) -> Vec<String> {
    let mut lines =
        vec![format!("{}, {} loads: {}", tlb(level.level), level.page_size, said(&level.geometry, geometry))];
    if !level.miss_cycles.is_unasked() {
        let longer = |seen: &Seen| format!("takes {} longer than a hit here", cycles(seen));
        lines.push(format!("  a miss: {}", said(&level.miss_cycles, longer)));
    }
    if !level.policy.is_unasked() {
        lines.push(format!("  replacement: {}", said(&level.policy, Policy::to_string)));
    }
    lines
}

/// What else fills and empties the levels.
fn effects(report: &Report) -> Vec<String> {
    let Some(effects) = &report.effects else { return Vec::new() };
    let mut lines = vec![format!(
        "stores: {}",
        said(&effects.stores, |stores| match stores {
            Stores::Shared => "share the entries of loads".into(),
            Stores::Apart => "have entries of their own in the L1 DTLB".into(),
        })
    )];
    for prefetch in &effects.prefetches {
        let fills = said(&prefetch.fills, |fill| match fill {
            Fill::L1 => "walks, and fills the L1 DTLB and the L2 TLB".into(),
            Fill::Stlb => "walks, and fills the L2 TLB only".into(),
            Fill::Nothing => "fills neither level".into(),
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
        let lost = |lost: &Lost| format!("{:.1} to {:.1} of {}", lost.low, lost.high, lost.of);
        let words = |kept: &Kept| format!("{} in the L1 DTLB, {} in the L2 TLB", lost(&kept.l1), lost(&kept.stlb));
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
    let whose = |sharing: &Sharing| match sharing.entries {
        Entries::Shared => "entries are shared by both threads",
        Entries::Tagged => "each thread uses entries of its own, and they compete for room",
        Entries::Partitioned => "each thread has its own part of the entries",
        Entries::Apart => "each thread has entries of its own",
    };
    let sharing = match neighbour.sharing.is_unasked() {
        true => String::new(),
        false => format!("; L2 TLB: {}", said(&neighbour.sharing, |sharing| whose(sharing).into())),
    };
    format!("a busy thread on CPU {} ({told}): {takes}{sharing}", neighbour.cpu)
}

fn disturbed(level: &Disturbed) -> Vec<String> {
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

/// What hardware counters say about it.
fn counters(report: &Report) -> Vec<String> {
    let Some(counters) = report.counters.value() else {
        let reason = report.counters.reason().unwrap_or_default();
        let asked = report.counters != Finding::not_asked();
        return asked.then(|| format!("hardware counters: {reason}")).into_iter().collect();
    };
    counters.iter().flat_map(counter).collect()
}

fn counter(counted: &Counted) -> Vec<String> {
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
fn claims(report: &Report) -> Vec<String> {
    let compared: Vec<&Claim> = report.claims.iter().filter(|claim| claim.agrees.is_some()).collect();
    let disagree = compared.iter().filter(|claim| claim.agrees == Some(false));
    let mut lines: Vec<String> = disagree.filter_map(|claim| disagreement(claim)).collect();
    if !compared.is_empty() {
        let (all, wrong) = (compared.len(), lines.len());
        let said = format!("{} of {all} statements of CPUID and sysfs about it agree with this", all - wrong);
        lines.insert(0, if wrong == 0 { said } else { said + "; these do not:" });
    }
    lines
}

fn disagreement(claim: &Claim) -> Option<String> {
    let measured = shape(claim.stated.part, claim.measured.as_ref()?);
    let stated = shape(claim.stated.part, &claim.stated.shape);
    let arrays = match claim.stated.arrays {
        1 => String::new(),
        arrays => format!(" in {arrays} arrays"),
    };
    let name = match claim.stated.part {
        Part::DataTlb { level, page_size } => format!("{}, {page_size} loads", tlb(level)),
        Part::DataCache { level } => format!("L{level} data cache"),
    };
    Some(format!("  {name}: measured {measured}; {} says {stated}{arrays}", claim.stated.source))
}

fn shape(part: Part, shape: &Shape) -> String {
    let amount = match part {
        Part::DataTlb { .. } => format!("{} entries", shape.amount),
        Part::DataCache { .. } if shape.amount < shape.most => {
            format!("{} to {} KiB", shape.amount >> 10, shape.most >> 10)
        }
        Part::DataCache { .. } => format!("{} KiB", shape.amount >> 10),
    };
    match shape.ways {
        Some((low, _)) if matches!(part, Part::DataTlb { .. }) && u64::from(low) == shape.amount => {
            format!("{amount}, fully associative")
        }
        Some((low, high)) if low == high => format!("{amount} of {low} ways"),
        Some((low, high)) => format!("{amount} of {low} to {high} ways"),
        None => amount,
    }
}

fn tlb(level: u32) -> &'static str {
    if level == 1 {
        "L1 DTLB"
    } else {
        "L2 TLB"
    }
}

fn caches(report: &Report) -> Vec<String> {
    let Some(found) = &report.caches else { return Vec::new() };
    let mut lines = vec![format!("cache lines: {}", said(&found.line_bytes, |bytes| format!("{bytes} bytes")))];
    for level in &found.levels {
        let took = said(&level.cycles, cycles);
        let holds = match level.shape.value() {
            Some(shape) => format!("{} KiB, {} sets of {} ways", shape.bytes >> 10, shape.sets, shape.ways),
            None => said(&level.bytes, |seen| format!("{:.0} to {:.0} KiB", seen.low / 1024.0, seen.high / 1024.0)),
        };
        lines.push(format!("data cache {}: {holds}; a hit takes {took}", level.level));
        if level.shape.value().is_none() && !level.ways.is_unasked() {
            lines.push(format!("  ways of a set: {}", said(&level.ways, u32::to_string)));
        }
    }
    lines.push(format!("memory: a load takes {}", said(&found.memory_cycles, cycles)));
    lines
}

fn walks(report: &Report) -> Vec<String> {
    let Some(found) = &report.walks else { return Vec::new() };
    let mut lines = vec![format!(
        "beside a hit of the L1 DTLB, a hit of the L2 TLB adds {}",
        said(&found.second_level_cycles, cycles)
    )];
    for walk in &found.walks {
        lines.push(format!("a walk with leaf entries in {} adds {}", walk.place, said(&walk.cycles, cycles)));
    }
    lines.push(format!("  beside the leaf entry: {}", said(&found.base_cycles, cycles)));
    let level = said(&found.first_cache_level, |level| format!("reads from data cache {level} on"));
    lines.push(format!("  the walker: {level}"));
    lines
}

fn walk_caches(report: &Report) -> Vec<String> {
    let Some(found) = &report.walk_caches else { return Vec::new() };
    let level = |level: &WalkCacheReport| {
        let points_to = match level.table_level {
            2 => "leaf tables",
            _ => "tables of those",
        };
        let mut lines =
            vec![format!("walk cache of entries that point to {points_to}: {}", said(&level.entries, Held::to_string))];
        if level.entries.value().is_some() {
            let longer = |seen: &Seen| format!("takes {} longer", cycles(seen));
            lines.push(format!("  a walk that misses there: {}", said(&level.miss_cycles, longer)));
        }
        lines
    };
    found.levels.iter().flat_map(level).collect()
}

fn covers(report: &Report) -> Vec<String> {
    let Some(found) = &report.covers else { return Vec::new() };
    let mut lines = Vec::new();
    for level in &found.levels {
        let small = said(&level.small, |&pages| match pages {
            1 => "one page, be they contiguous or not".into(),
            pages => format!("up to {pages} contiguous pages"),
        });
        let huge = said(&level.huge, |&pages| match pages {
            1 => "one of its small pages".into(),
            16.. => "16 of its small pages or more".into(),
            pages => format!("{pages} of its small pages"),
        });
        lines.push(format!("{}: an entry covers {small}", tlb(level.level)));
        lines.push(format!("  of a 2M page: {huge}"));
    }
    if let Some(guest) = found.is_guest {
        lines.push(format!("virtual machine: {}", if guest { "yes" } else { "nobody says so" }));
    }
    let stage = &found.second_stage_cycles;
    if !stage.is_unasked() {
        let adds = said(stage, |seen| {
            format!("maps by small pages; where the first does so too, a step takes {} longer", cycles(seen))
        });
        lines.push(format!("second stage of translation: {adds}"));
    }
    lines
}

fn spread(report: &Report) -> Vec<String> {
    let Some(found) = &report.spread else { return Vec::new() };
    vec![
        format!("memory, loads far apart: a load takes {}", said(&found.random_memory_cycles, cycles)),
        format!("ascending walks: a line from caches takes {}", said(&found.stream_cache_cycles, cycles)),
        format!("ascending walks: a line from memory takes {}", said(&found.stream_memory_cycles, cycles)),
        format!("ascending walks: a page-table walk takes {}", said(&found.stream_walk_cycles, cycles)),
        format!(
            "huge pages: {}",
            said(&found.huge_pages_are_whole, |&whole| {
                let words =
                    if whole { "one translation each" } else { "held as small ones (a host backs them with such)" };
                words.to_string()
            })
        ),
    ]
}

fn large(report: &Report) -> Vec<String> {
    let Some(found) = &report.large else { return Vec::new() };
    found.levels.iter().flat_map(level).collect()
}

fn gigantic(report: &Report) -> Vec<String> {
    let Some(found) = &report.gigantic else { return Vec::new() };
    if let Some(reason) = &found.lacks {
        return vec![format!("1G pages: not looked at: {reason}")];
    }
    let mut lines = Vec::new();
    for (of_level, part) in found.levels.iter().zip(&found.parts) {
        let covers = said(part, |&part| match part {
            PageSize::G1 => "all of it".into(),
            PageSize::M2 => "2M".into(),
            _ => "one of its small pages".to_string(),
        });
        lines.push(format!("{}, 1G loads: an entry covers of a page: {covers}", tlb(of_level.level)));
        if part.value() == Some(&PageSize::G1) {
            lines.extend(level(of_level));
        }
    }
    lines
}

fn cycles(seen: &Seen) -> String {
    format!("{:.1} to {:.1} cycles", seen.low, seen.high)
}

fn end(report: &Report) -> Vec<String> {
    let mut lines = vec![format!("not looked for: {}", report.not_looked_for().join(", "))];
    lines.extend(report.halted.iter().map(|reason| format!("ended early: {reason}")));
    lines
}

/// A finding in words: its value, or why there is none.
fn said<T>(finding: &Finding<T>, words: impl Fn(&T) -> String) -> String {
    match finding {
        Finding::Confirmed { value, .. } => words(value),
        Finding::NotDetermined { reason, .. } => format!("not determined: {reason}"),
    }
}

fn geometry(found: &Geometry) -> String {
    if found.sets == 1 {
        return format!("{} entries, fully associative", found.entries);
    }
    let linear = (0..found.masks.len()).all(|bit| found.masks[bit] == 1 << bit);
    let index = if linear {
        "linear index".to_string()
    } else {
        let masks: Vec<String> = found.masks.iter().map(|mask| format!("{mask:#x}")).collect();
        format!("index masks {}", masks.join(" "))
    };
    format!("{} entries: {} sets of {} ways, {index}", found.entries, found.sets, found.ways)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_probe::{Counts, Event, GiganticPages, Proof, SetCount, Stated, WalkCaches};

    #[test]
    fn values_and_reasons_are_said() {
        let level = |level, geometry, policy| LevelReport {
            level,
            page_size: PageSize::K4,
            geometry,
            miss_cycles: match level {
                1 => Finding::confirmed(Seen { low: 6.96, high: 8.0, passes: 2 }, Vec::new()),
                _ => Finding::not_asked(),
            },
            policy,
            trials: Vec::new(),
        };
        let claim = |amount, ways, arrays, measured| {
            let part = Part::DataTlb { level: 1, page_size: PageSize::K4 };
            Claim::new(
                Stated { source: "CPUID 2".into(), part, shape: Shape { amount, most: amount, ways }, arrays },
                measured,
            )
        };
        let proof = Proof { near_per_kilo_access: 1.0, middle_per_kilo_access: None, far_per_kilo_access: 980.4 };
        let set = |fitting_per_round| SetCount { level: 1, ways: 3, fitting_per_round, overflowing_per_round: 4.0 };
        let counted = Counted {
            event: Event { name: "misses", code: 0x1245, counts: Counts::FirstMisses, source: "a manual" },
            proof: Finding::confirmed(proof, Vec::new()),
            sets: vec![set(0.01), set(1.5)],
        };
        let masks = vec![0b1, 0b110];
        let geometry = Finding::confirmed(Geometry { entries: 12, ways: 3, sets: 4, masks }, Vec::new());
        let first = level(1, geometry, Finding::confirmed(Policy::Lru, Vec::new()));
        let gigantic = {
            let at = |level, geometry| LevelReport { level, page_size: PageSize::G1, geometry, ..first.clone() };
            let levels = vec![at(1, first.geometry.clone()), at(2, Finding::not_asked())];
            let levels = levels.into_iter().map(|level| LevelReport {
                miss_cycles: Finding::not_asked(),
                policy: Finding::not_asked(),
                ..level
            });
            let parts = [PageSize::G1, PageSize::M2].map(|part| Finding::confirmed(part, Vec::new()));
            GiganticPages { lacks: None, parts: parts.into(), levels: levels.collect() }
        };
        let reason = "no pages were found that evict each other from it, however many were tried";
        let second = level(2, Finding::not_determined(reason), Finding::not_asked());
        let report = Report {
            seed: 7,
            cpu: Some(3),
            remarks: vec!["little memory".into()],
            cycles_per_tick: 1.25,
            levels: vec![first, second],
            measurements: 9,
            halted: Some("no time left".into()),
            counters: Finding::confirmed(vec![counted], Vec::new()),
            claims: vec![
                claim(16, Some((4, 4)), 2, Some(Shape::new(12, 3))),
                claim(12, Some((2, 3)), 1, Some(Shape::new(12, 3))),
                claim(9, None, 1, None),
            ],
            walk_caches: Some(WalkCaches {
                levels: vec![
                    WalkCacheReport {
                        table_level: 2,
                        entries: Finding::confirmed(
                            Held { at_least: 32, at_most: 32, shape: Some((4, 8)) },
                            Vec::new(),
                        ),
                        miss_cycles: Finding::confirmed(Seen { low: 5.0, high: 5.5, passes: 2 }, Vec::new()),
                        curves: Vec::new(),
                    },
                    WalkCacheReport {
                        table_level: 3,
                        entries: Finding::confirmed(Held { at_least: 57, at_most: 60, shape: None }, Vec::new()),
                        miss_cycles: Finding::not_determined("no two passes agree"),
                        curves: Vec::new(),
                    },
                ],
            }),
            gigantic: Some(gigantic),
            ..Report::default()
        };
        let expected = "\
CPU 3; 1.250 core cycles a tick; seed 7; 9 measurements
beware: little memory
L1 DTLB, 4K loads: 12 entries: 4 sets of 3 ways, index masks 0x1 0x6
  a miss: takes 7.0 to 8.0 cycles longer than a hit here
  replacement: LRU
L2 TLB, 4K loads: not determined: no pages were found that evict each
    other from it, however many were tried
walk cache of entries that point to leaf tables: 32 entries, 8 sets of
    4 ways
  a walk that misses there: takes 5.0 to 5.5 cycles longer
walk cache of entries that point to tables of those: 57 to 60 entries
  a walk that misses there: not determined: no two passes agree
L1 DTLB, 1G loads: an entry covers of a page: all of it
L1 DTLB, 1G loads: 12 entries: 4 sets of 3 ways, index masks 0x1 0x6
L2 TLB, 1G loads: an entry covers of a page: 2M
counter misses (r1245) counts: 1, – and 980 per kilo access to 2
    pages, to pages that miss L1, to pages that miss both levels
  confirms the 3 ways of L1 DTLB: 0.01 misses a round of 3 pages of
      one set, 4.00 of 4
  does not confirm the 3 ways of L1 DTLB: 1.50 misses a round of 3
      pages of one set, 4.00 of 4
1 of 2 statements of CPUID and sysfs about it agree with this; these
    do not:
  L1 DTLB, 4K loads: measured 12 entries of 3 ways; CPUID 2 says 16
      entries of 4 ways in 2 arrays
not looked for: topology, TLBs and caches of fetches, entries of
    stores by themselves, how data caches replace and who shares them,
    data caches and memory, walks, what entries cover, what else fills and
    empties the levels, loads far apart and in a row, TLBs of 2M pages
ended early: no time left
";
        let style = Style { width: 74, ..Style::default() };
        assert_eq!(render(&report, &style), expected);
        let lacks = GiganticPages { lacks: Some("none is set aside".into()), parts: Vec::new(), levels: Vec::new() };
        let text = render(&Report { gigantic: Some(lacks), ..Report::default() }, &style);
        assert!(text.contains("\n1G pages: not looked at: none is set aside\n"), "{text}");
    }
}
