//! A thread's moves to another CPU as a page: the verdicts, plots over the number of pages, every case.

use lookaside_experiment::migrate::{Cell as Measured, Pays, Report, Told, Way, RESAMPLES};
use lookaside_runtime::compare::statistics::{Figure, LEAST_ROUNDS};

use super::comparison::Axis;
use super::parts::{swatch, Cell, Esc, Table};
use super::stretched::{stretched, UNITS};
use crate::migration::{circumstances, group, interval, verdict};
use crate::num;

/// Height of a chart, CSS pixels.
const HEIGHT: u32 = 210;

/// Draws the report as an HTML page that is well-formed XML too. Same data, same text; nothing is loaded from anywhere.
pub fn render(report: &Report) -> String {
    let mut page = super::head("A thread moves to another CPU");
    page += &header(report);
    page += "<main>\n";
    let overall = |cell: &Measured, way: Way| cell.overall(way).map(|overall| overall.ns);
    page += &charts(
        report,
        "overall",
        "Gained or lost overall, ns a page",
        "Access without − (restore + access with), each with its 95 % interval. Above the dashed line it pays.",
        &Way::REMEDIES,
        &overall,
    );
    let sums = |cell: &Measured, way: Way| cell.told(way).map(sum);
    page += &charts(
        report,
        "sums",
        "Restore and first accesses, ns a page",
        "Each page once, on the new CPU. Returns: the thread's translations are there still; what is left is caches.",
        &Way::ALL,
        &sums,
    );
    page += &table(report);
    page += &method(report);
    page + "</main>\n" + &super::foot(env!("CARGO_PKG_VERSION"))
}

/// Restore and access together; the interval is the access's, moved, and is not drawn.
fn sum(told: &Told) -> Figure {
    let value = told.restore_ns.map_or(0.0, |ns| ns.value) + told.access_ns.value;
    Figure { value, low: value, high: value }
}

