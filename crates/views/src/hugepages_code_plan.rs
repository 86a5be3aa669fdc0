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

#[cfg(test)]
mod tests {
    use lookaside_report::{terminal, Style};
    use lookaside_techniques::hugepages::code_plan::PlannedKind;

    use super::*;

    fn effect(windows: u32, translation_cycles: f64) -> Effect {
        Effect {
            windows,
            translation_cycles,
            saved_cycles: 8e6 - translation_cycles,
            collapse_cycles: 1e6 * f64::from(windows),
            bloat_bytes: u64::from(windows) << 21,
        }
    }

    fn sample() -> CodePlan {
        let window = |offset, saved_cycles| PlannedCodeWindow {
            process: 7,
            path: "/usr/lib/cc1".into(),
            offset,
            address: offset + 0x40_0000,
            accesses: 1_000_000,
            walks: 900,
            saved_cycles,
            copy_cycles: 1e6,
            break_even_runs: 1e6 / saved_cycles,
            hot: Vec::new(),
        };
        CodePlan {
            plan: PlannedKind::Code,
            machine: "skylake".into(),
            clock_mhz: 3400.0,
            page_bytes: 2 << 20,
            budget: 4,
            command: vec!["cc1".into()],
            fetches: 1_000_000,
            tried_share: 1.0,
            seed: 1,
            candidates: 3,
            model_runs: 9,
            modelled_cycles: 16e6,
            base_cycles: 8e6,
            window_cycles: 6e6,
            edge_cycles: 2e6,
            remarks: vec!["one".into()],
            planned: effect(1, 5e6),
            windows: vec![window(0x20_0000, 3e6)],
            later: vec![window(0x40_0000, 0.5e6)],
            curve: vec![effect(0, 8e6), effect(1, 5e6), effect(2, 4.5e6), effect(9, 6e6)],
        }
    }

    #[test]
    fn a_plan_of_code_reads_well() {
        let text = |plan: &CodePlan, width| {
            terminal::render(&view(plan), &Style { width, ..Style::default() }).replace('\u{a0}', " ")
        };
        let all = text(&sample(), 140).replace('\n', " ");
        for part in [
            "skylake: 1 of at most 4 windows of code pay within the recorded run; 1,000,000 fetches, translation 8.00 M of 16.0 M",
            "75.0 % of translation is in 9 whole windows of code; 25.0 % in code outside whole windows",
            "0x200000",
            "0.33 runs",
            "2.00 runs",
            "less than their copy costs in a run as short as this one",
            "all 9 windows leave 18.8 % of translation more than 2 of them: the machine has few TLB entries",
            "· one",
        ] {
            assert!(all.contains(part), "{part}\n{all}");
        }
        for width in [60, 80] {
            assert!(text(&sample(), width).lines().all(|line| line.chars().count() <= width));
        }
        let mut good = sample();
        good.curve.pop();
        assert_eq!(too_much(&good), None);
    }
}
