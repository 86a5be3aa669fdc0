//! Charts as text: a small plot of braille dots, or the points in a table with bars.

use crate::chart::{Bars, Chart, Lines, Look, Plot, Point, PointRow, Points, Range, Scale, Series};
use crate::line::{Line, Paint};
use crate::num;
use crate::table::{Bar, Cell, Column, Table};
use crate::text;

/// Columns left of a plot: a number of up to seven columns and the axis.
const LABEL: usize = 9;

/// Most rows of a line in a table.
const ROWS: usize = 16;

/// Columns of a drawn interval.
const INTERVAL: usize = 30;

/// The chart in `width` columns and `height` rows of dots, with a line of its own for each of its marks. Empty if it is
/// no chart of steps over a logarithmic axis, or there is no room.
pub fn braille(chart: &Chart, width: usize, height: usize) -> Vec<Line> {
    let Plot::Lines(lines) = &chart.plot else { return Vec::new() };
    let curve = lines.series.iter().find(|series| series.look == Look::Step);
    let (Some(curve), Some(ranges)) = (curve, lines.ranges()) else { return Vec::new() };
    if lines.x.scale != Scale::Log2 || width <= LABEL + 16 || height < 2 {
        return Vec::new();
    }
    let columns = width - LABEL;
    let column = |share: f64| ((share * (2 * columns - 1) as f64).round() as usize) / 2;
    let marks: Vec<(usize, String)> =
        lines.marks.iter().map(|mark| (column(ranges.x.at(mark.at)), text::clean(&mark.name))).collect();
    let canvas = Canvas::drawn(curve, &ranges.x, &ranges.y, columns, height);
    let mut names = vec![String::new(); height];
    for (at, name) in ranges.y.ticks(height / 2) {
        names[((1.0 - at) * (height - 1) as f64).round() as usize] = name;
    }
    let mut out = vec![Line::of(Paint::Dim, text::cut_end(&text::clean(&chart.title), width))];
    out.push(labels(&marks, columns, Paint::Warn));
    for (row, name) in names.into_iter().enumerate() {
        let mut line = Line::of(Paint::Dim, format!("{name:>7} ┤"));
        for column in 0..columns {
            let dots = canvas.cell(column, row);
            if dots != '\u{2800}' {
                line.push(Paint::Mark, dots);
            } else if marks.iter().any(|(at, _)| *at == column) {
                line.push(Paint::Warn, "┊");
            } else {
                line.push(Paint::Plain, " ");
            }
        }
        out.push(line);
    }
    let ticks = ranges.x.ticks(columns / 5).into_iter().map(|(at, name)| (column(at), name));
    out.push(labels(&ticks.collect::<Vec<_>>(), columns, Paint::Dim));
    out
}

/// A line below or above the plot with texts centred on their columns; those that would touch are left out.
fn labels(at: &[(usize, String)], columns: usize, paint: Paint) -> Line {
    let mut line = Line::new();
    line.pad_to(LABEL);
    for (column, label) in at {
        let width = text::width(label);
        let start = LABEL + column.saturating_sub(width / 2).min(columns.saturating_sub(width));
        if line.width() == LABEL || start > line.width() {
            line.pad_to(start);
            line.push(paint, label.clone());
        }
    }
    line
}

/// Braille cells: 2 dots by 4 each.
struct Canvas {
    columns: usize,
    cells: Vec<u8>,
}

impl Canvas {
    /// The step function through the points.
    fn drawn(series: &Series, x_range: &Range, y_range: &Range, columns: usize, rows: usize) -> Self {
        let mut canvas = Self { columns, cells: vec![0; columns * rows] };
        let mut last: Option<(usize, usize)> = None;
        for point in series.points.iter().filter(|point| point.y.is_finite()) {
            let to_x = (x_range.at(point.x) * (2 * columns - 1) as f64).round() as usize;
            let to_y = ((1.0 - y_range.at(point.y)) * (4 * rows - 1) as f64).round() as usize;
            if let Some((from_x, from_y)) = last {
                for x in from_x..=to_x {
                    canvas.dot(x, from_y);
                }
                for y in from_y.min(to_y)..=from_y.max(to_y) {
                    canvas.dot(to_x, y);
                }
            }
            canvas.dot(to_x, to_y);
            last = Some((to_x, to_y));
        }
        canvas
    }

    fn dot(&mut self, x: usize, y: usize) {
        /// Bits of a braille character (U+2800 + bits) by row and column of the dot: Unicode's chart of the block.
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        self.cells[y / 4 * self.columns + x / 2] |= BITS[y % 4][x % 2];
    }

