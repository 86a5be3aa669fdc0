//! A plan of huge pages: the windows, the ways to choose, what larger budgets would add.

use lookaside_report::chart::{Axis, Lines, Point, Scale, Series};
use lookaside_report::{num, Cell, Chart, Column, Document, Medium, Paint, RichText, Section, Table};
use lookaside_techniques::hugepages::plan::{Effect, HugePlan, PlannedWindow};
use lookaside_techniques::hugepages::profile::WindowCounts;
use lookaside_techniques::hugepages::select::WindowSelector;

use crate::native_location::{self, NativeLocation};

/// Windows shown where there is no plan.
const COUNTS_SHOWN: usize = 12;

/// Windows shown of each list; the plan's file has all.
const WINDOWS_SHOWN: usize = 24;

/// The windows, the ways to choose, larger budgets.
pub fn view(plan: &HugePlan) -> Document {
    let mut document = Document::new("Huge pages to make", plan.command.join(" "));
    document.answer(head(plan));
    document.answer(reach(plan));
    let total = if plan.windows.is_empty() { String::new() } else { total(plan) };
    let chosen = Section::unheaded("Windows").with(windows(plan, &plan.windows)).with(RichText::from(total));
    document.section(chosen);
    let later = Section::unheaded("The rest of the budget").with(RichText::from(rest(plan)));
    document.section(later.with(windows(plan, &plan.later)));
    if plan.windows.iter().chain(&plan.later).any(|window| window.native.is_some() || window.not_native.is_some()) {
        document.section(Section::new("In a plain run, addresses fixed").with(natively(plan)));
    }
    document.section(Section::unheaded("Ways to choose").with(choices(plan)).with(RichText::from(winner(plan))));
    document.section(Section::unheaded("Larger budgets").with(curve(plan)));
    document.section(Section::unheaded("Cycles over the budget").with(chart(plan)).only(Medium::Page));
    plan.remarks.iter().for_each(|remark| document.note(remark));
    document
}

/// What is known where choosing was interrupted: the windows with most walks.
pub fn view_counts(counts: &[WindowCounts]) -> Document {
    let mut table = Table::new([
        Column::right("process"),
        Column::right("window"),
        Column::right("accesses"),
        Column::right("walks"),
        Column::right("translation cycles"),
        Column::right("touched"),
    ]);
    let mut most: Vec<&WindowCounts> = counts.iter().collect();
    most.sort_by_key(|of| (std::cmp::Reverse(of.walks), of.window));
    for of in most.into_iter().take(COUNTS_SHOWN) {
        table.row([
            Cell::number(of.window.process.into(), of.window.process.to_string()),
            format!("{:#x}", of.window.addr).into(),
            Cell::count(of.accesses),
            Cell::count(of.walks),
            Cell::short(of.cycles),
            Cell::bytes(of.touched_pages * 4096),
        ]);
    }
    let mut document = Document { titled: false, ..Document::new("Windows with most walks", "") };
    document.section(Section::unheaded("Windows").with(table));
    document
}

fn head(plan: &HugePlan) -> String {
    format!(
        "{}: {} of at most {} huge pages pay within the recorded run; {} accesses, translation {} of {} modelled cycles ({})",
        plan.machine,
        plan.windows.len(),
        plan.budget,
        num::grouped(plan.accesses),
        num::short(plan.base_cycles),
        num::short(plan.modelled_cycles),
        num::percent(num::share(plan.base_cycles, plan.modelled_cycles)),
    )
}

/// Where translation cycles fall.
fn reach(plan: &HugePlan) -> String {
    let share = |cycles: f64| num::percent(num::share(cycles, plan.base_cycles));
    let windows = plan.curve.last().map_or(0, |effect| effect.windows);
    format!(
        "{} of translation is in {} that can be huge. The rest: {} in mapped files or next to them, {} in small \
         regions and the ends of large ones.",
        share(plan.window_cycles),
        num::counted(windows as usize, "window"),
        share(plan.file_cycles),
        share(plan.other_cycles),
    )
}

