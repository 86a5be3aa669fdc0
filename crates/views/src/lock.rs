//! A lock plan: the pages, the ways to choose, what more entries would add.

use lookaside_report::chart::{Axis, Lines, Mark, Point, Scale, Series};
use lookaside_report::{num, Cell, Chart, Column, Document, Medium, Paint, RichText, Section, Table};
use lookaside_techniques::lock::histogram::PageCounts;
use lookaside_techniques::lock::plan::{CurvePoint, LockPlan, PlannedPage, Stalls};
use lookaside_techniques::lock::select::PageSelector;

use crate::native_location::{self, NativeLocation};

/// Pages shown where there is no plan.
const COUNTS_SHOWN: usize = 12;

/// The pages, where they lie in a plain run, the ways to choose, more entries.
pub fn view(plan: &LockPlan) -> Document {
    let mut document = Document::new("Pages to lock", plan.command.join(" "));
    document.answer(format!(
        "{}: {} of {} lockable entries of {}, chosen by {}; {} accesses, stall cycles over {} seeds",
        plan.machine,
        plan.pages.len(),
        plan.entries,
        plan.tlb,
        name(plan.selector),
        num::grouped(plan.accesses),
        plan.seeds.len(),
    ));
    if plan.pages.is_empty() {
        document.answer("No page saves anything.");
    }
    document.section(Section::unheaded("Pages").with(pages(plan)));
    if plan.pages.iter().any(|page| page.native.is_some() || page.not_native.is_some()) {
        document.section(Section::new("In a plain run, addresses fixed").with(natively(plan)));
    }
    let sentences = [winners(plan), optimum(plan)].map(RichText::from);
    let mut ways = Section::unheaded("Ways to choose").with(choices(plan));
    sentences.into_iter().for_each(|sentence| ways.push(sentence));
    document.section(ways);
    document.section(Section::unheaded("More entries").with(curve(plan)));
    document.section(Section::unheaded("Stall cycles over locked entries").with(chart(plan)).only(Medium::Page));
    plan.remarks.iter().for_each(|remark| document.note(remark));
    document
}

/// What is known where choosing was interrupted: the pages with most misses.
pub fn view_counts(counts: &[PageCounts]) -> Document {
    let mut table = Table::new([
        Column::right("process"),
        Column::right("page"),
        Column::right("data accesses"),
        Column::right("fetches"),
        Column::right("misses"),
    ]);
    let mut most: Vec<&PageCounts> = counts.iter().collect();
    most.sort_by_key(|of| (std::cmp::Reverse(of.misses()), of.page));
    for of in most.into_iter().take(COUNTS_SHOWN) {
        table.row([
            Cell::number(of.page.process.into(), of.page.process.to_string()),
            format!("{:#x}", of.page.vpn).into(),
            Cell::count(of.data_accesses),
            Cell::count(of.fetch_accesses),
            Cell::count(of.misses()),
        ]);
    }
    let mut document = Document { titled: false, ..Document::new("Pages with most misses", "") };
    document.section(Section::unheaded("Pages").with(table));
    document
}

/// The word of the command line.
fn name(selector: PageSelector) -> &'static str {
    match selector {
        PageSelector::Accesses => "accesses",
        PageSelector::Misses => "misses",
        PageSelector::Gain => "gain",
        PageSelector::Worst => "worst",
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
            Cell::number(page.process.into(), page.process.to_string()),
            format!("{:#x}", page.vpn).into(),
            region(page).into(),
            page.symbol.as_str().into(),
            Cell::count(page.data_accesses),
            Cell::count(page.fetch_accesses),
            Cell::count(page.data_misses + page.fetch_misses),
            Cell::short(page.saving_cycles),
            saved(page.saving_cycles, all),
        ]);
    }
    table
}

