//! A machine description held against the machine: cycles over size, measured and modelled, and every row.

use lookaside_probe::validate::{PatternFamily, Validation, ValidationRow, MEDIAN_BOUND_PERCENT, WORST_BOUND_PERCENT};
use lookaside_probe::AccessOrder;
use lookaside_report::chart::{Axis, Lines, Look, Point, Scale, Series};
use lookaside_report::{num, Cell, Chart, Column, Document, Medium, Paint, RichText, Section, Table};

/// The errors, what the last cache was, charts, every pattern.
pub fn view(validation: &Validation) -> Document {
    let mut document = Document::new("This machine and its description", &validation.machine);
    document.version.clone_from(&validation.version);
    answer(validation, &mut document);
    if let Some(reason) = &validation.halted {
        document.cut_short(reason);
    }
    document.section(Section::unheaded("Every pattern").with(patterns(validation)));
    document.section(Section::unheaded("Errors").with(families(validation)));
    document.section(charts(validation).only(Medium::Page));
    last_cache(validation).into_iter().for_each(|note| document.note(note));
    for left in &validation.left_out {
        document.note(format!("left out: {}: {}", left.name, left.reason));
    }
    document.section(method(validation).only(Medium::Page));
    document
}

fn answer(validation: &Validation, document: &mut Document) {
    let Some(all) = &validation.summary else {
        document.answer("No pattern was compared.");
        return;
    };
    if !validation.walked() {
        let words = format!("No verdict: none of the {} patterns caused a walk; larger ones (--memory) do.", all.rows);
        document.answer(RichText::painted(Paint::Warn, words));
        return;
    }
    let (paint, word) = if all.within() { (Paint::Good, "within") } else { (Paint::Bad, "not within") };
    let left = match edge_rows(validation) {
        0 => String::new(),
        edge => format!(" ({edge} more left out: about as large as the last cache)"),
    };
    let words = format!(
        "Over {} patterns{left} the model is off by {:.1} % in the median and {:.1} % at worst ({}): ",
        all.rows, all.median_error_percent, all.worst_error_percent, all.worst
    );
    let bounds = format!(" of {MEDIAN_BOUND_PERCENT} % and {WORST_BOUND_PERCENT} %.");
    document.answer(RichText::from(words).paint(paint, format!("{word} the bounds")).plain(bounds));
}

/// How an error looks: within the bound of the median, of the worst, or of neither.
fn paint(error_percent: f64) -> Paint {
    match error_percent.abs() {
        e if e <= MEDIAN_BOUND_PERCENT => Paint::Good,
        e if e <= WORST_BOUND_PERCENT => Paint::Warn,
        _ => Paint::Bad,
    }
}

fn patterns(validation: &Validation) -> Table {
    let mut table = Table::new([
        Column::left("pattern, cycles an access"),
        Column::right("measured"),
        Column::right("runs from – to").optional(1),
        Column::right("modelled"),
        Column::right("translation").optional(2),
        Column::right("walks"),
        Column::right("last cache, MiB").optional(3),
        Column::right("error"),
    ])
    .caption("Core cycles an access");
    for row in &validation.rows {
        let error = row.error_percent;
        table.row([
            Cell::from(&row.name),
            Cell::rate(row.measured_cycles),
            format!("{} – {}", num::rate(row.low_cycles), num::rate(row.high_cycles)).into(),
            Cell::rate(row.modelled.cycles),
            Cell::rate(row.modelled.translation_cycles),
            Cell::rate(row.modelled.walks_per_access),
            row.last_cache_bytes.map_or(Cell::default(), |bytes| Cell::number(bytes as f64, mib(bytes))),
            match row.on_edge {
                true => Cell::number(error, format!("edge, {error:+.1} %")),
                false => Cell::number(error, format!("{error:+.1} %")).paint(paint(error)),
            },
        ]);
    }
    table
}

/// Bytes in MiB.
fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / (1 << 20) as f64)
}

fn families(validation: &Validation) -> Table {
    let mut table = Table::new([
        Column::left("errors in percent of measured"),
        Column::right("patterns"),
        Column::right("median"),
        Column::right("worst"),
        Column::left("at").cut(24),
    ])
    .caption("Errors without their sign, in percent of the measured cycles");
    let each = validation.families.iter().map(|(family, summary)| (family.name(), summary));
    let error = |percent: f64| Cell::number(percent, format!("{percent:.1} %"));
    for (name, summary) in each.chain(validation.summary.iter().map(|summary| ("all", summary))) {
        table.row([
            name.into(),
            Cell::count(summary.rows as u64),
            error(summary.median_error_percent),
            error(summary.worst_error_percent).paint(paint(summary.worst_error_percent)),
            summary.worst.as_str().into(),
        ]);
    }
    table
}

/// Rows that are not in the summary.
fn edge_rows(validation: &Validation) -> usize {
    validation.rows.iter().filter(|row| row.on_edge).count()
}

