//! What the probe found, for people.
//!
//! A part of the probe has a function here that gives its lines; [`render`] puts them one below the other. Lines that
//! begin with spaces belong to the line above them.

mod checks;
mod effects;
mod memory;

use lookaside_machine::PageSize;
use lookaside_probe::{Finding, Geometry, LevelReport, MeasuredRange, ProbeReport, TlbPolicy};

use lookaside_report::text;
use lookaside_report::Style;

/// All that was found, one line a fact; what is not known says why.
pub fn render(report: &ProbeReport, style: &Style) -> String {
    let parts = [
        head(report),
        levels(report),
        effects::effects(report),
        memory::caches(report),
        memory::walks(report),
        memory::walk_caches(report),
        memory::covers(report),
        memory::spread(report),
        large(report),
        gigantic(report),
        checks::counters(report),
        checks::claims(report),
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

fn head(report: &ProbeReport) -> Vec<String> {
    let cpu = report.cpu.map_or(String::new(), |cpu| format!("CPU {cpu}; "));
    let (cycles, seed, measurements) = (report.cycles_per_tick, report.seed, report.measurements);
    let mut lines = vec![format!("{cpu}{cycles:.3} core cycles a tick; seed {seed}; {measurements} measurements")];
    lines.extend(report.remarks.iter().map(|remark| format!("beware: {remark}")));
    lines
}

fn levels(report: &ProbeReport) -> Vec<String> {
    report.levels.iter().flat_map(level).collect()
}

fn level(level: &LevelReport) -> Vec<String> {
    let mut lines =
        vec![format!("{}, {} loads: {}", tlb(level.level), level.page_size, said(&level.geometry, geometry))];
    if !level.miss_cycles.is_unasked() {
        let longer = |seen: &MeasuredRange| format!("takes {} longer than a hit here", cycles(seen));
        lines.push(format!("  a miss: {}", said(&level.miss_cycles, longer)));
    }
    if !level.policy.is_unasked() {
        lines.push(format!("  replacement: {}", said(&level.policy, TlbPolicy::to_string)));
    }
    lines
}

fn tlb(level: u32) -> &'static str {
    if level == 1 {
        "L1 DTLB"
    } else {
        "L2 TLB"
    }
}

fn large(report: &ProbeReport) -> Vec<String> {
    let Some(found) = &report.large else { return Vec::new() };
    found.levels.iter().flat_map(level).collect()
}

fn gigantic(report: &ProbeReport) -> Vec<String> {
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

fn cycles(seen: &MeasuredRange) -> String {
    format!("{:.1} to {:.1} cycles", seen.low, seen.high)
}

fn end(report: &ProbeReport) -> Vec<String> {
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
    use lookaside_probe::{
        CheckedClaim, Claim, CountProof, CountedMisses, GiganticPages, HardwarePart, PartSize, PmuEvent, SetCount,
        TriedEvent, WalkCacheReport, WalkCacheSize, WalkCaches,
    };

    #[test]
    fn values_and_reasons_are_said() {
        let level = |level, geometry, policy| LevelReport {
            level,
            page_size: PageSize::K4,
            geometry,
            miss_cycles: match level {
                1 => Finding::confirmed(MeasuredRange { low: 6.96, high: 8.0, passes: 2 }, Vec::new()),
                _ => Finding::not_asked(),
            },
            policy,
            trials: Vec::new(),
        };
        let claim = |amount, ways, arrays, measured| {
            let part = HardwarePart::DataTlb { level: 1, page_size: PageSize::K4 };
            CheckedClaim::new(
                Claim { source: "CPUID 2".into(), part, shape: PartSize { amount, most: amount, ways }, arrays },
                measured,
            )
        };
        let proof = CountProof { near_per_kilo_access: 1.0, middle_per_kilo_access: None, far_per_kilo_access: 980.4 };
        let set = |fitting_per_round| SetCount { level: 1, ways: 3, fitting_per_round, overflowing_per_round: 4.0 };
        let counted = TriedEvent {
            event: PmuEvent { name: "misses", code: 0x1245, counts: CountedMisses::FirstMisses, source: "a manual" },
            proof: Finding::confirmed(proof, Vec::new()),
            sets: vec![set(0.01), set(1.5)],
        };
        let masks = vec![0b1, 0b110];
        let geometry = Finding::confirmed(Geometry { entries: 12, ways: 3, sets: 4, masks }, Vec::new());
        let first = level(1, geometry, Finding::confirmed(TlbPolicy::Lru, Vec::new()));
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
        let report = ProbeReport {
            seed: 7,
            cpu: Some(3),
            remarks: vec!["little memory".into()],
            cycles_per_tick: 1.25,
            levels: vec![first, second],
            measurements: 9,
            halted: Some("no time left".into()),
            counters: Finding::confirmed(vec![counted], Vec::new()),
            claims: vec![
                claim(16, Some((4, 4)), 2, Some(PartSize::new(12, 3))),
                claim(12, Some((2, 3)), 1, Some(PartSize::new(12, 3))),
                claim(9, None, 1, None),
            ],
            walk_caches: Some(WalkCaches {
                levels: vec![
                    WalkCacheReport {
                        table_level: 2,
                        entries: Finding::confirmed(
                            WalkCacheSize { at_least: 32, at_most: 32, shape: Some((4, 8)) },
                            Vec::new(),
                        ),
                        miss_cycles: Finding::confirmed(MeasuredRange { low: 5.0, high: 5.5, passes: 2 }, Vec::new()),
                        passes_differ: false,
                        curves: Vec::new(),
                    },
                    WalkCacheReport {
                        table_level: 3,
                        entries: Finding::confirmed(
                            WalkCacheSize { at_least: 57, at_most: 60, shape: None },
                            Vec::new(),
                        ),
                        miss_cycles: Finding::not_determined("no two passes agree"),
                        passes_differ: false,
                        curves: Vec::new(),
                    },
                ],
            }),
            gigantic: Some(gigantic),
            ..ProbeReport::default()
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
not looked for: topology, TLBs and caches of fetches, how data caches
    replace and who shares them, data caches and memory, walks, what
    entries cover, what else fills and empties the levels, loads far apart
    and in a row, TLBs of 2M pages
ended early: no time left
";
        let style = Style { width: 74, ..Style::default() };
        assert_eq!(render(&report, &style), expected);
        let lacks = GiganticPages { lacks: Some("none is set aside".into()), parts: Vec::new(), levels: Vec::new() };
        let text = render(&ProbeReport { gigantic: Some(lacks), ..ProbeReport::default() }, &style);
        assert!(text.contains("\n1G pages: not looked at: none is set aside\n"), "{text}");
    }
}
