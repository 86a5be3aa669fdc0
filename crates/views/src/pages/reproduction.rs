//! A side-by-side as a page: published, ours, verdict; and a plot for each curve.

use super::axis::Axis;
use super::parts::{Cell, Esc, Table};
use super::stretched::{stretched, UNITS};
use crate::reproduction::{Curve, Page, Row};
use lookaside_report::num;
use lookaside_report::Paint;

/// Height of a chart, CSS pixels.
const HEIGHT: u32 = 190;
/// A curve of no more points has them at even distances, each with its x: sweeps go up by factors, and begin at 0.
const EVEN_POINTS: usize = 12;

/// Draws the side-by-side as an HTML page that is well-formed XML too. Same data, same text; nothing is loaded from
/// anywhere.
pub fn render(page: &Page<'_>) -> String {
    let mut out = super::head(&format!("Reproduction: {}", page.title));
    out += &header(page);
    out += "<main>\n";
    out += &rows(page);
    out += &charts(page.curves);
    out += &method(page);
    out + "</main>\n" + &super::foot(page.version)
}

fn header(page: &Page<'_>) -> String {
    let mut out = format!(
        r#"<header><h1>{}</h1><p class="answer"><strong>{}.</strong></p><p class="sub">{}: {}</p>"#,
        Esc(page.cite),
        Esc(page.summary),
        Esc(page.machine.0),
        Esc(page.machine.1)
    );
    if let Some(reason) = page.halted {
        out += &format!(
            r#"<p class="banner"><strong>Cut short: {}.</strong> This is what was known until then.</p>"#,
            Esc(reason)
        );
    }
    out + "</header>\n"
}

fn rows(page: &Page<'_>) -> String {
    let cells = |row: &Row| row.cells.iter().chain([&row.remark]).cloned().map(Cell::Text).collect();
    let heads = page.headers.iter().copied().chain(["why"]).map(|head| (head, false));
    let table =
        Table { caption: "Published and ours", heads: heads.collect(), rows: page.rows.iter().map(cells).collect() };
    let count = |paint: Paint| page.rows.iter().filter(|row| row.verdict == paint).count();
    format!(
        "<section class=\"long\" aria-labelledby=\"rows\"><h2 id=\"rows\">Published and ours</h2><p class=\"lead\">{} hold, {} do not, {} do not count.</p>{}</section>\n",
        count(Paint::Good),
        count(Paint::Bad),
        count(Paint::Warn) + count(Paint::Plain),
        table.scrolled()
    )
}

