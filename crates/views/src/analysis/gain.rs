//! Whether huge pages will help: what is predicted, and what was measured.

use lookaside_report::{num, Fact, Paint, RichText, Section};
use lookaside_stats::LEAST_ROUNDS;
use lookaside_techniques::huge_gain::{
    Denominator, GainPosition, HugeGain, MeasuredGain, PredictedGain, PredictionBasis, TimeRatio, WALKS_AT_ONCE,
};
use lookaside_techniques::{Analysis, HugePageVerdict, RemedyKind};
use lookaside_timing::{FaultBill, NativeClock, SavedSeconds};

use super::mosaic;
use super::seeing::is_sampled;
use super::totals::{near, times};

/// How the model's range is to be read.
const MODEL_LEAD: &str =
    "Modelled time is not the program's run time. At the low end as many walks overlap each other as any core \
                    has walkers, and hits of later TLB levels are hidden; page faults, zeroing and memory bloat are in \
                    neither end. Both take walks at the model's cost.";
/// How the replay's is.
const REPLAY_LEAD: &str =
    "User time, by the program's own clock and by its accesses replayed on this machine with small and with huge \
     pages. Page faults are a bill of their own, beside the verdict.";

/// The section; nothing where nothing was predicted and nothing measured.
pub fn section(analysis: &Analysis) -> Section {
    let gain = &analysis.huge_gain;
    if gain.predicted.is_none() && gain.measured.is_none() {
        return Section::default();
    }
    let mut words = predicted(analysis);
    let by_model = gain.predicted.is_none_or(|predicted| predicted.basis == PredictionBasis::Model);
    if gain.measured.is_none() && gain.predicted.is_some() && by_model {
        words += "; --measure runs it with and without them";
    }
    let mut facts = vec![fact("predicted", RichText::from(words))];
    if let Some(saved) = gain.faults.and_then(|bill| bill.saved.map(|saved| faults(&bill, &saved))) {
        facts.push(fact("page faults", RichText::from(saved)));
    }
    if let Some(measured) = &gain.measured {
        facts.extend(measurement(gain, measured).map(|words| fact("measured", words)));
    }
    if let Some(mosaic) = &gain.mosaic {
        facts.push(fact("mosaic", mosaic::answer(mosaic)));
    }
    let lead = if by_model { MODEL_LEAD } else { REPLAY_LEAD };
    Section::unheaded("Will huge pages help?").lead(lead).with(facts)
}

/// What the native run took.
pub fn native(native: &NativeClock, analysis: &Analysis) -> String {
    let [user, system] = [native.user_seconds, native.system_seconds].map(num::seconds);
    let faults = num::short((native.minor_faults + native.major_faults) as f64);
    let visits = analysis.replay.as_ref().map_or_else(String::new, |replay| {
        let chained = analysis.waiting_share.map(|share| format!(", {} chained", num::percent(share)));
        format!("; replayed {} visits{}", num::short(replay.timed_visits as f64), chained.unwrap_or_default())
    });
    format!("{user} user, {system} system, {faults} page faults{visits}")
}

/// The bill.
fn faults(bill: &FaultBill, saved: &SavedSeconds) -> String {
    let [pages, huge] = [bill.small_pages, bill.huge_pages].map(num::grouped);
    let verb = if saved.best < 0.0 { "costs" } else { "saves" };
    let [least, best, most] = [saved.least, saved.best.abs(), saved.most].map(seconds);
    format!("{pages} small pages → {huge} huge: {verb} {best} ({least} to {most})")
}

/// With its sign.
fn seconds(seconds: f64) -> String {
    format!("{}{}", if seconds < 0.0 { "−" } else { "" }, num::seconds(seconds.abs()))
}

fn fact(label: &str, words: RichText) -> Fact {
    let words =
        words.pieces().iter().fold(RichText::from(format!("{label} ")), |all, (paint, part)| all.paint(*paint, part));
    Fact { label: "huge pages".into(), words }
}

