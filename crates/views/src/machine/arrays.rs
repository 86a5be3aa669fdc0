//! TLB arrays, walk caches and data caches: a table of each.

use lookaside_machine::{Cache, FilledBy, IndexFn, Machine, Stage, Tlb, WalkCache, Ways};
use lookaside_report::{Cell, Column, Table};

use super::origins;
use super::toml_words::{word, words};

/// TLB arrays.
pub fn tlbs(machine: &Machine) -> Table {
    let columns = [
        Column::left("TLB"),
        Column::right("level"),
        Column::left("serves").wrap(),
        Column::left("pages"),
        Column::right("entries"),
        Column::right("ways"),
        Column::right("sets"),
        Column::left("replaces"),
        Column::right("cycles"),
        Column::left("one per"),
        Column::left("remarks").remark(),
    ];
    let mut table = Table::new(columns).caption("TLB arrays");
    for tlb in &machine.tlbs {
        table.row([
            Cell::from(&tlb.name),
            Cell::count(tlb.level.into()),
            words(&tlb.serves).into(),
            words(&tlb.page_sizes).into(),
            Cell::count(tlb.entries.into()),
            ways(tlb.ways),
            Cell::count(tlb.sets().into()),
            word(&tlb.replacement).into(),
            exact(tlb.hit_cycles),
            word(&tlb.shared_by).into(),
            remarks(tlb, origins::remark(machine, &format!("tlb.{}", tlb.name))).into(),
        ]);
    }
    table
}

/// What a column of its own would be too wide for.
fn remarks(tlb: &Tlb, origin: Option<String>) -> String {
    let tags = if tlb.tags.is_empty() { "no tags".into() } else { format!("tags {}", words(&tlb.tags)) };
    let coalesces = (tlb.coalesce_pages > 1).then(|| format!("coalesces {} pages", tlb.coalesce_pages));
    let directories = tlb.directory_entries.then(|| "holds level 2 entries".to_string());
    let lockable = (tlb.lockable_entries > 0).then(|| format!("+{} lockable", tlb.lockable_entries));
    let index = index(&tlb.index, "page").unwrap_or_else(|| "linear index".into());
    let remarks = [origin, Some(tags), coalesces, directories, lockable, Some(index)];
    remarks.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The masks of an index that is not linear, low index bit first, with the bits of the number (of a page, of a line)
/// that each XORs.
fn index(index: &IndexFn, of: &str) -> Option<String> {
    let IndexFn::Masks(masks) = index else { return None };
    let masks = masks.iter().map(|mask| {
        let bits = (0..u64::BITS).filter(|bit| mask >> bit & 1 == 1).map(|bit| bit.to_string());
        format!("{mask:#x} ({})", bits.collect::<Vec<_>>().join("^"))
    });
    Some(format!("index masks ({of}-number bits): {}", masks.collect::<Vec<_>>().join(", ")))
}

/// Walk caches.
pub fn walk_caches(machine: &Machine) -> Table {
    let columns = [
        Column::left("walk cache"),
        Column::left("holds"),
        Column::right("entries"),
        Column::right("ways"),
        Column::right("sets"),
        Column::left("replaces"),
        Column::right("cycles"),
        Column::left("one per"),
        Column::left("remarks").remark(),
    ];
    let mut table = Table::new(columns).caption("Walk caches");
    for cache in &machine.walk_caches {
        table.row([
            Cell::from(&cache.name),
            holds(cache).into(),
            Cell::count(cache.entries.into()),
            ways(cache.ways),
            Cell::count(cache.sets().into()),
            word(&cache.replacement).into(),
            exact(cache.hit_cycles),
            word(&cache.shared_by).into(),
            origins::remark(machine, &format!("walk_cache.{}", cache.name)).unwrap_or_default().into(),
        ]);
    }
    table
}

fn holds(cache: &WalkCache) -> String {
    match (cache.stage, cache.table_level) {
        (Stage::Guest, level) => format!("level {level} entries"),
        (Stage::Host, 1) => "host translations".into(),
        (Stage::Host, level) => format!("host level {level} entries"),
    }
}

/// Data caches.
pub fn caches(machine: &Machine) -> Table {
    let columns = [
        Column::left("data cache"),
        Column::right("level"),
        Column::left("serves").wrap(),
        Column::right("size"),
        Column::right("ways"),
        Column::right("sets"),
        Column::right("line"),
        Column::left("replaces"),
        Column::right("cycles"),
        Column::left("one per"),
        Column::left("remarks").remark(),
    ];
    let mut table = Table::new(columns).caption("Data caches");
    for cache in &machine.caches {
        table.row([
            Cell::from(&cache.name),
            Cell::count(cache.level.into()),
            words(&cache.serves).into(),
            Cell::bytes(cache.size),
            ways(cache.ways),
            Cell::count(cache.sets().into()),
            Cell::bytes(cache.line_bytes.into()),
            word(&cache.replacement).into(),
            exact(cache.hit_cycles),
            word(&cache.shared_by).into(),
            cache_remarks(cache, origins::remark(machine, &format!("cache.{}", cache.name))).into(),
        ]);
    }
    table
}

fn cache_remarks(cache: &Cache, origin: Option<String>) -> String {
    let passed = (!cache.write_allocate).then(|| "stores don't fill it".to_string());
    let fed = (cache.filled_by == FilledBy::Victims).then(|| "holds what the one before throws out".to_string());
    [origin, passed, fed, index(&cache.index, "line")].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn ways(ways: Ways) -> Cell {
    match ways {
        Ways::Count(n) => Cell::count(n.into()),
        Ways::Full(_) => Cell::number(f64::MAX, "full"),
    }
}

/// A figure of the description, with all its digits.
fn exact(figure: f64) -> Cell {
    Cell::number(figure, figure.to_string())
}
