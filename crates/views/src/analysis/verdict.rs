//! The first line: what huge pages gain, what to do, and what would prove it.

use lookaside_report::{num, Document, Paint, RichText};
use lookaside_techniques::huge_gain::{MeasuredGain, TimeRatio};
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
    let measured = gain.measured.as_ref().and_then(JudgedTime::of);
    let foretold = foretold(verdict);
    let mut line = match (&measured, verdict) {
        (Some(measured), _) => measured.line().plain(format!("; predicted: {foretold}.")),
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
    let helps = measured.as_ref().map_or_else(|| is_faster(verdict), JudgedTime::is_gain);
    if let (true, Some(how)) = (helps, how(analysis)) {
        line = line.plain(format!(" Do: {how}."));
    }
    if let (None, Some(seconds)) = (&measured, measuring_seconds(analysis)) {
        line = line.plain(format!(" --measure checks it in {} more.", about(seconds)));
    }
    document.answer(line);
}

/// What was measured: the time that is judged, and what is left of it from start to end.
struct JudgedTime {
    judged: TimeRatio,
    /// Of what the judged time is.
    of: &'static str,
    /// Where the judged one is another.
    whole: Option<TimeRatio>,
}

impl JudgedTime {
    /// User time is judged, as it is what the prediction is of; without it, the time from start to end.
    fn of(times: &MeasuredGain) -> Option<Self> {
        match (times.user, times.wall) {
            (Some(judged), whole) => Some(Self { judged, of: "in user mode", whole }),
            (None, Some(judged)) => Some(Self { judged, of: "from start to end", whole: None }),
            (None, None) => None,
        }
    }

    /// Without a full stop.
    fn line(&self) -> RichText {
        let Self { judged, of, whole } = self;
        let gained = |time: &TimeRatio| match time.significant {
            true => format!("{} ({})", change(time.ratio), interval(time.low, time.high)),
            false => format!("no significant difference ({})", interval(time.low, time.high)),
        };
        let rest = whole.as_ref().map_or_else(String::new, |whole| format!("; from start to end {}", gained(whole)));
        let line = RichText::painted(measured_paint(judged), format!("Huge pages: {} {of}", change(judged.ratio)));
        line.plain(format!(" ({}){rest}, measured", interval(judged.low, judged.high)))
    }

    /// A gain that is not lost again from start to end.
    fn is_gain(&self) -> bool {
        self.judged.significant && self.judged.ratio > 1.0 && self.whole.is_none_or(|whole| whole.ratio > 1.0)
    }
}

/// Seconds as a person says them: `27 s`, `3 min`.
fn about(seconds: f64) -> String {
    match seconds {
        ..10.0 => num::seconds(seconds),
        ..120.0 => format!("about {seconds:.0} s"),
        _ => format!("about {:.0} min", seconds / 60.0),
    }
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
            "; page faults take {} less, or {} more if the host must first supply the memory",
            amount(saved.best),
            amount(saved.least)
        ),
        (_, true) => format!("; page faults take {} to {} more", amount(saved.best), amount(saved.least)),
        (true, _) => format!("; page faults take {} less", amount(saved.best)),
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

/// Words as a sentence begins.
pub fn sentence(why: &str) -> String {
    let mut letters = why.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(ratio: f64, low: f64, high: f64, significant: bool) -> Option<TimeRatio> {
        Some(TimeRatio { base_seconds: ratio, huge_seconds: 1.0, ratio, low, high, significant })
    }

    fn measured(user: Option<TimeRatio>, wall: Option<TimeRatio>) -> (String, bool) {
        let times = MeasuredGain { rounds: 10, cpu: None, user, wall, huge_share: None };
        let measured = JudgedTime::of(&times).expect("a time");
        (measured.line().pieces().iter().map(|(_, part)| part.as_str()).collect(), measured.is_gain())
    }

    #[test]
    fn a_gain_that_is_lost_from_start_to_end_is_no_advice() {
        let user = time(1.386, 1.31, 1.52, true);
        let lost = "Huge pages: 39 % faster in user mode (31 to 52 %); from start to end no significant difference \
                    (−16 to 44 %), measured";
        assert_eq!(measured(user, time(0.95, 0.845, 1.436, false)), (lost.into(), false));
        let kept = "Huge pages: 39 % faster in user mode (31 to 52 %); from start to end 20 % faster (11 to 30 %), \
                    measured";
        assert_eq!(measured(user, time(1.2, 1.11, 1.3, true)), (kept.into(), true));
        let alone = "Huge pages: 39 % faster in user mode (31 to 52 %), measured";
        assert_eq!(measured(user, None), (alone.into(), true));
        let whole = "Huge pages: 10 % slower from start to end (−12 to −8 %), measured";
        assert_eq!(measured(None, time(0.9, 0.88, 0.92, true)), (whole.into(), false));
    }

    #[test]
    fn times_are_as_long_as_people_say() {
        assert_eq!([4.5, 27.04, 150.0].map(about), ["4.50\u{a0}s", "about 27 s", "about 2 min"]);
    }

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
