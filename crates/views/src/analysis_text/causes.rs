//! Who causes it: tables of objects, functions and regions.

use lookaside_techniques::{Analysis, NamedCost, Seeing};

use crate::analysis_facts as facts;
use lookaside_report::num;
use lookaside_report::{Cell, Column, Table};
use lookaside_report::{Line, Paint};

/// Columns of a bar that stands for all.
const BAR: usize = 8;

/// One kind of row.
pub struct Kind<'a> {
    rows: &'a [NamedCost],
    heading: &'static str,
    plural: &'static str,
    none: &'static str,
}

impl<'a> Kind<'a> {
    /// Heap allocations.
    pub fn objects(analysis: &'a Analysis) -> Self {
        let heading = "object (64 KiB and more, by allocation site)";
        Self { rows: &analysis.objects, heading, plural: "objects", none: "what lies in none" }
    }

    /// Code.
    pub fn functions(analysis: &'a Analysis) -> Self {
        Self { rows: &analysis.functions, heading: "function", plural: "functions", none: "code without a name" }
    }

    /// Mappings.
    pub fn regions(analysis: &'a Analysis) -> Self {
        Self { rows: &analysis.regions, heading: "region", plural: "regions", none: "what lies in none" }
    }
}

/// The kinds below each other in one table, so many rows of each at most.
pub fn lines(analysis: &Analysis, kinds: &[(Kind, usize)], width: usize) -> Vec<Line> {
    let sampled = facts::is_sampled(analysis);
    let rates = kinds.iter().any(|(kind, _)| kind.rows.iter().any(|row| row.accesses > 0));
    let sizes = kinds.iter().any(|(kind, _)| kind.rows.iter().any(|row| row.bytes > 0));
    let mut columns = vec![Column::right(""), Column::left("").optional(5)];
    if sampled {
        columns.push(Column::right(""));
    } else {
        columns.extend([Column::right(""), Column::right("").optional(4), Column::right("").optional(2)]);
        if rates {
            columns.push(Column::right("").optional(3));
        }
    }
    if sizes {
        columns.push(Column::right("").optional(1));
    }
    columns.push(Column::left("").cut(44));
    let mut table = Table::new(columns);
    for (kind, top) in kinds.iter().filter(|(kind, top)| *top > 0 && !kind.rows.is_empty()) {
        let mut heads: Vec<&str> = vec![if sampled { "of time" } else { "of cost" }, ""];
        heads.extend(if sampled { &["time"][..] } else { &["cycles", "L1 misses", "walks"][..] });
        if rates && !sampled {
            heads.push("walks/1000");
        }
        if sizes {
            heads.push("size");
        }
        heads.push(kind.heading);
        table.group(heads.into_iter().map(|head| Cell::painted(Paint::Dim, head)));
        let several = facts::several_processes(kind.rows);
        for row in kind.rows.iter().take(*top) {
            let mut cells = measures(analysis, row, rates, sizes);
            let process = if several { format!("[{}] ", row.process) } else { String::new() };
            cells.push(Cell::from(process + facts::name(row)));
            table.row(cells);
        }
        if let Some((share, text)) = rest(analysis, kind, *top) {
            let blanks = usize::from(!sampled) * 2 + usize::from(rates && !sampled) + usize::from(sizes) + 2;
            let mut cells = vec![Cell::painted(Paint::Dim, num::percent(share))];
            cells.extend((0..blanks).map(|_| Cell::default()));
            cells.push(Cell::painted(Paint::Dim, text));
            table.row(cells);
        }
    }
    table.lines(width)
}

/// The cells of a row before its name.
fn measures(analysis: &Analysis, row: &NamedCost, rates: bool, sizes: bool) -> Vec<Cell> {
    let share = num::share(facts::weight(row, facts::is_sampled(analysis)), facts::whole(analysis));
    let mut cells =
        vec![Cell::painted(Paint::Strong, num::percent(share)), Cell::painted(Paint::Mark, bar(share, BAR))];
    match analysis.seeing {
        Seeing::Sampled { period_ns, .. } => {
            cells.push(num::seconds(facts::sampled_seconds(row.samples, period_ns)).into());
        }
        Seeing::Exact { .. } => {
            cells.push(num::short(row.cost.cycles()).into());
            cells.push(num::short(row.cost.l1_misses as f64).into());
            cells.push(num::short(row.cost.walks as f64).into());
            if rates {
                cells.push(num::rate(num::per_kilo(row.cost.walks as f64, row.accesses)).into());
            }
        }
    }
    if sizes {
        cells.push(if row.bytes == 0 { String::new() } else { num::bytes(row.bytes) }.into());
    }
    cells
}

/// What the shown rows leave: its share and what it is.
fn rest(analysis: &Analysis, kind: &Kind, top: usize) -> Option<(f64, String)> {
    let sampled = facts::is_sampled(analysis);
    let shown: f64 = kind.rows.iter().take(top).map(|row| facts::weight(row, sampled)).sum();
    let share = num::share(facts::whole(analysis) - shown, facts::whole(analysis));
    let more = kind.rows.len().saturating_sub(top);
    if more == 0 && (share.is_nan() || share < 0.0005) {
        return None;
    }
    let text = match more {
        0 => kind.none.to_string(),
        1 => format!("one more, and {}", kind.none),
        n => format!("{} more {}, and {}", num::grouped(n as u64), kind.plural, kind.none),
    };
    Some((share.max(0.0), text))
}

/// A bar in eighths of a column.
fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if !share.is_finite() {
        return String::new();
    }
    let eighths = (share.clamp(0.0, 1.0) * (columns * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}
