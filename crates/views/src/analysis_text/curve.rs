//! Misses over TLB size in a terminal: a small log-log plot of braille dots, or one line of numbers.

use lookaside_techniques::MissCurve;

use crate::analysis_facts as facts;
use lookaside_report::num;
use lookaside_report::{Line, Paint};

/// Columns left of the plot: a rate of up to seven columns and the axis.
const LABEL: usize = 9;

/// Fewest decades on the vertical axis.
const MIN_DECADES: f64 = 1.0;

/// The plot in `width` columns and `height` rows of dots, with a line of its own for each of the
/// machine's TLB levels (level, entries). Empty if there is nothing to draw.
pub fn plot(curve: &MissCurve, levels: &[(u32, u64)], width: usize, height: usize) -> Vec<Line> {
    let points = facts::curve_points(curve);
    let (Some(axes), true) = (Axes::around(&points, levels), width > LABEL + 16 && height > 1) else {
        return Vec::new();
    };
    let columns = width - LABEL;
    let marks: Vec<(usize, String)> = levels
        .iter()
        .map(|&(level, entries)| (axes.column(entries as f64, columns), format!("L{level} {}", num::grouped(entries))))
        .collect();
    let canvas = Canvas::drawn(&points, &axes, columns, height);

    let title = if curve.estimate {
        "misses per 1,000 over TLB entries (ESTIMATE, LRU)"
    } else {
        "misses per 1,000 accesses over TLB entries (LRU)"
    };
    let mut lines = vec![Line::of(Paint::Dim, title)];
    lines.push(labels(&marks, columns, Paint::Warn));
    for row in 0..height {
        let label = match row {
            0 => num::rate(10f64.powf(axes.top)),
            r if r == height - 1 => num::rate(10f64.powf(axes.bottom)),
            r if r == (height - 1) / 2 => {
                let middle = axes.top - (axes.top - axes.bottom) * (r as f64 / (height - 1) as f64);
                num::rate(10f64.powf(middle))
            }
            _ => String::new(),
        };
        let mut line = Line::of(Paint::Dim, format!("{label:>7} ┤"));
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
        lines.push(line);
    }
    lines.push(labels(&axes.ticks(columns), columns, Paint::Dim));
    lines
}

/// The curve in one line: misses per thousand accesses at a few sizes and at the machine's own.
pub fn in_words(curve: &MissCurve, levels: &[(u32, u64)]) -> Option<String> {
    let points = facts::curve_points(curve);
    let last = points.last()?.0;
    let mut sizes: Vec<(u64, String)> = (1..12)
        .map(|i| 4u64 << (2 * i))
        .filter(|&entries| entries as f64 <= last)
        .map(|entries| (entries, num::grouped(entries)))
        .collect();
    for &(level, entries) in levels {
        sizes.retain(|(size, _)| *size != entries);
        sizes.push((entries, format!("{} (L{level})", num::grouped(entries))));
    }
    sizes.sort();
    let values: Vec<String> = sizes
        .iter()
        .filter_map(|(entries, label)| Some(format!("{label}: {}", num::rate(at(&points, *entries as f64)?))))
        .collect();
    if values.is_empty() {
        return None;
    }
    let what = if curve.estimate { "Estimated misses per 1,000" } else { "Misses per 1,000 accesses" };
    Some(format!("{what} by TLB entries (LRU, fully associative): {}", values.join(" · ")))
}

/// The step function at `entries`; `None` before its first point.
fn at(points: &[(f64, f64)], entries: f64) -> Option<f64> {
    points.iter().take_while(|(x, _)| *x <= entries).last().map(|(_, y)| *y)
}

/// Bounds of the plot: log2 of entries, log10 of the rate.
struct Axes {
    left: f64,
    right: f64,
    bottom: f64,
    top: f64,
}

impl Axes {
    fn around(points: &[(f64, f64)], levels: &[(u32, u64)]) -> Option<Self> {
        let positive: Vec<f64> = points.iter().map(|(_, y)| *y).filter(|&y| y > 0.0).collect();
        let highest = positive.iter().copied().reduce(f64::max)?;
        let lowest = positive.iter().copied().reduce(f64::min)?;
        let sizes = points.iter().map(|(x, _)| *x).chain(levels.iter().map(|l| (l.1 as f64).max(1.0)));
        let left = sizes.clone().reduce(f64::min)?.log2();
        let right = sizes.reduce(f64::max)?.log2();
        let top = highest.log10();
        Some(Self { left, right: right.max(left + 1.0), bottom: lowest.log10().min(top - MIN_DECADES), top })
    }

    fn column(&self, entries: f64, columns: usize) -> usize {
        self.dot_column(entries, columns) / 2
    }

    fn dot_column(&self, entries: f64, columns: usize) -> usize {
        let x = (entries.max(1.0).log2() - self.left) / (self.right - self.left);
        (x.clamp(0.0, 1.0) * (2 * columns - 1) as f64).round() as usize
    }

    fn dot_row(&self, rate: f64, rows: usize) -> usize {
        let y = if rate > 0.0 { (self.top - rate.log10()) / (self.top - self.bottom) } else { 1.0 };
        (y.clamp(0.0, 1.0) * (4 * rows - 1) as f64).round() as usize
    }

    fn ticks(&self, columns: usize) -> Vec<(usize, String)> {
        (0..64)
            .step_by(2)
            .filter(|&power| (self.left..=self.right).contains(&f64::from(power)))
            .map(|power| {
                let entries = 1u64 << power;
                let label = match power {
                    0..=9 => entries.to_string(),
                    10..=19 => format!("{}Ki", entries >> 10),
                    20..=29 => format!("{}Mi", entries >> 20),
                    _ => format!("2^{power}"),
                };
                (self.column(entries as f64, columns), label)
            })
            .collect()
    }
}

/// A line below or above the plot with texts centred on their columns; those that would touch are left out.
fn labels(at: &[(usize, String)], columns: usize, paint: Paint) -> Line {
    let mut line = Line::new();
    line.pad_to(LABEL);
    for (column, label) in at {
        let start = LABEL + column.saturating_sub(label.len() / 2).min(columns.saturating_sub(label.len()));
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
    fn drawn(points: &[(f64, f64)], axes: &Axes, columns: usize, rows: usize) -> Self {
        let mut canvas = Self { columns, cells: vec![0; columns * rows] };
        let mut last: Option<(usize, usize)> = None;
        for &(x, y) in points {
            let (to_x, to_y) = (axes.dot_column(x, columns), axes.dot_row(y, rows));
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
        if let Some((from_x, y)) = last {
            for x in from_x..2 * columns {
                canvas.dot(x, y);
            }
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