fn header(report: &Report) -> String {
    let mut out =
        String::from("<header><h1>A thread moves to another CPU: do its translations pay for the journey?</h1>");
    for way in Way::REMEDIES {
        if let Some(words) = verdict(report, way) {
            out += &format!(r#"<p class="answer">{}</p>"#, Esc(&words));
        }
    }
    out += &format!(r#"<p class="sub">{}</p>"#, Esc(&circumstances(report)));
    if let Some(why) = &report.halted {
        out += &format!(r#"<p class="banner"><strong>Cut short: {}.</strong> Complete rounds are told.</p>"#, Esc(why));
    }
    for remark in &report.remarks {
        out += &format!(r#"<p class="sub">remark: {}</p>"#, Esc(remark));
    }
    out + "</header>\n"
}

/// A colour of the style sheet.
fn color(way: Way) -> &'static str {
    match way {
        Way::Nothing => "s1",
        Way::Direct => "s2",
        Way::Indirect => "s3",
        Way::Huge => "s4",
        Way::Returns => "s5",
    }
}

/// A section with a chart for each pattern, stride and caches.
fn charts(
    report: &Report,
    id: &str,
    title: &str,
    lead: &str,
    ways: &[Way],
    value: &dyn Fn(&Measured, Way) -> Option<Figure>,
) -> String {
    if report.cells.is_empty() {
        return String::new();
    }
    let mut out = format!(
        r#"<section aria-labelledby="{id}"><h2 id="{id}">{title}</h2><p class="lead">{}</p><ul class="legend">"#,
        Esc(lead)
    );
    for way in ways {
        out += &format!("<li>{}{}</li>", swatch(color(*way)), way.name());
    }
    out += r#"</ul><div class="charts">"#;
    for cells in report.cells.chunk_by(|a, b| group(a) == group(b)) {
        let name = group(&cells[0]);
        out += &format!("<figure><figcaption>{}</figcaption>{}</figure>", Esc(&name), chart(&name, cells, ways, value));
    }
    out + "</div></section>\n"
}

fn chart(name: &str, cells: &[Measured], ways: &[Way], value: &dyn Fn(&Measured, Way) -> Option<Figure>) -> String {
    let a_page = |cell: &Measured, way: Way| {
        let ns = value(cell, way)?;
        let pages = cell.case.pages as f64;
        Some([ns.low, ns.value, ns.high].map(|ns| ns / pages))
    };
    let all = || cells.iter().flat_map(|cell| ways.iter().filter_map(|way| a_page(cell, *way)));
    let Some(axis) = Axis::over(all().flatten().chain([0.0])) else { return String::new() };
    let last = cells.last().map_or(1.0, |cell| cell.case.pages as f64).log2().max(1.0);
    let x = |cell: &Measured| (cell.case.pages as f64).log2() / last * 100.0;
    let y = |ns: f64| 100.0 - axis.at(ns);
    let mut out = format!(
        r#"<div class="chart twin"><svg height="{HEIGHT}" role="img" aria-label="{}: the numbers are in the table below">"#,
        Esc(name)
    );
    let decimals = axis.decimals();
    for (tick, label) in axis.ticks(|ns| format!("{ns:.decimals$}")) {
        let at = y(tick);
        out += &format!(
            r#"<line class="grid" x1="0" x2="100%" y1="{at:.2}%" y2="{at:.2}%"/><text x="-6" y="{at:.2}%" dy="4" text-anchor="end">{}</text>"#,
            Esc(&label)
        );
    }
    let zero = y(0.0);
    out += &format!(r#"<line class="level" x1="0" x2="100%" y1="{zero:.2}%" y2="{zero:.2}%"/>"#);
    for cell in cells {
        let at = x(cell);
        out += &format!(
            r#"<text x="{at:.2}%" y="100%" dy="16" text-anchor="middle">{}</text>"#,
            num::grouped(cell.case.pages)
        );
    }
    out += r#"<text x="100%" y="100%" dy="30" text-anchor="end">pages</text>"#;
    for way in ways {
        let points: Vec<(&Measured, [f64; 3])> =
            cells.iter().filter_map(|cell| Some((cell, a_page(cell, *way)?))).collect();
        let corner = |(i, (cell, [_, ns, _])): (usize, &(&Measured, [f64; 3]))| {
            let corner = if i == 0 { 'M' } else { 'L' };
            format!("{corner}{:.1} {:.1}", x(cell) / 100.0 * UNITS, y(*ns) / 100.0 * UNITS)
        };
        let path: String = points.iter().enumerate().map(corner).collect();
        let color = color(*way);
        out += &stretched(&format!(r#"<path class="of {color}" d="{path}"/>"#));
        for (cell, [low, ns, high]) in points {
            let at = x(cell);
            let words = format!("{}, {} pages: {} ns a page", way.name(), num::grouped(cell.case.pages), num::rate(ns));
            out += &format!(
                r#"<line class="of {color}" x1="{at:.2}%" x2="{at:.2}%" y1="{:.2}%" y2="{:.2}%"/><circle class="{color}" cx="{at:.2}%" cy="{:.2}%" r="3"><title>{}</title></circle>"#,
                y(high),
                y(low),
                y(ns),
                Esc(&words)
            );
        }
    }
    out + "</svg></div>"
}

fn table(report: &Report) -> String {
    let rows = report.cells.iter().flat_map(|cell| {
        let pages = cell.case.pages;
        cell.ways.iter().map(move |told| {
            let optional = |ns: Option<Figure>| match ns {
                Some(ns) => Cell::Number(ns.value, format!("{:.0} ({:.0} … {:.0})", ns.value, ns.low, ns.high)),
                None => Cell::Number(f64::NAN, num::NONE.into()),
            };
            let overall = told.overall.map(|overall| overall.ns);
            let a_page = overall.map_or(num::NONE.into(), |ns| interval(&ns, pages, true));
            let verdict = match told.overall.map(|overall| overall.verdict) {
                Some(Pays::Pays) => "pays",
                Some(Pays::Costs) => "costs",
                Some(Pays::Unclear) => "unclear",
                None => "",
            };
            vec![
                Cell::Text(group(cell)),
                Cell::count(pages),
                Cell::Text(told.way.name().into()),
                Cell::count(told.prefetches),
                optional(told.restore_ns),
                optional(Some(told.access_ns)),
                Cell::Number(told.again_ns, format!("{:.0}", told.again_ns)),
                optional(overall),
                Cell::Number(overall.map_or(f64::NAN, |ns| ns.value / pages as f64), a_page),
                Cell::Text(verdict.into()),
            ]
        })
    });
    let table = Table {
        caption: "ns for all pages of a row, medians with 95 % intervals",
        heads: vec![
            ("case", false),
            ("pages", true),
            ("way", false),
            ("prefetches", true),
            ("restore", true),
            ("first access", true),
            ("next access, another line", true),
            ("overall", true),
            ("overall, ns a page", true),
            ("significant", false),
        ],
        rows: rows.collect(),
    };
    format!(
        "<section class=\"long\" aria-labelledby=\"cases\"><h2 id=\"cases\">Every case</h2>{}</section>\n",
        table.scrolled()
    )
}

fn method(report: &Report) -> String {
    format!(
        "<section aria-labelledby=\"method\"><h2 id=\"method\">How this was made</h2><p>For each measurement the thread touches its pages on the new CPU, reads {} there where caches are to be thrashed, goes to the old CPU, has all TLBs drop its translations, touches its pages again and moves. Then prefetches and first accesses are timed one after the other. Direct: one prefetch a page. Indirect: one for each 64-byte line of page-table entries, since a program can't touch the tables themselves. Where the thread returns, translations are dropped before it touches its pages on the new CPU.</p><p>Each round measured everything once, in an order drawn anew. Intervals are percentile bootstraps of medians: {RESAMPLES} draws of whole rounds, seed {}. Each holds by itself with 95 %: of forty cases without effect one may seem to pay, and one to cost. Nothing is called significant of fewer than {LEAST_ROUNDS} rounds.</p></section>\n",
        num::bytes(report.thrash_bytes),
        report.seed
    )
}
