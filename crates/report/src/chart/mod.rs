//! Charts as data, their axes, and their drawing as SVG. A terminal draws the same data as text.
//!
//! [`svg()`] draws a chart for any width, light or dark: lines lie in a stretched inner drawing with strokes that are
//! not scaled, texts are placed by percentages and keep their size, and colours are the page's classes.

mod axis;
mod bars;
mod heat;
mod lines;
mod points;
mod svg;
mod svg_parts;

pub(crate) use axis::Range;
pub(crate) use svg::legend;
pub use svg::svg;

use crate::num;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// The same in words: for those who cannot see it, and for a terminal without plots. Empty = its points one by one.
    pub words: String,
    /// What is drawn.
    pub plot: Plot,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Values over another.
    Lines(Lines),
    /// Shares of wholes, stacked.
    Bars(Bars),
    /// Values with intervals, a row each.
    Points(Points),
    /// Counts by column and row.
    Heat(Heat),
}

/// What an axis shows and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What it is, with its unit: `ns a switch`.
    pub name: String,
    /// How values are placed.
    pub scale: Scale,
}

/// How values are placed on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// At their distances.
    Linear,
    /// By logarithm, named at powers of two.
    Log2,
    /// By logarithm, named at decimal numbers.
    Log10,
    /// From 0 at their distances, or by logarithm where all are above 0 and differ by more than ten times.
    Auto,
    /// One after the other at even distances, each with its label.
    Even,
}

/// Lines over an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// The lines; five have colours of their own.
    pub series: Vec<Series>,
    /// Values of x with a name: a machine's sizes.
    pub marks: Vec<Mark>,
    /// Values of y with a name.
    pub levels: Vec<Mark>,
    /// Least and greatest x, where several charts are to have the same.
    pub x_range: Option<(f64, f64)>,
    /// Least and greatest y, where several charts are to have the same.
    pub y_range: Option<(f64, f64)>,
    /// How large it is drawn.
    pub size: Size,
}

/// How large a chart is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// As wide as its section.
    Large,
    /// Two or three beside each other.
    #[default]
    Small,
    /// Many beside each other, without marks.
    Mini,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// In ascending x, or in order for [`Scale::Even`]. A value that is not finite breaks the line.
    pub points: Vec<Point>,
    /// How it looks.
    pub look: Look,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Straight from point to point, with dots.
    #[default]
    Line,
    /// A step function; dots where they are far enough apart.
    Step,
    /// Dashed, with rings: what was modelled.
    Model,
    /// A dotted step function behind the others.
    Ghost,
    /// Dots alone.
    Dots,
}

/// A point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// The interval of y, if there is one; its lower end first.
    pub(crate) interval: Option<(f64, f64)>,
    /// What x is, in words; empty = its number.
    pub label: String,
}

/// A value with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Where.
    pub at: f64,
    /// What; may be empty.
    pub name: String,
}

/// Stacked bars, each of shares of its own whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// What parts are counts of.
    pub unit: String,
    /// The bars.
    pub rows: Vec<BarRow>,
    /// The part that has the colour of what hurts.
    pub hot: String,
}

/// One bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarRow {
    /// Before it.
    pub label: String,
    /// Behind it: the whole, in words.
    pub value: String,
    /// Names and counts, in the same order in all bars.
    pub parts: Vec<(String, f64)>,
}

/// Values with intervals around a reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Across.
    pub x: Axis,
    /// Where there is no difference.
    pub reference: Option<f64>,
    /// The rows.
    pub rows: Vec<PointRow>,
}

/// A row of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointRow {
    /// What it is.
    pub label: String,
    /// Its value with an interval: a dot on a bar.
    pub value: Option<Point>,
    /// Single values: rings, with what each is.
    pub singles: Vec<(f64, String)>,
    /// A bar across the row.
    pub middle: Option<f64>,
}

/// Counts by column and row, in bands of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// What columns are; it ends at [`Heat::x_end`].
    pub x: String,
    /// What the right edge stands for; the left is 0.
    pub x_end: f64,
    /// What a cell counts: `accesses in a cell`.
    pub unit: String,
    /// Columns of each row.
    pub columns: usize,
    /// From top to bottom.
    pub bands: Vec<HeatBand>,
}

/// Neighbouring rows that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatBand {
    /// Beside it.
    pub name: String,
    /// More of it, in words.
    pub words: String,
    /// Counts, by row and column.
    pub rows: Vec<Vec<u64>>,
}

impl Chart {
    /// A chart of lines.
    pub fn lines(title: impl Into<String>, lines: Lines) -> Self {
        Self { title: title.into(), words: String::new(), plot: Plot::Lines(lines) }
    }

    /// A chart of stacked bars.
    pub fn bars(title: impl Into<String>, bars: Bars) -> Self {
        Self { title: title.into(), words: String::new(), plot: Plot::Bars(bars) }
    }

    /// A chart of values with intervals.
    pub fn points(title: impl Into<String>, points: Points) -> Self {
        Self { title: title.into(), words: String::new(), plot: Plot::Points(points) }
    }

    /// A heat map.
    pub fn heat(title: impl Into<String>, heat: Heat) -> Self {
        Self { title: title.into(), words: String::new(), plot: Plot::Heat(heat) }
    }

    /// The same in words.
    #[must_use]
    pub fn in_words(self, words: impl Into<String>) -> Self {
        Self { words: words.into(), ..self }
    }

