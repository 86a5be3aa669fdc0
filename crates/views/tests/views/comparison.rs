//! What text and page say of hand-made comparisons.

use lookaside_report::{html, terminal, Style};
use lookaside_runtime::compare::{Comparison, EarlyEnd, HelperTotals, PageUse, VariantOutcome, VariantRun};
use lookaside_stats::{median, ratio};
use lookaside_views::{comparison, json};
use proptest::prelude::*;

use crate::common::words;

fn outcome(name: &str, values: &[f64], base: &[f64], is_time: bool) -> VariantOutcome {
    let run = |(i, &value): (usize, &f64)| VariantRun {
        round: i as u32 + 1,
        position: 1,
        value,
        wall_seconds: value,
        user_seconds: value / 2.0,
        sys_seconds: 0.0,
        max_resident_bytes: 1 << 30,
        energy_joules: Some(50.0 * value),
        helped: name.starts_with("bake").then_some(HelperTotals {
            rounds: 9,
            touches: 99,
            cpu_nanos: 5 << 27,
            most_bytes: 1 << 30,
        }),
        hugepages: None,
        planned: None,
        code: None,
    };
    let (above, below) = if is_time { (base, values) } else { (values, base) };
    VariantOutcome {
        name: name.into(),
        what: "a variant <of> a program".into(),
        runs: values.iter().enumerate().map(run).collect(),
        unfinished: None,
        median: median(values),
        least: values.iter().copied().reduce(f64::min),
        most: values.iter().copied().reduce(f64::max),
        ratio: ratio(above, below, 1, 1000),
        energy_joules: median(values).map(|m| 50.0 * m),
        energy_ratio: ratio(base, values, 1, 1000),
        pages: Some(PageUse { resident_bytes: 1 << 30, huge_bytes: 1 << 29 }),
    }
}

fn comparison_of(metric: &str, variants: &[(&str, Vec<f64>)]) -> Comparison {
    let is_time = metric.ends_with(" time");
    let base = &variants[0].1;
    Comparison {
        version: "0.1.0".into(),
        command: vec!["./gups".into(), "<8G>".into()],
        metric: metric.into(),
        is_time,
        pressure: "stream:2".into(),
        seed: 1,
        rounds_wanted: base.len() as u32,
        rounds: base.len() as u32,
        warmups: 1,
        cpus: 2,
        variants: variants.iter().map(|(name, values)| outcome(name, values, base, is_time)).collect(),
        no_energy: None,
        notes: vec!["2 stressors & the program share 2 CPUs".into()],
        early: None,
    }
}

fn three(rounds: usize) -> Vec<(&'static str, Vec<f64>)> {
    let runs = |middle: f64| (0..rounds).map(|i| middle * (1.0 + 0.001 * (i as f64 - rounds as f64 / 2.0))).collect();
    vec![("base", runs(2.0)), ("thp", runs(1.0)), ("bake:scan", runs(2.0)), ("asis", runs(2.5))]
}

#[test]
fn the_verdict_says_what_is_significant_and_what_is_not() {
    let said = comparison::verdict(&comparison_of("wall time", &three(7)));
    for part in [
        "thp is 2.000× as fast as base (95 % interval 2.000 – 2.000), significant",
        "bake:scan makes no significant difference (95 % interval 1.000 – 1.000)",
        "asis is 0.800× as fast as base",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
    let few = comparison::verdict(&comparison_of("wall time", &three(4)));
    assert!(few.contains("nothing is significant with fewer than 5 rounds") && !few.contains("interval"), "{few}");
    let user = comparison::verdict(&comparison_of("user time", &three(5)));
    assert!(user.contains("thp's user time is base's ÷ 2.000"), "{user}");
    // Of a number of the program it is not known which side is good.
    let number = comparison::verdict(&comparison_of("rate: (.*)", &three(5)));
    assert!(number.contains("thp gives 0.500× base's number"), "{number}");
}

#[test]
fn a_control_that_differs_is_a_warning_and_no_praise() {
    let runs = |seconds: f64| (0..9).map(|i| seconds + f64::from(i) / 1000.0).collect::<Vec<_>>();
    let said = comparison::verdict(&comparison_of("wall time", &[("base", runs(2.0)), ("nothp", runs(1.8))]));
    assert!(said.starts_with("the control nothp differs from base, too (1.1"), "{said}");
    assert!(said.contains("distrust differences that small") && !said.contains("as fast"), "{said}");
    let same = comparison::verdict(&comparison_of("wall time", &[("base", runs(2.0)), ("nothp", runs(2.0))]));
    assert!(same.contains("nothp makes no significant difference"), "{same}");
}

#[test]
fn the_table_has_units_and_denominators() {
    let text = terminal::render(
        &comparison::view(&comparison_of("wall time", &three(5))),
        &Style { width: 240, ..Style::default() },
    );
    for part in ["base ÷ variant", "helper, CPUs", "energy", "100.0 J", "50.0 %", "pressure stream:2", "· 2 stressors"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn the_page_says_the_same() {
    let mut found = comparison_of("wall time", &three(5));
    found.early = Some(EarlyEnd::Interrupted);
    let page = words(&html::render(&comparison::view(&found)));
    for part in
        [&comparison::verdict(&found) as &str, "Cut short: interrupted", "./gups <8G>", "a variant <of> a program"]
    {
        assert!(page.contains(part), "{part:?} is not in {page}");
    }
}

#[test]
fn nothing_at_all_can_be_shown() {
    let mut found = comparison_of("wall time", &[("base", vec![])]);
    found.variants[0].pages = None;
    assert!(terminal::render(&comparison::view(&found), &Style::default()).contains("nothing to compare"));
    words(&html::render(&comparison::view(&found)));
    assert!(json::render(&found).contains("lookaside-comparison/1"));
}

proptest! {
    #[test]
    fn any_numbers_and_names_can_be_shown(
        name in "\\PC{1,40}",
        values in proptest::collection::vec((any::<f64>(), any::<f64>()), 0..8),
        width in 0usize..200,
        time in any::<bool>(),
    ) {
        let (base, other): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
        let metric = if time { "wall time" } else { "x" };
        let found = comparison_of(metric, &[("base", base), (&name, other)]);
        let text = terminal::render(&comparison::view(&found), &Style { width, ..Style::default() });
        prop_assert!(text.contains("Verdict"));
        words(&html::render(&comparison::view(&found)));
    }
}
