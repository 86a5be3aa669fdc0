//! Runs of the engine, side by side: one column a machine.

use lookaside_engine::{CacheCounts, Outcome, Side};
use lookaside_report::{num, Cell, Column, Document, Section, Table};
use serde::Serialize;

/// Runs of one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Simulation {
    /// Counts of each machine, in the order asked for.
    pub outcomes: Vec<Outcome>,
}

/// What can be compared, a column each; then the arrays and caches of each. Rates name their denominator.
pub fn view(outcomes: &[Outcome]) -> Document {
    let machines: Vec<&str> = outcomes.iter().map(|outcome| outcome.machine.as_str()).collect();
    let mut document = Document { titled: false, ..Document::new("Simulated translation", machines.join(", ")) };
    if !outcomes.is_empty() {
        document.section(Section::unheaded("Translation").with(compared(outcomes)));
    }
    let several = outcomes.len() > 1;
    document.section(Section::unheaded("TLB arrays").with(arrays(outcomes, several)));
    document.section(Section::unheaded("Caches").with(caches(outcomes, several)));
    document
}

fn compared(outcomes: &[Outcome]) -> Table {
    let mut columns = vec![Column::left("").cut(28)];
    columns.extend(outcomes.iter().map(|outcome| Column::right(&outcome.machine)));
    let mut table = Table::new(columns).split();
    let mut row = |name: &str, value: &dyn Fn(&Outcome) -> String| {
        let values: Vec<String> = outcomes.iter().map(value).collect();
        if values.iter().any(|value| value != "0" && value != num::NONE) || name.starts_with("loads and stores") {
            table.row(std::iter::once(Cell::from(name)).chain(values.iter().map(Cell::from)));
        }
    };
    row("loads and stores", &|o| num::grouped(o.data.accesses));
    row("instruction fetches", &|o| num::grouped(o.fetch.accesses));
    row("instructions", &|o| num::grouped(o.instructions));
    row("modelled cycles", &|o| num::short(o.modelled_cycles()));
    row("translation cycles", &|o| num::short(o.translation_cycles()));
    row("  share of modelled cycles", &|o| num::percent(num::share(o.translation_cycles(), o.modelled_cycles())));
    let data: fn(&Outcome) -> &Side = |outcome| &outcome.data;
    let fetch: fn(&Outcome) -> &Side = |outcome| &outcome.fetch;
    for (name, denominator, side) in [("data", "1,000 loads and stores", data), ("fetch", "1,000 fetches", fetch)] {
        if outcomes.iter().all(|o| side(o).accesses == 0) {
            continue;
        }
        let per_kilo = |o: &Outcome, n: f64| num::rate(num::per_kilo(n, side(o).accesses));
        row(&format!("{name}, per {denominator}:"), &|_| String::new());
        row("  translation cycles", &|o| per_kilo(o, side(o).cost.cycles()));
        row("  misses of the first level", &|o| per_kilo(o, side(o).cost.l1_misses as f64));
        row("  walks", &|o| per_kilo(o, side(o).cost.walks as f64));
        row("  walk references", &|o| per_kilo(o, side(o).cost.walk_references as f64));
        row("  walk references to memory", &|o| per_kilo(o, side(o).cost.walk_references_memory as f64));
        row(&format!("{name} walks"), &|o| num::grouped(side(o).cost.walks));
        row(&format!("{name} walk references a walk"), &|o| {
            num::rate(num::share(side(o).cost.walk_references as f64, side(o).cost.walks as f64))
        });
    }
    row("context switches", &|o| num::grouped(o.context_switches));
    row("shootdowns", &|o| num::grouped(o.shootdowns));
    row("page tables walked, bytes", &|o| num::grouped(o.table_bytes));
    table
}

/// A column for the machine's name, only where there are several.
fn machine_column(several: bool) -> Option<Column> {
    several.then(|| Column::left("machine").cut(16))
}

fn arrays(outcomes: &[Outcome], several: bool) -> Table {
    let fixed = [
        Column::left("TLB array"),
        Column::right("level").optional(2),
        Column::right("lookups"),
        Column::right("hits"),
        Column::right("of lookups"),
        Column::right("fills").optional(1),
        Column::right("evictions").optional(3),
        Column::right("invalidated").optional(4),
    ];
    let mut table = Table::new(machine_column(several).into_iter().chain(fixed));
    for outcome in outcomes {
        for tlb in &outcome.tlbs {
            let machine = several.then(|| Cell::from(&outcome.machine));
            table.row(machine.into_iter().chain([
                Cell::from(&tlb.name),
                Cell::count(tlb.level.into()),
                Cell::count(tlb.lookups),
                Cell::count(tlb.hits),
                Cell::share(num::share(tlb.hits as f64, tlb.lookups as f64)),
                Cell::count(tlb.fills),
                Cell::count(tlb.evictions),
                Cell::count(tlb.invalidated),
            ]));
        }
    }
    table
}

fn caches(outcomes: &[Outcome], several: bool) -> Table {
    let fixed = [
        Column::left("cache"),
        Column::right("data lookups").optional(1),
        Column::right("data hits"),
        Column::right("walk lookups").optional(2),
        Column::right("walk hits"),
    ];
    let mut table = Table::new(machine_column(several).into_iter().chain(fixed));
    let hits = |hits: u64, lookups: u64| Cell::share(num::share(hits as f64, lookups as f64));
    for outcome in outcomes {
        let all = outcome.walk_caches.iter().chain(&outcome.caches);
        for cache in all.filter(|cache: &&CacheCounts| cache.data_lookups > 0 || cache.walk_lookups > 0) {
            let machine = several.then(|| Cell::from(&outcome.machine));
            table.row(machine.into_iter().chain([
                Cell::from(&cache.name),
                Cell::count(cache.data_lookups),
                hits(cache.data_hits, cache.data_lookups),
                Cell::count(cache.walk_lookups),
                hits(cache.walk_hits, cache.walk_lookups),
            ]));
        }
    }
    table
}
