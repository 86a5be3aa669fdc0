//! The first line: what huge pages gain, what to do, and what would prove it.

use lookaside_report::{num, Document, Paint, RichText};
use lookaside_techniques::huge_gain::TimeRatio;
use lookaside_techniques::{Analysis, HugePageVerdict, RemedyKind};

/// Rounds of `--measure` without a number, and one that doesn't count.
const ROUNDS: f64 = 11.0;
/// A program that is measured within this many seconds is better measured than foretold.
const SOON: f64 = 120.0;

/// Page faults are told from this part of the CPU time on.
const TOLD: f64 = 0.01;

/// Puts the verdict first; nothing where there is none.
pub fn answer(analysis: &Analysis, document: &mut Document) {
    let gain = &analysis.huge_gain;
    let Some(verdict) = &gain.verdict else { return };
    let measured = gain.measured.and_then(|measured| measured.user.or(measured.wall));
    let foretold = foretold(verdict);
    let mut line = match (&measured, verdict) {
        (Some(time), _) => {
            RichText::painted(measured_paint(time), format!("Huge pages: {}, measured", change(time.ratio)))
                .plain(format!(" ({}); predicted: {foretold}.", interval(time.low, time.high)))
        }
        (None, HugePageVerdict::Unknown { why }) => {
            RichText::painted(Paint::Warn, "Huge pages: can't tell.").plain(format!(" {}.", sentence(why)))
        }
        (None, HugePageVerdict::Nothing { .. }) => RichText::painted(Paint::Good, format!("Huge pages: {foretold}.")),
        (None, HugePageVerdict::Changes { ratio, .. }) => {
            let paint = if *ratio > 1.0 { Paint::Bad } else { Paint::Good };
            let parts = format!("{}{}.", memory(analysis), page_faults(analysis));
            RichText::painted(paint, format!("Huge pages: {foretold}")).plain(parts)
        }
    };
    let helps = measured.map_or_else(|| is_faster(verdict), |time| time.significant && time.ratio > 1.0);
    if let (true, Some(how)) = (helps, how(analysis)) {
        line = line.plain(format!(" Do: {how}."));
    }
    if let (None, Some(seconds)) = (measured, measuring_seconds(analysis)) {
        line = line.plain(format!(" --measure proves it in about {}.", num::seconds(seconds)));
    }
    document.answer(line);
}

/// The prediction in words, without a full stop.
fn foretold(verdict: &HugePageVerdict) -> String {
    match verdict {
        HugePageVerdict::Changes { ratio, least, most } => format!("{} ({})", change(*ratio), interval(*least, *most)),
        HugePageVerdict::Nothing { most } => format!("nothing to gain, at most {}", percent(*most)),
        HugePageVerdict::Unknown { .. } => "can't tell".into(),
    }
}

fn is_faster(verdict: &HugePageVerdict) -> bool {
    matches!(verdict, HugePageVerdict::Changes { ratio, .. } if *ratio > 1.0)
}

/// `21 % faster`, `3 % slower`.
fn change(ratio: f64) -> String {
    match ratio < 1.0 {
        true => format!("{} slower", percent(2.0 - ratio)),
        false => format!("{} faster", percent(ratio)),
    }
}

/// `17 to 26 %`; less than nothing has a minus.
fn interval(least: f64, most: f64) -> String {
    format!("{} to {}", whole(least), percent(most))
}

fn percent(ratio: f64) -> String {
    format!("{} %", whole(ratio))
}

/// Above and below 1, in percent: whole numbers, and one place below ten.
fn whole(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let text = if percent.abs() < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") };
    match text.strip_suffix(".0").unwrap_or(&text) {
        "-0" => "0".into(),
        text => text.replace('-', "−"),
    }
}

fn measured_paint(time: &TimeRatio) -> Paint {
    match time.significant {
        false => Paint::Plain,
        true if time.ratio > 1.0 => Paint::Good,
        true => Paint::Bad,
    }
}

/// What it adds to the resident memory.
fn memory(analysis: &Analysis) -> String {
    let bloat = analysis.huge_gain.faults.map_or(0, |bill| bill.bloat_bytes);
    match bloat >> 20 {
        0 => String::new(),
        mib => format!(", +{mib} MiB"),
    }
}

/// The bill of page faults, from a hundredth of the CPU time on.
fn page_faults(analysis: &Analysis) -> String {
    let cpu = analysis.native.as_ref().map_or(0.0, |clock| clock.cpu_seconds());
    let Some(saved) = analysis.huge_gain.faults.and_then(|bill| bill.saved) else { return String::new() };
    let counts = |seconds: f64| seconds >= TOLD * cpu;
    let amount = |seconds: f64| num::seconds(seconds.abs());
    match (counts(saved.best.abs()), counts(-saved.least)) {
        (_, true) if saved.best > 0.0 => format!(
            "; page faults {} less, or {} more if the host must find the memory",
            amount(saved.best),
            amount(saved.least)
        ),
        (_, true) => format!("; page faults {} to {} more", amount(saved.best), amount(saved.least)),
        (true, _) => format!("; page faults {} less", amount(saved.best)),
        _ => String::new(),
    }
}

/// The first way that the row for huge pages everywhere names.
fn how(analysis: &Analysis) -> Option<&str> {
    let row = analysis.remedies.iter().find(|remedy| remedy.kind == RemedyKind::HugeEverywhere)?;
    let how = row.how.split("; or ").next().unwrap_or(&row.how);
    (!how.is_empty()).then_some(how)
}

/// How long measuring would take, where it is worth it: soon, or nothing else can tell.
fn measuring_seconds(analysis: &Analysis) -> Option<f64> {
    let seconds = analysis.native.as_ref()?.wall_seconds * 2.0 * ROUNDS;
    let worth = match analysis.huge_gain.verdict.as_ref()? {
        HugePageVerdict::Nothing { .. } => false,
        HugePageVerdict::Changes { .. } => seconds < SOON,
        HugePageVerdict::Unknown { .. } => true,
    };
    worth.then_some(seconds)
}

/// A reason as a sentence.
fn sentence(why: &str) -> String {
    let mut letters = why.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_read_as_people_say_them() {
        assert_eq!(change(1.214), "21 % faster");
        assert_eq!(change(1.034), "3.4 % faster");
        assert_eq!(change(0.97), "3 % slower");
        assert_eq!(interval(0.995, 1.26), "−0.5 to 26 %");
        assert_eq!(interval(0.9999, 1.0004), "0 to 0 %");
        assert_eq!(sentence("a trace has no time"), "A trace has no time");
    }
}