/// Where pages lie in a plain run.
fn natively(plan: &LockPlan) -> Table {
    let mut table = native_location::table("page");
    for page in &plan.pages {
        let location = page.native.as_ref().map(|native| NativeLocation {
            there: native.vpn,
            region: (&native.region, native.offset_bytes),
            confidence: native.confidence,
            rests_on: &native.rests_on,
        });
        native_location::add(&mut table, page.vpn, location, page.not_native.as_deref());
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
    Cell::share(num::share(cycles, all)).paint(paint)
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
            Cell::short(mean.cycles()),
            share(mean.cycles(), base.mean.cycles()),
            Cell::short(mean.data.micro_cycles),
            Cell::short(mean.data.main_cycles),
            Cell::short(mean.fetch.micro_cycles),
            Cell::short(mean.fetch.main_cycles),
            Cell::short(of.worst_cycles),
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

/// Who wins by the mean and by the worst seed, and by how much over the second.
fn winners(plan: &LockPlan) -> String {
    let by = |of: fn(&Stalls) -> f64| {
        let mut order: Vec<(f64, &str)> = plan.choices.iter().map(|c| (of(&c.stalls), name(c.selector))).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (best, rest) = order.split_first()?;
        let second = rest.first()?;
        Some(match num::share(second.0 - best.0, second.0) {
            share if share > 0.0 => format!("{}, by {} before {}", best.1, num::percent(share), second.1),
            _ => {
                let equal = order.iter().filter(|other| other.0 == best.0).map(|other| other.1);
                format!("{} alike", equal.collect::<Vec<_>>().join(", "))
            }
        })
    };
    match (by(|stalls| stalls.mean.cycles()), by(|stalls| stalls.worst_cycles)) {
        (Some(mean), Some(worst)) => format!("best on average: {mean}; best by the worst seed: {worst}"),
        _ => String::new(),
    }
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
        "best of all sets of {} of the {} pages with most misses: {} stall cycles; {distance}",
        optimum.entries,
        optimum.of_pages,
        num::short(best)
    )
}

fn chart(plan: &LockPlan) -> Chart {
    let line = |name: &str, cycles: fn(&CurvePoint) -> f64| {
        Series::new(name, plan.curve.iter().map(|point| Point::new(point.entries.into(), cycles(point))).collect())
    };
    let lines = Lines::new(Axis::new("locked entries", Scale::Linear), Axis::new("stall cycles", Scale::Auto))
        .with(line("mean", |point| point.mean_cycles))
        .with(line("worst seed", |point| point.worst_cycles));
    let marks = vec![Mark::new(plan.entries.into(), "lockable")];
    Chart::lines("Stall cycles", Lines { marks, ..lines })
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
            Cell::short(point.mean_cycles),
            Cell::share(num::share(all - point.mean_cycles, all)),
            Cell::short(before - point.mean_cycles),
            Cell::short(point.worst_cycles),
        ]);
        before = point.mean_cycles;
    }
    table
}

#[cfg(test)]
mod tests {
    use lookaside_techniques::lock::histogram::LockPage;
    use lookaside_techniques::lock::maps::ListedMapping;
    use lookaside_techniques::lock::plan::NativePage;
    use lookaside_techniques::lock::plan::{LockChoice, Optimum, PageRegion};
    use lookaside_techniques::lock::stall::{SideStall, StallCycles};
    use lookaside_trace::MapSource;

    use lookaside_techniques::lock::regions::Confidence;

    use lookaside_report::chart::Plot;
    use lookaside_report::{terminal, Style};

    use super::*;

    fn shown(plan: &LockPlan, width: usize) -> String {
        terminal::render(&view(plan), &Style { width, ..Style::default() })
    }

    fn stalls(main_cycles: f64, worst_cycles: f64) -> Stalls {
        let data = SideStall { micro_cycles: 40.0, main_cycles };
        Stalls { worst_cycles, mean: StallCycles { data, fetch: SideStall { micro_cycles: 0.0, main_cycles: 10.0 } } }
    }

    fn sample() -> LockPlan {
        let mapping = ListedMapping { start: 0x8000, end: 0x9000, prot: 3, source: MapSource::Heap, site: 0 };
        let page = PlannedPage {
            process: 7,
            vpn: 0x8,
            symbol: "table (a.c:3)".into(),
            data_accesses: 123_456,
            fetch_accesses: 0,
            data_misses: 1200,
            fetch_misses: 0,
            saving_cycles: 500.0,
            region: Some(PageRegion { name: "[heap]".into(), offset_bytes: 0, mapping }),
            native: None,
            not_native: None,
        };
        let choice = |selector, main, worst| LockChoice {
            selector,
            stalls: stalls(main, worst),
            pages: vec![LockPage { process: 7, vpn: 8 }],
        };
        LockPlan {
            machine: "cortex-a9".into(),
            tlb: "main".into(),
            entries: 1,
            page_bytes: 4096,
            selector: PageSelector::Gain,
            command: vec!["x".into()],
            accesses: 200_000,
            tried_share: 1.0,
            seeds: vec![1, 2],
            model_runs: 20,
            remarks: vec!["one".into()],
            base: stalls(950.0, 1100.0),
            locked: stalls(450.0, 600.0),
            optimum: Some(Optimum { of_pages: 3, entries: 1, mean_cycles: 400.0, worst_cycles: 500.0 }),
            pages: vec![page],
            choices: vec![
                choice(PageSelector::Accesses, 750.0, 900.0),
                choice(PageSelector::Misses, 550.0, 600.0),
                choice(PageSelector::Gain, 450.0, 600.0),
                choice(PageSelector::Worst, 460.0, 600.0),
            ],
            curve: (0..3u32)
                .map(|entries| CurvePoint {
                    entries,
                    mean_cycles: 1000.0 - 500.0 * f64::from(entries.min(1)),
                    worst_cycles: 1100.0,
                })
                .collect(),
        }
    }

