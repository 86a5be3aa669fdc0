//! Tables as data: columns, rows of cells, groups, remarks, and how much of them is shown where.

use crate::line::Paint;
use crate::{num, text};

/// Rows that a page shows at most.
const PAGE_ROWS: usize = 1000;

/// A table: columns, then rows of as many cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<TableRow>,
    pub(crate) shown: Option<Shown>,
    pub(crate) page_rows: usize,
    /// The option by which a command prints all rows.
    pub(crate) all_by: &'static str,
    pub(crate) rest: Option<Rest>,
    pub(crate) split: bool,
}

/// Rows that a terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Where there is room.
    pub most: usize,
    /// Where the screen is full.
    pub least: usize,
}

/// What the rows that are not shown are called.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rest {
    pub singular: String,
    pub plural: String,
    /// The column of shares whose rest is said, and what remains when all rows are shown.
    pub share: Option<(usize, String)>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub(crate) header: String,
    pub(crate) right: bool,
    pub(crate) fit: Fit,
    pub(crate) optional: Option<u32>,
    pub(crate) last: bool,
    pub(crate) remark: bool,
}

/// What becomes of a column's text where it has not enough room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Whole,
    /// Wants so many columns before any optional column gets room.
    CutMiddle(usize),
    Wrap,
}

impl Column {
    /// For text.
    pub fn left(header: impl Into<String>) -> Self {
        let header = text::clean(&header.into());
        Self { header, right: false, fit: Fit::Whole, optional: None, last: false, remark: false }
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

    /// May be left out where a terminal's room lacks; the highest rank goes first.
    #[must_use]
    pub fn optional(self, rank: u32) -> Self {
        Self { optional: Some(rank), ..self }
    }

    /// Stands last on a terminal, wherever it stands on the page: a long name that is cut.
    #[must_use]
    pub fn last(self) -> Self {
        Self { last: true, ..self }
    }

    /// On a terminal, its text stands below its row, wrapped.
    #[must_use]
    pub fn remark(self) -> Self {
        Self { remark: true, ..self }
    }
}

/// One cell; text from anywhere, made harmless here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    pub(crate) text: String,
    pub(crate) paint: Paint,
    pub(crate) value: Option<f64>,
    pub(crate) bar: Option<Bar>,
}

impl Cell {
    /// A cell in this paint.
    pub fn painted(paint: Paint, text: impl AsRef<str>) -> Self {
        Self { text: text::clean(text.as_ref()), paint, ..Self::default() }
    }

    /// A number: what it is sorted by, how it is written.
    pub fn number(value: f64, text: impl AsRef<str>) -> Self {
        Self { value: Some(value), ..Self::from(text) }
    }

    /// A count with all its digits.
    pub fn count(n: u64) -> Self {
        Self::number(n as f64, num::grouped(n))
    }

    /// A count or an amount of cycles in three digits.
    pub fn short(x: f64) -> Self {
        Self::number(x, num::short(x))
    }

    /// A rate in three digits.
    pub fn rate(x: f64) -> Self {
        Self::number(x, num::rate(x))
    }

    /// A share, 1 = all, in percent.
    pub fn share(x: f64) -> Self {
        Self::number(x, num::percent(x))
    }

    /// A time in seconds.
    pub fn seconds(s: f64) -> Self {
        Self::number(s, num::seconds(s))
    }

    /// A time in nanoseconds.
    pub fn nanoseconds(ns: f64) -> Self {
        Self::number(ns, num::seconds(ns / 1e9))
    }

    /// A size in bytes.
    pub fn bytes(n: u64) -> Self {
        Self::number(n as f64, num::bytes(n))
    }

    /// Something that may not be there: a dash, sorted below all numbers.
    pub fn none() -> Self {
        Self::number(f64::NAN, num::NONE)
    }

    /// `cell` of it, or a dash.
    pub fn optional<T>(what: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        what.map_or_else(Self::none, cell)
    }

    /// In this paint.
    #[must_use]
    pub fn paint(self, paint: Paint) -> Self {
        Self { paint, ..self }
    }

