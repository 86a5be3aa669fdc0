//! Values of the probe in words, or why there are none.

use lookaside_probe::{Finding, Geometry, MeasuredRange};
use lookaside_report::{Cell, Fact, Paint, RichText};

/// Why there is no value, where one was asked for.
pub(super) fn reason<T>(what: &str, finding: &Finding<T>) -> Option<String> {
    finding.reason().filter(|_| !finding.is_unasked()).map(|reason| format!("{what}: {reason}"))
}

/// A value in a table; the reason why there is none stands elsewhere.
pub(super) fn cell<T>(finding: &Finding<T>, words: impl Fn(&T) -> String) -> Cell {
    match finding.value() {
        Some(value) => words(value).into(),
        None if finding.is_unasked() => Cell::none(),
        None => Cell::painted(Paint::Warn, "not determined"),
    }
}

/// A value in words, or why there is none.
pub(super) fn said<T>(finding: &Finding<T>, words: impl Fn(&T) -> String) -> RichText {
    match finding {
        Finding::Confirmed { value, .. } => words(value).into(),
        Finding::NotDetermined { reason, .. } => {
            RichText::painted(Paint::Warn, "not determined").plain(format!(": {reason}"))
        }
    }
}

pub(super) fn fact(label: impl Into<String>, words: RichText) -> Fact {
    Fact { label: label.into(), words }
}

pub(super) fn tlb(level: u32) -> &'static str {
    if level == 1 {
        "L1 DTLB"
    } else {
        "L2 TLB"
    }
}

pub(super) fn cycles(range: &MeasuredRange) -> String {
    format!("{:.1} to {:.1} cycles", range.low, range.high)
}

pub(super) fn geometry(found: &Geometry) -> String {
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

/// Two texts with words between them.
pub(super) fn followed(first: RichText, between: &str, second: RichText) -> RichText {
    second.pieces().iter().fold(first.plain(between), |text, (paint, words)| text.paint(*paint, words))
}
