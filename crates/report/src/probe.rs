//! What the probe found, for people.
//!
//! A part of the probe has a function here that gives its lines; [`render`] puts them one below the other. Lines that
//! begin with spaces belong to the line above them.

use lookaside_probe::{Finding, Geometry, LevelReport, Report};

use crate::line::Style;
use crate::text;

/// All that was found, one line a fact; what is not known says why.
pub fn render(report: &Report, style: &Style) -> String {
    let parts = [head(report), levels(report), end(report)];
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
    vec![format!(
        "{:.3} core cycles a tick; seed {}; {} measurements",
        report.cycles_per_tick, report.seed, report.measurements
    )]
}

fn levels(report: &Report) -> Vec<String> {
    report.levels.iter().flat_map(level).collect()
}

fn level(level: &LevelReport) -> Vec<String> {
    let name = if level.level == 1 { "L1 DTLB" } else { "L2 TLB" };
    let mut lines = vec![format!("{name}, {} loads: {}", level.page_size, said(&level.geometry, geometry))];
    if let Some(seen) = level.miss_cycles {
        let (low, high, passes) = (seen.low, seen.high, seen.passes);
        lines.push(format!("  a miss adds {low:.1} to {high:.1} cycles (seen in {passes} passes, not confirmed)"));
    }
    if !level.policy.is_unasked() {
        lines.push(format!("  replacement: {}", said(&level.policy, |policy| format!("{policy:?}"))));
    }
    lines
}

fn end(report: &Report) -> Vec<String> {
    report.halted.iter().map(|reason| format!("ended early: {reason}")).collect()
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
    use lookaside_machine::{PageSize, Replacement};
    use lookaside_probe::Seen;

    #[test]
    fn values_and_reasons_are_said() {
        let level = |level, geometry, policy| LevelReport {
            level,
            page_size: PageSize::K4,
            geometry,
            miss_cycles: (level == 1).then_some(Seen { low: 6.96, high: 8.0, passes: 2 }),
            policy,
            trials: Vec::new(),
        };
        let masks = vec![0b1, 0b110];
        let geometry = Finding::confirmed(Geometry { entries: 12, ways: 3, sets: 4, masks }, Vec::new());
        let first = level(1, geometry, Finding::confirmed(Replacement::Lru, Vec::new()));
        let reason = "no pages were found that evict each other from it, however many were tried";
        let second = level(2, Finding::not_determined(reason), Finding::not_asked());
        let report = Report {
            seed: 7,
            cycles_per_tick: 1.25,
            levels: vec![first, second],
            measurements: 9,
            halted: Some("no time left".into()),
        };
        let expected = "\
1.250 core cycles a tick; seed 7; 9 measurements
L1 DTLB, 4K loads: 12 entries: 4 sets of 3 ways, index masks 0x1 0x6
  a miss adds 7.0 to 8.0 cycles (seen in 2 passes, not confirmed)
  replacement: Lru
L2 TLB, 4K loads: not determined: no pages were found that evict each
    other from it, however many were tried
ended early: no time left
";
        assert_eq!(render(&report, &Style { width: 74, ..Style::default() }), expected);
    }
}
