//! Published figures beside ours, with a verdict a row.

use crate::line::{Paint, Style};
use crate::table::{Cell, Column, Table};

/// One row of a side-by-side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What was compared, as published, as found here, …, and last the verdict: one cell a header.
    pub cells: Vec<String>,
    /// Colour of the verdict: `Good` = holds, `Bad` = does not, `Warn` = does not count (fitted on this
    /// row), `Plain` = not to be compared.
    pub verdict: Paint,
    /// Why, set below the row; empty = nothing to say.
    pub remark: String,
}

/// The rows as text. The last header is that of the verdict; the others' cells wrap where room lacks.
pub fn render(headers: &[&str], rows: &[Row], style: &Style) -> String {
    let last = headers.len().saturating_sub(1);
    let columns = headers.iter().enumerate().map(|(i, header)| {
        let column = Column::left(*header);
        if i == last {
            column
        } else {
            column.wrap()
        }
    });
    let mut table = Table::new(columns);
    for row in rows {
        table.row(row.cells.iter().enumerate().map(|(i, cell)| {
            let paint = if i == last { row.verdict } else { Paint::Plain };
            Cell::painted(paint, cell)
        }));
        if !row.remark.is_empty() {
            table.below(Paint::Dim, &row.remark);
        }
    }
    table.render(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_coloured_and_reasons_stand_below() {
        let row = |cells: [&str; 4], verdict, remark: &str| Row {
            cells: cells.map(String::from).to_vec(),
            verdict,
            remark: remark.into(),
        };
        let rows = [
            row(["L1 thrashes from", "64 pages", "65 pages", "holds"], Paint::Good, ""),
            row(
                ["L2 thrashes fully by", "2,560 pages", "3,000 pages", "differs"],
                Paint::Bad,
                "no coalescing modelled",
            ),
        ];
        let headers = ["Figure 4.2", "published", "ours", "verdict"];
        let text = render(&headers, &rows, &Style::default());
        let expected = "\
Figure 4.2            published    ours         verdict
L1 thrashes from      64 pages     65 pages     holds
L2 thrashes fully by  2,560 pages  3,000 pages  differs
  no coalescing modelled
";
        assert_eq!(text, expected);
        let coloured = render(&headers, &rows, &Style { color: true, ..Style::default() });
        assert!(coloured.contains("\x1b[0;32mholds\x1b[0m") && coloured.contains("\x1b[0;31mdiffers\x1b[0m"));
    }
}
