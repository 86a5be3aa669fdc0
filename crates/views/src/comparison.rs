//! Runs in turns: each variant's median, its ratio to base with the interval, and what is significant of it.

use lookaside_report::chart::{Axis, Point, PointRow, Points, Scale};
use lookaside_report::{num, Cell, Chart, Column, Document, Medium, Paint, RichText, Section, Table};
use lookaside_runtime::compare::{Comparison, Variant, VariantOutcome, VariantRun};
use lookaside_stats::{median, Ratio, LEAST_ROUNDS, RESAMPLES};

/// The verdict, the variants, every run.
pub fn view(comparison: &Comparison) -> Document {
    let mut document = Document::new("Does it help?", comparison.command.join(" "));
    document.version.clone_from(&comparison.version);
    document.answer(RichText::painted(Paint::Strong, format!("Verdict: {}", verdict(comparison))));
    if let Some(early) = &comparison.early {
        document.cut_short(early.to_string());
    }
    document.fact("measured", circumstances(comparison));
    document.section(Section::unheaded("Variants").with(variants(comparison)));
    document.section(ratios(comparison).only(Medium::Page));
    document.section(spread(comparison).only(Medium::Page));
    document.section(Section::unheaded("Runs").with(runs(comparison)).only(Medium::Page));
    document.section(method(comparison).only(Medium::Page));
    let notes = unfinished(comparison).into_iter().chain(comparison.notes.clone()).chain(comparison.no_energy.clone());
    notes.for_each(|note| document.note(note));
    document
}

/// What was run and how, in a sentence.
fn circumstances(comparison: &Comparison) -> String {
    let plural = |n: u32, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let rounds = match comparison.rounds == comparison.rounds_wanted {
        true => plural(comparison.rounds, "round"),
        false => format!("{} of {}", comparison.rounds, plural(comparison.rounds_wanted, "round")),
    };
    format!(
        "{}; {rounds} after {}, each in a new order (seed {}), pressure {}, {}",
        comparison.metric,
        plural(comparison.warmups, "warm-up round"),
        comparison.seed,
        comparison.pressure,
        plural(comparison.cpus, "CPU"),
    )
}

/// Runs of the round that was not finished.
fn unfinished(comparison: &Comparison) -> Vec<String> {
    let runs = comparison.variants.iter().filter_map(|variant| Some((&variant.name, variant.unfinished.as_ref()?)));
    let words = |(name, run): (&String, &VariantRun)| {
        format!("round {} was not finished and does not count: {name} {}", run.round, value(comparison, run.value))
    };
    runs.map(words).collect()
}

/// How the ratios are to be read.
fn ratio_is(comparison: &Comparison) -> &'static str {
    match comparison.is_time {
        true => "base ÷ variant",
        false => "variant ÷ base",
    }
}

/// A value of the metric.
fn value(comparison: &Comparison, x: f64) -> String {
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
    let parts: Vec<String> = others.iter().map(|variant| verdict_of(comparison, variant, few)).collect();
    let all = parts.join("; ");
    match few {
        true => format!("nothing is significant with fewer than {LEAST_ROUNDS} rounds: {all}."),
        false => format!("{all}."),
    }
}

