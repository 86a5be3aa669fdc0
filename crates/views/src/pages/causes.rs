//! The complete tables: remedies, objects, functions, regions, pages, threads.

use lookaside_techniques::{Analysis, NamedCost, Seeing};

use super::parts::{bar, swatch, Cell, Table};
use super::summary::saving_bar;
use crate::analysis_facts::{self as facts, Savings};
use lookaside_report::num;

fn section(id: &str, title: &str, lead: &str, table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    format!(
        r#"<section class="long titled" aria-labelledby="{id}"><h2 id="{id}">{title}</h2><p class="lead">{lead}</p>{}</section>
"#,
        table.scrolled()
    )
}

/// What would help, every row with how to get it and what it leaves out.
pub fn remedies(analysis: &Analysis) -> String {
    let rows = analysis.remedies.iter().map(|remedy| {
        let savings = Savings::of(remedy);
        let saved = savings.of_translation;
        vec![
            Cell::Text(remedy.what.clone()),
            Cell::Bar(saved, format!("{}{}", facts::near(remedy), num::percent(saved)), saving_bar(saved)),
            Cell::percent(savings.of_all),
            Cell::percent(savings.walks_left),
            Cell::Text(if remedy.how.is_empty() { "not to be had on this machine".into() } else { remedy.how.clone() }),
            Cell::Text(facts::remedy_caveat(remedy)),
        ]
    });
    let table = Table {
        caption: "What would help, best first",
        heads: vec![
            ("what", false),
            ("saves of translation", false),
            ("of all cycles", true),
            ("walks left", true),
            ("how to get it", false),
            ("what it does not say", false),
        ],
        rows: rows.collect(),
    };
    let lead = "The model run again with one thing changed, over the same accesses. Savings are shares of translation cycles and of all modelled cycles; walks left are those of the unchanged run that remain. A negative saving costs.";
    section("remedies", "What would help, in full", lead, &table)
}

/// Objects, functions and regions.
pub fn attributed(analysis: &Analysis) -> String {
    let objects =
        "Heap allocations of 64 KiB and more, by the place that made them. Size is the most that lived at one time.";
    let functions = "The code whose accesses (or fetches) missed the first TLB level.";
    let regions = "Mappings: files, heap, stacks, and anonymous memory by who mapped it.";
    table(analysis, "objects", "Objects", objects, &analysis.objects)
        + &table(analysis, "functions", "Functions", functions, &analysis.functions)
        + &table(analysis, "regions", "Regions", regions, &analysis.regions)
}

fn table(analysis: &Analysis, id: &str, title: &str, lead: &str, rows: &[NamedCost]) -> String {
    let whole = facts::whole(analysis);
    let counted = rows.iter().any(|row| row.accesses > 0);
    let sized = rows.iter().any(|row| row.bytes > 0);
    let placed = rows.iter().any(|row| row.addr > 0);
    let several = facts::several_processes(rows);

    let mut heads = vec![("name", false)];
    if sized {
        heads.push(("size", true));
    }
    let lead = match analysis.seeing {
        Seeing::Exact { .. } => {
            heads.extend([
                ("of translation cycles", false),
                ("cycles", true),
                ("first-level misses", true),
                ("walks", true),
            ]);
            if counted {
                heads.extend([("walks per 1,000 own accesses", true), ("own accesses", true)]);
            }
            format!("{lead} Bars: {}walks {}hits beyond the first level.", swatch("fill"), swatch("fill2"))
        }
        Seeing::Sampled { .. } => {
            heads.extend([("of all samples", false), ("time", true), ("samples", true)]);
            format!("{lead} Shares of time, an estimate: translation and all else together.")
        }
    };
    if !facts::is_sampled(analysis) {
        heads.push(("references a walk", true));
    }
    if placed {
        heads.push(("address", true));
    }
    if several {
        heads.push(("process", true));
    }
    let cells = |row: &NamedCost| {
        let mut cells = vec![Cell::Text(facts::name(row).to_string())];
        if sized {
            cells.push(Cell::Number(row.bytes as f64, num::bytes(row.bytes)));
        }
        match analysis.seeing {
            Seeing::Exact { .. } => {
                let cost = &row.cost;
                let (walks, hits) = (num::share(cost.walk_cycles, whole), num::share(cost.tlb_hit_cycles, whole));
                let share = num::share(cost.cycles(), whole);
                cells.extend([
                    Cell::Bar(share, num::percent(share), bar(&[(walks, "fill"), (hits, "fill2")])),
                    Cell::cycles(cost.cycles()),
                    Cell::count(cost.l1_misses),
                    Cell::count(cost.walks),
                ]);
                if counted {
                    cells.push(Cell::rate(num::per_kilo(cost.walks as f64, row.accesses)));
                    cells.push(Cell::count(row.accesses));
                }
            }
            Seeing::Sampled { period_ns, .. } => {
                let share = num::share(row.samples as f64, whole);
                let time = facts::sampled_seconds(row.samples, period_ns);
                cells.extend([
                    Cell::Bar(share, num::percent(share), bar(&[(share, "fill")])),
                    Cell::Number(time, num::seconds(time)),
                    Cell::count(row.samples),
                ]);
            }
        }
        if !facts::is_sampled(analysis) {
            cells.push(Cell::rate(num::share(row.cost.walk_references as f64, row.cost.walks as f64)));
        }
        if placed {
            cells.push(Cell::Number(row.addr as f64, format!("{:#x}", row.addr)));
        }
        if several {
            cells.push(Cell::Number(row.process.into(), row.process.to_string()));
        }
        cells
    };
    let caption = format!("{title} by cost, dearest first");
    section(id, title, &lead, &Table { caption: &caption, heads, rows: rows.iter().map(cells).collect() })
}

