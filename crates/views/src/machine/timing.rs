//! What reads, page faults and streams take in nanoseconds: a table of each.

use lookaside_machine::{Quartiles, ReadCosts, Timing};
use lookaside_report::{num, Cell, Column, Table};

/// The tables that have rows.
pub fn tables(timing: &Timing) -> Vec<Table> {
    let tables = [random_reads(timing), sequential_reads(timing), page_faults(timing)];
    tables.into_iter().filter(|table| !table.is_empty()).collect()
}

/// A line for each footprint and page size.
fn random_reads(timing: &Timing) -> Table {
    let mut table = Table::new([
        Column::left("random reads"),
        Column::left("beside"),
        Column::left("pages"),
        Column::right("dependent, ns"),
        Column::right("independent, ns"),
        Column::right("at a time"),
    ])
    .caption("Nanoseconds a read: median, and lower to upper quartile of rounds");
    for row in &timing.random_reads {
        let mut line = |pages: &str, costs: ReadCosts, overlap: Option<Quartiles>, what: &str| {
            table.row([
                Cell::bytes(row.footprint),
                beside(row.beside_stream),
                pages.into(),
                nanoseconds(costs.dependent_ns_per_read),
                nanoseconds(costs.independent_ns_per_read),
                Cell::optional(overlap, |found| {
                    Cell::number(
                        found.median,
                        format!("{:.1} {what} ({:.1} – {:.1})", found.median, found.lower, found.upper),
                    )
                }),
            ]);
        };
        line("4K", row.small_pages, row.overlapping_walks, "walks");
        if let Some(costs) = row.huge_pages {
            line("2M", costs, row.overlapping_misses, "misses");
        }
    }
    table
}

fn sequential_reads(timing: &Timing) -> Table {
    let mut table = Table::new([Column::left("reads in a row"), Column::left("beside"), Column::right("a second")])
        .caption("Bytes a second that one CPU reads");
    for row in &timing.sequential_reads {
        let Quartiles { lower, median, upper } = row.bytes_per_second;
        let [lower, middle, upper] = [lower, median, upper].map(|bytes| num::bytes(bytes as u64));
        let rate = Cell::number(median, format!("{middle} ({lower} – {upper})"));
        table.row(["from memory".into(), beside(row.beside_stream), rate]);
    }
    table
}

fn page_faults(timing: &Timing) -> Table {
    let mut table = Table::new([Column::left("first touch"), Column::right("ns a page")])
        .caption("Nanoseconds of a page fault, zeroing and all");
    for row in &timing.page_faults {
        table.row([format!("{} page", row.page_size).into(), nanoseconds(row.ns_per_fault)]);
    }
    table
}

fn beside(stream: bool) -> Cell {
    if stream { "a stream" } else { "nothing" }.into()
}

/// The median, and the quartiles.
fn nanoseconds(Quartiles { lower, median, upper }: Quartiles) -> Cell {
    let digits = if median < 1000.0 { 1 } else { 0 };
    Cell::number(median, format!("{median:.digits$} ({lower:.digits$} – {upper:.digits$})"))
}