fn windows(plan: &HugePlan, windows: &[PlannedWindow]) -> Table {
    let all = || plan.windows.iter().chain(&plan.later);
    // Processes have windows at the same addresses.
    let several = all().any(|window| all().next().is_some_and(|first| first.process != window.process));
    let process = Column::right("process");
    let mut table = Table::new([
        if several { process } else { process.optional(4) },
        Column::right("window").optional(2),
        Column::left("region").cut(24),
        Column::left("allocated by").cut(12).optional(3),
        Column::right("accesses").optional(1),
        Column::right("walks"),
        Column::right("saved"),
        Column::right("collapse"),
        Column::right("net"),
        Column::right("pays after"),
        Column::right("bloat"),
    ])
    .shown(WINDOWS_SHOWN, WINDOWS_SHOWN)
    .of("window", "windows");
    for window in windows {
        let net = window.saved_cycles - window.collapse_cycles;
        table.row([
            Cell::number(window.process.into(), window.process.to_string()),
            Cell::number(window.address as f64, format!("{:#x}", window.address)),
            region(window).into(),
            window.symbol.as_str().into(),
            Cell::count(window.accesses),
            Cell::count(window.walks),
            Cell::short(window.saved_cycles),
            Cell::short(window.collapse_cycles),
            signed(net),
            Cell::number(window.break_even_runs, runs(window.break_even_runs)),
            Cell::bytes(window.bloat_bytes),
        ]);
    }
    table
}

/// `0.31 runs`, of the recorded one's length.
fn runs(times: f64) -> String {
    match times {
        t if !t.is_finite() => num::NONE.into(),
        t if t < 9.995 => format!("{t:.2}\u{a0}runs"),
        t => format!("{}\u{a0}runs", num::short(t)),
    }
}

fn signed(cycles: f64) -> Cell {
    Cell::short(cycles).paint(if cycles > 0.0 { Paint::Good } else { Paint::Warn })
}

/// `[heap]+0x600000`.
fn region(window: &PlannedWindow) -> String {
    window.region.as_ref().map_or(num::NONE.into(), |region| format!("{}+{:#x}", region.name, region.offset_bytes))
}

fn total(plan: &HugePlan) -> String {
    let of = &plan.planned;
    format!(
        "total: saves {} cycles ({} of translation, {} of all cycles); making them huge costs {} once (at {} MHz); \
         net {}; bloat {}",
        num::short(of.saved_cycles),
        num::percent(num::share(of.saved_cycles, plan.base_cycles)),
        num::percent(num::share(of.saved_cycles, plan.modelled_cycles)),
        num::short(of.collapse_cycles),
        num::short(plan.clock_mhz),
        num::short(of.net_cycles()),
        num::bytes(of.bloat_bytes),
    )
}

/// What becomes of the rest of the budget.
fn rest(plan: &HugePlan) -> String {
    let spent = plan.windows.len() + plan.later.len();
    let mut sentences = Vec::new();
    if !plan.later.is_empty() {
        sentences.push(format!(
            "{} would pay only over several such runs (making a window huge costs more than one run saves, at {} \
             MHz; pays after = runs until it is paid for):",
            num::counted(plan.later.len(), "more window"),
            num::short(plan.clock_mhz)
        ));
    }
    let unused = (plan.budget as usize).saturating_sub(spent);
    if unused > 0 {
        let others = match (plan.candidates as usize).saturating_sub(spent) {
            0 => "translation costs nothing in any other window".to_string(),
            1 => "the one other window tried saves nothing".to_string(),
            others => format!("none of the {others} other windows tried saves anything"),
        };
        sentences.insert(0, format!("{unused} of the budget not used: {others}"));
    }
    sentences.join("; ")
}

