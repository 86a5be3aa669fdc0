//! Who causes it: objects, functions, regions.

use lookaside_report::{num, Bar, Cell, Column, Paint, Section, Table};
use lookaside_techniques::{Analysis, NamedCost, Seeing};

use super::seeing::{is_sampled, sampled_seconds};
use super::totals::{name, share};

/// A kind of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CauseKind {
    /// Heap allocations.
    Objects,
    /// Code.
    Functions,
    /// Mappings.
    Regions,
}

/// What is said of a kind.
struct Words {
    heading: &'static str,
    column: &'static str,
    names: [&'static str; 2],
    remainder: &'static str,
    lead: &'static str,
}

impl CauseKind {
    fn words(self) -> Words {
        match self {
            Self::Objects => Words {
                heading: "Objects",
                column: "object (64 KiB and more, by allocation site)",
                names: ["object", "objects"],
                remainder: "unattributed",
                lead:
                    "Heap allocations of 64 KiB and more, by the place that made them. Size is the most that lived at \
                       one time.",
            },
            Self::Functions => Words {
                heading: "Functions",
                column: "function",
                names: ["function", "functions"],
                remainder: "code without a name",
                lead: "The code whose accesses (or fetches) missed the first TLB level.",
            },
            Self::Regions => Words {
                heading: "Regions",
                column: "region",
                names: ["region", "regions"],
                remainder: "unattributed",
                lead: "Mappings: files, heap, stacks, and anonymous memory by who mapped it.",
            },
        }
    }

    fn rows(self, analysis: &Analysis) -> &[NamedCost] {
        match self {
            Self::Objects => &analysis.objects,
            Self::Functions => &analysis.functions,
            Self::Regions => &analysis.regions,
        }
    }
}

/// What is known of all rows of a kind: which columns there are.
struct CauseColumns {
    sampled: bool,
    accesses: bool,
    sizes: bool,
    addresses: bool,
    processes: bool,
}

/// The table of a kind, dearest first.
pub fn section(analysis: &Analysis, kind: CauseKind) -> Section {
    let (words, rows) = (kind.words(), kind.rows(analysis));
    let has = CauseColumns {
        sampled: is_sampled(analysis),
        accesses: rows.iter().any(|row| row.accesses > 0),
        sizes: rows.iter().any(|row| row.bytes > 0),
        addresses: rows.iter().any(|row| row.addr > 0),
        processes: rows.windows(2).any(|pair| pair[0].process != pair[1].process),
    };
    let mut table = Table::new(columns(words.column, &has))
        .caption(format!("{} by cost, dearest first", words.heading))
        .shown(8, 1)
        .of_shares(words.names, 1, words.remainder);
    for row in rows {
        table.row(cells(analysis, row, &has));
    }
    let reading = match has.sampled {
        true => "Shares of time, an estimate: translation and all else together.",
        false => "Bars: walks, then (paler) hits beyond the first level.",
    };
    Section::unheaded(words.heading).lead(format!("{} {reading}", words.lead)).with(table)
}

fn columns(named: &str, has: &CauseColumns) -> Vec<Column> {
    let mut columns = vec![Column::left(named).cut(44).last()];
    match has.sampled {
        true => {
            columns.extend([Column::right("of time"), Column::right("time"), Column::right("samples").optional(10)])
        }
        false => {
            columns.extend([
                Column::right("of cost"),
                Column::right("cycles"),
                Column::right("L1 misses").optional(4),
                Column::right("walks").optional(2),
            ]);
            if has.accesses {
                columns.extend([Column::right("walks/1000").optional(3), Column::right("own accesses").optional(12)]);
            }
            columns.push(Column::right("refs a walk").optional(11));
        }
    }
    if has.sizes {
        columns.push(Column::right("size").optional(1));
    }
    if has.addresses {
        columns.push(Column::right("address").optional(13));
    }
    if has.processes {
        columns.push(Column::right("process"));
    }
    columns
}

fn cells(analysis: &Analysis, row: &NamedCost, has: &CauseColumns) -> Vec<Cell> {
    let share = share(analysis, row);
    let mut cells = vec![Cell::from(name(row))];
    match analysis.seeing {
        Seeing::Sampled { period_ns, .. } => cells.extend([
            Cell::share(share).paint(Paint::Strong).bar(Bar::of(share)),
            Cell::seconds(sampled_seconds(row.samples, period_ns)),
            Cell::count(row.samples),
        ]),
        Seeing::Exact { .. } => {
            let (cost, whole) = (&row.cost, analysis.outcome.translation_cycles());
            let bar = Bar::of_two(num::share(cost.walk_cycles, whole), num::share(cost.tlb_hit_cycles, whole));
            cells.extend([
                Cell::share(share).paint(Paint::Strong).bar(bar),
                Cell::short(cost.cycles()),
                Cell::short(cost.l1_misses as f64),
                Cell::short(cost.walks as f64),
            ]);
            if has.accesses {
                cells.push(Cell::rate(num::per_kilo(cost.walks as f64, row.accesses)));
                cells.push(Cell::short(row.accesses as f64));
            }
            cells.push(Cell::rate(num::share(cost.walk_references as f64, cost.walks as f64)));
        }
    }
    if has.sizes {
        cells.push(if row.bytes == 0 { Cell::default() } else { Cell::bytes(row.bytes) });
    }
    if has.addresses {
        cells.push(Cell::number(row.addr as f64, format!("{:#x}", row.addr)));
    }
    if has.processes {
        cells.push(Cell::number(row.process.into(), row.process.to_string()));
    }
    cells
}
