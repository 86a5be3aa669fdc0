//! A document as text for a terminal, a file or a pipe.

mod fit;
mod grid;
mod plot;

use crate::chart::{Chart, Plot};
use crate::document::{Card, Document, DocumentBlock, Fact, Medium, Part, Section};
use crate::line::{self, Line, Paint, Style};
use crate::table::{Cell, Column, Table};
use crate::text;

use fit::Sizes;

/// Narrowest terminal on which two sections stand side by side, and columns of the left one there.
const TWO_COLUMNS: usize = 96;
const LEFT_COLUMNS: usize = 48;

/// Columns between two sections side by side.
const BETWEEN: usize = 3;

/// Widest chart.
const CHART_COLUMNS: usize = 80;

/// Draws the document: title, answer, facts, sections, notes. Same document and style, same text; no line is longer
/// than the style's width. A document of [`Document::one_screen`] fits on one screen (45 lines at 100 columns and more)
/// unless `style.top` asks for so many rows of each table.
pub fn render(document: &Document, style: &Style) -> String {
    let draw = |sizes: &mut Sizes| compose(document, style, sizes);
    let lines = match document.one_screen && style.top.is_none() {
        true => fit::on_one_screen(draw),
        false => draw(&mut Sizes::as_wanted(style.top)),
    };
    line::render(&lines, style)
}

/// All parts below each other, an empty line between them.
fn compose(document: &Document, style: &Style, sizes: &mut Sizes) -> Vec<Line> {
    let width = style.columns();
    let mut parts: Vec<Vec<Line>> = vec![head(document, width)];
    for part in &document.parts {
        parts.push(match part {
            Part::Section(of) => section(of, style, width, sizes),
            Part::Pair(left, right) => pair(left, right, style, sizes),
        });
    }
    parts.push(notes(document, width, sizes));
    joined(parts)
}

/// Parts below each other, an empty line between them.
fn joined(parts: impl IntoIterator<Item = Vec<Line>>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.extend(part);
    }
    lines
}

fn head(document: &Document, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if document.titled {
        let title = text::cut_middle(&text::clean(&document.full_title()), width);
        lines.push(Line::of(Paint::Strong, title));
    }
    for paragraph in document.banners.iter().chain(&document.answer) {
        lines.extend(paragraph.wrap(width));
    }
    lines.extend(facts(&document.facts, width));
    lines
}

/// Labels before what they mean.
fn facts(facts: &[Fact], width: usize) -> Vec<Line> {
    let labels = facts.iter().map(|fact| text::clean(&fact.label));
    let room = labels.clone().map(|label| text::width(&label)).max().unwrap_or(0) + 2;
    let mut lines = Vec::new();
    for (fact, label) in facts.iter().zip(labels) {
        for (i, part) in fact.words.wrap(width.saturating_sub(room)).into_iter().enumerate() {
            let mut line = Line::of(Paint::Dim, if i == 0 { label.clone() } else { String::new() });
            line.pad_to(room);
            line.append(part);
            lines.push(line);
        }
    }
    lines
}

fn section(section: &Section, style: &Style, width: usize, sizes: &mut Sizes) -> Vec<Line> {
    if section.medium == Medium::Page {
        return Vec::new();
    }
    let mut lines: Vec<Line> = Vec::new();
    for of in &section.blocks {
        let block = block(of, style, width, sizes);
        if !lines.is_empty() && !block.is_empty() && !follows_directly(of) {
            lines.push(Line::new());
        }
        lines.extend(block);
    }
    if section.headed && !lines.is_empty() && !section.heading.is_empty() {
        let heading = text::cut_end(&text::clean(&section.heading), width);
        lines.insert(0, Line::of(Paint::Strong, heading));
    }
    lines
}

/// What belongs to the block above it: a sentence on a table, shares below rates.
fn follows_directly(block: &DocumentBlock) -> bool {
    match block {
        DocumentBlock::Text(_) => true,
        DocumentBlock::Chart(chart) => matches!(chart.plot, Plot::Bars(_)),
        _ => false,
    }
}