/// Pages and threads of an exact run.
pub fn rows(analysis: &Analysis) -> String {
    let outcome = &analysis.outcome;
    let whole = outcome.translation_cycles();
    let name = |region: Option<u32>| {
        let region = region.and_then(|index| outcome.regions.get(index as usize));
        let named = region.and_then(|region| {
            analysis.regions.iter().find(|named| named.process == region.process && named.addr == region.start)
        });
        named.map_or(String::new(), |named| facts::name(named).to_string())
    };
    let pages = outcome.pages.iter().map(|page| {
        let share = num::share(page.cost.cycles(), whole);
        vec![
            Cell::Text(format!("{:#x}", page.addr)),
            Cell::Number(page.size.bytes() as f64, page.size.to_string()),
            Cell::Bar(share, num::percent(share), String::new()),
            Cell::cycles(page.cost.cycles()),
            Cell::count(page.cost.l1_misses),
            Cell::count(page.cost.walks),
            Cell::count(page.accesses),
            Cell::Text(name(page.region)),
            Cell::Number(page.process.into(), page.process.to_string()),
        ]
    });
    let pages = Table {
        caption: "Pages by translation cost, dearest first",
        heads: vec![
            ("page", false),
            ("page size", true),
            ("of translation cycles", false),
            ("cycles", true),
            ("first-level misses", true),
            ("walks", true),
            ("accesses", true),
            ("in", false),
            ("process", true),
        ],
        rows: pages.collect(),
    };
    let threads = outcome.threads.iter().map(|thread| {
        let share = num::share(thread.cost.cycles(), whole);
        vec![
            Cell::Text(format!("{} of process {}", thread.thread, thread.process)),
            Cell::Bar(share, num::percent(share), bar(&[(share, "fill")])),
            Cell::cycles(thread.cost.cycles()),
            Cell::count(thread.cost.l1_misses),
            Cell::count(thread.cost.walks),
            Cell::rate(num::per_kilo(thread.cost.walks as f64, thread.accesses)),
            Cell::count(thread.accesses),
        ]
    });
    let threads = Table {
        caption: "Threads by translation cost",
        heads: vec![
            ("thread", false),
            ("of translation cycles", false),
            ("cycles", true),
            ("first-level misses", true),
            ("walks", true),
            ("walks per 1,000 own accesses", true),
            ("own accesses", true),
        ],
        rows: threads.collect(),
    };
    section("pages", "Pages", "Single pages: those that a lock or a huge page would have to cover.", &pages)
        + &section("threads", "Threads", "What each thread paid.", &threads)
}