    /// Nothing can be drawn.
    pub fn is_empty(&self) -> bool {
        match &self.plot {
            Plot::Lines(lines) => lines.ranges().is_none(),
            Plot::Bars(bars) => bars.rows.iter().all(|row| row.whole() <= 0.0),
            Plot::Points(points) => points.range().is_none(),
            Plot::Heat(heat) => heat.most() == 0,
        }
    }

    /// One of many small ones.
    pub(crate) fn is_mini(&self) -> bool {
        matches!(&self.plot, Plot::Lines(lines) if lines.size == Size::Mini)
    }

    /// What the values of lines are, where the title does not say so and there is room.
    pub(crate) fn unit(&self) -> Option<&str> {
        let Plot::Lines(lines) = &self.plot else { return None };
        let is_said = self.title.to_lowercase().contains(&lines.y.name.to_lowercase());
        (lines.size != Size::Mini && !is_said).then_some(lines.y.name.as_str())
    }

    /// The chart in words, for those who cannot see it.
    pub fn spoken(&self) -> String {
        if !self.words.is_empty() {
            return self.words.clone();
        }
        let points = match &self.plot {
            Plot::Lines(lines) => lines.series.iter().flat_map(|series| lines.spoken(series)).collect(),
            Plot::Bars(bars) => bars.rows.iter().map(BarRow::spoken).collect(),
            Plot::Points(points) => points.rows.iter().map(PointRow::spoken).collect::<Vec<String>>(),
            Plot::Heat(heat) => heat.bands.iter().map(|band| band.words.clone()).collect(),
        };
        format!("{}: {}", self.title, points.join("; "))
    }
}

impl Axis {
    /// An axis.
    pub fn new(name: impl Into<String>, scale: Scale) -> Self {
        Self { name: name.into(), scale }
    }
}

impl Lines {
    /// A small chart without lines.
    pub fn new(x: Axis, y: Axis) -> Self {
        Self {
            x,
            y,
            series: Vec::new(),
            marks: Vec::new(),
            levels: Vec::new(),
            x_range: None,
            y_range: None,
            size: Size::Small,
        }
    }

    /// With a line more.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Most points that are said one by one; a longer line says its ends.
    const SPOKEN: usize = 64;

    fn spoken(&self, series: &Series) -> Vec<String> {
        let points = &series.points;
        let all: Vec<&Point> = match points.len() > Self::SPOKEN {
            true => points.first().into_iter().chain(points.last()).collect(),
            false => points.iter().collect(),
        };
        all.into_iter().map(|point| self.point_in_words(series, point)).collect()
    }

    /// A point in words.
    pub(crate) fn point_in_words(&self, series: &Series, point: &Point) -> String {
        let name = if series.name.is_empty() { String::new() } else { format!("{}, ", series.name) };
        format!("{name}{} {}: {}", point.x_label(), self.x.name, point.value_in_words())
    }
}

impl Series {
    /// A line of points.
    pub fn new(name: impl Into<String>, points: Vec<Point>) -> Self {
        Self { name: name.into(), points, look: Look::Line }
    }

    /// That looks so.
    #[must_use]
    pub fn look(self, look: Look) -> Self {
        Self { look, ..self }
    }
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }

    /// With the interval of its y; without one if an end is no finite number.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Self {
        let finite = low.is_finite() && high.is_finite();
        Self { interval: finite.then_some((low.min(high), low.max(high))), ..self }
    }

    /// With what x is, in words.
    #[must_use]
    pub fn labelled(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// What x is.
    pub(crate) fn x_label(&self) -> String {
        if !self.label.is_empty() {
            return self.label.clone();
        }
        match self.x.fract() == 0.0 && (0.0..1e15).contains(&self.x) {
            true => num::grouped(self.x as u64),
            false => num::rate(self.x),
        }
    }

    pub(crate) fn value_in_words(&self) -> String {
        match self.interval {
            Some((low, high)) => format!("{} ({} – {})", num::rate(self.y), num::rate(low), num::rate(high)),
            None => num::rate(self.y),
        }
    }
}

impl Mark {
    /// A value with a name.
    pub fn new(at: f64, name: impl Into<String>) -> Self {
        Self { at, name: name.into() }
    }
}

impl BarRow {
    /// All parts together; what is no positive number does not count.
    pub(crate) fn whole(&self) -> f64 {
        self.parts.iter().map(|(_, part)| *part).filter(|part| part.is_finite() && *part > 0.0).sum()
    }

    /// Each part's name and share.
    pub(crate) fn shares(&self) -> Vec<(&str, f64)> {
        let whole = self.whole();
        self.parts.iter().map(|(name, part)| (name.as_str(), num::share(*part, whole))).collect()
    }

    /// The parts in words.
    pub(crate) fn spoken(&self) -> String {
        let shares = self.shares().into_iter().map(|(name, share)| format!("{name} {}", num::percent(share)));
        shares.collect::<Vec<_>>().join(" · ")
    }
}

impl PointRow {
    fn spoken(&self) -> String {
        let value = self.value.as_ref().map(Point::value_in_words);
        let singles = self.singles.iter().map(|(_, words)| words.clone());
        format!("{}: {}", self.label, value.into_iter().chain(singles).collect::<Vec<_>>().join(", "))
    }
}
