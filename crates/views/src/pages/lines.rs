//! A chart of several lines over the same sizes, with intervals.

use lookaside_stats::Figure;

use super::axis::Axis;
use super::parts::{swatch, Esc};
use super::stretched::{stretched, UNITS};
use lookaside_report::num;

/// Height of a chart, CSS pixels.
const HEIGHT: u32 = 190;
/// Lines that have a colour of their own.
const COLORS: usize = 5;
/// Numbers that differ by more stand on a logarithmic axis.
const FACTOR: f64 = 10.0;

/// A line: its name, and its figures, one for each size.
pub struct Line {
    /// What it shows.
    pub name: String,
    /// Where there is one.
    pub figures: Vec<Option<Figure>>,
}

/// Lines over sizes.
pub struct Chart<'a> {
    /// What it shows.
    pub name: String,
    /// What the sizes are.
    pub x: &'a str,
    /// What the figures are.
    pub y: &'a str,
    /// The sizes, as they are written; they stand at even distances, since sweeps go up by factors.
    pub sizes: Vec<String>,
    /// The lines, at most five.
    pub lines: Vec<Line>,
}

/// What colours mean, by the lines' names.
pub fn legend(names: &[&str]) -> String {
    let items = names.iter().enumerate().map(|(i, name)| format!("<li>{}{}</li>", swatch(&color(i)), Esc(name)));
    format!("<ul class=\"legend\">{}</ul>", items.collect::<String>())
}

fn color(line: usize) -> String {
    format!("s{}", line % COLORS + 1)
}

/// Where figures stand: percent from the top.
enum Scale {
    Linear(Axis),
    /// Of the decimal logarithms.
    Log(Axis),
}

impl Scale {
    /// From 0, or logarithmic where figures differ much and are all above 0; `None` without figures.
    fn of(chart: &Chart<'_>) -> Option<Self> {
        let ends = || {
            let figures = chart.lines.iter().flat_map(|line| line.figures.iter().flatten());
            figures.flat_map(|figure| [figure.low, figure.value, figure.high]).filter(|x| x.is_finite())
        };
        let (least, most) = (ends().reduce(f64::min)?, ends().reduce(f64::max)?);
        match least > 0.0 && most / least > FACTOR {
            true => Axis::over(ends().map(f64::log10)).map(Self::Log),
            false => Axis::over(ends().chain([0.0])).map(Self::Linear),
        }
    }

    fn at(&self, y: f64) -> f64 {
        match self {
            Self::Linear(axis) => 100.0 - axis.at(y),
            Self::Log(axis) => 100.0 - axis.at(y.log10()),
        }
    }

    /// Where 0 stands, if there is something on both its sides.
    fn level(&self) -> Option<f64> {
        match self {
            Self::Linear(axis) if axis.low < 0.0 && axis.low + axis.width > 0.0 => Some(self.at(0.0)),
            _ => None,
        }
    }

    /// Numbers with a line of their own.
    fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Linear(axis) => match axis.decimals() {
                0 => axis.ticks(num::short),
                decimals => axis.ticks(|y| format!("{y:.decimals$}")),
            },
            Self::Log(axis) => {
                let powers =
                    (axis.low.floor() as i32..=(axis.low + axis.width).ceil() as i32).map(|power| 10f64.powi(power));
                let inside = |y: &f64| (axis.low..=axis.low + axis.width).contains(&y.log10());
                let numbers = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|times| times * power)).filter(inside);
                numbers.map(|y| (y, num::short(y))).collect()
            }
        }
    }
}