    /// With a bar beside it.
    #[must_use]
    pub fn bar(self, bar: Bar) -> Self {
        Self { bar: Some(bar), ..self }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::painted(Paint::Plain, text)
    }
}

/// A bar of one or two parts, each a share of its length.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    pub(crate) parts: Vec<(f64, Fill)>,
}

/// What a part of a bar means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    First,
    Second,
    Worse,
}

impl Bar {
    /// A share of the whole.
    pub fn of(share: f64) -> Self {
        Self { parts: vec![(share, Fill::First)] }
    }

    /// Two shares one after the other, the second paler.
    pub fn of_two(first: f64, second: f64) -> Self {
        Self { parts: vec![(first, Fill::First), (second, Fill::Second)] }
    }

    /// A saving; what it costs is in the colour of a warning.
    pub fn saving(saved: f64) -> Self {
        Self { parts: vec![(saved.abs(), if saved < 0.0 { Fill::Worse } else { Fill::First })] }
    }

    /// All parts together.
    pub(crate) fn total(&self) -> f64 {
        self.parts.iter().map(|(share, _)| *share).sum()
    }
}

/// A row, or what stands between rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TableRow {
    Cells(Vec<Cell>),
    /// Begins a group: an empty line (unless it is the first row), then these cells.
    Group(Vec<Cell>),
    /// Goes below its row, wrapped.
    Below(Paint, String),
}

impl Table {
    /// An empty table.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        let columns = columns.into_iter().collect();
        Self {
            caption: String::new(),
            columns,
            rows: Vec::new(),
            shown: None,
            page_rows: PAGE_ROWS,
            all_by: "--json",
            rest: None,
            split: false,
        }
    }

    /// What it shows: above it on the page, and read out by screen readers.
    #[must_use]
    pub fn caption(self, caption: impl AsRef<str>) -> Self {
        Self { caption: text::clean(caption.as_ref()), ..self }
    }

    /// A terminal shows `most` rows, and at least `least` where a screen is full; `most` gives way to the rows that
    /// were asked for.
    #[must_use]
    pub fn shown(self, most: usize, least: usize) -> Self {
        Self { shown: Some(Shown { most, least }), ..self }
    }

    /// The option by which all rows are printed, where `--json` alone leaves them out.
    #[must_use]
    pub fn all_by(self, option: &'static str) -> Self {
        Self { all_by: option, ..self }
    }

    /// What rows are called (one, several) where some are left out.
    #[must_use]
    pub fn of(self, singular: impl Into<String>, plural: impl Into<String>) -> Self {
        Self { rest: Some(Rest { singular: singular.into(), plural: plural.into(), share: None }), ..self }
    }

    /// What rows are called (one, several) where some are left out; a line says the rest of the shares in a column, and
    /// what that rest is called when all rows are shown.
    #[must_use]
    pub fn of_shares(self, rows: [&str; 2], column: usize, remainder: impl Into<String>) -> Self {
        let [singular, plural] = rows.map(Into::into);
        Self { rest: Some(Rest { singular, plural, share: Some((column, remainder.into())) }), ..self }
    }

    /// Columns that do not fit beside each other go below, the first repeated.
    #[must_use]
    pub fn split(self) -> Self {
        Self { split: true, ..self }
    }

    /// Adds a row; missing cells are empty, those too many are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells = self.complete(cells);
        self.rows.push(TableRow::Cells(cells));
    }

    /// Begins a group, set off by an empty line, whose columns are headed by these cells.
    pub fn group(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells = self.complete(cells);
        self.rows.push(TableRow::Group(cells));
    }

    fn complete(&self, cells: impl IntoIterator<Item = Cell>) -> Vec<Cell> {
        let mut cells: Vec<Cell> = cells.into_iter().collect();
        cells.resize(self.columns.len(), Cell::default());
        cells
    }

    /// Adds a remark below the last row, wrapped, a little indented.
    pub fn below(&mut self, paint: Paint, remark: impl AsRef<str>) {
        self.rows.push(TableRow::Below(paint, text::clean(remark.as_ref())));
    }

    /// No rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Rows of cells.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row, TableRow::Cells(_))).count()
    }
}
