//! How all this was computed: what the numbers mean, and what the model's parts counted.

use lookaside_report::{num, Cell, Column, Fact, Section, Table};
use lookaside_techniques::{Analysis, Seeing};
use lookaside_trace::Granularity;

use super::seeing::{is_sampled, os};

/// What the numbers mean.
pub fn section(analysis: &Analysis) -> Section {
    let definitions = if is_sampled(analysis) { of_samples() } else { of_counts(analysis) };
    let fact = |(label, words): (&str, String)| Fact { label: label.into(), words: words.into() };
    Section::unheaded("How this was computed").with(definitions.into_iter().map(fact).collect::<Vec<_>>())
}

fn of_samples() -> Vec<(&'static str, String)> {
    let list = [
        (
            "Share",
            "Samples of a row in all samples taken, those without a data address included. A sample stands for a \
             stretch of the program's time, whatever it waited for.",
        ),
        ("Curve", "Estimated from the sampled addresses as if each reference were independent of those before it."),
        ("Not known", "Counts of misses, walks and cycles, and what would help: that needs --exact."),
    ];
    list.map(|(label, words)| (label, words.to_string())).into()
}

fn of_counts(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let mut list = vec![
        (
            "Translation cycles",
            "Latencies of TLB hits beyond the first level, and walks: their references to page tables at the \
             latency of the cache or memory that served each, and what walk caches cost."
                .into(),
        ),
        (
            "Modelled cycles",
            format!(
                "One an access, plus stalls of data accesses beyond a hit in the first cache, plus translation and \
                 context switches. Nothing overlaps in the model; a core that runs ahead hides a part of both. {}",
                stalls(analysis)
            ),
        ),
        (
            "Per 1,000",
            "The denominator is the loads and stores, or the fetches, of the whole run, repeats that the recorder \
             left out included."
                .into(),
        ),
        ("L1 miss", "An access that missed every first-level TLB array that serves it.".into()),
        ("Walk", "An access that missed every level.".into()),
        (
            "Own accesses",
            "Of a row: its pages' accesses; pages on the edge of an object count by their misses only.".into(),
        ),
        ("OS model", os(analysis) + "."),
    ];
    list.extend(touched(analysis).map(|words| ("Touched", words)));
    list.push(("Accesses", accesses(analysis)));
    list
}

/// What the data caches of the model saw.
fn stalls(analysis: &Analysis) -> &'static str {
    match analysis.seeing {
        Seeing::Exact { granularity: Granularity::Byte, .. } => "Every access was seen with its full address.",
        Seeing::Exact { granularity: Granularity::Line, .. } => {
            "Addresses are those of 64-byte lines; repeats of a line were counted, and cost nothing beyond their cycle."
        }
        Seeing::Exact { granularity: Granularity::Page, window: 1.., .. } => {
            "The data caches saw each line once that was touched while its page was among those used last: repeats \
             of it cost nothing beyond their cycle."
        }
        Seeing::Exact { .. } => {
            "The data caches saw only the first line of each visit to a page. Stalls of the other lines are \
             missing, so modelled cycles are too few and shares of them too high."
        }
        Seeing::Sampled { .. } => "",
    }
}

fn touched(analysis: &Analysis) -> Option<String> {
    let outcome = &analysis.outcome;
    let pages = outcome.pages_touched.iter().map(|(size, n)| {
        format!("{} pages of {size} ({})", num::grouped(*n), num::bytes(n.saturating_mul(size.bytes())))
    });
    let pages: Vec<String> = pages.collect();
    let tables = num::bytes(outcome.table_bytes);
    (!pages.is_empty()).then(|| format!("{}; walks read from {tables} of page tables.", pages.join(", ")))
}

fn accesses(analysis: &Analysis) -> String {
    let outcome = &analysis.outcome;
    let instructions = match outcome.instructions {
        0 => "an unknown number of".into(),
        n => num::grouped(n),
    };
    format!(
        "{} loads, {} stores, {instructions} instructions; {} context switches, {} shootdowns.",
        num::grouped(outcome.loads),
        num::grouped(outcome.stores),
        num::grouped(outcome.context_switches),
        num::grouped(outcome.shootdowns)
    )
}

/// What each TLB array and cache of the model counted.
pub fn counts(analysis: &Analysis) -> Section {
    if is_sampled(analysis) {
        return Section::default();
    }
    let outcome = &analysis.outcome;
    let heads =
        ["level", "lookups", "hits", "hits of lookups", "fills", "evictions", "invalidated", "hits in locked entries"];
    let columns = std::iter::once(Column::left("array")).chain(heads.map(Column::right));
    let mut tlbs = Table::new(columns).caption("TLB arrays, summed over their instances");
    for tlb in &outcome.tlbs {
        tlbs.row([
            Cell::from(&tlb.name),
            Cell::count(tlb.level.into()),
            Cell::count(tlb.lookups),
            Cell::count(tlb.hits),
            Cell::share(num::share(tlb.hits as f64, tlb.lookups as f64)),
            Cell::count(tlb.fills),
            Cell::count(tlb.evictions),
            Cell::count(tlb.invalidated),
            Cell::count(tlb.locked_hits),
        ]);
    }
    let heads = ["data lookups", "hits of data lookups", "walk lookups", "hits of walk lookups"];
    let columns = std::iter::once(Column::left("cache")).chain(heads.map(Column::right));
    let mut caches = Table::new(columns).caption("Walk caches and data caches");
    for cache in outcome.walk_caches.iter().chain(&outcome.caches) {
        caches.row([
            Cell::from(&cache.name),
            Cell::count(cache.data_lookups),
            Cell::share(num::share(cache.data_hits as f64, cache.data_lookups as f64)),
            Cell::count(cache.walk_lookups),
            Cell::share(num::share(cache.walk_hits as f64, cache.walk_lookups as f64)),
        ]);
    }
    Section::unheaded("What the model's parts counted").with(tlbs).with(caches)
}
