//! The digital twin as a page: cycles over size, measured and modelled, log over log, and every row.

use lookaside_probe::validate::{PatternFamily, Validation, ValidationRow, MEDIAN_BOUND_PERCENT, WORST_BOUND_PERCENT};

use super::parts::{Cell, Esc, Table};
use super::stretched::{stretched, UNITS};
use lookaside_report::num;

/// Height of a chart, CSS pixels.
const HEIGHT: u32 = 190;

/// Draws the comparison as an HTML page that is well-formed XML too. Same data, same text; nothing is loaded from
/// anywhere.
pub fn render(validation: &Validation) -> String {
    let mut page = super::head(&format!("Digital twin: {}", validation.machine));
    page += &header(validation);
    page += "<main>\n";
    page += &families(validation);
    page += &charts(validation);
    page += &rows(validation);
    page += &method(validation);
    page + "</main>\n" + &super::foot(&validation.version)
}

fn header(validation: &Validation) -> String {
    let mut out = format!(
        r#"<header><h1>This machine and its description <span class="mono">{}</span></h1>"#,
        Esc(&validation.machine)
    );
    match &validation.summary {
        Some(all) => {
            let (class, word) = if all.within() { ("good", "within") } else { ("bad", "not within") };
            let left = match edge_rows(validation) {
                0 => String::new(),
                edge => format!(" ({edge} more, on the edge of the last cache, left out)"),
            };
            out += &format!(
                r#"<p class="answer">Over {} patterns{left} the model is off by <strong>{:.1} %</strong> in the median and <strong>{:.1} %</strong> at worst ({}): <span class="{class}">{word} the bounds</span> of {MEDIAN_BOUND_PERCENT} % and {WORST_BOUND_PERCENT} %.</p>"#,
                all.rows,
                all.median_error_percent,
                all.worst_error_percent,
                Esc(&all.worst)
            );
        }
        None => out += r#"<p class="answer">No pattern was compared.</p>"#,
    }
    if let Some(reason) = &validation.halted {
        out += &format!(
            r#"<p class="banner"><strong>Cut short: {}.</strong> This is what was known until then.</p>"#,
            Esc(reason)
        );
    }
    out + "</header>\n"
}

fn families(validation: &Validation) -> String {
    let each = validation.families.iter().map(|(family, summary)| (family.name(), summary));
    let rows = each.chain(validation.summary.iter().map(|all| ("all", all))).map(|(name, summary)| {
        vec![
            Cell::Text(name.into()),
            Cell::count(summary.rows as u64),
            error_cell(summary.median_error_percent, false),
            error_cell(summary.worst_error_percent, false),
            Cell::Text(summary.worst.clone()),
        ]
    });
    let table = Table {
        caption: "Errors without their sign, in percent of the measured cycles",
        heads: vec![("patterns", false), ("number", true), ("median", true), ("worst", true), ("worst at", false)],
        rows: rows.collect(),
    };
    format!("<section aria-labelledby=\"errors\"><h2 id=\"errors\">Errors</h2>{}</section>\n", table.plain())
}

fn error_cell(percent: f64, signed: bool) -> Cell {
    let text = if signed { format!("{percent:+.1} %") } else { format!("{percent:.1} %") };
    Cell::Number(percent, text)
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
        };
        let at = groups.iter().position(|group| group.title == title).unwrap_or_else(|| {
            groups.push(Group { title, unit, points: Vec::new() });
            groups.len() - 1
        });
        groups[at].points.push((x as f64, row));
    }
    groups
}

fn charts(validation: &Validation) -> String {
    let cycles = |row: &ValidationRow| [row.low_cycles, row.high_cycles, row.modelled.cycles];
    let all = || validation.rows.iter().flat_map(cycles).filter(|y| *y > 0.0 && y.is_finite());
    let (Some(least), Some(most)) = (all().reduce(f64::min), all().reduce(f64::max)) else { return String::new() };
    let bottom = least.log10().floor();
    let y = Scale { low: bottom, high: most.log10().ceil().max(bottom + 1.0) };
    let mut out = String::from(
        r#"<section aria-labelledby="plot"><h2 id="plot">Cycles an access over size</h2><p class="lead">Both axes logarithmic, the same cycles in all charts. Solid with dots: measured, the run at the lower quartile, with a bar from the fastest to the slowest run. Dashed with rings: modelled.</p><div class="charts">"#,
    );
    for group in groups(validation) {
        out += &format!("<figure><figcaption>{}</figcaption>{}</figure>", Esc(&group.title), chart(&group, &y));
    }
    out + "</div></section>\n"
}