fn verdict_of(comparison: &Comparison, variant: &VariantOutcome, few: bool) -> String {
    let name = &variant.name;
    let Some(ratio) = &variant.ratio else {
        return format!("{name} has no ratio to base: a value is not above 0");
    };
    let interval = interval(ratio);
    if !ratio.significant && !few {
        return format!("{name} makes no significant difference (95 % interval {interval})");
    }
    let times = format!("{:.3}", ratio.value);
    // The control is base once more: what it shows is how far runs of the same thing lie apart.
    if *name == Variant::NoThp.to_string() && !few {
        return format!(
            "the control {name} differs from base, too ({times}, 95 % interval {interval}): distrust differences that \
             small"
        );
    }
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
fn interval(ratio: &Ratio) -> String {
    format!("{:.3} – {:.3}", ratio.low, ratio.high)
}

/// How a ratio looks: for a time it is known which side is good.
fn paint(comparison: &Comparison, ratio: &Ratio) -> Paint {
    match (ratio.significant, comparison.is_time) {
        (false, _) => Paint::Plain,
        (true, false) => Paint::Strong,
        (true, true) if ratio.value > 1.0 => Paint::Good,
        (true, true) => Paint::Bad,
    }
}

/// Median over the runs of something that they all have.
fn middle(variant: &VariantOutcome, of: impl Fn(&VariantRun) -> f64) -> f64 {
    median(variant.runs.iter().map(of)).unwrap_or(f64::NAN)
}

/// Share of the resident memory that was in huge pages.
fn huge_share(variant: &VariantOutcome) -> f64 {
    variant.pages.map_or(f64::NAN, |pages| num::share(pages.huge_bytes as f64, pages.resident_bytes as f64))
}

/// CPUs that helpers used, in the median.
fn helper_cpus(variant: &VariantOutcome) -> Option<f64> {
    let helped = variant.runs.iter().any(|run| run.helped.is_some());
    helped.then(|| {
        middle(variant, |run| {
            run.helped.map_or(0.0, |helped| num::share(helped.cpu_nanos as f64 / 1e9, run.wall_seconds))
        })
    })
}

fn variants(comparison: &Comparison) -> Table {
    let energy = comparison.variants.iter().any(|variant| variant.energy_joules.is_some());
    let helped = comparison.variants.iter().any(|variant| helper_cpus(variant).is_some());
    let mut columns = vec![
        Column::left("variant").cut(24),
        Column::right("median"),
        Column::right("least").optional(2),
        Column::right("most").optional(2),
        Column::right(ratio_is(comparison)),
        Column::left("95 % interval"),
        Column::left("significant").optional(7),
        Column::right("wall").optional(8),
        Column::right("user").optional(3),
        Column::right("sys").optional(4),
        Column::right("in huge pages").optional(5),
    ];
    if helped {
        columns.push(Column::right("helper, CPUs").optional(6));
    }
    if energy {
        columns.extend([Column::right("energy").optional(1), Column::right("energy, base ÷ variant").optional(9)]);
    }
    columns.push(Column::left("what it is").optional(10));
    let mut table = Table::new(columns).caption("Medians of each variant");
    let shown = |x: f64| Cell::number(x, value(comparison, x));
    for (i, variant) in comparison.variants.iter().enumerate() {
        let ratio = variant.ratio.as_ref().filter(|_| i > 0);
        let times = |ratio: &Ratio| Cell::number(ratio.value, format!("{:.3}", ratio.value));
        let mut cells = vec![
            variant.name.as_str().into(),
            Cell::optional(variant.median, shown),
            Cell::optional(variant.least, shown),
            Cell::optional(variant.most, shown),
            ratio.map_or(Cell::default(), |ratio| times(ratio).paint(paint(comparison, ratio))),
            ratio.map_or(Cell::default(), |ratio| interval(ratio).into()),
            ratio.map_or(Cell::default(), |ratio| if ratio.significant { "yes" } else { "no" }.into()),
            Cell::seconds(middle(variant, |run| run.wall_seconds)),
            Cell::seconds(middle(variant, |run| run.user_seconds)),
            Cell::seconds(middle(variant, |run| run.sys_seconds)),
            Cell::share(huge_share(variant)),
        ];
        if helped {
            cells.push(helper_cpus(variant).map_or(Cell::default(), Cell::rate));
        }
        if energy {
            cells.push(Cell::optional(variant.energy_joules, |j| Cell::number(j, format!("{j:.1} J"))));
            cells.push(Cell::optional(variant.energy_ratio.as_ref().filter(|_| i > 0), times));
        }
        cells.push(variant.what.as_str().into());
        table.row(cells);
    }
    table
}

fn ratios(comparison: &Comparison) -> Section {
    let others = comparison.variants.get(1..).unwrap_or_default();
    let row = |variant: &VariantOutcome| PointRow {
        label: variant.name.clone(),
        value: variant.ratio.as_ref().map(|ratio| Point::new(0.0, ratio.value).between(ratio.low, ratio.high)),
        ..PointRow::default()
    };
    let side = if comparison.is_time { "; to the right of it: faster than base" } else { "" };
    let points = Points {
        x: Axis::new(ratio_is(comparison), Scale::Linear),
        reference: Some(1.0),
        rows: others.iter().map(row).collect(),
    };
    Section::unheaded("Ratio to base")
        .lead(format!("Ratio of the medians with its 95 % interval. Dashed: 1, no difference{side}."))
        .with(Chart::points(ratio_is(comparison), points))
}

fn spread(comparison: &Comparison) -> Section {
    let row = |variant: &VariantOutcome| PointRow {
        label: variant.name.clone(),
        singles: variant
            .runs
            .iter()
            .map(|run| (run.value, format!("{}, round {}: {}", variant.name, run.round, value(comparison, run.value))))
            .collect(),
        middle: variant.median,
        ..PointRow::default()
    };
    let points = Points {
        x: Axis::new(&comparison.metric, Scale::Linear),
        reference: None,
        rows: comparison.variants.iter().map(row).collect(),
    };
    Section::unheaded("Every run")
        .lead("A ring a run, a bar at the median.")
        .with(Chart::points(&comparison.metric, points))
}

fn runs(comparison: &Comparison) -> Table {
    let columns = [
        Column::left("variant"),
        Column::right("round"),
        Column::right("position"),
        Column::right(&comparison.metric),
        Column::right("wall"),
        Column::right("user"),
        Column::right("sys"),
        Column::right("most resident"),
        Column::right("energy, J"),
    ];
    let mut table = Table::new(columns).caption("Every run");
    for variant in &comparison.variants {
        for run in &variant.runs {
            table.row([
                Cell::from(&variant.name),
                Cell::count(run.round.into()),
                Cell::count(run.position.into()),
                Cell::number(run.value, value(comparison, run.value)),
                Cell::seconds(run.wall_seconds),
                Cell::seconds(run.user_seconds),
                Cell::seconds(run.sys_seconds),
                Cell::bytes(run.max_resident_bytes),
                Cell::optional(run.energy_joules, Cell::rate),
            ]);
        }
    }
    table
}

fn method(comparison: &Comparison) -> Section {
    Section::unheaded("How this was made").with(RichText::from(format!(
        "Each round ran every variant once, in an order drawn anew. Intervals are percentile bootstraps of the ratio of \
         medians: {RESAMPLES} draws of whole rounds, seed {}. Each holds by itself with 95 %; of twenty variants without \
         effect one may look significant. A difference is called significant where the interval does not hold 1 and at \
         least {LEAST_ROUNDS} rounds are complete.",
        comparison.seed
    )))
}
