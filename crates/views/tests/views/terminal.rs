//! The terminal report to the letter, for hand-made analyses. `UPDATE_GOLDEN=1 cargo test` rewrites the
//! expected texts in `tests/golden`; look at what changed.

use std::path::Path;

use crate::common;
use lookaside_engine::Outcome;
use lookaside_report::{text, Style};
use lookaside_techniques::{Analysis, IntervalEstimate};

fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(text == expected, "{name} differs; got:\n{text}");
}

const WIDE: Style = Style { width: 100, color: false, unicode: true, plots: true, top: None };
const NARROW: Style = Style { width: 60, plots: false, ..WIDE };

#[test]
fn exact_wide() {
    check("exact-100.txt", &common::text_of(&common::exact(), &WIDE));
}

#[test]
fn exact_very_wide() {
    check("exact-160.txt", &common::text_of(&common::exact(), &Style { width: 160, ..WIDE }));
}

#[test]
fn exact_narrow_without_plots() {
    check("exact-60.txt", &common::text_of(&common::exact(), &NARROW));
}

#[test]
fn exact_ascii() {
    let text = common::text_of(&common::exact(), &Style { unicode: false, ..WIDE });
    assert!(text.is_ascii());
    check("exact-ascii.txt", &text);
}

#[test]
fn exact_top_ten_shows_every_row() {
    let text = common::text_of(&common::exact(), &Style { top: Some(10), ..WIDE });
    check("exact-top.txt", &text);
    for row in common::exact().objects.iter().chain(&common::exact().functions) {
        assert!(text.contains(&row.name[row.name.len() - 10..]), "{} is missing", row.name);
    }
}

#[test]
fn intervals_have_their_spread() {
    let text = common::text_of(&common::in_intervals(), &WIDE);
    check("intervals-100.txt", &text);
    // Sums of intervals are nobody's: there are none.
    assert!(!text.contains(" MHz"), "{text}");
    let too_few = IntervalEstimate { translation_share: None, walks_per_1000_accesses: None, ..intervals() };
    let analysis = Analysis { intervals: Some(too_few), ..common::in_intervals() };
    let text = common::text_of(&analysis, &WIDE);
    assert!(text.contains("too few intervals to say"), "{text}");
}

fn intervals() -> IntervalEstimate {
    common::in_intervals().intervals.unwrap()
}

#[test]
fn sampled_wide_and_narrow() {
    check("sampled-100.txt", &common::text_of(&common::sampled(), &WIDE));
    check("sampled-60.txt", &common::text_of(&common::sampled(), &NARROW));
}

/// The percentages of a line, in order; of an interval the upper end alone.
fn percentages(line: &str) -> Vec<f64> {
    let numbers = line.split('%').map(str::trim_end).filter_map(|part| part.rsplit([' ', '(', '\u{a0}']).next());
    numbers.filter_map(|number| number.replace('−', "-").parse().ok()).collect()
}

#[test]
fn what_a_row_saves_of_all_is_what_translation_costs_of_all_times_what_it_saves_of_it() {
    let analysis = common::exact();
    let text = common::text_of(&analysis, &Style { width: 200, top: Some(10), ..WIDE });
    let costs = text.lines().find(|line| line.starts_with("Translation costs")).expect("the answer");
    let costs = percentages(costs)[0] / 100.0;
    for remedy in &analysis.remedies {
        let row = text.lines().find(|line| line.starts_with(&remedy.what)).expect("a row");
        let found = percentages(row);
        let of_all = found[if remedy.windows == 0 { 1 } else { 2 }];
        // Each is rounded to a tenth.
        assert!((of_all - costs * found[0]).abs() < 0.16, "{costs}: {row}");
    }
}

#[test]
fn next_to_no_cost_is_said_plainly() {
    let text = common::text_of(&common::tiny(), &WIDE);
    assert!(text.contains("Translation costs 0.3 % of the modelled cycles: nothing to gain here."), "{text}");
    check("tiny-100.txt", &text);
}

#[test]
fn a_measured_gain_stands_below_the_predicted_one() {
    let text = |analysis: &lookaside_techniques::Analysis| common::text_of(analysis, &WIDE);
    check("timed-100.txt", &text(&common::timed(1.172, 10)));
    for (ratio, rounds, words, reaches) in [
        (1.2, 10, "significant), 11.2 s → 9.33 s of user time in 10 rounds: within the predicted range", false),
        (1.01, 10, "not significant), 11.2 s", false),
        (1.13, 10, "below the predicted range", true),
        (0.9, 10, "below the predicted range", false),
        (1.7, 10, "above the predicted range", false),
        (1.28, 10, "above the predicted range", true),
        (1.2, 1, "not significant below 5 rounds), 11.2 s → 9.33 s of user time in 1 round:", false),
    ] {
        let text = text(&common::timed(ratio, rounds));
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(words), "{words:?} is not in\n{text}");
        assert_eq!(joined.contains("range, but the intervals overlap"), reaches, "{text}");
        assert!(text.lines().count() <= 45, "{text}");
    }
    // Of a sampled program there is no prediction.
    let mut sampled = common::sampled();
    sampled.huge_gain = common::gain(&sampled, common::timed(1.172, 10).huge_gain.measured);
    let text = text(&sampled);
    assert!(
        text.contains("predicted nothing, samples can't tell") && text.contains("measured 1.172 times (95 % interval"),
        "{text}"
    );
}

