//! Published figures beside ours, with a verdict a row.

use lookaside_report::{Cell, Column, Table};
use lookaside_report::{Paint, Style};

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

/// A measured curve.
#[derive(Clone, Copy, Debug)]
pub struct Curve<'a> {
    /// What it shows.
    pub name: &'a str,
    /// What x is.
    pub x: &'a str,
    /// What y is.
    pub y: &'a str,
    /// Points in ascending x.
    pub points: &'a [(f64, f64)],
    /// Interval of each point's y.
    pub intervals: &'a [(f64, f64)],
    /// What each point is, where x only numbers them.
    pub labels: &'a [String],
}

/// A side-by-side as a page: [`crate::pages::reproduction::render`].
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Lookaside's version.
    pub version: &'a str,
    /// Short name of the paper.
    pub title: &'a str,
    /// Its reference.
    pub cite: &'a str,
    /// How many rows hold, in words.
    pub summary: &'a str,
    /// Why it ended early.
    pub halted: Option<&'a str>,
    /// What the machine is called here (model, measured), and the machine in words.
    pub machine: (&'a str, &'a str),
    /// What the lines are (assumed, how), and the lines.
    pub lines: (&'a str, &'a [String]),
    /// Headers of the rows.
    pub headers: &'a [&'a str],
    /// The rows.
    pub rows: &'a [Row],
    /// The curves.
    pub curves: &'a [Curve<'a>],
}

impl Curve<'_> {
    /// What a point is, as it is written.
    pub(crate) fn name_of(&self, at: usize) -> String {
        match (self.labels.get(at), self.points.get(at)) {
            (Some(label), _) => label.clone(),
            (None, Some((x, _))) => format!("{x}"),
            (None, None) => String::new(),
        }
    }
}

/// Most rows of a curve.
const CURVE_ROWS: usize = 16;
/// Columns of the longest bar.
const BAR: f64 = 40.0;

/// A curve as a table with a bar a row: some of its points, evenly, the first and the last among them.
pub fn curve(curve: &Curve<'_>, style: &Style) -> String {
    let mark = if style.unicode { "█" } else { "#" };
    let most = curve.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let last = curve.points.len().saturating_sub(1);
    let rows = CURVE_ROWS.min(last + 1);
    let mut table = Table::new([
        Column::right(curve.x),
        Column::right(curve.y),
        Column::left("interval"),
        Column::left("").optional(1),
    ]);
    for row in 0..rows {
        let at = row * last / rows.saturating_sub(1).max(1);
        let Some((_, y)) = curve.points.get(at) else { break };
        let interval = curve.intervals.get(at).map(|(low, high)| format!("{low:.2} to {high:.2}"));
        let bar = mark.repeat((BAR * y / most).clamp(0.0, BAR).round() as usize);
        table.row([
            Cell::painted(Paint::Plain, curve.name_of(at)),
            Cell::painted(Paint::Plain, format!("{y:.2}")),
            Cell::painted(Paint::Plain, interval.unwrap_or_default()),
            Cell::painted(Paint::Mark, bar),
        ]);
    }
    format!("{}\n{}", curve.name, table.render(style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_shows_its_ends_and_survives_having_none() {
        let points: Vec<(f64, f64)> = (1..=100).map(|i| (f64::from(i), f64::from(i) / 10.0)).collect();
        let intervals: Vec<(f64, f64)> = points.iter().map(|(_, y)| (y - 0.1, y + 0.1)).collect();
        let all = Curve { name: "n", x: "pages", y: "cycles", points: &points, intervals: &intervals, labels: &[] };
        let text = curve(&all, &Style { unicode: true, ..Style::default() });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + CURVE_ROWS);
        assert!(lines[2].contains("0.10") && lines[2].contains("0.00 to 0.20"), "{text}");
        assert!(lines[17].ends_with(&"█".repeat(40)) && lines[17].contains("10.00"), "{text}");
        let none = Curve { points: &[], intervals: &[], ..all };
        assert_eq!(curve(&none, &Style::default()).lines().count(), 2);
        let flat = Curve { points: &[(1.0, 0.0)], intervals: &[], ..all };
        assert_eq!(curve(&flat, &Style::default()).lines().count(), 3);
    }

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
