//! Runs in turns, for a terminal: each variant's median, its ratio to base with the interval, and what is significant of it.

use lookaside_runtime::compare::{Comparison, VariantOutcome, VariantRun};
use lookaside_stats::{median, Ratio, LEAST_ROUNDS};

use lookaside_report::{num, text};
use lookaside_report::{Cell, Column, Table};
use lookaside_report::{Line, Paint, Style};

/// The comparison as text: what was run, a row a variant, what has to be known, the verdict.
pub fn render(comparison: &Comparison, style: &Style) -> String {
    let mut lines: Vec<Line> = Vec::new();
    let mut say = |paint: Paint, words: &str| {
        lines.extend(text::wrap(words, style.columns()).into_iter().map(|part| Line::of(paint, part)));
    };
    say(Paint::Dim, &text::clean(&circumstances(comparison)));
    let mut out = lookaside_report::render_lines(&lines, style);
    out.push('\n');
    out += &table(comparison).render(style);
    out.push('\n');
    let mut lines: Vec<Line> = Vec::new();
    let mut say = |paint: Paint, words: &str| {
        lines.extend(text::wrap(&text::clean(words), style.columns()).into_iter().map(|part| Line::of(paint, part)));
    };
    for run in unfinished(comparison) {
        say(Paint::Plain, &run);
    }
    for note in notes(comparison) {
        say(Paint::Warn, &note);
    }
    if let Some(early) = &comparison.early {
        say(Paint::Bad, &format!("CUT SHORT: {early}"));
    }
    say(Paint::Strong, &format!("Verdict: {}", verdict(comparison)));
    out + &lookaside_report::render_lines(&lines, style)
}

/// What was run and how, in a sentence.
pub(crate) fn circumstances(comparison: &Comparison) -> String {
    let plural = |n: u32, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let rounds = match comparison.rounds == comparison.rounds_wanted {
        true => plural(comparison.rounds, "round"),
        false => format!("{} of {}", comparison.rounds, plural(comparison.rounds_wanted, "round")),
    };
    format!(
        "measured: {} of {}; {rounds} after {}, each in a new order (seed {}), pressure {}, {}",
        comparison.metric,
        comparison.command.join(" "),
        plural(comparison.warmups, "warm-up round"),
        comparison.seed,
        comparison.pressure,
        plural(comparison.cpus, "CPU"),
    )
}

/// What has to be known to judge it.
pub(crate) fn notes(comparison: &Comparison) -> Vec<String> {
    let notes = comparison.notes.iter().map(|note| format!("note: {note}"));
    notes.chain(comparison.no_energy.clone()).collect()
}

/// Runs of the round that was not finished.
pub(crate) fn unfinished(comparison: &Comparison) -> Vec<String> {
    let runs = comparison.variants.iter().filter_map(|variant| Some((&variant.name, variant.unfinished.as_ref()?)));
    let words = |(name, run): (&String, &VariantRun)| {
        format!("round {} was not finished and does not count: {name} {}", run.round, value(comparison, run.value))
    };
    runs.map(words).collect()
}

/// How the ratios are to be read.
pub(crate) fn ratio_is(comparison: &Comparison) -> &'static str {
    match comparison.is_time {
        true => "base ÷ variant",
        false => "variant ÷ base",
    }
}

/// A value of the metric.
pub(crate) fn value(comparison: &Comparison, x: f64) -> String {
    match comparison.is_time {
        true => num::seconds(x),
        false if x != 0.0 && x.abs() < 0.1 => format!("{x:.2e}"),
        false => num::rate(x),
    }
}

/// What is significant and what isn't, in a sentence.
pub fn verdict(comparison: &Comparison) -> String {
    if comparison.rounds == 0 {
        return "no round is complete: there is nothing to compare.".into();
    }
    let others = comparison.variants.get(1..).unwrap_or_default();
    if others.is_empty() {
        return "base alone was run: there is nothing to compare.".into();
    }
    let few = (comparison.rounds as usize) < LEAST_ROUNDS;
    let parts: Vec<String> = others.iter().map(|variant| of_one(comparison, variant, few)).collect();
    let all = parts.join("; ");
    match few {
        true => format!("{all}. Nothing is significant with fewer than {LEAST_ROUNDS} rounds."),
        false => format!("{all}."),
    }
}