/// Where windows lie in a plain run.
fn natively(plan: &HugePlan) -> Table {
    let mut table = native_location::table("window").shown(WINDOWS_SHOWN, WINDOWS_SHOWN).of("window", "windows");
    for window in plan.windows.iter().chain(&plan.later) {
        let location = window.native.as_ref().map(|native| NativeLocation {
            there: native.address,
            region: (&native.region, native.offset_bytes),
            confidence: native.confidence,
            rests_on: &native.rests_on,
        });
        native_location::add(&mut table, window.address, location, window.not_native.as_deref());
    }
    table
}

/// Name and effect of each way, the plan's marked.
fn ways(plan: &HugePlan) -> Vec<(String, &Effect)> {
    let name = |selector| match selector {
        WindowSelector::Accesses => "most accesses".to_string(),
        WindowSelector::Walks => "most walks".to_string(),
        WindowSelector::Gain => "gain *".to_string(),
    };
    plan.choices.iter().map(|choice| (name(choice.selector), &choice.effect)).collect()
}

fn effects(first: Column) -> Table {
    Table::new([
        first,
        Column::right("huge pages"),
        Column::right("translation"),
        Column::right("saved"),
        Column::right("of it"),
        Column::right("collapse"),
        Column::right("net"),
        Column::right("bloat"),
    ])
}

fn effect_cells(plan: &HugePlan, effect: &Effect) -> [Cell; 7] {
    let paint = if effect.saved_cycles > 0.0 { Paint::Good } else { Paint::Warn };
    [
        Cell::number(effect.windows.into(), effect.windows.to_string()),
        Cell::short(effect.translation_cycles),
        Cell::short(effect.saved_cycles),
        Cell::share(num::share(effect.saved_cycles, plan.base_cycles)).paint(paint),
        Cell::short(effect.collapse_cycles),
        signed(effect.net_cycles()),
        Cell::bytes(effect.bloat_bytes),
    ]
}

fn choices(plan: &HugePlan) -> Table {
    let mut table = effects(Column::left("chosen by"));
    let everywhere = plan.curve.last().map(|effect| ("huge everywhere".to_string(), effect));
    let nothing = plan.curve.first().map(|effect| ("base pages".to_string(), effect));
    for (name, effect) in nothing.into_iter().chain(ways(plan)).chain(everywhere) {
        let cells = effect_cells(plan, effect);
        table.row(std::iter::once(Cell::from(name)).chain(cells).collect::<Vec<_>>());
    }
    table
}

/// Who saves most with the same budget, and how near that comes to huge pages everywhere.
fn winner(plan: &HugePlan) -> String {
    let mut order = ways(plan);
    order.sort_by(|a, b| b.1.saved_cycles.total_cmp(&a.1.saved_cycles));
    let (Some(best), Some(second), Some(all)) = (order.first(), order.get(1), plan.curve.last()) else {
        return String::new();
    };
    if best.1.saved_cycles <= 0.0 {
        return "no way of choosing saves anything".into();
    }
    let plain = |name: &str| name.trim_end_matches(" *").to_string();
    let by = match num::share(best.1.saved_cycles - second.1.saved_cycles, best.1.saved_cycles) {
        share if share > 0.0 => format!("{}, by {} before {}", plain(&best.0), num::percent(share), plain(&second.0)),
        _ => {
            let equal = order.iter().filter(|way| way.1.saved_cycles == best.1.saved_cycles);
            format!("{} alike", equal.map(|way| plain(&way.0)).collect::<Vec<_>>().join(", "))
        }
    };
    let of_all = num::percent(num::share(best.1.saved_cycles, all.saved_cycles));
    format!("best: {by}; {of_all} of what huge pages everywhere save, with {} of {} pages", best.1.windows, all.windows)
}

/// The budgets of the curve, each with its name: windows, and all of them at last.
fn budgets(plan: &HugePlan) -> impl Iterator<Item = (String, &Effect)> {
    let last = plan.curve.len().saturating_sub(1);
    let name = move |i: usize, effect: &Effect| if i == last { "all".to_string() } else { effect.windows.to_string() };
    plan.curve.iter().enumerate().map(move |(i, effect)| (name(i, effect), effect))
}