fn block(block: &DocumentBlock, style: &Style, width: usize, sizes: &mut Sizes) -> Vec<Line> {
    match block {
        DocumentBlock::Heading(words) => vec![Line::of(Paint::Strong, text::cut_end(&text::clean(words), width))],
        DocumentBlock::Text(text) => text.wrap(width),
        DocumentBlock::List(items) => items.iter().flat_map(|item| bullet(item.wrap(width - 2))).collect(),
        DocumentBlock::Facts(list) => facts(list, width),
        DocumentBlock::Cards(list) => joined(list.iter().map(|of| card(of, width))),
        DocumentBlock::Table(table) => {
            let rows = sizes.rows(table);
            match rows {
                0 => Vec::new(),
                rows => table.lines_of(width, rows),
            }
        }
        DocumentBlock::Chart(of) => chart(of, style, width, sizes),
        DocumentBlock::Charts(charts) => joined(charts.iter().map(|of| chart(of, style, width, sizes))),
        DocumentBlock::Details(..) => Vec::new(),
    }
}

fn bullet(lines: Vec<Line>) -> impl Iterator<Item = Line> {
    lines.into_iter().enumerate().map(|(i, part)| {
        let mut line = Line::of(Paint::Dim, if i == 0 { "· " } else { "  " });
        line.append(part);
        line
    })
}

fn card(card: &Card, width: usize) -> Vec<Line> {
    let mut title = Line::of(Paint::Strong, text::clean(&card.title));
    if let Some((paint, figure)) = &card.figure {
        title = title.with(Paint::Plain, "  ").with(*paint, text::clean(figure));
    }
    title.cut_to(width);
    let mut lines = vec![title];
    lines.extend(card.text.iter().flat_map(|text| text.wrap(width)));
    for (heading, items) in &card.lists {
        let mut table = Table::new([Column::left(heading).cut(24), Column::right(""), Column::left("").remark()]);
        for item in items {
            let value = Cell { bar: item.bar.clone(), ..Cell::from(&item.value) };
            table.row([Cell::from(&item.label), value, Cell::from(&item.detail)]);
        }
        lines.extend(table.lines(width));
    }
    lines
}

/// A chart as text: a plot where plots are wanted and the chart is one of sizes, else its words, else its points with
/// bars.
fn chart(chart: &Chart, style: &Style, width: usize, sizes: &mut Sizes) -> Vec<Line> {
    if style.plots {
        let height = sizes.plot(chart);
        let lines = plot::braille(chart, width.min(CHART_COLUMNS), height);
        if !lines.is_empty() {
            return lines;
        }
    }
    if !chart.words.is_empty() && !matches!(chart.plot, Plot::Points(_)) {
        return crate::RichText::from(&chart.words).wrap(width);
    }
    plot::points(chart, width)
}

/// Two sections side by side where there is room; rows of the right one fill the height of the left one.
fn pair(left: &Section, right: &Section, style: &Style, sizes: &mut Sizes) -> Vec<Line> {
    let width = style.columns();
    if width >= TWO_COLUMNS && style.plots {
        let lines = section(left, style, LEFT_COLUMNS, sizes);
        // Below a heading and above a rest.
        let rows = lines.len().saturating_sub(2);
        let beside =
            section(right, style, width - LEFT_COLUMNS - BETWEEN, &mut Sizes::of_rows(style.top.unwrap_or(rows)));
        if !lines.is_empty() {
            return side_by_side(lines, LEFT_COLUMNS + BETWEEN, beside);
        }
    }
    joined([section(left, style, width, sizes), section(right, style, width, sizes)])
}

fn side_by_side(left: Vec<Line>, left_width: usize, right: Vec<Line>) -> Vec<Line> {
    let height = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let line = |_| {
        let mut line = left.next().unwrap_or_default();
        if let Some(right) = right.next() {
            line.pad_to(left_width);
            line.append(right);
        }
        line
    };
    (0..height).map(line).collect()
}

/// The notes, in as many lines as there is room for.
fn notes(document: &Document, width: usize, sizes: &mut Sizes) -> Vec<Line> {
    let most = sizes.notes();
    let mut lines: Vec<Line> = Vec::new();
    for (i, note) in document.notes.iter().enumerate() {
        let wrapped = note.wrap(width - 2);
        let left = document.notes.len() - i;
        let room = most.saturating_sub(lines.len() + usize::from(left > 1));
        if wrapped.len() > room {
            let notes = if left == 1 { "note" } else { "notes" };
            lines.push(Line::of(Paint::Warn, format!("{left} more {notes} with --top, --html or --json")));
            break;
        }
        lines.extend(bullet(wrapped));
    }
    lines
}