fn of_one(comparison: &Comparison, variant: &VariantOutcome, few: bool) -> String {
    let name = &variant.name;
    let Some(ratio) = &variant.ratio else {
        return format!("{name} has no ratio to base: a value is not above 0");
    };
    let interval = interval(ratio);
    if !ratio.significant && !few {
        return format!("{name} makes no significant difference (95 % interval {interval})");
    }
    let times = format!("{:.3}", ratio.value);
    let difference = match comparison.metric.as_str() {
        "wall time" => format!("{name} is {times}× as fast as base"),
        metric if comparison.is_time => format!("{name}'s {metric} is base's ÷ {times}"),
        _ => format!("{name} gives {times}× base's number"),
    };
    match few {
        true => difference,
        false => format!("{difference} (95 % interval {interval}), significant"),
    }
}

/// Both ends of an interval.
pub(crate) fn interval(ratio: &Ratio) -> String {
    format!("{:.3} – {:.3}", ratio.low, ratio.high)
}

/// How a ratio looks: for a time it is known which side is good.
pub(crate) fn paint(comparison: &Comparison, ratio: &Ratio) -> Paint {
    match (ratio.significant, comparison.is_time) {
        (false, _) => Paint::Plain,
        (true, false) => Paint::Strong,
        (true, true) if ratio.value > 1.0 => Paint::Good,
        (true, true) => Paint::Bad,
    }
}

/// Median over the runs of something that they all have.
pub(crate) fn middle(variant: &VariantOutcome, of: impl Fn(&VariantRun) -> f64) -> f64 {
    median(variant.runs.iter().map(of)).unwrap_or(f64::NAN)
}

/// Share of the resident memory that was in huge pages.
pub(crate) fn huge_share(variant: &VariantOutcome) -> f64 {
    variant.pages.map_or(f64::NAN, |pages| num::share(pages.huge_bytes as f64, pages.resident_bytes as f64))
}

/// CPUs that helpers used, in the median.
pub(crate) fn helper_cpus(variant: &VariantOutcome) -> Option<f64> {
    let helped = variant.runs.iter().any(|run| run.helped.is_some());
    helped.then(|| {
        middle(variant, |run| {
            run.helped.map_or(0.0, |helped| num::share(helped.cpu_nanos as f64 / 1e9, run.wall_seconds))
        })
    })
}

fn table(comparison: &Comparison) -> Table {
    let energy = comparison.variants.iter().any(|variant| variant.energy_joules.is_some());
    let helped = comparison.variants.iter().any(|variant| helper_cpus(variant).is_some());
    let mut columns = vec![
        Column::left("variant").cut(24),
        Column::right("median"),
        Column::right("least – most").optional(2),
        Column::right(ratio_is(comparison)),
        Column::right("95 % interval"),
        Column::right("user").optional(3),
        Column::right("sys").optional(4),
        Column::right("in huge pages").optional(5),
    ];
    if helped {
        columns.push(Column::right("helper, CPUs").optional(6));
    }
    if energy {
        columns.push(Column::right("energy").optional(1));
    }
    let mut table = Table::new(columns);
    let shown = |x: Option<f64>| x.map_or(num::NONE.to_string(), |x| value(comparison, x));
    for (i, variant) in comparison.variants.iter().enumerate() {
        let ratio = variant.ratio.as_ref().filter(|_| i > 0);
        let mut cells: Vec<Cell> = vec![
            variant.name.as_str().into(),
            shown(variant.median).into(),
            match (variant.least, variant.most) {
                (Some(least), Some(most)) => {
                    Cell::from(format!("{} – {}", value(comparison, least), value(comparison, most)))
                }
                _ => num::NONE.into(),
            },
            ratio.map_or(Cell::default(), |r| Cell::painted(paint(comparison, r), format!("{:.3}", r.value))),
            ratio.map_or(Cell::default(), |r| interval(r).into()),
            num::seconds(middle(variant, |run| run.user_seconds)).into(),
            num::seconds(middle(variant, |run| run.sys_seconds)).into(),
            num::percent(huge_share(variant)).into(),
        ];
        if helped {
            cells.push(helper_cpus(variant).map_or(Cell::default(), |cpus| num::rate(cpus).into()));
        }
        if energy {
            cells.push(variant.energy_joules.map_or(num::NONE.to_string(), |j| format!("{j:.1} J")).into());
        }
        table.row(cells);
    }
    table
}