    #[test]
    fn pages_of_a_plain_run_are_said_with_what_they_rest_on() {
        let mut plan = sample();
        assert!(!shown(&plan, 100).contains("plain run"));
        plan.pages[0].native = Some(NativePage {
            vpn: 0x55,
            region: "heap rw-".into(),
            offset_bytes: 0x1000,
            confidence: Confidence::Likely,
            rests_on: vec!["offset in the heap".into(), "one more".into()],
        });
        let lost = PlannedPage { vpn: 9, native: None, not_native: Some("no partner".into()), ..plan.pages[0].clone() };
        plan.pages.push(lost);
        let expected = "
In a plain run, addresses fixed
page  there  region            sure    rests on
 0x8   0x55  heap rw- +0x1000  likely  offset in the heap; one more
 0x9      –  –                 no      no partner
";
        let text = shown(&plan, 120);
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn the_chart_has_the_mean_the_worst_seed_and_what_is_lockable() {
        let Plot::Lines(lines) = chart(&sample()).plot else { panic!("lines") };
        let ys = |at: usize| lines.series[at].points.iter().map(|point| point.y).collect::<Vec<_>>();
        assert_eq!((ys(0), ys(1)), (vec![1000.0, 500.0, 500.0], vec![1100.0; 3]));
        assert_eq!(lines.marks, [Mark::new(1.0, "lockable")]);
    }

    #[test]
    fn a_plan_reads_well() {
        let expected = "\
Pages to lock: x
cortex-a9: 1 of 1 lockable entries of main, chosen by gain; 200,000 accesses, stall cycles over 2 seeds

process  page  region      symbol         data accesses  fetches  misses  saved cycles  of all
      7   0x8  [heap]+0x0  table (a.c:3)        123,456        0   1,200           500  50.0 %

chosen by       stall cycles   saved  data micro  data main  fetch micro  fetch main  worst seed   saved
nothing locked         1,000       –          40        950            0          10       1,100       –
";
        let text = shown(&sample(), 120);
        assert!(text.starts_with(expected), "{text}");
        let best = "best on average: gain, by 2.0 % before worst; best by the worst seed: misses, gain, worst alike\n\
            best of all sets of 1 of the 3 pages with most misses: 400 stall cycles; the plan is 25.0 % above\n";
        assert!(text.contains(best), "{text}");
        assert!(text.ends_with("      2           500  50.0 %            0       1,100\n\n· one\n"), "{text}");
        for width in [60, 80, 100] {
            let text = shown(&sample(), width);
            let table = text.lines().take_while(|line| !line.starts_with("best")).skip(1);
            assert!(table.into_iter().all(|line| line.chars().count() <= width), "{text}");
        }
    }

    #[test]
    fn counts_are_by_misses() {
        let counts = [(1, 9), (2, 30), (3, 9)].map(|(vpn, data_misses)| PageCounts {
            page: LockPage { process: 7, vpn },
            data_accesses: 1000,
            fetch_accesses: 2,
            data_misses,
            fetch_misses: 1,
        });
        let expected = "\
process  page  data accesses  fetches  misses
      7   0x2          1,000        2      31
      7   0x1          1,000        2      10
      7   0x3          1,000        2      10
";
        assert_eq!(terminal::render(&view_counts(&counts), &Style::default()), expected);
    }

    #[test]
    fn nothing_to_lock_is_said() {
        let none = LockPlan { pages: Vec::new(), optimum: None, choices: Vec::new(), ..sample() };
        let text = shown(&none, 100);
        assert!(text.contains("\nNo page saves anything.\n") && !text.contains("best"), "{text}");
    }
}
