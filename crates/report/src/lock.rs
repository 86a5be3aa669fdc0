//! A lock plan for a terminal: the pages, the ways to choose, what more entries would add.

use lookaside_techniques::lock::plan::{LockPlan, PlannedPage, Stalls};
use lookaside_techniques::lock::select::Selector;

use crate::line::{Paint, Style};
use crate::num;
use crate::table::{Cell, Column, Table};
use crate::text;

/// The plan as text.
pub fn render(plan: &LockPlan, style: &Style) -> String {
    let seeds = plan.seeds.len();
    let mut text = format!(
        "{}: {} of {} lockable entries of {}, chosen by {}; {} accesses, stall cycles over {seeds} seeds\n\n",
        text::clean(&plan.machine),
        plan.pages.len(),
        plan.entries,
        text::clean(&plan.tlb),
        name(plan.selector),
        num::grouped(plan.accesses),
    );
    if plan.pages.is_empty() {
        text += "no page saves anything\n";
    } else {
        text += &pages(plan).render(style);
    }
    text.push('\n');
    text += &choices(plan).render(style);
    text += &optimum(plan);
    text.push('\n');
    text += &curve(plan).render(style);
    for remark in &plan.remarks {
        text += &format!("remark: {}\n", text::clean(remark));
    }
    text
}

/// The word of the command line.
fn name(selector: Selector) -> &'static str {
    match selector {
        Selector::Accesses => "accesses",
        Selector::Misses => "misses",
        Selector::Gain => "gain",
        Selector::Worst => "worst",
    }
}

fn pages(plan: &LockPlan) -> Table {
    let mut table = Table::new([
        Column::right("process").optional(2),
        Column::right("page"),
        Column::left("region").cut(24),
        Column::left("symbol").cut(16),
        Column::right("data accesses").optional(1),
        Column::right("fetches").optional(1),
        Column::right("misses"),
        Column::right("saved cycles"),
        Column::right("of all"),
    ]);
    let all = plan.base.mean.cycles();
    for page in &plan.pages {
        table.row([
            page.process.to_string().into(),
            format!("{:#x}", page.vpn).into(),
            region(page).into(),
            page.symbol.as_str().into(),
            num::grouped(page.data_accesses).into(),
            num::grouped(page.fetch_accesses).into(),
            num::grouped(page.data_misses + page.fetch_misses).into(),
            num::short(page.saving_cycles).into(),
            saved(page.saving_cycles, all),
        ]);
    }
    table
}

/// `libc.so.6+0x1c000`.
fn region(page: &PlannedPage) -> String {
    page.region.as_ref().map_or(num::NONE.into(), |region| format!("{}+{:#x}", region.name, region.offset_bytes))
}

/// A share that is saved; what costs is no saving.
fn saved(cycles: f64, all: f64) -> Cell {
    let paint = if cycles > 0.0 { Paint::Good } else { Paint::Warn };
    Cell::painted(paint, num::percent(num::share(cycles, all)))
}

fn choices(plan: &LockPlan) -> Table {
    let mut table = Table::new([
        Column::left("chosen by"),
        Column::right("stall cycles"),
        Column::right("saved"),
        Column::right("data micro").optional(1),
        Column::right("data main").optional(1),
        Column::right("fetch micro").optional(2),
        Column::right("fetch main").optional(2),
        Column::right("worst seed"),
        Column::right("saved"),
    ]);
    let mut row = |name: &str, of: &Stalls| {
        let (base, mean) = (&plan.base, &of.mean);
        let is_base = of == base;
        let share = |part: f64, all: f64| if is_base { Cell::from(num::NONE) } else { saved(all - part, all) };
        table.row([
            name.into(),
            num::short(mean.cycles()).into(),
            share(mean.cycles(), base.mean.cycles()),
            num::short(mean.data.micro_cycles).into(),
            num::short(mean.data.main_cycles).into(),
            num::short(mean.fetch.micro_cycles).into(),
            num::short(mean.fetch.main_cycles).into(),
            num::short(of.worst_cycles).into(),
            share(of.worst_cycles, base.worst_cycles),
        ]);
    };
    row("nothing locked", &plan.base);
    for choice in &plan.choices {
        let mark = if choice.selector == plan.selector { " *" } else { "" };
        row(&format!("{}{mark}", name(choice.selector)), &choice.stalls);
    }
    table
}

fn optimum(plan: &LockPlan) -> String {
    let Some(optimum) = &plan.optimum else { return String::new() };
    let (found, best) = (plan.locked.mean.cycles(), optimum.mean_cycles);
    let distance = match num::share(found - best, best) {
        over if over > 0.0 => format!("the plan is {} above", num::percent(over)),
        under if under < 0.0 => format!("the plan is {} below", num::percent(-under)),
        _ => "so is the plan".into(),
    };
    format!(
        "best of all sets of {} of the {} pages with most misses: {} stall cycles; {distance}\n",
        optimum.entries,
        optimum.of_pages,
        num::short(best)
    )
}

fn curve(plan: &LockPlan) -> Table {
    let mut table = Table::new([
        Column::right("entries"),
        Column::right("stall cycles"),
        Column::right("saved"),
        Column::right("by the last"),
        Column::right("worst seed"),
    ]);
    let all = plan.base.mean.cycles();
    let mut before = all;
    for point in &plan.curve {
        let paint = if point.entries == plan.entries { Paint::Strong } else { Paint::Plain };
        table.row([
            Cell::painted(paint, point.entries.to_string()),
            num::short(point.mean_cycles).into(),
            num::percent(num::share(all - point.mean_cycles, all)).into(),
            num::short(before - point.mean_cycles).into(),
            num::short(point.worst_cycles).into(),
        ]);
        before = point.mean_cycles;
    }
    table
}