fn curve(plan: &HugePlan) -> Table {
    let mut table = effects(Column::right("budget"));
    for (budget, effect) in budgets(plan) {
        let is_plan = effect.windows == plan.planned.windows && budget != "all";
        let budget = Cell::painted(if is_plan { Paint::Strong } else { Paint::Plain }, budget);
        table.row(std::iter::once(budget).chain(effect_cells(plan, effect)).collect::<Vec<_>>());
    }
    table
}

/// Cycles saved, and what remains of them after the collapse.
fn chart(plan: &HugePlan) -> Chart {
    let line = |name: &str, cycles: fn(&Effect) -> f64| {
        let point =
            |(i, (budget, effect)): (usize, (String, &Effect))| Point::new(i as f64, cycles(effect)).labelled(budget);
        Series::new(name, budgets(plan).enumerate().map(point).collect())
    };
    let lines = Lines::new(Axis::new("budget", Scale::Even), Axis::new("cycles", Scale::Linear))
        .with(line("saved", |effect| effect.saved_cycles))
        .with(line("net of the collapse", Effect::net_cycles));
    Chart::lines("Cycles saved", lines)
}

#[cfg(test)]
mod tests {
    use lookaside_techniques::hugepages::plan::{HugeChoice, NativeRange, WindowRegion};
    use lookaside_techniques::hugepages::Window;
    use lookaside_techniques::lock::maps::ListedMapping;
    use lookaside_trace::MapSource;

    use lookaside_techniques::lock::regions::Confidence;

    use lookaside_report::chart::Plot;
    use lookaside_report::{terminal, Style};

    use super::*;

    fn effect(windows: u32, saved_cycles: f64) -> Effect {
        Effect {
            windows,
            translation_cycles: 8e6 - saved_cycles,
            saved_cycles,
            collapse_cycles: 1e6 * f64::from(windows),
            bloat_bytes: u64::from(windows) << 19,
        }
    }

    fn window(number: u64, saved_cycles: f64) -> PlannedWindow {
        let (start, address) = (0x4010_0000, 0x4020_0000 + (number << 21));
        let mapping = ListedMapping { start, end: 0x5000_0000, prot: 3, source: MapSource::Anonymous, site: 0 };
        PlannedWindow {
            process: 7,
            address,
            bytes: 2 << 20,
            symbol: "table (a.c:3)".into(),
            accesses: 123_456,
            walks: 12_345,
            touched_bytes: 3 << 19,
            saved_cycles,
            collapse_cycles: 1e6,
            break_even_runs: 1e6 / saved_cycles,
            bloat_bytes: 1 << 19,
            not_native: None,
            region: Some(WindowRegion {
                name: "anonymous".into(),
                offset_bytes: address - start,
                nth: 0,
                equals: 1,
                mapping,
            }),
            native: None,
        }
    }

    fn sample() -> HugePlan {
        let choice = |selector, windows, saved| HugeChoice { selector, effect: effect(windows, saved) };
        HugePlan {
            machine: "skylake".into(),
            clock_mhz: 3400.0,
            page_bytes: 2 << 20,
            budget: 4,
            command: vec!["x".into()],
            accesses: 1_000_000,
            tried_share: 1.0,
            seed: 1,
            candidates: 9,
            model_runs: 20,
            modelled_cycles: 16e6,
            base_cycles: 8e6,
            window_cycles: 6e6,
            file_cycles: 1.6e6,
            other_cycles: 0.4e6,
            remarks: vec!["one".into()],
            planned: effect(2, 5e6),
            windows: vec![window(1, 3e6), window(5, 2e6)],
            later: vec![window(0, 0.25e6)],
            choices: vec![
                choice(WindowSelector::Accesses, 4, 4.2e6),
                choice(WindowSelector::Walks, 4, 5.0e6),
                choice(WindowSelector::Gain, 3, 5.25e6),
            ],
            curve: vec![effect(0, 0.0), effect(1, 3e6), effect(2, 5e6), effect(3, 5.25e6), effect(9, 5.6e6)],
        }
    }

