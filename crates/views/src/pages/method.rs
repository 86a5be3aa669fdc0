//! How all this was computed: denominators, assumptions, notes, the counts of the model's parts, the machine.

use lookaside_engine::CacheCounts;
use lookaside_machine::{Machine, Serves, SharedBy, Ways};
use lookaside_techniques::{Analysis, Seeing};
use lookaside_trace::Granularity;

use super::parts::{Cell, Esc, Table};
use crate::analysis_facts as facts;
use lookaside_report::num;

/// Notes, definitions, machine.
pub fn section(analysis: &Analysis) -> String {
    let mut out =
        String::from(r#"<section class="long" aria-labelledby="method"><h2 id="method">How this was computed</h2>"#);
    if !analysis.notes.is_empty() {
        out += "<h3>Notes on this run</h3><ul>";
        for note in &analysis.notes {
            out += &format!("<li>{}</li>", Esc(note));
        }
        out += "</ul>";
    }
    out += "<h3>What the numbers mean</h3><dl>";
    for (term, words) in definitions(analysis) {
        out += &format!("<dt>{term}</dt><dd>{}</dd>", Esc(&words));
    }
    out += "</dl>";
    out += &counts(analysis);
    out += &format!("<h3>The machine: {}</h3>", Esc(&analysis.machine.name));
    out += &machine(&analysis.machine);
    out + "</section>\n"
}

fn definitions(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let Seeing::Exact { granularity, window, .. } = &analysis.seeing else {
        let seen = facts::seeing(&analysis.seeing);
        return vec![
            ("Seen", format!("{}: {}.", seen.0, seen.1)),
            ("Share", "Samples of a row in all samples taken, those without a data address included. A sample stands for a stretch of the program's time, whatever it waited for.".into()),
            ("Curve", "Estimated from the sampled addresses as if each reference were independent of those before it.".into()),
            ("Not known", "Counts of misses, walks and cycles, and what would help: that needs --exact.".into()),
        ];
    };
    let stalls = match granularity {
        Granularity::Byte => "Every access was seen with its full address.",
        Granularity::Line => "Addresses are those of 64-byte lines; repeats of a line were counted, and cost nothing beyond their cycle.",
        Granularity::Page if *window > 0 => "The data caches saw each line once that was touched while its page was among those used last: repeats of it cost nothing beyond their cycle.",
        Granularity::Page => "Of a visit to a page the data caches saw the first line only: stalls of the others are missing, so the modelled cycles are too few and shares of them too high.",
    };
    let outcome = &analysis.outcome;
    let touched: Vec<String> = outcome
        .pages_touched
        .iter()
        .map(|(size, n)| {
            format!("{} pages of {size} ({})", num::grouped(*n), num::bytes(n.saturating_mul(size.bytes())))
        })
        .collect();
    let mut list = vec![
        ("Translation cycles", "Latencies of TLB hits beyond the first level, and walks: their references to page tables at the latency of the cache or memory that served each, and what walk caches cost.".into()),
        ("Modelled cycles", format!("One an access, plus stalls of data accesses beyond a hit in the first cache, plus translation and context switches. Nothing overlaps in the model; a core that runs ahead hides a part of both. {stalls}")),
        ("Per 1,000", "The denominator is the loads and stores, or the fetches, of the whole run, repeats that the recorder left out included.".into()),
        ("First-level miss", "An access that missed every first-level TLB array that serves it.".into()),
        ("Walk", "An access that missed every level.".into()),
        ("Own accesses", "Of a row: its pages' accesses; pages on the edge of an object count by their misses only.".into()),
        ("OS model", facts::os(analysis) + "."),
    ];
    if !touched.is_empty() {
        list.push((
            "Touched",
            format!("{}; walks read from {} of page tables.", touched.join(", "), num::bytes(outcome.table_bytes)),
        ));
    }
    list.push((
        "Accesses",
        format!(
            "{} loads, {} stores, {} instructions; {} context switches, {} shootdowns.",
            num::grouped(outcome.loads),
            num::grouped(outcome.stores),
            if outcome.instructions == 0 { "an unknown number of".into() } else { num::grouped(outcome.instructions) },
            num::grouped(outcome.context_switches),
            num::grouped(outcome.shootdowns)
        ),
    ));
    list
}

/// What each TLB array and cache of the model counted.
fn counts(analysis: &Analysis) -> String {
    let outcome = &analysis.outcome;
    let tlbs = outcome.tlbs.iter().map(|tlb| {
        vec![
            Cell::Text(tlb.name.clone()),
            Cell::count(tlb.level.into()),
            Cell::count(tlb.lookups),
            Cell::count(tlb.hits),
            Cell::percent(num::share(tlb.hits as f64, tlb.lookups as f64)),
            Cell::count(tlb.fills),
            Cell::count(tlb.evictions),
            Cell::count(tlb.invalidated),
            Cell::count(tlb.locked_hits),
        ]
    });
    let heads =
        ["level", "lookups", "hits", "hits of lookups", "fills", "evictions", "invalidated", "hits in locked entries"];
    let tlbs = Table {
        caption: "TLB arrays, summed over their instances",
        heads: std::iter::once(("array", false)).chain(heads.map(|head| (head, true))).collect(),
        rows: tlbs.collect(),
    };
    let caches = outcome.walk_caches.iter().chain(&outcome.caches).map(|cache: &CacheCounts| {
        vec![
            Cell::Text(cache.name.clone()),
            Cell::count(cache.data_lookups),
            Cell::percent(num::share(cache.data_hits as f64, cache.data_lookups as f64)),
            Cell::count(cache.walk_lookups),
            Cell::percent(num::share(cache.walk_hits as f64, cache.walk_lookups as f64)),
        ]
    });
    let heads = ["data lookups", "hits of data lookups", "walk lookups", "hits of walk lookups"];
    let caches = Table {
        caption: "Walk caches and data caches",
        heads: std::iter::once(("cache", false)).chain(heads.map(|head| (head, true))).collect(),
        rows: caches.collect(),
    };
    if tlbs.rows.is_empty() && caches.rows.is_empty() {
        return String::new();
    }
    format!("<h3>What the model's parts counted</h3>{}{}", tlbs.scrolled(), caches.scrolled())
}

fn machine(machine: &Machine) -> String {
    let topology = machine.topology;
    let mut out = format!(
        "<p class=\"lead\">{}{} MHz; sockets × cores × threads: {} × {} × {}; page table {}{}; memory {} cycles; walks look from data-cache level {} on.</p>",
        Esc(&if machine.description.is_empty() { String::new() } else { format!("{}; ", machine.description) }),
        num::short(machine.clock_mhz),
        topology.sockets,
        topology.cores_per_socket,
        topology.threads_per_core,
        Esc(&word(&machine.page_table.format)),
        Esc(&machine.page_table.host.as_ref().map_or(String::new(), |host| format!(" over {} ({} pages)", word(&host.format), host.page_size))),
        Esc(&num::rate(machine.memory.cycles)),
        machine.walker.first_cache_level,
    );
    let serves = |serves: &[Serves]| serves.iter().map(word).collect::<Vec<_>>().join(", ");
    let shared = |by: &SharedBy| Cell::Text(word(by));
    let tlbs = machine.tlbs.iter().map(|tlb| {
        let sizes: Vec<String> = tlb.page_sizes.iter().map(ToString::to_string).collect();
        vec![
            Cell::Text(tlb.name.clone()),
            Cell::count(tlb.level.into()),
            Cell::count(tlb.entries.into()),
            ways(tlb.ways),
            Cell::rate(tlb.hit_cycles),
            Cell::Text(sizes.join(", ")),
            Cell::Text(serves(&tlb.serves)),
            Cell::Text(word(&tlb.replacement)),
            shared(&tlb.shared_by),
        ]
    });
    let tlbs = Table {
        caption: "TLB arrays",
        heads: vec![
            ("array", false),
            ("level", true),
            ("entries", true),
            ("ways", true),
            ("hit cycles", true),
            ("page sizes", false),
            ("serves", false),
            ("replacement", false),
            ("one a", false),
        ],
        rows: tlbs.collect(),
    };
    let walk_caches = machine.walk_caches.iter().map(|cache| {
        vec![
            Cell::Text(cache.name.clone()),
            Cell::count(cache.table_level.into()),
            Cell::count(cache.entries.into()),
            ways(cache.ways),
            Cell::rate(cache.hit_cycles),
            Cell::Text(word(&cache.stage)),
            shared(&cache.shared_by),
        ]
    });
    let walk_caches = Table {
        caption: "Walk caches",
        heads: vec![
            ("cache", false),
            ("table level", true),
            ("entries", true),
            ("ways", true),
            ("hit cycles", true),
            ("stage", false),
            ("one a", false),
        ],
        rows: walk_caches.collect(),
    };
    let caches = machine.caches.iter().map(|cache| {
        vec![
            Cell::Text(cache.name.clone()),
            Cell::count(cache.level.into()),
            Cell::Number(cache.size as f64, num::bytes(cache.size)),
            ways(cache.ways),
            Cell::Number(cache.line_bytes.into(), num::bytes(cache.line_bytes.into())),
            Cell::rate(cache.hit_cycles),
            Cell::Text(serves(&cache.serves)),
            shared(&cache.shared_by),
        ]
    });
    let caches = Table {
        caption: "Data caches",
        heads: vec![
            ("cache", false),
            ("level", true),
            ("size", true),
            ("ways", true),
            ("line", true),
            ("hit cycles", true),
            ("serves", false),
            ("one a", false),
        ],
        rows: caches.collect(),
    };
    for table in [tlbs, walk_caches, caches] {
        out += &table.scrolled();
    }
    for (title, lines) in [("Sources of the figures", &machine.sources), ("Not determined", &machine.not_determined)] {
        if !lines.is_empty() {
            let items: String = lines.iter().map(|line| format!("<li>{}</li>", Esc(line))).collect();
            out += &format!("<h3>{title}</h3><ul>{items}</ul>");
        }
    }
    out
}

fn ways(ways: Ways) -> Cell {
    match ways {
        Ways::Count(n) => Cell::count(n.into()),
        Ways::Full(_) => Cell::Number(f64::MAX, "full".into()),
    }
}

/// The word that the machine's TOML uses.
fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
