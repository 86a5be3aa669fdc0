//! The analysis on one terminal screen: what translation costs, who causes it, what would help.

mod causes;
mod curve;
mod gain;
mod head;
mod remedies;

use lookaside_techniques::Analysis;

use crate::analysis_facts as facts;
use lookaside_report::text;
use lookaside_report::{render_lines, Line, Paint, Style};

/// Lines of one screen, at 100 columns and more.
const SCREEN_LINES: usize = 45;

/// Narrowest screen on which plot and regions stand side by side, and columns of the plot there.
const TWO_COLUMNS: usize = 96;
const PLOT_COLUMNS: usize = 48;

/// Draws the analysis: on one screen (45 lines at 100 columns and more) unless `style.top` asks for
/// so many rows of each table. Same analysis and style, same text. Any name in it is made harmless.
pub fn render(analysis: &Analysis, style: &Style) -> String {
    let mut sizes = Sizes::wanted(analysis, style);
    if style.top.is_none() {
        sizes.fit(|sizes| compose(analysis, style, sizes).len() <= SCREEN_LINES);
    }
    render_lines(&compose(analysis, style, &sizes), style)
}

/// A part's size.
type Part = fn(&mut Sizes) -> &mut usize;

const NOTES: Part = |sizes| &mut sizes.notes;
const PLOT: Part = |sizes| &mut sizes.plot;
const REGIONS: Part = |sizes| &mut sizes.regions;
const FUNCTIONS: Part = |sizes| &mut sizes.functions;
const OBJECTS: Part = |sizes| &mut sizes.objects;
const REMEDIES: Part = |sizes| &mut sizes.remedies;

/// How much of each part is shown.
#[derive(Clone, Copy)]
struct Sizes {
    objects: usize,
    functions: usize,
    regions: usize,
    remedies: usize,
    notes: usize,
    plot: usize,
}

impl Sizes {
    fn wanted(analysis: &Analysis, style: &Style) -> Self {
        match style.top {
            Some(top) => Self {
                objects: top,
                functions: top,
                regions: top,
                remedies: analysis.remedies.len(),
                notes: usize::MAX,
                plot: 8,
            },
            None => Self {
                objects: analysis.objects.len().min(8),
                functions: analysis.functions.len().min(8),
                regions: analysis.regions.len().min(8),
                remedies: analysis.remedies.len().min(6),
                notes: 8,
                plot: 8,
            },
        }
    }

    /// Shrinks part by part until all fits, then gives back what is left over, to what matters most first.
    fn fit(&mut self, fits: impl Fn(&Self) -> bool) {
        let wanted = *self;
        while !fits(self) {
            if !self.shrink() {
                return;
            }
        }
        for part in [REMEDIES, OBJECTS, FUNCTIONS, NOTES, REGIONS] {
            while *part(self) < *part(&mut wanted.clone()) {
                *part(self) += 1;
                if !fits(self) {
                    *part(self) -= 1;
                    break;
                }
            }
        }
    }

    /// Takes one line or row from what can best spare it; `false` when nothing can.
    fn shrink(&mut self) -> bool {
        const ORDER: [(Part, usize); 15] = [
            (NOTES, 4),
            (PLOT, 6),
            (REGIONS, 4),
            (FUNCTIONS, 5),
            (OBJECTS, 5),
            (REMEDIES, 4),
            (FUNCTIONS, 3),
            (OBJECTS, 3),
            (REGIONS, 2),
            (REMEDIES, 3),
            (PLOT, 4),
            (REGIONS, 0),
            (NOTES, 2),
            (REMEDIES, 2),
            (PLOT, 0),
        ];
        for (part, least) in ORDER {
            let size = part(self);
            if *size > least {
                *size -= 1;
                return true;
            }
        }
        false
    }
}

/// All parts below each other, an empty line between them.
fn compose(analysis: &Analysis, style: &Style, sizes: &Sizes) -> Vec<Line> {
    let width = style.columns();
    let kinds =
        [(causes::Kind::objects(analysis), sizes.objects), (causes::Kind::functions(analysis), sizes.functions)];
    let parts = [
        head::lines(analysis, width),
        head::cost(analysis, width),
        causes::lines(analysis, &kinds, width),
        curve_and_regions(analysis, style, sizes),
        remedies::lines(analysis, sizes.remedies, width),
        gain::lines(analysis, width),
        notes(analysis, sizes.notes, width),
    ];
    let mut lines: Vec<Line> = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.extend(part);
    }
    lines
}

fn curve_and_regions(analysis: &Analysis, style: &Style, sizes: &Sizes) -> Vec<Line> {
    let width = style.columns();
    let levels = facts::tlb_levels(&analysis.machine);
    let regions = |top, width| causes::lines(analysis, &[(causes::Kind::regions(analysis), top)], width);
    let plot = |width| match &analysis.curve {
        Some(curve) if style.plots => curve::plot(curve, &levels, width, sizes.plot),
        _ => Vec::new(),
    };
    if width >= TWO_COLUMNS {
        let left = plot(PLOT_COLUMNS);
        if !left.is_empty() {
            // Beside the plot, rows cost no line: as many as fill its height below a heading and above a rest.
            let rows = style.top.unwrap_or(left.len().saturating_sub(2));
            return side_by_side(left, PLOT_COLUMNS + 3, regions(rows, width - PLOT_COLUMNS - 3));
        }
    }
    let mut lines = plot(width.min(80));
    if lines.is_empty() {
        let words = analysis.curve.as_ref().and_then(|curve| curve::in_words(curve, &levels));
        lines = words.iter().flat_map(|words| text::wrap(words, width)).map(|l| Line::of(Paint::Plain, l)).collect();
    }
    let regions = regions(sizes.regions, width);
    if !lines.is_empty() && !regions.is_empty() {
        lines.push(Line::new());
    }
    lines.extend(regions);
    lines
}

fn side_by_side(left: Vec<Line>, left_width: usize, right: Vec<Line>) -> Vec<Line> {
    let height = left.len().max(right.len());
    let mut right = right.into_iter();
    let mut left = left.into_iter();
    (0..height)
        .map(|_| {
            let mut line = left.next().unwrap_or_default();
            if let Some(right) = right.next() {
                line.pad_to(left_width);
                line.append(right);
            }
            line
        })
        .collect()
}

/// The notes, in at most `most` lines.
fn notes(analysis: &Analysis, most: usize, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for (i, note) in analysis.notes.iter().enumerate() {
        let wrapped = text::wrap(&text::clean(note), width - 2);
        let left = analysis.notes.len() - i;
        let room = most.saturating_sub(lines.len() + usize::from(left > 1));
        if wrapped.len() > room {
            lines.push(Line::of(Paint::Warn, format!("{left} more notes with --top, --html or --json")));
            break;
        }
        for (j, part) in wrapped.into_iter().enumerate() {
            lines.push(Line::of(Paint::Dim, if j == 0 { "· " } else { "  " }).with(Paint::Plain, part));
        }
    }
    lines
}
