//! Aligned text tables that fit a width.
//!
//! Columns that are too wide together give way in this order: optional columns are left out (highest
//! rank first), then flexible columns are narrowed (their text cut or wrapped), then lines are cut.

use crate::line::{self, Line, Paint, Style};
use crate::table::{Bar, Cell, Column, Fit, Table, TableRow};
use crate::{num, text};

/// Narrowest that a flexible column gets before lines are cut.
const FLEXIBLE_MIN: usize = 12;

/// Columns that a remark stands in from its row.
const REMARK_INDENT: usize = 2;

/// Spaces between columns.
const GAP: usize = 2;

/// Columns of a bar that stands for all, and the rank by which bars are left out.
const BAR: usize = 8;
const BAR_RANK: u32 = 5;

/// Shares below which a rest is not worth a line.
const REST: f64 = 0.0005;

impl Table {
    /// The table as text.
    pub fn render(&self, style: &Style) -> String {
        line::render(&self.lines(style.columns()), style)
    }

    /// The table in lines of at most `width` columns, header first (none if all headers are empty).
    pub fn lines(&self, width: usize) -> Vec<Line> {
        self.lines_of(width, usize::MAX)
    }

    /// The same with so many rows at most; how many are left out is said.
    pub(crate) fn lines_of(&self, width: usize, rows: usize) -> Vec<Line> {
        let columns = self.columns.len();
        if self.split && columns > 2 && !TerminalGrid::of(self, rows).fits(width) {
            let half = 1 + columns / 2;
            let part = |range: std::ops::Range<usize>| self.with_columns(|c| c == 0 || range.contains(&c));
            let (first, second) = (part(1..half), part(half..columns));
            let mut lines = first.lines_of(width, rows);
            lines.push(Line::new());
            lines.extend(second.lines_of(width, rows));
            return lines;
        }
        let mut lines = TerminalGrid::of(self, rows).lines(width);
        let left_out = self.row_count().saturating_sub(rows);
        if left_out > 0 && self.rest.as_ref().is_none_or(|rest| rest.share.is_none()) {
            let [one, several] = match &self.rest {
                Some(rest) => [rest.singular.as_str(), rest.plural.as_str()],
                None => ["row", "rows"],
            };
            let what = if left_out == 1 { one } else { several };
            lines.push(Line::of(
                Paint::Dim,
                format!("{} more {what} with --html or --json", num::grouped(left_out as u64)),
            ));
        }
        lines
    }

    fn with_columns(&self, keep: impl Fn(usize) -> bool) -> Self {
        let cells = |cells: &Vec<Cell>| {
            cells.iter().enumerate().filter(|(c, _)| keep(*c)).map(|(_, cell)| cell.clone()).collect()
        };
        let rows = self.rows.iter().map(|row| match row {
            TableRow::Cells(of) => TableRow::Cells(cells(of)),
            TableRow::Group(of) => TableRow::Group(cells(of)),
            TableRow::Below(paint, remark) => TableRow::Below(*paint, remark.clone()),
        });
        let columns = self.columns.iter().enumerate().filter(|(c, _)| keep(*c)).map(|(_, column)| column.clone());
        Self { columns: columns.collect(), rows: rows.collect(), ..self.clone() }
    }
}

/// What a terminal shows of a table: bars as columns of their own, remarks below their rows.
struct TerminalGrid {
    columns: Vec<Column>,
    rows: Vec<TableRow>,
}

impl TerminalGrid {
    fn of(table: &Table, most: usize) -> Self {
        let bars: Vec<bool> = (0..table.columns.len()).map(|c| has_bars(table, c)).collect();
        let mut order: Vec<usize> = (0..table.columns.len()).filter(|&c| !table.columns[c].remark).collect();
        order.sort_by_key(|&c| table.columns[c].last);
        let mut columns = Vec::new();
        for &c in &order {
            columns.push(table.columns[c].clone());
            if bars[c] {
                columns.push(Column::left("").optional(BAR_RANK));
            }
        }
        let cells = |cells: &[Cell]| -> Vec<Cell> {
            let mut out = Vec::new();
            for &c in &order {
                out.push(cells[c].clone());
                if bars[c] {
                    let bar = cells[c].bar.as_ref().map(drawn).unwrap_or_default();
                    out.push(Cell::painted(Paint::Mark, bar));
                }
            }
            out
        };
        let mut rows = Vec::new();
        let mut shown = 0;
        for row in &table.rows {
            match row {
                TableRow::Cells(of) => {
                    shown += 1;
                    if shown > most {
                        break;
                    }
                    rows.push(TableRow::Cells(cells(of)));
                    let remarks =
                        of.iter().zip(&table.columns).filter(|(cell, column)| column.remark && !cell.text.is_empty());
                    rows.extend(remarks.map(|(cell, _)| TableRow::Below(cell.paint, cell.text.clone())));
                }
                TableRow::Group(of) => rows.push(TableRow::Group(cells(of))),
                TableRow::Below(paint, remark) => rows.push(TableRow::Below(*paint, remark.clone())),
            }
        }
        rows.extend(rest(table, most).map(|rest| TableRow::Cells(cells(&rest))));
        Self { columns, rows }
    }