#[test]
fn a_row_over_a_part_of_the_run_is_on_the_scale_of_all() {
    // A part in which translation costs a quarter of what it costs in all.
    let mut analysis = common::exact();
    let row = &mut analysis.remedies[0];
    (row.accesses_share, row.base_modelled_cycles) = (0.16, row.base_modelled_cycles * 4.0 * 0.16);
    for cycles in [&mut row.translation_cycles, &mut row.base_translation_cycles] {
        *cycles *= 0.16;
    }
    let text = common::text_of(&analysis, &WIDE);
    let line = text.lines().find(|line| line.starts_with("huge pages everywhere")).expect("the row");
    // 93.9 % of the 27.9 % that translation costs.
    assert!(line.contains("−93.9 %") && line.contains("−26.2 %"), "{line}");
}

#[test]
fn nothing_seen() {
    check("empty-100.txt", &common::text_of(&common::empty(), &WIDE));
}

#[test]
fn one_screen_from_100_columns_on() {
    let mut crowded = common::exact();
    for _ in 0..3 {
        crowded.objects.extend(crowded.objects.clone());
        crowded.functions.extend(crowded.functions.clone());
        crowded.regions.extend(crowded.regions.clone());
        crowded.remedies.extend(crowded.remedies.clone());
        crowded.notes.extend(crowded.notes.clone());
    }
    for width in (100..=160).step_by(12) {
        for plots in [false, true] {
            let lines = common::text_of(&crowded, &Style { width, plots, ..WIDE }).lines().count();
            assert!(lines <= 45, "{lines} lines at {width} columns");
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let plain = common::text_of(&common::exact(), &WIDE);
    let coloured = common::text_of(&common::exact(), &Style { color: true, ..WIDE });
    assert!(coloured.contains("\x1b[0;31mTranslation costs"));
    let mut stripped = String::new();
    for (i, part) in coloured.split("\x1b[").enumerate() {
        stripped.push_str(if i == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert_eq!(stripped, plain);
}

#[test]
fn an_estimate_says_so() {
    let text = common::text_of(&common::sampled(), &WIDE);
    assert!(text.contains("sampled  an estimate: 31,402 samples by the clock"));
    assert!(text.contains("ESTIMATE, LRU"));
    assert!(!text.contains("Translation costs"));
    assert!(!text.contains("walks left"));
}

#[test]
fn hostile_names_stay_in_their_line() {
    let mut analysis = common::exact();
    let evil = "a\x1b]0;owned\x07\n\r\u{202e}b\u{9b}2J";
    analysis.command = vec![evil.into()];
    analysis.objects[0].name = evil.into();
    analysis.functions[0].name = evil.into();
    analysis.regions[0].name = evil.into();
    analysis.remedies[0].what = evil.into();
    analysis.remedies[0].how = evil.into();
    analysis.notes[0] = evil.into();
    analysis.machine.name = evil.into();
    analysis.outcome.data.walk_references_by_server[0].0 = evil.into();
    let text = common::text_of(&analysis, &WIDE);
    assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
    assert_eq!(text.lines().count(), common::text_of(&common::exact(), &WIDE).lines().count());
}

#[test]
fn simulate_one_and_several_machines() {
    let one = common::exact().outcome;
    let other = Outcome { machine: "skylake".into(), ..common::tiny().outcome };
    check("simulate-one.txt", &common::simulated(std::slice::from_ref(&one), &WIDE));
    check("simulate-two.txt", &common::simulated(&[one, other], &WIDE));
    assert_eq!(common::simulated(&[], &WIDE), "");
}

#[test]
fn no_line_is_longer_than_the_width() {
    for analysis in [common::exact(), common::sampled(), common::tiny(), common::empty()] {
        for width in (60..=160).step_by(10) {
            for plots in [false, true] {
                let style = Style { width, plots, ..WIDE };
                let text = common::text_of(&analysis, &style)
                    + &common::simulated(std::slice::from_ref(&analysis.outcome), &style);
                for line in text.lines() {
                    assert!(text::width(line) <= width, "{} > {width}: {line}", text::width(line));
                }
            }
        }
    }
}
