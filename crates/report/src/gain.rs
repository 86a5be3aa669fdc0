//! "Will huge pages help?": what is predicted and what was measured, in words that the text and the page share.

use lookaside_runtime::compare::statistics::LEAST_ROUNDS;
use lookaside_techniques::huge_gain::{Denominator, HugeGain, Measured, Place, Predicted, TimeRatio, WALKS_AT_ONCE};
use lookaside_techniques::{Analysis, RemedyKind};

use crate::line::Paint;
use crate::{facts, num};

/// A fact: what it is (empty = more of the one before), how it looks, and the fact.
pub struct Said {
    /// `predicted`, `measured`, or empty.
    pub label: &'static str,
    /// How it looks.
    pub paint: Paint,
    /// In words.
    pub words: String,
}

/// All that is known; empty where nothing was predicted and nothing measured.
pub fn said(analysis: &Analysis) -> Vec<Said> {
    let gain = &analysis.huge_gain;
    if gain.predicted.is_none() && gain.measured.is_none() {
        return Vec::new();
    }
    let mut said = vec![Said { label: "predicted", paint: Paint::Plain, words: predicted(analysis) }];
    if gain.predicted.is_some() {
        said.push(Said { label: "", paint: Paint::Dim, words: assumptions() });
    }
    match &gain.measured {
        Some(found) => said.extend(measured(gain, found)),
        None => said.push(Said {
            label: "measured",
            paint: Paint::Dim,
            words: "not yet: with --measure the program runs with and without them, in turns".into(),
        }),
    }
    said
}

fn predicted(analysis: &Analysis) -> String {
    let Some(predicted) = &analysis.huge_gain.predicted else {
        return match facts::is_sampled(analysis) {
            true => "nothing: samples can't tell, --exact can".into(),
            false => "nothing: the model has no row for them".into(),
        };
    };
    let huge = analysis.remedies.iter().find(|remedy| remedy.kind == RemedyKind::HugeEverywhere);
    let near = huge.map_or("", facts::near);
    let range = match (predicted.least_ratio, predicted.most_ratio) {
        (Some(least), Some(most)) => format!("{near}{} to {} times as fast", times(least), times(most)),
        (Some(least), None) => {
            format!("{near}{} times as fast or more (with nothing hidden more is saved than there is)", times(least))
        }
        (None, _) => "no ratio (more is saved than there is: model and run do not fit)".into(),
    };
    format!("{range}: {}", saving(predicted))
}

/// Seconds of seconds, and whose they are.
fn saving(predicted: &Predicted) -> String {
    let of = num::seconds(predicted.of_seconds);
    let of = match predicted.of {
        Denominator::UserTime => format!("{of} of user time, as measured with small pages"),
        Denominator::ModelledTime => format!("{of} as modelled, which is not the program's run time,"),
    };
    let signed = |s: f64| format!("{}{}", if s < 0.0 { "−" } else { "" }, num::seconds(s.abs()));
    let [least, most] = [predicted.least_saved_seconds, predicted.most_saved_seconds].map(signed);
    format!("saves {least} to {most} of {of}")
}

/// What both ends of a prediction take for granted.
pub fn assumptions() -> String {
    format!(
        "least: {WALKS_AT_ONCE:.0} walks at a time, hits of later TLB levels hidden; most: nothing overlaps; \
         page faults, zeroing and memory bloat are in neither"
    )
}

fn measured(gain: &HugeGain, found: &Measured) -> Vec<Said> {
    let mut said = Vec::new();
    let rounds = format!("{} round{}", found.rounds, if found.rounds == 1 { "" } else { "s" });
    match &found.user {
        Some(user) => {
            let place = gain.place.zip(gain.predicted.as_ref());
            let place = place
                .map_or(String::new(), |(place, predicted)| format!("; {}", where_it_lies(place, predicted, user)));
            let words = format!("{} in user time, {rounds}{place}", ratio(user, found.rounds));
            said.push(Said { label: "measured", paint: paint(user), words });
        }
        None => said.push(Said {
            label: "measured",
            paint: Paint::Warn,
            words: format!("no user time that could be counted in every run, {rounds}"),
        }),
    }
    if let Some(wall) = &found.wall {
        let words = format!("{} from start to end, page faults and waiting included", ratio(wall, found.rounds));
        said.push(Said { label: "", paint: paint(wall), words });
    }
    if let Some(share) = found.huge_share {
        let words = format!("{} of the resident memory was in huge pages", num::percent(share));
        said.push(Said { label: "", paint: Paint::Plain, words });
    }
    said
}

/// A measured ratio with its interval, and whether it is one.
fn ratio(time: &TimeRatio, rounds: u32) -> String {
    let verdict = match time.significant {
        true => "significant".to_string(),
        false if (rounds as usize) < LEAST_ROUNDS => format!("not significant with fewer than {LEAST_ROUNDS} rounds"),
        false => "not significant".to_string(),
    };
    let [ratio, low, high] = [time.ratio, time.low, time.high].map(times);
    let [base, huge] = [time.base_seconds, time.huge_seconds].map(num::seconds);
    format!("{ratio} times as fast (95 % interval {low} – {high}, {verdict}; {base} → {huge})")
}

/// Where a ratio lies to the range, and whether its interval reaches into it.
fn where_it_lies(place: Place, predicted: &Predicted, user: &TimeRatio) -> String {
    let (words, nearest) = match place {
        Place::Within => return "within the predicted range".into(),
        Place::Below => ("below the predicted range", user.high),
        Place::Above => ("above the predicted range", user.low),
    };
    match predicted.place(nearest) == place {
        true => words.into(),
        false => format!("{words}, into which its interval reaches"),
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