fn charts(curves: &[Curve<'_>]) -> String {
    let charts: String = curves.iter().map(figure).collect();
    if charts.is_empty() {
        return charts;
    }
    format!(
        "<section aria-labelledby=\"curves\"><h2 id=\"curves\">Curves</h2><p class=\"lead\">Bars: intervals, where points are medians of measurements. Up to {EVEN_POINTS} points stand at even distances, each with its x below it.</p><div class=\"charts\">{charts}</div></section>\n"
    )
}

/// Nothing of a curve without points; points that are no numbers are left out.
fn figure(curve: &Curve<'_>) -> String {
    let drawn = |at: &usize| curve.points.get(*at).is_some_and(|(x, y)| x.is_finite() && y.is_finite());
    let kept: Vec<usize> = (0..curve.points.len()).filter(drawn).collect();
    if kept.is_empty() {
        return String::new();
    }
    let points: Vec<_> = kept.iter().filter_map(|at| curve.points.get(*at).copied()).collect();
    let intervals: Vec<_> = kept.iter().filter_map(|at| curve.intervals.get(*at).copied()).collect();
    let labels: Vec<_> = kept.iter().filter_map(|at| curve.labels.get(*at).cloned()).collect();
    let curve = &Curve { points: &points, intervals: &intervals, labels: &labels, ..*curve };
    format!("<figure><figcaption>{}<br/>{}</figcaption>{}</figure>", Esc(curve.name), Esc(curve.y), chart(curve))
}

/// Where each point is, in percent of the chart's width; and what stands below it.
fn across(curve: &Curve<'_>) -> (Vec<f64>, Vec<(f64, String)>) {
    let count = curve.points.len();
    if count <= EVEN_POINTS {
        let at = |i: usize| if count == 1 { 50.0 } else { i as f64 / (count - 1) as f64 * 100.0 };
        let places: Vec<f64> = (0..count).map(at).collect();
        let ticks = places.iter().enumerate().map(|(i, at)| (*at, curve.name_of(i))).collect();
        return (places, ticks);
    }
    let xs = || curve.points.iter().map(|(x, _)| *x);
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    let width = if high > low { high - low } else { 1.0 };
    let places = xs().map(|x| ((x - low) / width * 100.0).clamp(0.0, 100.0)).collect();
    let axis = Axis { low, width };
    let ticks = axis.ticks(num::short).into_iter().map(|(x, name)| (axis.at(x), name)).collect();
    (places, ticks)
}

fn chart(curve: &Curve<'_>) -> String {
    let ends = curve.intervals.iter().flat_map(|(low, high)| [*low, *high]);
    let Some(axis) = Axis::over(curve.points.iter().map(|(_, y)| *y).chain(ends).chain([0.0])) else {
        return String::new();
    };
    let y = |value: f64| 100.0 - axis.at(value);
    let (places, ticks) = across(curve);
    let mut out =
        format!(r#"<div class="chart twin"><svg height="{HEIGHT}" role="img" aria-label="{}">"#, Esc(&spoken(curve)));
    let decimals = axis.decimals().max(1);
    for (value, name) in axis.ticks(|value| number(value, decimals)) {
        let at = y(value);
        out += &format!(
            r#"<line class="grid" x1="0" x2="100%" y1="{at:.2}%" y2="{at:.2}%"/><text x="-6" y="{at:.2}%" dy="4" text-anchor="end">{}</text>"#,
            Esc(&name)
        );
    }
    for (at, name) in ticks {
        out += &format!(
            r#"<line class="grid" x1="{at:.2}%" x2="{at:.2}%" y1="0" y2="100%"/><text x="{at:.2}%" y="100%" dy="16" text-anchor="middle">{}</text>"#,
            Esc(&name)
        );
    }
    out += &format!(r#"<text x="100%" y="100%" dy="30" text-anchor="end">{}</text>"#, Esc(curve.x));
    let none = y(0.0);
    out += &format!(r#"<line class="level" x1="0" x2="100%" y1="{none:.2}%" y2="{none:.2}%"/>"#);
    if curve.labels.is_empty() {
        let corners = places.iter().zip(curve.points).enumerate().map(|(i, (x, (_, value)))| {
            let corner = if i == 0 { 'M' } else { 'L' };
            format!("{corner}{:.1} {:.1}", x / 100.0 * UNITS, y(*value) / 100.0 * UNITS)
        });
        out += &stretched(&format!(r#"<path class="curve" d="{}"/>"#, corners.collect::<String>()));
    }
    for (i, (x, (_, value))) in places.iter().zip(curve.points).enumerate() {
        if let Some((low, high)) = curve.intervals.get(i) {
            let [low, high] = [low, high].map(|end| y(*end));
            out += &format!(r#"<line class="spread" x1="{x:.2}%" x2="{x:.2}%" y1="{low:.2}%" y2="{high:.2}%"/>"#);
        }
        if places.len() <= EVEN_POINTS {
            out += &format!(
                r#"<circle class="dot" cx="{x:.2}%" cy="{:.2}%" r="3"><title>{}</title></circle>"#,
                y(*value),
                Esc(&words(curve, i))
            );
        }
    }
    out + "</svg></div>"
}

fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    // What rounding leaves of a zero has no sign.
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|byte| matches!(byte, b'0' | b'.')) => zero.into(),
        _ => text,
    }
}

/// A point in words.
fn words(curve: &Curve<'_>, at: usize) -> String {
    let value = curve.points.get(at).map_or(f64::NAN, |(_, y)| *y);
    let interval = curve.intervals.get(at).map(|(low, high)| format!(" ({low:.2} to {high:.2})"));
    format!("{}: {value:.2}{}", curve.name_of(at), interval.unwrap_or_default())
}

/// The chart in words, for those who cannot see it.
fn spoken(curve: &Curve<'_>) -> String {
    if curve.points.len() > EVEN_POINTS {
        return format!("{}: {} points, all of them in --json", curve.name, curve.points.len());
    }
    let points: Vec<String> = (0..curve.points.len()).map(|at| words(curve, at)).collect();
    format!("{}; {}: {}", curve.name, curve.y, points.join("; "))
}

fn method(page: &Page<'_>) -> String {
    let lines: String =
        page.lines.1.iter().map(|line| format!("<p>{}: {}</p>", Esc(page.lines.0), Esc(line))).collect();
    format!("<section aria-labelledby=\"method\"><h2 id=\"method\">How this was made</h2>{lines}</section>\n")
}