    fn cell(&self, column: usize, row: usize) -> char {
        char::from_u32(0x2800 + u32::from(self.cells[row * self.columns + column])).unwrap_or(' ')
    }
}

/// The chart's points below its title.
pub fn points(chart: &Chart, width: usize) -> Vec<Line> {
    let mut lines = match &chart.plot {
        Plot::Lines(plot) => of_lines(plot).lines(width),
        Plot::Bars(plot) => return of_bars(&chart.title, plot, width),
        Plot::Points(plot) => of_points(plot).lines(width),
        Plot::Heat(_) => return Vec::new(),
    };
    if !lines.is_empty() && !chart.title.is_empty() {
        lines.insert(0, Line::of(Paint::Dim, text::cut_end(&text::clean(&chart.title), width)));
    }
    lines
}

/// Some of the points, evenly, the first and the last among them: of one line with intervals and bars, of several
/// beside each other.
fn of_lines(plot: &Lines) -> Table {
    let series: Vec<&Series> = plot.series.iter().filter(|series| series.look != Look::Ghost).collect();
    let single = series.len() == 1;
    let mut columns = vec![Column::right(&plot.x.name)];
    columns.extend(series.iter().map(|of| Column::right(if single { &plot.y.name } else { &of.name })));
    let intervals = single && series.iter().any(|of| of.points.iter().any(|point| point.interval.is_some()));
    if intervals {
        columns.push(Column::left("interval"));
    }
    let mut table = Table::new(columns);
    let Some(longest) = series.iter().max_by_key(|of| of.points.len()) else { return table };
    let most = longest.points.iter().map(|point| point.y).filter(|y| y.is_finite()).fold(0.0, f64::max);
    let last = longest.points.len().saturating_sub(1);
    let rows = ROWS.min(longest.points.len());
    for row in 0..rows {
        let at = row * last / rows.saturating_sub(1).max(1);
        let mut cells = vec![Cell::from(longest.points[at].x_label())];
        for of in &series {
            let point = of.points.get(at);
            let cell = Cell::optional(point, |point| Cell::rate(point.y));
            cells.push(match point {
                Some(point) if single => cell.bar(Bar::of(point.y / most)),
                _ => cell,
            });
        }
        if intervals {
            let words = |(low, high)| format!("{} – {}", num::rate(low), num::rate(high));
            cells.push(longest.points[at].interval.map(words).unwrap_or_default().into());
        }
        table.row(cells);
    }
    table
}

/// A line a bar: its parts in words.
fn of_bars(title: &str, plot: &Bars, width: usize) -> Vec<Line> {
    let rows = plot.rows.iter().filter(|row| row.whole() > 0.0);
    let words = rows.map(|row| {
        let label = if row.label.is_empty() { String::new() } else { format!(", {}", row.label) };
        crate::RichText::painted(Paint::Dim, format!("{title}{label}: ")).plain(row.spoken())
    });
    words.flat_map(|words| words.wrap(width)).collect()
}

/// A row each: the value with its interval, and both drawn.
fn of_points(plot: &Points) -> Table {
    let mut table = Table::new([Column::left("").cut(24), Column::right(&plot.x.name), Column::left("").optional(1)]);
    let Some(range) = plot.range() else { return table };
    for row in &plot.rows {
        let value = row.value.as_ref().filter(|point| point.y.is_finite());
        let words = value.map(Point::value_in_words).or(row.middle.map(num::rate)).unwrap_or_default();
        table.row([Cell::from(&row.label), words.into(), Cell::painted(Paint::Mark, interval(plot, row, &range))]);
    }
    table
}

/// `├──●──┤` on a line with the reference.
fn interval(plot: &Points, row: &PointRow, range: &Range) -> String {
    let mut drawn = vec![' '; INTERVAL];
    let column = |value: f64| (range.at(value) * (INTERVAL - 1) as f64).round() as usize;
    if let Some(reference) = plot.reference {
        drawn[column(reference)] = '┊';
    }
    for (single, _) in row.singles.iter().filter(|(single, _)| single.is_finite()) {
        drawn[column(*single)] = '·';
    }
    if let Some(point) = row.value.as_ref().filter(|point| point.y.is_finite()) {
        if let Some((low, high)) = point.interval {
            drawn[column(low)..=column(high)].fill('─');
            drawn[column(low)] = '├';
            drawn[column(high)] = '┤';
        }
        drawn[column(point.y)] = '●';
    }
    if let Some(middle) = row.middle {
        drawn[column(middle)] = '│';
    }
    drawn.into_iter().collect()
}
