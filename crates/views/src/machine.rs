//! What a machine is: its TLBs, walk caches and data caches as tables, and where its figures come from.

use lookaside_machine::{Cache, Machine, Serves, Tlb, WalkCache, Ways};
use lookaside_report::{num, Block, Cell, Column, RichText, Section, Table};
use serde::Serialize;

/// The machine.
pub fn section(machine: &Machine) -> Section {
    let mut section = Section::new(format!("The machine: {}", machine.name)).lead(in_words(machine));
    section.push(tlbs(&machine.tlbs));
    section.push(walk_caches(&machine.walk_caches));
    section.push(caches(&machine.caches));
    for (title, lines) in [("Sources of the figures", &machine.sources), ("Not determined", &machine.not_determined)] {
        if !lines.is_empty() {
            section.push(Block::Heading(title.into()));
            section.push(Block::List(lines.iter().map(RichText::from).collect()));
        }
    }
    section
}

/// Clock, topology, page tables and memory.
fn in_words(machine: &Machine) -> String {
    let description = match machine.description.is_empty() {
        true => String::new(),
        false => format!("{}; ", machine.description),
    };
    let topology = machine.topology;
    let host = machine.page_table.host.as_ref();
    let host = host.map(|host| format!(" over {} ({} pages)", word(&host.format), host.page_size));
    format!(
        "{description}{} MHz; sockets × cores × threads: {} × {} × {}; page table {}{}; memory {} cycles; walks look from \
         data-cache level {} on.",
        num::short(machine.clock_mhz),
        topology.sockets,
        topology.cores_per_socket,
        topology.threads_per_core,
        word(&machine.page_table.format),
        host.unwrap_or_default(),
        num::rate(machine.memory.cycles),
        machine.walker.first_cache_level,
    )
}

fn tlbs(tlbs: &[Tlb]) -> Table {
    let columns = [
        Column::left("TLB array"),
        Column::right("level"),
        Column::right("entries"),
        Column::right("ways"),
        Column::right("hit cycles"),
        Column::left("page sizes"),
        Column::left("serves"),
        Column::left("replacement"),
        Column::left("one a"),
    ];
    let mut table = Table::new(columns).caption("TLB arrays");
    for tlb in tlbs {
        let sizes: Vec<String> = tlb.page_sizes.iter().map(ToString::to_string).collect();
        table.row([
            Cell::from(&tlb.name),
            Cell::count(tlb.level.into()),
            Cell::count(tlb.entries.into()),
            ways(tlb.ways),
            Cell::rate(tlb.hit_cycles),
            sizes.join(", ").into(),
            serves(&tlb.serves),
            word(&tlb.replacement).into(),
            word(&tlb.shared_by).into(),
        ]);
    }
    table
}

fn walk_caches(caches: &[WalkCache]) -> Table {
    let columns = [
        Column::left("walk cache"),
        Column::right("table level"),
        Column::right("entries"),
        Column::right("ways"),
        Column::right("hit cycles"),
        Column::left("stage"),
        Column::left("one a"),
    ];
    let mut table = Table::new(columns).caption("Walk caches");
    for cache in caches {
        table.row([
            Cell::from(&cache.name),
            Cell::count(cache.table_level.into()),
            Cell::count(cache.entries.into()),
            ways(cache.ways),
            Cell::rate(cache.hit_cycles),
            word(&cache.stage).into(),
            word(&cache.shared_by).into(),
        ]);
    }
    table
}

fn caches(caches: &[Cache]) -> Table {
    let columns = [
        Column::left("data cache"),
        Column::right("level"),
        Column::right("size"),
        Column::right("ways"),
        Column::right("line"),
        Column::right("hit cycles"),
        Column::left("serves"),
        Column::left("one a"),
    ];
    let mut table = Table::new(columns).caption("Data caches");
    for cache in caches {
        table.row([
            Cell::from(&cache.name),
            Cell::count(cache.level.into()),
            Cell::bytes(cache.size),
            ways(cache.ways),
            Cell::bytes(cache.line_bytes.into()),
            Cell::rate(cache.hit_cycles),
            serves(&cache.serves),
            word(&cache.shared_by).into(),
        ]);
    }
    table
}

fn serves(serves: &[Serves]) -> Cell {
    serves.iter().map(word).collect::<Vec<_>>().join(", ").into()
}

fn ways(ways: Ways) -> Cell {
    match ways {
        Ways::Count(n) => Cell::count(n.into()),
        Ways::Full(_) => Cell::number(f64::MAX, "full"),
    }
}

/// The word that the machine's TOML uses.
fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
