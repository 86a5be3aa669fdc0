//! A thread's moves to another CPU as a page: the verdicts, plots over the number of pages, every case.

use lookaside_stats::{Figure, LEAST_ROUNDS};
use lookaside_tlb_migration::metal::{Cell as Measured, Pays, Report, Treatment, TreatmentTimes, RESAMPLES};

use super::lines::{figure, legend, Chart, Line};
use super::parts::{Cell, Esc, Table};
use crate::migration::{circumstances, group, interval, verdict};
use lookaside_report::num;

/// Draws the report as an HTML page that is well-formed XML too. Same data, same text; nothing is loaded from anywhere.
pub fn render(report: &Report) -> String {
    let mut page = super::head("A thread moves to another CPU");
    page += &header(report);
    page += "<main>\n";
    let overall = |cell: &Measured, way: Treatment| cell.overall(way).map(|overall| overall.ns);
    page += &charts(
        report,
        "overall",
        "Gained or lost overall, ns a page",
        "Access without − (restore + access with), each with its 95 % interval. Above 0 it pays. Sizes stand at even distances.",
        &Treatment::REMEDIES,
        &overall,
    );
    let sums = |cell: &Measured, way: Treatment| cell.told(way).map(sum);
    page += &charts(
        report,
        "sums",
        "Restore and first accesses, ns a page",
        "Each page once, on the new CPU. Returns: the thread's translations are there still; what is left is caches.",
        &Treatment::ALL,
        &sums,
    );
    page += &table(report);
    page += &method(report);
    page + "</main>\n" + &super::foot(env!("CARGO_PKG_VERSION"))
}

/// Restore and access together; the interval is the access's, moved, and is not drawn.
fn sum(told: &TreatmentTimes) -> Figure {
    let value = told.restore_ns.map_or(0.0, |ns| ns.value) + told.access_ns.value;
    Figure { value, low: value, high: value }
}

fn header(report: &Report) -> String {
    let mut out =
        String::from("<header><h1>A thread moves to another CPU: do its translations pay for the journey?</h1>");
    for way in Treatment::REMEDIES {
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

/// A section with a chart for each pattern, stride and caches.
fn charts(
    report: &Report,
    id: &str,
    title: &str,
    lead: &str,
    ways: &[Treatment],
    value: &dyn Fn(&Measured, Treatment) -> Option<Figure>,
) -> String {
    if report.cells.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = ways.iter().map(|way| way.name()).collect();
    let groups = report.cells.chunk_by(|a, b| group(a) == group(b));
    let charts: String = groups.map(|cells| figure(&chart(group(&cells[0]), cells, ways, value))).collect();
    format!(
        r#"<section aria-labelledby="{id}"><h2 id="{id}">{title}</h2><p class="lead">{}</p>{}<div class="charts">{charts}</div></section>
"#,
        Esc(lead),
        legend(&names)
    )
}

fn chart(
    name: String,
    cells: &[Measured],
    ways: &[Treatment],
    value: &dyn Fn(&Measured, Treatment) -> Option<Figure>,
) -> Chart<'static> {
    let a_page = |cell: &Measured, way: Treatment| {
        let (ns, pages) = (value(cell, way)?, cell.case.pages as f64);
        Some(Figure { value: ns.value / pages, low: ns.low / pages, high: ns.high / pages })
    };
    let line = |way: &Treatment| Line {
        name: way.name().into(),
        figures: cells.iter().map(|cell| a_page(cell, *way)).collect(),
    };
    Chart {
        name,
        x: "pages",
        y: "ns a page",
        sizes: cells.iter().map(|cell| num::grouped(cell.case.pages)).collect(),
        lines: ways.iter().map(line).collect(),
    }
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