/// The chart; nothing without figures.
pub fn figure(chart: &Chart<'_>) -> String {
    let Some(scale) = Scale::of(chart) else { return String::new() };
    let count = chart.sizes.len();
    let across = |at: usize| if count == 1 { 50.0 } else { at as f64 / (count - 1) as f64 * 100.0 };
    let mut out = format!(
        r#"<figure><figcaption>{}<br/>{}</figcaption><div class="chart twin"><svg height="{HEIGHT}" role="img" aria-label="{}">"#,
        Esc(&chart.name),
        Esc(chart.y),
        Esc(&spoken(chart))
    );
    for (y, name) in scale.ticks() {
        let at = scale.at(y);
        out += &format!(
            r#"<line class="grid" x1="0" x2="100%" y1="{at:.2}%" y2="{at:.2}%"/><text x="-6" y="{at:.2}%" dy="4" text-anchor="end">{}</text>"#,
            Esc(&name)
        );
    }
    if let Some(at) = scale.level() {
        out += &format!(r#"<line class="level" x1="0" x2="100%" y1="{at:.2}%" y2="{at:.2}%"/>"#);
    }
    for (at, size) in chart.sizes.iter().enumerate() {
        let at = across(at);
        out += &format!(
            r#"<line class="grid" x1="{at:.2}%" x2="{at:.2}%" y1="0" y2="100%"/><text x="{at:.2}%" y="100%" dy="16" text-anchor="middle">{}</text>"#,
            Esc(size)
        );
    }
    out += &format!(r#"<text x="100%" y="100%" dy="30" text-anchor="end">{}</text>"#, Esc(chart.x));
    let mut marks = String::new();
    let mut paths = String::new();
    for (i, line) in chart.lines.iter().enumerate() {
        let (color, mut corner) = (color(i), 'M');
        let mut path = String::new();
        for (at, figure) in line.figures.iter().enumerate() {
            let Some(figure) = figure.as_ref().filter(|figure| figure.value.is_finite()) else {
                corner = 'M';
                continue;
            };
            let (x, [low, y, high]) = (across(at), [figure.low, figure.value, figure.high].map(|y| scale.at(y)));
            path += &format!("{corner}{:.1} {:.1}", x / 100.0 * UNITS, y / 100.0 * UNITS);
            corner = 'L';
            marks += &format!(
                r#"<line class="of {color}" x1="{x:.2}%" x2="{x:.2}%" y1="{low:.2}%" y2="{high:.2}%"/><circle class="{color}" cx="{x:.2}%" cy="{y:.2}%" r="3"><title>{}</title></circle>"#,
                Esc(&words(chart, line, at))
            );
        }
        paths += &format!(r#"<path class="of {color}" d="{path}"/>"#);
    }
    out + &stretched(&paths) + &marks + "</svg></div></figure>"
}

/// A point in words.
fn words(chart: &Chart<'_>, line: &Line, at: usize) -> String {
    let size = chart.sizes.get(at).map_or("", String::as_str);
    let figure = line.figures.get(at).copied().flatten();
    let value = figure.map_or(num::NONE.into(), |figure| {
        format!("{} ({} – {})", num::short(figure.value), num::short(figure.low), num::short(figure.high))
    });
    format!("{}, {size} {}: {value}", line.name, chart.x)
}

/// The chart in words, for those who cannot see it.
fn spoken(chart: &Chart<'_>) -> String {
    let points = chart.lines.iter().flat_map(|line| (0..chart.sizes.len()).map(move |at| words(chart, line, at)));
    format!("{}, {}: {}", chart.name, chart.y, points.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[&[Option<f64>]]) -> Chart<'static> {
        let of = |value: &Option<f64>| value.map(|value| Figure { value, low: value * 0.9, high: value * 1.1 });
        let line = |(i, values): (usize, &&[Option<f64>])| Line {
            name: format!("line {i}"),
            figures: values.iter().map(of).collect(),
        };
        Chart {
            name: "a <chart>".into(),
            x: "pages",
            y: "ns",
            sizes: (0..values.first().map_or(0, |first| first.len())).map(|i| (1 << i).to_string()).collect(),
            lines: values.iter().enumerate().map(line).collect(),
        }
    }

    #[test]
    fn every_figure_is_drawn_in_its_lines_colour() {
        let html = figure(&chart(&[&[Some(100.0), Some(150.0), Some(200.0)], &[Some(120.0), None, Some(90.0)]]));
        assert_eq!(
            (html.matches("<circle class=\"s1\"").count(), html.matches("<circle class=\"s2\"").count()),
            (3, 2)
        );
        // A figure that is not there breaks its line.
        let paths: Vec<&str> = html.split("<path").skip(1).collect();
        assert_eq!((paths[0].matches('L').count(), paths[1].matches('L').count()), (2, 0), "{html}");
        assert!(html.contains("a &lt;chart&gt;") && html.contains("line 1, 2 pages: –"), "{html}");
        assert!(figure(&chart(&[])).is_empty() && figure(&chart(&[&[None]])).is_empty());
    }

    #[test]
    fn what_differs_much_stands_on_a_logarithmic_axis() {
        let scale = |values: &[Option<f64>]| Scale::of(&chart(&[values])).expect("figures");
        let names = |scale: &Scale| scale.ticks().into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ");
        assert_eq!(names(&scale(&[Some(100.0), Some(5000.0)])), "100 200 500 1,000 2,000 5,000");
        assert_eq!(names(&scale(&[Some(100.0), Some(400.0)])), "0 100 200 300 400");
        // Below 0 there is no logarithm.
        assert!(matches!(scale(&[Some(-1.0), Some(5000.0)]), Scale::Linear(_)));
        let log = scale(&[Some(1.0), Some(100.0)]);
        assert!(log.at(1.0) > log.at(10.0) && log.at(10.0) > log.at(100.0));
    }
}
