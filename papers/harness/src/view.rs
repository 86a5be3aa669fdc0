//! A paper's rows side by side as a document: how many hold, each row with its verdict, the curves, what was assumed.

use lookaside_report::chart::{Axis, Lines, Look, Point, Scale};
use lookaside_report::{chart, Cell, Chart, Column, Document, DocumentBlock, Medium, Paint, RichText, Section, Table};

use crate::reproduction::{PaperCurve, Reproduction};
use crate::row::{PaperRow, RowVerdict};

/// The `schema` of a [`Reproduction`]'s JSON.
pub const REPRODUCTION_SCHEMA: &str = "lookaside-reproduction/1";

/// A curve of no more points has them at even distances, each with its x: sweeps go up by factors, and begin at 0.
const EVEN_POINTS: usize = 12;

/// Published and ours; the curves on the page, and on a terminal too where they were measured.
pub fn view(found: &Reproduction) -> Document {
    let mut document = Document::new("Reproduction", &found.paper);
    document.answer(answer(found));
    if let Some(reason) = &found.halted {
        document.cut_short(reason);
    }
    document.fact("paper", &found.cite);
    document.fact(if found.measured { "measured" } else { "model" }, &found.machine);
    document.section(Section::unheaded("Published and ours").with(rows(found)));
    let medium = if found.measured { Medium::Both } else { Medium::Page };
    document.section(curves(found).only(medium));
    let heading = if found.measured { "How it was measured" } else { "Assumed" };
    let assumptions = found.assumptions.iter().map(RichText::from).collect();
    document.section(Section::new(heading).with(DocumentBlock::List(assumptions)));
    document
}

/// How many rows hold, do not, and do not count.
fn answer(found: &Reproduction) -> RichText {
    let (holding, counted) = (found.holding(), found.counted().count());
    let paint = if holding == counted { Paint::Good } else { Paint::Strong };
    let rest = format!("; {} do not, and {} more do not count.", counted - holding, found.rows.len() - counted);
    RichText::painted(paint, format!("{holding} of {counted} rows that count hold")).plain(rest)
}

fn rows(found: &Reproduction) -> Table {
    let mut table = Table::new([
        Column::left("place").wrap(),
        Column::left("what").wrap(),
        Column::left("published").wrap(),
        Column::left("ours").wrap(),
        Column::left("verdict"),
        Column::left("why").remark(),
    ]);
    for row in &found.rows {
        table.row([
            Cell::from(&row.place),
            Cell::from(&row.what),
            with_unit(row, row.published.to_string()),
            row.ours.as_ref().map_or(Cell::default(), |ours| with_unit(row, ours.to_string())),
            Cell::painted(paint(row.verdict), row.verdict.to_string()),
            Cell::painted(Paint::Dim, &row.note),
        ]);
    }
    table
}

fn with_unit(row: &PaperRow, value: String) -> Cell {
    match row.unit.is_empty() {
        true => value.into(),
        false => format!("{value} {}", row.unit).into(),
    }
}

fn paint(verdict: RowVerdict) -> Paint {
    match verdict {
        RowVerdict::Holds => Paint::Good,
        RowVerdict::Differs => Paint::Bad,
        RowVerdict::Fitted => Paint::Warn,
        RowVerdict::AnotherMachine | RowVerdict::Beyond | RowVerdict::NotReproduced => Paint::Plain,
    }
}

fn curves(found: &Reproduction) -> Section {
    Section::new("Curves")
        .lead(format!(
            "Bars: intervals, where points are medians of measurements. Up to {EVEN_POINTS} points stand at even \
             distances, each with its x below it."
        ))
        .with(found.series.iter().map(curve).collect::<Vec<_>>())
}

/// A chart of the points that have an x. Named points have no order, and so no line between them.
fn curve(series: &PaperCurve) -> Chart {
    let points = series.points.iter().enumerate().filter(|(_, (x, _))| x.is_finite()).map(|(i, (x, y))| {
        let point = match series.intervals.get(i) {
            Some((low, high)) => Point::new(*x, *y).between(*low, *high),
            None => Point::new(*x, *y),
        };
        point.labelled(series.labels.get(i).cloned().unwrap_or_default())
    });
    let points: Vec<Point> = points.collect();
    let look = if series.labels.is_empty() { Look::Line } else { Look::Dots };
    let scale = if points.len() <= EVEN_POINTS { Scale::Even } else { Scale::Linear };
    let lines = Lines::new(Axis::new(&series.x, scale), Axis::new(&series.y, Scale::Linear));
    let lines = lines.with(chart::Series::new("", points).look(look));
    Chart::lines(&series.name, Lines { y_range: Some(from_zero(series)), ..lines })
}

/// Least and greatest of the values, their intervals' ends, and 0.
fn from_zero(series: &PaperCurve) -> (f64, f64) {
    let values = series.points.iter().map(|(_, y)| *y);
    let ends = series.intervals.iter().flat_map(|(low, high)| [*low, *high]);
    let finite = values.chain(ends).filter(|value| value.is_finite());
    finite.fold((0.0, 0.0), |(low, high), value| (f64::min(low, value), f64::max(high, value)))
}
