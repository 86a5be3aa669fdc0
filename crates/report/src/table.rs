//! Aligned text tables that fit a width.
//!
//! Columns that are too wide together give way in this order: optional columns are left out (highest
//! rank first), then flexible columns are narrowed (their text cut or wrapped), then lines are cut.

use crate::line::{self, Line, Paint, Style};
use crate::text;

/// Narrowest that a flexible column gets before lines are cut.
const FLEXIBLE_MIN: usize = 12;

/// Columns that a remark stands in from its row.
const REMARK_INDENT: usize = 2;

/// Spaces between columns.
const GAP: usize = 2;

/// A table: columns, then rows of as many cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    header: String,
    right: bool,
    fit: Fit,
    optional: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Whole,
    /// Wants so many columns before any optional column gets room.
    CutMiddle(usize),
    Wrap,
}

impl Column {
    /// For text.
    pub fn left(header: impl Into<String>) -> Self {
        Self { header: text::clean(&header.into()), right: false, fit: Fit::Whole, optional: None }
    }

    /// For numbers.
    pub fn right(header: impl Into<String>) -> Self {
        Self { right: true, ..Self::left(header) }
    }

    /// May be narrowed; its text then loses its middle. Optional columns are left out until this one
    /// has `wanted` columns or all its text.
    #[must_use]
    pub fn cut(self, wanted: usize) -> Self {
        Self { fit: Fit::CutMiddle(wanted), ..self }
    }

    /// May be narrowed; its text then goes on below.
    #[must_use]
    pub fn wrap(self) -> Self {
        Self { fit: Fit::Wrap, ..self }
    }

    /// May be left out where room lacks; the highest rank goes first.
    #[must_use]
    pub fn optional(self, rank: u32) -> Self {
        Self { optional: Some(rank), ..self }
    }
}