    /// No text has to be cut, nor a column left out, at this width (a wrapped column may wrap).
    fn fits(&self, width: usize) -> bool {
        self.least_width(&(0..self.columns.len()).collect::<Vec<_>>()) <= width
    }

    /// The table in lines of at most `width` columns, header first (none if all headers are empty).
    fn lines(&self, width: usize) -> Vec<Line> {
        let shown = self.shown_columns(width);
        let widths = self.fitted_widths(&shown, width);
        let mut lines = Vec::new();
        if shown.iter().any(|&c| !self.columns[c].header.is_empty()) {
            let header: Vec<Cell> =
                self.columns.iter().map(|column| Cell::painted(Paint::Dim, &column.header)).collect();
            self.push_row(&mut lines, &header, &shown, &widths);
        }
        for row in &self.rows {
            match row {
                TableRow::Cells(cells) => self.push_row(&mut lines, cells, &shown, &widths),
                TableRow::Group(cells) => {
                    if !lines.is_empty() {
                        lines.push(Line::new());
                    }
                    self.push_row(&mut lines, cells, &shown, &widths);
                }
                TableRow::Below(paint, remark) => {
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
        while self.least_width(&shown) > width {
            let optional = shown.iter().filter_map(|&c| self.columns[c].optional.map(|rank| (rank, c))).max();
            let Some((_, column)) = optional else { break };
            shown.retain(|&c| c != column);
        }
        shown
    }

    /// Columns taken where flexible ones have no more than they want.
    fn least_width(&self, shown: &[usize]) -> usize {
        let widths = shown.iter().map(|&c| match self.columns[c].fit {
            Fit::Whole => self.natural_width(c),
            Fit::CutMiddle(wanted) => self.natural_width(c).min(wanted),
            Fit::Wrap => self.natural_width(c).min(2 * FLEXIBLE_MIN),
        });
        widths.sum::<usize>() + GAP * shown.len().saturating_sub(1)
    }

    fn natural_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| match row {
            TableRow::Cells(cells) | TableRow::Group(cells) => Some(text::width(&cells[column].text)),
            TableRow::Below(..) => None,
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

/// Some cell of the column has a bar.
fn has_bars(table: &Table, column: usize) -> bool {
    table.rows.iter().any(|row| matches!(row, TableRow::Cells(cells) if cells[column].bar.is_some()))
}

/// A bar in eighths of a column.
fn drawn(bar: &Bar) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = bar.total();
    if !share.is_finite() {
        return String::new();
    }
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// The row of what the shown rows leave of a column of shares.
fn rest(table: &Table, most: usize) -> Option<Vec<Cell>> {
    let rest = table.rest.as_ref()?;
    let (column, remainder) = rest.share.as_ref()?;
    let rows = table.rows.iter().filter_map(|row| match row {
        TableRow::Cells(cells) => Some(cells),
        _ => None,
    });
    let shown: f64 = rows.take(most).filter_map(|cells| cells[*column].value).sum();
    let left = 1.0 - shown;
    let more = table.row_count().saturating_sub(most);
    if more == 0 && (left.is_nan() || left < REST) {
        return None;
    }
    let words = match more {
        0 => remainder.clone(),
        1 => format!("1 more {}, {remainder}", rest.singular),
        n => format!("{} more {}, {remainder}", num::grouped(n as u64), rest.plural),
    };
    let mut cells = vec![Cell::default(); table.columns.len()];
    cells[*column] = Cell::painted(Paint::Dim, num::percent(left.max(0.0)));
    let named = table.columns.iter().position(|column| column.last).unwrap_or(0);
    cells[named] = Cell::painted(Paint::Dim, words);
    Some(cells)
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
    fn bars_and_remarks_are_drawn_and_what_is_left_out_is_said() {
        let columns = [Column::left("name").cut(12).last(), Column::right("of all"), Column::left("how").remark()];
        let mut table = Table::new(columns).of_shares(["object", "objects"], 1, "unattributed");
        for (name, share) in [("first", 0.5), ("second", 0.25), ("third", 0.125)] {
            table.row([name.into(), Cell::share(share).bar(Bar::of(share)), format!("by {name}").into()]);
        }
        let style = Style::default();
        let expected = "\
of all        name
50.0 %  ████  first
  by first
50.0 %        2 more objects, unattributed
";
        assert_eq!(line::render(&table.lines_of(100, 1), &style), expected);
        assert!(table.render(&style).ends_with("12.5 %        unattributed\n"), "{}", table.render(&style));
        let mut table = Table::new([Column::left("row")]);
        (0..3).for_each(|i| table.row([i.to_string().into()]));
        assert_eq!(line::render(&table.lines_of(100, 1), &style), "row\n0\n2 more rows with --html or --json\n");
    }

    #[test]
    fn a_table_that_is_too_wide_may_be_split() {
        let mut table = Table::new((0..7).map(|c| Column::left(format!("column number {c}")))).split();
        table.row((0..7).map(|c| Cell::from(c.to_string())));
        let expected = "\
column number 0  column number 1  column number 2  column number 3
0                1                2                3

column number 0  column number 4  column number 5  column number 6
0                4                5                6
";
        assert_eq!(table.render(&Style { width: 80, ..Style::default() }), expected);
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
