//! A plan of code on huge pages: the windows, and what larger budgets would do.

use lookaside_report::chart::{Axis, Lines, Point, Scale, Series};
use lookaside_report::{num, Cell, Chart, Column, Document, Medium, Paint, RichText, Section, Table};
use lookaside_techniques::hugepages::code_plan::{CodePlan, PlannedCodeWindow};
use lookaside_techniques::hugepages::plan::Effect;

/// Windows shown of each list; the plan's file has all.
const WINDOWS_SHOWN: usize = 24;

/// The windows, and larger budgets.
pub fn view(plan: &CodePlan) -> Document {
    let mut document = Document::new("Code to put on huge pages", plan.command.join(" "));
    document.answer(head(plan));
    document.answer(reach(plan));
    document.section(Section::unheaded("Windows").with(windows(&plan.windows)));
    let later = Section::unheaded("The rest of the budget").with(RichText::from(rest(plan)));
    document.section(later.with(windows(&plan.later)));
    document.section(Section::unheaded("Larger budgets").with(curve(plan)));
    document.section(Section::unheaded("Cycles over the budget").with(chart(plan)).only(Medium::Page));
    if let Some(note) = too_much(plan) {
        document.note(note);
    }
    plan.remarks.iter().for_each(|remark| document.note(remark));
    document
}

fn head(plan: &CodePlan) -> String {
    format!(
        "{}: {} of at most {} windows of code pay within the recorded run; {} fetches, translation {} of {} modelled \
         cycles ({})",
        plan.machine,
        plan.windows.len(),
        plan.budget,
        num::grouped(plan.fetches),
        num::short(plan.base_cycles),
        num::short(plan.modelled_cycles),
        num::percent(num::share(plan.base_cycles, plan.modelled_cycles)),
    )
}

fn reach(plan: &CodePlan) -> String {
    let share = |cycles: f64| num::percent(num::share(cycles, plan.base_cycles));
    let all = plan.curve.last().map_or(0, |effect| effect.windows);
    format!(
        "{} of translation is in {} of code; {} in code outside whole windows, which stays in small pages.",
        share(plan.window_cycles),
        num::counted(all as usize, "whole window"),
        share(plan.edge_cycles),
    )
}

fn rest(plan: &CodePlan) -> String {
    match plan.later.is_empty() {
        true => String::new(),
        false => "These save cycles, but less than their copy costs in a run as short as this one:".into(),
    }
}

fn windows(windows: &[PlannedCodeWindow]) -> Table {
    let mut table = Table::new([
        Column::right("process").optional(3),
        Column::left("file").cut(20),
        Column::right("offset"),
        Column::right("accesses").optional(1),
        Column::right("walks"),
        Column::right("saved"),
        Column::right("copy"),
        Column::right("net"),
        Column::right("pays after"),
    ])
    .shown(WINDOWS_SHOWN, WINDOWS_SHOWN)
    .of("window", "windows");
    for window in windows {
        let net = window.saved_cycles - window.copy_cycles;
        table.row([
            Cell::number(window.process.into(), window.process.to_string()),
            window.path.rsplit('/').next().unwrap_or_default().into(),
            Cell::number(window.offset as f64, format!("{:#x}", window.offset)),
            Cell::count(window.accesses),
            Cell::count(window.walks),
            Cell::short(window.saved_cycles),
            Cell::short(window.copy_cycles),
            signed(net),
            Cell::number(window.break_even_runs, format!("{:.2}\u{a0}runs", window.break_even_runs)),
        ]);
    }
    table
}

fn signed(cycles: f64) -> Cell {
    Cell::short(cycles).paint(if cycles > 0.0 { Paint::Good } else { Paint::Warn })
}

fn curve(plan: &CodePlan) -> Table {
    let mut table = Table::new([
        Column::right("windows"),
        Column::right("translation"),
        Column::right("saved"),
        Column::right("of it"),
        Column::right("copies"),
        Column::right("net"),
        Column::right("memory"),
    ]);
    for effect in &plan.curve {
        table.row([
            Cell::count(effect.windows.into()),
            Cell::short(effect.translation_cycles),
            Cell::short(effect.saved_cycles),
            Cell::share(num::share(effect.saved_cycles, plan.base_cycles)),
            Cell::short(effect.collapse_cycles),
            signed(effect.net_cycles()),
            Cell::bytes(effect.bloat_bytes),
        ]);
    }
    table
}

/// Where more windows cost more than fewer do: a machine with few entries for huge pages of code.
fn too_much(plan: &CodePlan) -> Option<String> {
    let all = plan.curve.last()?;
    let best = plan.curve.iter().min_by(|a, b| a.translation_cycles.total_cmp(&b.translation_cycles))?;
    let worse = all.translation_cycles - best.translation_cycles;
    (best.windows < all.windows && worse > plan.base_cycles / 1000.0).then(|| {
        format!(
            "all {} windows leave {} of translation more than {} of them: the machine has few TLB entries for huge pages of code",
            all.windows,
            num::percent(num::share(worse, plan.base_cycles)),
            best.windows
        )
    })
}

fn chart(plan: &CodePlan) -> Chart {
    let points = |of: fn(&Effect) -> f64| -> Vec<Point> {
        plan.curve.iter().map(|effect| Point::new(f64::from(effect.windows), of(effect))).collect()
    };
    let axis = Axis::new("windows of code on huge pages", Scale::Linear);
    let lines = Lines::new(axis, Axis::new("cycles", Scale::Linear))
        .with(Series::new("translation", points(|effect| effect.translation_cycles)))
        .with(Series::new(
            "translation and copies",
            points(|effect| effect.translation_cycles + effect.collapse_cycles),
        ));
    Chart::lines("Translation cycles by windows", lines)
}