    fn text(plan: &HugePlan, width: usize) -> String {
        terminal::render(&view(plan), &Style { width, ..Style::default() }).replace('\u{a0}', " ")
    }

    #[test]
    fn the_chart_has_every_budget_and_what_the_collapse_leaves() {
        let Plot::Lines(lines) = chart(&sample()).plot else { panic!("lines") };
        let [saved, net] = &lines.series[..] else { panic!("{:?}", lines.series) };
        let labels: Vec<&str> = saved.points.iter().map(|point| point.label.as_str()).collect();
        assert_eq!(labels, ["0", "1", "2", "3", "all"]);
        for (i, effect) in sample().curve.iter().enumerate() {
            assert_eq!((saved.points[i].y, net.points[i].y), (effect.saved_cycles, effect.net_cycles()));
        }
    }

    #[test]
    fn a_plan_reads_well() {
        let all = text(&sample(), 140);
        for part in [
            "skylake: 2 of at most 4 huge pages pay within the recorded run; 1,000,000 accesses, translation 8.00 M of 16.0 M modelled cycles",
            "75.0 % of translation is in 9 windows that can be huge. The rest: 20.0 % in mapped files or next to them, 5.0 % in small",
            "anonymous+0x300000",
            "total: saves 5.00 M cycles (62.5 % of translation, 31.2 % of all cycles); making them huge costs 2.00 M once (at 3,400 MHz);",
            "1 of the budget not used: none of the 6 other windows tried saves anything; 1 more window would pay only over several such runs",
            "250.00 k",
            "4.00 runs",
            "0.33 runs",
            "best: gain, by 4.8 % before most walks; 93.8 % of what huge pages everywhere save, with 3 of 9 pages",
            "· one",
        ] {
            let part = part.replace("250.00 k", "250 k");
            assert!(all.replace('\n', " ").contains(&part), "{part}\n{all}");
        }
        assert!(all.contains("\nbase pages ") && all.contains("\nhuge everywhere "), "{all}");
        for width in [60, 80, 100] {
            let all = text(&sample(), width);
            assert!(all.lines().all(|line| line.chars().count() <= width), "{all}");
        }
    }

    #[test]
    fn where_windows_lie_natively_is_said() {
        let mut plan = sample();
        assert!(!text(&plan, 120).contains("plain run"));
        plan.windows[0].native = Some(NativeRange {
            address: 0x7fff_0010_0000,
            region: "anonymous rw-".into(),
            offset_bytes: 0x30_0000,
            confidence: Confidence::Likely,
            rests_on: vec!["only region of its size".into()],
        });
        plan.later[0].not_native = Some("no partner".into());
        let all = text(&plan, 120);
        assert!(all.contains("0x7fff00100000  anonymous rw- +0x300000  likely  only region of its size"), "{all}");
        assert!(all.contains("no partner"), "{all}");
    }

    #[test]
    fn nothing_to_make_huge_is_said() {
        let nothing = effect(0, 0.0);
        let choices = sample().choices.iter().map(|c| HugeChoice { effect: nothing, ..c.clone() }).collect();
        let none = HugePlan { windows: vec![], later: vec![], choices, planned: nothing, ..sample() };
        let all = text(&none, 100).replace('\n', " ");
        assert!(all.contains("4 of the budget not used") && all.contains("no way of choosing saves anything"), "{all}");
    }

    #[test]
    fn counts_are_by_walks() {
        let counts = [(1, 9), (2, 30)].map(|(number, walks)| WindowCounts {
            window: Window { process: 7, addr: number << 21 },
            accesses: 1000,
            walks,
            cycles: 250.0,
            touched_pages: 3,
        });
        let all = terminal::render(&view_counts(&counts), &Style::default());
        let order: Vec<&str> = all.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(order, ["0x400000", "0x200000"], "{all}");
    }
}