/// Logarithms at the ends of an axis.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Share of the axis.
    fn at(&self, log: f64) -> f64 {
        ((log - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

fn chart(group: &Group<'_>, y_scale: &Scale) -> String {
    let logs = || group.points.iter().map(|(x, _)| x.max(1.0).log2());
    let low = logs().fold(f64::INFINITY, f64::min).floor();
    let high = logs().fold(0.0, f64::max).ceil().max(low + 1.0);
    let scale = Scale { low, high };
    let x = |x: f64| scale.at(x.max(1.0).log2());
    let y = |cycles: f64| 1.0 - y_scale.at(cycles.max(1e-3).log10());
    let mut out =
        format!(r#"<div class="chart twin"><svg height="{HEIGHT}" role="img" aria-label="{}">"#, Esc(&spoken(group)));
    for power in y_scale.low as i32..=y_scale.high as i32 {
        let at = y(10f64.powi(power)) * 100.0;
        out += &format!(
            r#"<line class="grid" x1="0" x2="100%" y1="{at:.2}%" y2="{at:.2}%"/><text x="-6" y="{at:.2}%" dy="4" text-anchor="end">{}</text>"#,
            cycles_of(power)
        );
    }
    let step = ((scale.high - scale.low) / 6.0).ceil().max(1.0) as usize;
    for power in (scale.low as u32..=scale.high as u32).step_by(step) {
        let at = scale.at(f64::from(power)) * 100.0;
        out += &format!(
            r#"<line class="grid" x1="{at:.2}%" x2="{at:.2}%" y1="0" y2="100%"/><text x="{at:.2}%" y="100%" dy="16" text-anchor="middle">{}</text>"#,
            size(power)
        );
    }
    out += &format!(r#"<text x="100%" y="100%" dy="30" text-anchor="end">{}</text>"#, group.unit);
    let path = |class: &str, cycles: &dyn Fn(&ValidationRow) -> f64| {
        let corners = group.points.iter().enumerate().map(|(i, (size, row))| {
            let corner = if i == 0 { 'M' } else { 'L' };
            format!("{corner}{:.1} {:.1}", x(*size) * UNITS, y(cycles(row)) * UNITS)
        });
        format!(r#"<path class="{class}" d="{}"/>"#, corners.collect::<String>())
    };
    out += &stretched(&(path("curve", &|row| row.measured_cycles) + &path("model", &|row| row.modelled.cycles)));
    for (size, row) in &group.points {
        let [low, middle, high] = [row.low_cycles, row.measured_cycles, row.high_cycles].map(|c| y(c) * 100.0);
        let at = x(*size) * 100.0;
        out += &format!(r#"<circle class="ring" cx="{at:.2}%" cy="{:.2}%" r="3.5"/>"#, y(row.modelled.cycles) * 100.0);
        out += &format!(
            r#"<line class="spread" x1="{at:.2}%" x2="{at:.2}%" y1="{low:.2}%" y2="{high:.2}%"/><circle class="dot" cx="{at:.2}%" cy="{middle:.2}%" r="3"><title>{}</title></circle>"#,
            Esc(&words(row))
        );
    }
    out + "</svg></div>"
}

/// 10^power as it is written on an axis.
fn cycles_of(power: i32) -> String {
    match power {
        4..=6 => format!("{}k", 10u32.pow(power as u32 - 3)),
        _ => 10f64.powi(power).to_string(),
    }
}

/// 2^power as it is written on an axis.
fn size(power: u32) -> String {
    match power {
        0..=9 => (1u64 << power).to_string(),
        10..=19 => format!("{}Ki", 1u64 << (power - 10)),
        20..=29 => format!("{}Mi", 1u64 << (power - 20)),
        30..=39 => format!("{}Gi", 1u64 << (power - 30)),
        _ => format!("2^{power}"),
    }
}

fn words(row: &ValidationRow) -> String {
    format!(
        "{}: measured {}, modelled {} cycles, {:+.1} %",
        row.name,
        num::rate(row.measured_cycles),
        num::rate(row.modelled.cycles),
        row.error_percent
    )
}

/// The chart in words, for those who cannot see it.
fn spoken(group: &Group<'_>) -> String {
    group.points.iter().map(|(_, row)| words(row)).collect::<Vec<_>>().join("; ")
}

fn rows(validation: &Validation) -> String {
    let rows = validation.rows.iter().map(|row| {
        vec![
            Cell::Text(row.name.clone()),
            Cell::rate(row.measured_cycles),
            Cell::rate(row.low_cycles),
            Cell::rate(row.high_cycles),
            Cell::rate(row.modelled.cycles),
            Cell::rate(row.modelled.translation_cycles),
            Cell::rate(row.modelled.walks_per_access),
            row.last_cache_bytes.map_or(Cell::Text(String::new()), |bytes| {
                let mib = bytes as f64 / (1 << 20) as f64;
                Cell::Number(mib, format!("{mib:.1}"))
            }),
            match row.on_edge {
                true => Cell::Number(row.error_percent, format!("edge, {:+.1} %", row.error_percent)),
                false => error_cell(row.error_percent, true),
            },
        ]
    });
    let table = Table {
        caption: "Core cycles an access",
        heads: vec![
            ("pattern", false),
            ("measured", true),
            ("fastest run", true),
            ("slowest run", true),
            ("modelled", true),
            ("of that, translation", true),
            ("modelled walks an access", true),
            ("last cache, MiB", true),
            ("error", true),
        ],
        rows: rows.collect(),
    };
    let left =
        validation.left_out.iter().map(|left| vec![Cell::Text(left.name.clone()), Cell::Text(left.reason.clone())]);
    let left = Table { caption: "Left out", heads: vec![("pattern", false), ("why", false)], rows: left.collect() };
    format!(
        "<section class=\"long\" aria-labelledby=\"rows\"><h2 id=\"rows\">Every pattern</h2>{}{}</section>\n",
        table.scrolled(),
        left.scrolled()
    )
}

/// Rows that are not in the summary.
fn edge_rows(validation: &Validation) -> usize {
    validation.rows.iter().filter(|row| row.on_edge).count()
}

/// What the last cache was during the runs.
fn shared(validation: &Validation) -> String {
    let Some(cache) = &validation.last_cache else { return String::new() };
    let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
    let mut out = format!(
        "The last data cache is shared: before and after each run that reaches it, what it holds for this program was measured ({:.1} to {:.1} MiB; the description says {:.1}), and the model has that size; {} runs during which it changed do not count.",
        mib(cache.least_bytes),
        mib(cache.most_bytes),
        mib(cache.described_bytes),
        validation.unsteady_runs
    );
    let edge = edge_rows(validation);
    if let (1.., Some(all)) = (edge, &validation.with_edge) {
        out += &format!(
            " {edge} patterns (edge) are about as large as it: whether they fit decides, within what is known of it, and they are not in the errors above; with them the worst is {:.1} %.",
            all.worst_error_percent
        );
    }
    if let Some(described) = &validation.as_described {
        out += &format!(
            " With the last cache as described the median over all patterns is {:.1} % and the worst {:.1} %.",
            described.median_error_percent, described.worst_error_percent
        );
    }
    out
}

fn method(validation: &Validation) -> String {
    let (low, high) = validation.cycles_per_tick;
    format!(
        "<section aria-labelledby=\"method\"><h2 id=\"method\">How this was made</h2><p>Each access waits for the one before it: its address needs what that one read. So latencies add up on the metal as they do in the model, and nothing that a core does at the same time hides them. The order is read from a list, in parallel; its lines are in the model too. The patterns of a page size ran one after the other, all of them {} times; measured is the run at the lower quartile, by its ratio to the model with the last cache as it was then. Pages were touched first outside the timing. {} {} Core cycles are by a chain of additions timed before each of these passes: {low:.4} to {high:.4} a tick. Seed {}.</p></section>\n",
        validation.repeats,
        match validation.frame_run_pages {
            1 => "Frames lay at random, on the metal and in the model.".to_string(),
            pages => format!("Small pages were parts of huge ones: {pages} neighbours have neighbouring frames, on the metal and in the model."),
        },
        shared(validation),
        validation.seed
    )
}