fn predicted(analysis: &Analysis) -> String {
    let Some(predicted) = &analysis.huge_gain.predicted else {
        return match is_sampled(analysis) {
            true => "nothing, samples can't tell (--exact can)".into(),
            false => "nothing, the model has no row for them".into(),
        };
    };
    let huge = analysis.remedies.iter().find(|remedy| remedy.kind == RemedyKind::HugeEverywhere);
    let near = huge.map_or("", near);
    let range = match (predicted.least_ratio, predicted.most_ratio) {
        (Some(least), Some(most)) if predicted.basis == PredictionBasis::Replay => {
            let best = predicted.ratio.map_or_else(String::new, |best| format!("{} times as fast, ", times(best)));
            format!("{best}{} to {}", times(least), times(most))
        }
        (Some(least), Some(most)) => format!("{near}{} to {} times as fast", times(least), times(most)),
        (Some(least), None) => format!("{near}{} times as fast or more, without an upper end", times(least)),
        (None, _) => "no ratio: the model saves more than the run took".into(),
    };
    let of = num::seconds(predicted.of_seconds);
    let of = match predicted.of {
        Denominator::UserTime => format!("{of} user"),
        Denominator::CpuTimeOfIntervals => format!("the run's {of} of CPU time"),
        Denominator::ModelledTime => format!("the modelled {of}"),
    };
    let [least, most] = [predicted.least_saved_seconds, predicted.most_saved_seconds].map(seconds);
    let how = match predicted.basis {
        PredictionBasis::Replay => String::new(),
        PredictionBasis::Model => format!(" (least: {WALKS_AT_ONCE:.0} walks at a time; most: no overlap)"),
    };
    format!("{range}: saves {least} to {most} of {of}{how}")
}

/// User time, CPU time, and time from start to end.
fn measurement(gain: &HugeGain, measured: &MeasuredGain) -> impl Iterator<Item = RichText> {
    let rounds = format!("{} round{}", measured.rounds, if measured.rounds == 1 { "" } else { "s" });
    let user = measured.user.map_or_else(
        || RichText::painted(Paint::Warn, format!("too little user time to count in {rounds}")),
        |user| {
            // A prediction that can't tell can't be confirmed.
            let told = !matches!(gain.verdict, Some(HugePageVerdict::Unknown { .. }));
            let place = gain.place.zip(gain.predicted).filter(|_| told);
            let place = place.map(|(place, predicted)| format!(": {}", where_it_lies(place, &predicted, &user)));
            let ratio = ratio(&user, measured.rounds);
            RichText::painted(paint(&user), format!("{ratio} of user time in {rounds}{}", place.unwrap_or_default()))
        },
    );
    let share = measured.huge_share.map(|share| format!("; {} in huge pages", num::percent(share)));
    let cpu = measured.cpu.map(|cpu| {
        let words = format!("{} of CPU time, the kernel's too", ratio(&cpu, measured.rounds));
        RichText::painted(paint(&cpu), words)
    });
    let wall = measured.wall.map(|wall| {
        let words = format!("start to end {}{}", ratio(&wall, measured.rounds), share.unwrap_or_default());
        RichText::painted(paint(&wall), words)
    });
    std::iter::once(user).chain(cpu).chain(wall)
}

/// A measured ratio with its interval, and whether it is one.
fn ratio(time: &TimeRatio, rounds: u32) -> String {
    let verdict = match time.significant {
        true => "significant".to_string(),
        false if (rounds as usize) < LEAST_ROUNDS => format!("not significant below {LEAST_ROUNDS} rounds"),
        false => "not significant".to_string(),
    };
    let [ratio, low, high] = [time.ratio, time.low, time.high].map(times);
    let [base, huge] = [time.base_seconds, time.huge_seconds].map(num::seconds);
    format!("{ratio} times (95 % interval {low} – {high}, {verdict}), {base} → {huge}")
}

/// Where a ratio lies to the range, and whether its interval reaches into it.
fn where_it_lies(place: GainPosition, predicted: &PredictedGain, user: &TimeRatio) -> String {
    let (words, nearest) = match place {
        GainPosition::Within => return "within the predicted range".into(),
        GainPosition::Below => ("below the predicted range", user.high),
        GainPosition::Above => ("above the predicted range", user.low),
    };
    match predicted.place(nearest) == place {
        true => words.into(),
        false => format!("{words}, but the intervals overlap"),
    }
}

fn paint(time: &TimeRatio) -> Paint {
    match time.significant {
        false => Paint::Plain,
        true if time.ratio > 1.0 => Paint::Good,
        true => Paint::Bad,
    }
}