/// One cell; text from anywhere, made harmless here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    /// A cell in this paint.
    pub fn painted(paint: Paint, text: impl AsRef<str>) -> Self {
        Self { text: text::clean(text.as_ref()), paint }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::painted(Paint::Plain, text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Row {
    Cells(Vec<Cell>),
    /// Begins a section: an empty line (unless it is the first row), then these cells.
    Section(Vec<Cell>),
    /// Goes below its row, wrapped.
    Below(Paint, String),
}

impl Table {
    /// An empty table.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty, those too many are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells = self.complete(cells);
        self.rows.push(Row::Cells(cells));
    }

    /// Begins a section, set off by an empty line, whose columns are headed by these cells.
    pub fn section(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells = self.complete(cells);
        self.rows.push(Row::Section(cells));
    }

    fn complete(&self, cells: impl IntoIterator<Item = Cell>) -> Vec<Cell> {
        let mut cells: Vec<Cell> = cells.into_iter().collect();
        cells.resize(self.columns.len(), Cell::default());
        cells
    }

    /// Adds a remark below the last row, wrapped, a little indented.
    pub fn below(&mut self, paint: Paint, remark: impl AsRef<str>) {
        self.rows.push(Row::Below(paint, text::clean(remark.as_ref())));
    }

    /// No rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// No text has to be cut, nor a column left out, at this width (a wrapped column may wrap).
    pub fn fits(&self, width: usize) -> bool {
        let widths = (0..self.columns.len()).map(|c| match self.columns[c].fit {
            Fit::Wrap => self.natural_width(c).min(2 * FLEXIBLE_MIN),
            _ => self.natural_width(c),
        });
        widths.sum::<usize>() + GAP * self.columns.len().saturating_sub(1) <= width
    }

    /// The table as text.
    pub fn render(&self, style: &Style) -> String {
        line::render(&self.lines(style.columns()), style)
    }

    /// The table in lines of at most `width` columns, header first (none if all headers are empty).
    pub fn lines(&self, width: usize) -> Vec<Line> {
        let shown = self.shown_columns(width);
        let widths = self.fitted_widths(&shown, width);
        let mut lines = Vec::new();
        if shown.iter().any(|&c| !self.columns[c].header.is_empty()) {
            let header: Vec<Cell> =
                self.columns.iter().map(|column| Cell { text: column.header.clone(), paint: Paint::Dim }).collect();
            self.push_row(&mut lines, &header, &shown, &widths);
        }
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.push_row(&mut lines, cells, &shown, &widths),
                Row::Section(cells) => {
                    if !lines.is_empty() {
                        lines.push(Line::new());
                    }
                    self.push_row(&mut lines, cells, &shown, &widths);
                }
                Row::Below(paint, remark) => {
                    for part in text::wrap(remark, width.saturating_sub(REMARK_INDENT)) {
                        lines.push(Line::of(Paint::Plain, " ".repeat(REMARK_INDENT)).with(*paint, part));
                    }
                }
            }
        }
        for line in &mut lines {
            line.cut_to(width);
        }
        lines
    }

    fn shown_columns(&self, width: usize) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let least = |shown: &[usize]| -> usize {
            let widths = shown.iter().map(|&c| match self.columns[c].fit {
                Fit::Whole => self.natural_width(c),
                Fit::CutMiddle(wanted) => self.natural_width(c).min(wanted),
                Fit::Wrap => self.natural_width(c).min(2 * FLEXIBLE_MIN),
            });
            widths.sum::<usize>() + GAP * shown.len().saturating_sub(1)
        };
        while least(&shown) > width {
            let optional = shown.iter().filter_map(|&c| self.columns[c].optional.map(|rank| (rank, c))).max();
            let Some((_, column)) = optional else { break };
            shown.retain(|&c| c != column);
        }
        shown
    }

    fn natural_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) | Row::Section(cells) => Some(text::width(&cells[column].text)),
            Row::Below(..) => None,
        });
        cells.max().unwrap_or(0).max(text::width(&self.columns[column].header))
    }

    /// Narrows the widest flexible column, column by column, until all fit.
    fn fitted_widths(&self, shown: &[usize], width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = shown.iter().map(|&c| self.natural_width(c)).collect();
        let gaps = GAP * shown.len().saturating_sub(1);
        loop {
            let total = widths.iter().sum::<usize>() + gaps;
            if total <= width {
                return widths;
            }
            let flexible = (0..shown.len())
                .filter(|&i| self.columns[shown[i]].fit != Fit::Whole && widths[i] > FLEXIBLE_MIN)
                .max_by_key(|&i| widths[i]);
            let Some(widest) = flexible else { return widths };
            let second = (0..shown.len())
                .filter(|&i| i != widest && self.columns[shown[i]].fit != Fit::Whole)
                .map(|i| widths[i])
                .max()
                .unwrap_or(0);
            let step = (widths[widest] - second.max(FLEXIBLE_MIN).min(widths[widest] - 1)).min(total - width);
            widths[widest] -= step;
        }
    }

    fn push_row(&self, lines: &mut Vec<Line>, cells: &[Cell], shown: &[usize], widths: &[usize]) {
        let parts: Vec<Vec<String>> = shown
            .iter()
            .zip(widths)
            .map(|(&c, &width)| match self.columns[c].fit {
                Fit::Wrap => text::wrap(&cells[c].text, width),
                _ => vec![text::cut_middle(&cells[c].text, width)],
            })
            .collect();
        let height = parts.iter().map(Vec::len).max().unwrap_or(0).max(1);
        for i in 0..height {
            let mut line = Line::new();
            let mut start = 0;
            for ((&c, &width), parts) in shown.iter().zip(widths).zip(&parts) {
                let part = parts.get(i).map_or("", String::as_str);
                let indent = if self.columns[c].right { width.saturating_sub(text::width(part)) } else { 0 };
                line.pad_to(start + indent);
                line.push(cells[c].paint, part);
                start += width + GAP;
            }
            lines.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new([
            Column::right("misses"),
            Column::right("share").optional(1),
            Column::left("where").cut(16),
            Column::left("note").wrap(),
        ]);
        table.row([
            "12".into(),
            "5.0 %".into(),
            "/a/very/long/path/to/a/library/libsomething.so".into(),
            Cell::painted(Paint::Good, "short"),
        ]);
        table.row(["3,456".into(), "95.0 %".into(), "[heap]".into(), "a note of several words goes on below".into()]);
        table.below(Paint::Dim, "remark");
        table
    }

    #[test]
    fn wide_enough_nothing_is_lost() {
        let text = sample().render(&Style { width: 120, ..Style::default() });
        let expected = "\
misses   share  where                                           note
    12   5.0 %  /a/very/long/path/to/a/library/libsomething.so  short
 3,456  95.0 %  [heap]                                          a note of several words goes on below
  remark
";
        assert_eq!(text, expected);
    }

    #[test]
    fn narrow_columns_cut_and_wrap() {
        let text = sample().render(&Style { width: 60, ..Style::default() });
        let expected = "\
misses   share  where                  note
    12   5.0 %  /a/very/…something.so  short
 3,456  95.0 %  [heap]                 a note of several
                                       words goes on below
  remark
";
        assert_eq!(text, expected);
    }

    #[test]
    fn no_width_breaks_it() {
        for width in 0..200 {
            for line in sample().lines(width) {
                assert!(line.width() <= width, "{line:?} at {width}");
            }
        }
    }
}
