//! "Will huge pages help?": what is predicted and what was measured, in words that the text and the page share.

use lookaside_stats::LEAST_ROUNDS;
use lookaside_techniques::huge_gain::{
    Denominator, GainPosition, HugeGain, MeasuredGain, PredictedGain, TimeRatio, WALKS_AT_ONCE,
};
use lookaside_techniques::{Analysis, RemedyKind};

use crate::analysis_facts as facts;
use lookaside_report::num;
use lookaside_report::Paint;

/// A sentence, and how it looks.
pub struct Said {
    /// How it looks.
    pub paint: Paint,
    /// In words.
    pub words: String,
}

/// All that is known; empty where nothing was predicted and nothing measured.
pub fn said(analysis: &Analysis) -> Vec<Said> {
    let gain = &analysis.huge_gain;
    let mut said = Vec::new();
    if gain.predicted.is_none() && gain.measured.is_none() {
        return said;
    }
    let mut words = predicted(analysis);
    if gain.measured.is_none() {
        words += "; --measure runs it with and without them";
    }
    said.push(Said { paint: Paint::Plain, words });
    if let Some(found) = &gain.measured {
        said.extend(measured(gain, found));
    }
    said
}

fn predicted(analysis: &Analysis) -> String {
    let Some(predicted) = &analysis.huge_gain.predicted else {
        return match facts::is_sampled(analysis) {
            true => "predicted: nothing, samples can't tell (--exact can)".into(),
            false => "predicted: nothing, the model has no row for them".into(),
        };
    };
    let huge = analysis.remedies.iter().find(|remedy| remedy.kind == RemedyKind::HugeEverywhere);
    let near = huge.map_or("", facts::near);
    let range = match (predicted.least_ratio, predicted.most_ratio) {
        (Some(least), Some(most)) => format!("{near}{} to {} times as fast", times(least), times(most)),
        (Some(least), None) => format!("{near}{} times as fast or more, without an upper end", times(least)),
        (None, _) => "no ratio, more is saved than there is".into(),
    };
    let of = num::seconds(predicted.of_seconds);
    let of = match predicted.of {
        Denominator::UserTime => format!("{of} user time"),
        Denominator::ModelledTime => format!("the modelled {of}"),
    };
    let signed = |s: f64| format!("{}{}", if s < 0.0 { "−" } else { "" }, num::seconds(s.abs()));
    let [least, most] = [predicted.least_saved_seconds, predicted.most_saved_seconds].map(signed);
    format!(
        "predicted {range}: saves {least} to {most} of {of} (least: {WALKS_AT_ONCE:.0} walks at a time; most: no overlap)"
    )
}

fn measured(gain: &HugeGain, found: &MeasuredGain) -> Vec<Said> {
    let rounds = format!("{} round{}", found.rounds, if found.rounds == 1 { "" } else { "s" });
    let user = found.user.map_or_else(
        || Said {
            paint: Paint::Warn,
            words: format!("measured: no user time that could be counted in each of {rounds}"),
        },
        |user| {
            let place = gain.place.zip(gain.predicted);
            let place = place.map(|(place, predicted)| format!(": {}", where_it_lies(place, &predicted, &user)));
            let ratio = ratio(&user, found.rounds);
            let words = format!("measured {ratio} of user time in {rounds}{}", place.unwrap_or_default());
            Said { paint: paint(&user), words }
        },
    );
    let share = found.huge_share.map(|share| format!("; {} in huge pages", num::percent(share)));
    let wall = found.wall.map(|wall| {
        let words = format!("start to end {}{}", ratio(&wall, found.rounds), share.unwrap_or_default());
        Said { paint: paint(&wall), words }
    });
    std::iter::once(user).chain(wall).collect()
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
        false => format!("{words}, its interval reaches in"),
    }
}

fn paint(time: &TimeRatio) -> Paint {
    match time.significant {
        false => Paint::Plain,
        true if time.ratio > 1.0 => Paint::Good,
        true => Paint::Bad,
    }
}

/// A ratio of times, as `compare` writes it.
fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio.abs() < 1000.0 => format!("{ratio:.3}"),
        large => num::short(large),
    }
}
