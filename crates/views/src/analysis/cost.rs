//! Rates of misses and walks, and who serves the references of walks, as PT-Baker's Figure 3.2 stacks them.

use lookaside_engine::Side;
use lookaside_report::chart::{BarRow, Bars};
use lookaside_report::{num, Cell, Chart, Column, Paint, Section, Table};
use lookaside_techniques::Analysis;

use super::seeing::is_sampled;
use super::totals::sum;

/// Counts of a side by name.
type CountsOfSide = fn(&Side) -> &Vec<(String, u64)>;

/// Rates of loads and stores, and of fetches where they were recorded; what served the references of walks.
pub fn rates(analysis: &Analysis) -> Section {
    let outcome = &analysis.outcome;
    if is_sampled(analysis) || outcome.data.accesses.saturating_add(outcome.fetch.accesses) == 0 {
        return Section::default();
    }
    let mut table = Table::new([
        Column::left("per 1,000 of"),
        Column::right("in all").optional(1),
        Column::right("cycles"),
        Column::right("L1 misses"),
        Column::right("walks"),
        Column::right("refs a walk"),
    ])
    .caption("Translation cycles, misses of the first TLB level, walks, and page-table references of a walk");
    for (name, side) in sides(analysis) {
        let per_kilo = |n: f64| Cell::rate(num::per_kilo(n, side.accesses));
        table.row([
            name.into(),
            Cell::count(side.accesses),
            per_kilo(side.cost.cycles()).paint(Paint::Strong),
            per_kilo(side.cost.l1_misses as f64),
            per_kilo(side.cost.walks as f64),
            Cell::rate(num::share(side.cost.walk_references as f64, side.cost.walks as f64)),
        ]);
    }
    let served = stacked(analysis, "walk references served by", |side| &side.walk_references_by_server);
    Section::unheaded("Misses and walks").with(table).with(served)
}

fn sides(analysis: &Analysis) -> Vec<(&'static str, &Side)> {
    let outcome = &analysis.outcome;
    let mut sides = vec![("loads and stores", &outcome.data)];
    if outcome.fetch.accesses > 0 {
        sides.push(("instruction fetches", &outcome.fetch));
    }
    sides
}

/// The tables that walks read, and the references in numbers.
pub fn walk_references(analysis: &Analysis) -> Section {
    let by_table: CountsOfSide = |side| &side.walk_references_by_table;
    let by_server: CountsOfSide = |side| &side.walk_references_by_server;
    Section::unheaded("Walk references")
        .lead(
            "Page-table entries read by walks, in shares of each side's references. What memory serves is what hurts.",
        )
        .with(stacked(analysis, "walk references read from", by_table))
        .with(numbers(analysis, "Walk references by what served them", "served by", by_server))
        .with(numbers(analysis, "Walk references by table level (leaf = L1)", "read from", by_table))
}

/// Names of the counts of all sides, memory last.
fn names(analysis: &Analysis, counts: CountsOfSide) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (_, side) in sides(analysis) {
        for (name, _) in counts(side) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    names.sort_by_key(|name| *name == "memory");
    names
}

/// A count's name as it is shown: without a host's stage there is no guest to tell apart.
fn shown<'a>(names: &[&str], name: &'a str) -> &'a str {
    match names.iter().any(|name| name.starts_with("host ")) {
        true => name,
        false => name.strip_prefix("guest ").unwrap_or(name),
    }
}

fn count(side: &Side, counts: CountsOfSide, name: &str) -> u64 {
    counts(side).iter().filter(|(of, _)| of == name).fold(0, |sum, (_, n)| sum.saturating_add(*n))
}

fn stacked(analysis: &Analysis, title: &str, counts: CountsOfSide) -> Chart {
    let names = names(analysis, counts);
    let row = |(label, side): (&str, &Side)| {
        let total = sum(counts(side)) as f64;
        let walks = num::rate(num::share(side.cost.walk_references as f64, side.cost.walks as f64));
        let part = |name: &&str| (shown(&names, name).to_string(), count(side, counts, name) as f64);
        BarRow {
            label: label.into(),
            value: format!("{}, {walks} a walk", num::short(total)),
            parts: names.iter().map(part).collect(),
        }
    };
    let rows = sides(analysis).into_iter().map(row).collect();
    Chart::bars(title, Bars { unit: "references".into(), rows, hot: "memory".into() })
}

fn numbers(analysis: &Analysis, caption: &str, head: &str, counts: CountsOfSide) -> Table {
    let sides: Vec<_> = sides(analysis).into_iter().filter(|(_, side)| sum(counts(side)) > 0).collect();
    let mut columns = vec![Column::left(head)];
    columns.extend(sides.iter().flat_map(|(side, _)| [Column::right(*side), Column::right("share")]));
    let mut table = Table::new(columns).caption(caption);
    let names = names(analysis, counts);
    for name in names.iter().filter(|_| !sides.is_empty()) {
        let mut cells = vec![Cell::from(shown(&names, name))];
        for (_, side) in &sides {
            let n = count(side, counts, name) as f64;
            cells.extend([Cell::short(n), Cell::share(num::share(n, sum(counts(side)) as f64))]);
        }
        table.row(cells);
    }
    table
}
