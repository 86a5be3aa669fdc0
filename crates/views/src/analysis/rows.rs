//! Single pages and threads of an exact run.

use lookaside_report::{num, Bar, Cell, Column, Section, Table};
use lookaside_techniques::Analysis;

use super::totals::name;

/// Pages by cost.
pub fn pages(analysis: &Analysis) -> Section {
    let outcome = &analysis.outcome;
    let whole = outcome.translation_cycles();
    let region = |index: Option<u32>| {
        let region = index.and_then(|index| outcome.regions.get(index as usize));
        let named = region.and_then(|region| {
            analysis.regions.iter().find(|named| named.process == region.process && named.addr == region.start)
        });
        named.map_or(String::new(), |named| name(named).to_string())
    };
    let mut table = Table::new([
        Column::left("page"),
        Column::right("page size"),
        Column::right("of cost"),
        Column::right("cycles"),
        Column::right("L1 misses"),
        Column::right("walks"),
        Column::right("accesses"),
        Column::left("in"),
        Column::right("process"),
    ])
    .caption("Pages by translation cost, dearest first")
    .all_by("--json --full");
    for page in &outcome.pages {
        table.row([
            format!("{:#x}", page.addr).into(),
            Cell::number(page.size.bytes() as f64, page.size.to_string()),
            Cell::share(num::share(page.cost.cycles(), whole)),
            Cell::short(page.cost.cycles()),
            Cell::count(page.cost.l1_misses),
            Cell::count(page.cost.walks),
            Cell::count(page.accesses),
            region(page.region).into(),
            Cell::number(page.process.into(), page.process.to_string()),
        ]);
    }
    Section::unheaded("Pages").lead("Single pages: those that a lock or a huge page would have to cover.").with(table)
}

/// Threads by cost.
pub fn threads(analysis: &Analysis) -> Section {
    let whole = analysis.outcome.translation_cycles();
    let mut table = Table::new([
        Column::left("thread"),
        Column::right("of cost"),
        Column::right("cycles"),
        Column::right("L1 misses"),
        Column::right("walks"),
        Column::right("walks/1000"),
        Column::right("own accesses"),
    ])
    .caption("Threads by translation cost");
    for thread in &analysis.outcome.threads {
        let share = num::share(thread.cost.cycles(), whole);
        table.row([
            format!("{} of process {}", thread.thread, thread.process).into(),
            Cell::share(share).bar(Bar::of(share)),
            Cell::short(thread.cost.cycles()),
            Cell::count(thread.cost.l1_misses),
            Cell::count(thread.cost.walks),
            Cell::rate(num::per_kilo(thread.cost.walks as f64, thread.accesses)),
            Cell::count(thread.accesses),
        ]);
    }
    Section::unheaded("Threads").lead("The translation cost of each thread.").with(table)
}
