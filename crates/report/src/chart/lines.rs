//! Lines over an axis, with intervals, marks and levels.

use super::axis::Ranges;
use super::svg_parts::{color, grid_across, grid_up, stretched, UNITS};
use super::{Lines, Look, Point, Scale, Series, Size};
use crate::html::Esc;

/// Least distance of points that are drawn, in units of the inner drawing: a curve may have one for every entry.
const LINE_STEP: f64 = 0.5;
const DOT_STEP: f64 = 10.0;

/// Marks nearer than this share of the width get their names on two heights.
const LABEL_ROOM: f64 = 0.3;

/// Labels below evenly placed points, at most about so many.
const EVEN_LABELS: usize = 12;

/// The chart; nothing if there is nothing to draw.
pub(super) fn draw(plot: &Lines, spoken: &str) -> String {
    let Some(ranges) = plot.ranges() else { return String::new() };
    let (class, height, x_ticks, y_ticks) = match plot.size {
        Size::Large => ("", 260, 8, 6),
        Size::Small => (" twin", 190, 6, 6),
        Size::Mini => (" mini", 90, 3, 2),
    };
    let mut out =
        format!(r#"<div class="chart{class}"><svg height="{height}" role="img" aria-label="{}">"#, Esc(spoken));
    out += &grid_across(&ranges.y, y_ticks, 6);
    if plot.size == Size::Mini {
        out += r#"<line class="grid" x1="0" x2="100%" y1="100%" y2="100%"/>"#;
        for (x, name) in ticks(plot, &ranges, x_ticks) {
            out +=
                &format!(r#"<text x="{:.2}%" y="100%" dy="13" text-anchor="middle">{}</text>"#, x * 100.0, Esc(&name));
        }
    } else {
        out += &grid_up(&ticks(plot, &ranges, x_ticks));
        out += &format!(r#"<text x="100%" y="100%" dy="31" text-anchor="end">{}</text>"#, Esc(&plot.x.name));
    }
    if ranges.y.crosses_zero() {
        let zero = (1.0 - ranges.y.at(0.0)) * 100.0;
        out += &format!(r#"<line class="axis" x1="0" x2="100%" y1="{zero:.2}%" y2="{zero:.2}%"/>"#);
    }
    for level in &plot.levels {
        let y = (1.0 - ranges.y.at(level.at)) * 100.0;
        out += &format!(
            r#"<line class="cold" x1="0" x2="100%" y1="{y:.2}%" y2="{y:.2}%"/><text x="6" y="{y:.2}%" dy="-5">{}</text>"#,
            Esc(&level.name)
        );
    }
    let drawn = || plot.series.iter().enumerate();
    out += &stretched(&drawn().map(|(i, series)| path(plot, series, i, &ranges)).collect::<String>());
    if plot.size != Size::Mini {
        out += &drawn().map(|(i, series)| dots(plot, series, i, &ranges)).collect::<String>();
    }
    out + &marks(plot, &ranges) + "</svg></div>"
}

/// What the lines' colours mean; nothing for one line.
pub(super) fn legend(plot: &Lines) -> Vec<(String, String)> {
    let named: Vec<_> = plot.series.iter().enumerate().filter(|(_, series)| !series.name.is_empty()).collect();
    if named.len() < 2 {
        return Vec::new();
    }
    named.into_iter().map(|(i, series)| (swatch_class(plot, series, i), series.name.clone())).collect()
}

fn swatch_class(plot: &Lines, series: &Series, number: usize) -> String {
    match series.look {
        Look::Model => "memory".into(),
        _ if is_single(plot) => "fill".into(),
        _ => color(number),
    }
}

/// Share of the width of the point of a series.
fn across(plot: &Lines, ranges: &Ranges, series: &Series, at: usize) -> f64 {
    match plot.x.scale {
        Scale::Even => even(at, plot.series.iter().map(|series| series.points.len()).max().unwrap_or(0)),
        _ => ranges.x.at(series.points[at].x),
    }
}

fn even(at: usize, count: usize) -> f64 {
    match count {
        0 | 1 => 0.5,
        _ => at as f64 / (count - 1) as f64,
    }
}

fn ticks(plot: &Lines, ranges: &Ranges, most: usize) -> Vec<(f64, String)> {
    if plot.x.scale != Scale::Even {
        return ranges.x.ticks(most);
    }
    let longest = plot.series.iter().max_by_key(|series| series.points.len());
    let points = longest.map_or(&[][..], |series| &series.points);
    let step = points.len().div_ceil(EVEN_LABELS).max(1);
    (0..points.len()).step_by(step).map(|at| (even(at, points.len()), points[at].x_label())).collect()
}

/// Places of the finite points in units of the inner drawing, in runs without a break; none nearer than `step` to the
/// one before but the last.
fn runs(plot: &Lines, series: &Series, ranges: &Ranges, step: f64) -> Vec<Vec<(f64, f64, usize)>> {
    let mut runs: Vec<Vec<(f64, f64, usize)>> = vec![Vec::new()];
    let last = series.points.len().saturating_sub(1);
    for (at, point) in series.points.iter().enumerate() {
        let Some(run) = runs.last_mut() else { break };
        if !point.y.is_finite() {
            if !run.is_empty() {
                runs.push(Vec::new());
            }
            continue;
        }
        let (x, y) = (across(plot, ranges, series, at) * UNITS, (1.0 - ranges.y.at(point.y)) * UNITS);
        let far = run.last().is_none_or(|(ox, oy, _)| (x - ox).abs() >= step || (y - oy).abs() >= step);
        if far || at == last {
            run.push((x, y, at));
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

fn path(plot: &Lines, series: &Series, number: usize, ranges: &Ranges) -> String {
    let steps = matches!(series.look, Look::Step | Look::Ghost);
    let mut d = String::new();
    for run in runs(plot, series, ranges, LINE_STEP) {
        for (i, (x, y, _)) in run.into_iter().enumerate() {
            d += &match (i, steps) {
                (0, _) => format!("M{x:.1} {y:.1}"),
                (_, true) => format!("H{x:.1}V{y:.1}"),
                (_, false) => format!("L{x:.1} {y:.1}"),
            };
        }
    }
    let class = match series.look {
        Look::Dots => return String::new(),
        Look::Ghost => "ghost".into(),
        Look::Model => "model".into(),
        Look::Line | Look::Step if is_single(plot) => "curve".into(),
        Look::Line | Look::Step => format!("of {}", color(number)),
    };
    format!(r#"<path class="{class}" d="{d}"/>"#)
}

/// There are not several lines that are told apart by colour.
fn is_single(plot: &Lines) -> bool {
    plot.series.iter().filter(|series| matches!(series.look, Look::Line | Look::Step)).count() < 2
}

fn dots(plot: &Lines, series: &Series, number: usize, ranges: &Ranges) -> String {
    let single = is_single(plot);
    let (dot, spread) = match series.look {
        Look::Ghost => return String::new(),
        Look::Model => ("ring".to_string(), "spread".to_string()),
        _ if single => ("dot".to_string(), "spread".to_string()),
        _ => (color(number), format!("of {}", color(number))),
    };
    let mut out = String::new();
    for (x, y, at) in runs(plot, series, ranges, DOT_STEP).into_iter().flatten() {
        let (x, y, point) = (x / UNITS * 100.0, y / UNITS * 100.0, &series.points[at]);
        if let Some((low, high)) = point.interval {
            let [low, high] = [low, high].map(|end| (1.0 - ranges.y.at(end)) * 100.0);
            out += &format!(r#"<line class="{spread}" x1="{x:.2}%" x2="{x:.2}%" y1="{low:.2}%" y2="{high:.2}%"/>"#);
        }
        out += &format!(
            r#"<circle class="{dot}" cx="{x:.2}%" cy="{y:.2}%" r="3"><title>{}</title></circle>"#,
            Esc(&in_words(plot, series, point))
        );
    }
    out
}

fn in_words(plot: &Lines, series: &Series, point: &Point) -> String {
    plot.point_in_words(series, point)
}

fn marks(plot: &Lines, ranges: &Ranges) -> String {
    let mut out = String::new();
    let mut last: Option<f64> = None;
    for mark in &plot.marks {
        let x = ranges.x.at(mark.at);
        let raised = last.is_some_and(|last| x - last < LABEL_ROOM);
        let dy = if raised { -17 } else { -5 };
        let anchor = match x {
            ..0.05 => "start", // clear of the axis
            0.85.. => "end",
            _ => "middle",
        };
        out += &format!(
            r#"<line class="level" x1="{0:.2}%" x2="{0:.2}%" y1="0" y2="100%"/><text class="mark" x="{0:.2}%" y="0" dy="{dy}" text-anchor="{anchor}">{1}</text>"#,
            x * 100.0,
            Esc(&mark.name)
        );
        last = if raised { None } else { Some(x) };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Chart, Mark};
    use super::*;

    fn chart(values: &[&[f64]]) -> Lines {
        let series = values.iter().enumerate().map(|(i, values)| {
            let point = |(x, y): (u32, &f64)| Point::new(f64::from(x), *y).between(y * 0.9, y * 1.1);
            Series::new(format!("line {i}"), (1..).zip(*values).map(point).collect())
        });
        let lines = Lines::new(Axis::new("pages", Scale::Even), Axis::new("ns", Scale::Auto));
        Lines { series: series.collect(), ..lines }
    }

    #[test]
    fn every_point_is_drawn_in_its_lines_colour() {
        let svg = draw(&chart(&[&[100.0, 150.0, 200.0], &[120.0, f64::NAN, 90.0]]), "a <chart>");
        assert_eq!((svg.matches("<circle class=\"s1\"").count(), svg.matches("<circle class=\"s2\"").count()), (3, 2));
        // A value that is not there breaks its line.
        let paths: Vec<&str> = svg.split("<path").skip(1).collect();
        assert_eq!((paths[0].matches('L').count(), paths[1].matches('L').count()), (2, 0), "{svg}");
        assert!(svg.contains("a &lt;chart&gt;") && svg.contains("line 1, 3 pages: 90.0 (81.0 – 99.0)"), "{svg}");
        assert!(draw(&chart(&[]), "").is_empty() && draw(&chart(&[&[f64::NAN]]), "").is_empty());
    }

    #[test]
    fn a_curve_of_every_entry_is_thinned_to_what_can_be_seen() {
        let points: Vec<Point> = (1..=200_000u32).map(|e| Point::new(f64::from(e), 1e6 / f64::from(e))).collect();
        let lines = Lines::new(Axis::new("entries", Scale::Log2), Axis::new("misses", Scale::Log10));
        let lines = lines.with(Series::new("", points).look(Look::Step));
        let ranges = lines.ranges().expect("axes");
        let runs = runs(&lines, &lines.series[0], &ranges, LINE_STEP);
        assert_eq!(runs.len(), 1);
        assert!(runs[0].len() < 2000, "{} points", runs[0].len());
        assert_eq!((runs[0][0].2, runs[0].last().map(|point| point.2)), (0, Some(199_999)));
    }

    #[test]
    fn marks_that_are_near_stand_on_two_heights() {
        let mut lines = chart(&[&[1.0, 2.0]]);
        lines.x.scale = Scale::Log2;
        lines.marks = vec![Mark::new(1.0, "L1"), Mark::new(1.1, "L2")];
        let svg = svg_of(lines);
        assert!(svg.contains("dy=\"-5\" text-anchor=\"start\">L1") && svg.contains("dy=\"-17\""), "{svg}");
    }

    fn svg_of(lines: Lines) -> String {
        super::super::svg(&Chart::lines("t", lines))
    }
}