/// What the last cache was during the runs, and what is not judged for its sake.
fn last_cache(validation: &Validation) -> Vec<String> {
    let Some(cache) = &validation.last_cache else { return Vec::new() };
    let mut notes = vec![format!(
        "The last data cache is shared: around each run that reaches it, what it held for this program was measured \
         ({} to {} MiB; the description says {}), and the model has that size.",
        mib(cache.least_bytes),
        mib(cache.most_bytes),
        mib(cache.described_bytes)
    )];
    let edge = edge_rows(validation);
    if let (1.., Some(all)) = (edge, &validation.with_edge) {
        notes.push(format!(
            "edge: {edge} patterns about as large as the last cache; whether they fit decides, and they are not in the \
             errors above (with them the worst is {:.1} %).",
            all.worst_error_percent
        ));
    }
    if let Some(described) = &validation.as_described {
        notes.push(format!(
            "With the last cache as described: median {:.1} %, worst {:.1} % ({}) over all patterns.",
            described.median_error_percent, described.worst_error_percent, described.worst
        ));
    }
    if validation.unsteady_runs > 0 {
        let runs = validation.unsteady_runs;
        notes.push(format!("{runs} runs do not count: the last cache changed meanwhile."));
    }
    notes
}

/// A chart's rows: its title, what its x is, and each row with its x.
struct Group<'a> {
    title: String,
    unit: &'static str,
    points: Vec<(f64, &'a ValidationRow)>,
}

/// The rows in charts: by family, page size, and for strides the number of pages.
fn groups(validation: &Validation) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in &validation.rows {
        let pattern = &row.pattern;
        let family = format!("{}, {} pages", pattern.family.name(), pattern.page_size);
        let (title, unit, x) = match pattern.family {
            PatternFamily::Chase | PatternFamily::Zipf => (family, "pages", pattern.pages()),
            PatternFamily::Stride => (
                format!("stride, {} pages of {}", pattern.pages(), pattern.page_size),
                "pages apart",
                pattern.stride_pages,
            ),
            PatternFamily::Sequential | PatternFamily::Streams | PatternFamily::Gups => {
                (family, "bytes", pattern.bytes())
            }
            PatternFamily::Random => {
                let order = if pattern.order == AccessOrder::Independent { ", independent" } else { "" };
                let beside = if pattern.beside_stream { ", beside a stream" } else { "" };
                (family + order + beside, "bytes", pattern.bytes())
            }
        };
        let at = groups.iter().position(|group| group.title == title).unwrap_or_else(|| {
            groups.push(Group { title, unit, points: Vec::new() });
            groups.len() - 1
        });
        groups[at].points.push((x as f64, row));
    }
    groups
}

fn charts(validation: &Validation) -> Section {
    let cycles = |row: &ValidationRow| [row.low_cycles, row.high_cycles, row.modelled.cycles];
    let all = || validation.rows.iter().flat_map(cycles).filter(|y| *y > 0.0 && y.is_finite());
    let range = all().reduce(f64::min).zip(all().reduce(f64::max));
    let chart = |group: &Group<'_>| {
        let measured = |(x, row): &(f64, &ValidationRow)| {
            Point::new(*x, row.measured_cycles).between(row.low_cycles, row.high_cycles)
        };
        let modelled = |(x, row): &(f64, &ValidationRow)| Point::new(*x, row.modelled.cycles);
        let lines = Lines::new(Axis::new(group.unit, Scale::Log2), Axis::new("cycles an access", Scale::Log10))
            .with(Series::new("measured", group.points.iter().map(measured).collect()))
            .with(Series::new("modelled", group.points.iter().map(modelled).collect()).look(Look::Model));
        Chart::lines(&group.title, Lines { y_range: range, ..lines })
    };
    Section::unheaded("Cycles an access over size")
        .lead(
            "Both axes logarithmic, the same cycles in all charts. Solid with dots: measured, the run at the lower \
             quartile, with a bar from the fastest to the slowest run. Dashed with rings: modelled.",
        )
        .with(groups(validation).iter().map(chart).collect::<Vec<_>>())
}

fn method(validation: &Validation) -> Section {
    let (low, high) = validation.cycles_per_tick;
    let frames = match validation.frame_run_pages {
        1 => "Frames lay at random, on the metal and in the model.".to_string(),
        pages => format!(
            "Small pages were parts of huge ones: {pages} neighbours have neighbouring frames, on the metal and in \
             the model."
        ),
    };
    Section::unheaded("How this was made").with(RichText::from(format!(
        "Each access waits for the one before it, but for those called independent: its address needs what that one \
         read. So latencies add up on the metal as they do in the model, and nothing that a core does at the same \
         time hides them. Independent reads, and those beside a stream on another CPU, are modelled by what the \
         description's [timing] says of such reads over other footprints. The order is read from a list, in \
         parallel; its lines are in the model too. The patterns of a page size ran one after the other, all of them \
         {} times; measured is the run at the lower quartile, by its ratio to the model with the last cache as it \
         was then. Pages were touched first outside the timing. {frames} Core cycles are by a chain of additions \
         timed before each of these passes: {low:.4} to {high:.4} a tick. Seed {}.",
        validation.repeats, validation.seed
    )))
}
