//! A machine in words: what `lookaside machine show` and `lookaside machine list` print.

use std::fmt::{Display, Write};

use crate::toml_word::word;
use crate::{preset, presets, Cache, IndexFn, Machine, Serves, SharedBy, Stage, Stream, SwitchAction, Tlb, WalkCache};

/// The whole machine as compact tables, lines ending in newlines, without colours.
pub fn describe(machine: &Machine) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = header(&mut out, machine);
    let _ = write!(out, "\n{}", tlb_table(machine));
    for tlb in &machine.tlbs {
        let _ = index(&mut out, tlb);
    }
    if !machine.walk_caches.is_empty() {
        let _ = write!(out, "\n{}", walk_cache_table(machine));
    }
    if !machine.caches.is_empty() {
        let _ = write!(out, "\n{}", cache_table(machine));
    }
    let _ = costs(&mut out, machine);
    for (title, lines) in [("Not determined", &machine.not_determined), ("Sources", &machine.sources)] {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{title}:");
        }
        for line in lines {
            let _ = writeln!(out, "  - {line}");
        }
    }
    out
}

/// One line a preset: name, data TLBs by level (entries x ways), description.
pub fn list_presets() -> String {
    let mut table = TextTable::new(&["Machine", "Data TLBs", "Description"]);
    for p in presets() {
        if let Ok(machine) = preset(p.name) {
            table.row(vec![machine.name.clone(), data_tlbs(&machine), machine.description]);
        }
    }
    table.to_string()
}

/// `64 full + 2048x16`: the arrays that hold a load's smallest pages, level by level.
fn data_tlbs(machine: &Machine) -> String {
    let base = machine.page_table.format.page_sizes()[0];
    let mut arrays: Vec<&Tlb> =
        machine.tlbs.iter().filter(|t| t.serves.contains(&Serves::Load) && t.page_sizes.contains(&base)).collect();
    arrays.sort_by_key(|t| t.level);
    let words = arrays.iter().map(|t| match t.sets() {
        1 => format!("{} full", t.entries),
        _ => format!("{}x{}", t.entries, t.ways),
    });
    words.collect::<Vec<_>>().join(" + ")
}

fn header(out: &mut String, m: &Machine) -> std::fmt::Result {
    writeln!(out, "{}: {}", m.name, m.description)?;
    let t = m.topology;
    writeln!(
        out,
        "{} x {} x {}, {} MHz",
        count(t.sockets, "socket"),
        count(t.cores_per_socket, "core"),
        count(t.threads_per_core, "thread"),
        m.clock_mhz
    )?;
    let format = m.page_table.format;
    write!(out, "Page table: {}, {} levels ({})", word(&format), format.levels().len(), words(&format.page_sizes()))?;
    if let Some(host) = &m.page_table.host {
        write!(out, ", nested over {} backed with {} pages", word(&host.format), host.page_size)?;
        if let Some(bits) = host.memory_bits {
            write!(out, ", 2^{bits} bytes")?;
        }
    }
    writeln!(out)
}

fn count(n: u32, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn tlb_table(m: &Machine) -> TextTable {
    let mut table = TextTable::new(&[
        "TLB", "Level", "Serves", "Pages", "Entries", "Ways", "Sets", "Index", "Replaces", "Tags", "Cycles", "One per",
        "",
    ]);
    for t in &m.tlbs {
        let mut extra = Vec::new();
        if t.coalesce_pages > 1 {
            extra.push(format!("coalesces {} pages", t.coalesce_pages));
        }
        if t.directory_entries {
            extra.push("holds level 2 entries".into());
        }
        if t.lockable_entries > 0 {
            extra.push(format!("+{} lockable", t.lockable_entries));
        }
        table.row(vec![
            t.name.clone(),
            t.level.to_string(),
            serves(&t.serves),
            words(&t.page_sizes),
            t.entries.to_string(),
            t.ways.to_string(),
            t.sets().to_string(),
            if t.index == IndexFn::Linear { "linear".into() } else { "masks".into() },
            word(&t.replacement),
            if t.tags.is_empty() { "-".into() } else { t.tags.iter().map(word).collect::<Vec<_>>().join(",") },
            t.hit_cycles.to_string(),
            shared(t.shared_by),
            extra.join(", "),
        ]);
    }
    table
}

/// The masks of an index that is not linear, low index bit first, with the page-number bits that each XORs.
fn index(out: &mut String, tlb: &Tlb) -> std::fmt::Result {
    let IndexFn::Masks(masks) = &tlb.index else { return Ok(()) };
    let masks = masks.iter().map(|mask| {
        let bits = (0..u64::BITS).filter(|bit| mask >> bit & 1 == 1).map(|bit| bit.to_string());
        format!("{mask:#x} ({})", bits.collect::<Vec<_>>().join("^"))
    });
    writeln!(out, "  {} index masks (page-number bits): {}", tlb.name, masks.collect::<Vec<_>>().join(", "))
}

fn walk_cache_table(m: &Machine) -> TextTable {
    let mut table =
        TextTable::new(&["Walk cache", "Holds", "Entries", "Ways", "Sets", "Replaces", "Cycles", "One per"]);
    for w in &m.walk_caches {
        let WalkCache { name, table_level, entries, ways, replacement, hit_cycles, stage, shared_by } = w;
        let holds = match (stage, table_level) {
            (Stage::Guest, level) => format!("level {level} entries"),
            (Stage::Host, 1) => "host translations".into(),
            (Stage::Host, level) => format!("host level {level} entries"),
        };
        table.row(vec![
            name.clone(),
            holds,
            entries.to_string(),
            ways.to_string(),
            w.sets().to_string(),
            word(replacement),
            hit_cycles.to_string(),
            shared(*shared_by),
        ]);
    }
    table
}

fn cache_table(m: &Machine) -> TextTable {
    let mut table = TextTable::new(&[
        "Cache", "Level", "Serves", "Size", "Ways", "Sets", "Line", "Replaces", "Cycles", "One per", "",
    ]);
    for c in &m.caches {
        let Cache { name, level, serves: kinds, size, ways, line_bytes, replacement, .. } = c;
        let Cache { write_allocate, hit_cycles, shared_by, .. } = c;
        table.row(vec![
            name.clone(),
            level.to_string(),
            serves(kinds),
            crate::units::format_bytes(*size),
            ways.to_string(),
            c.sets().to_string(),
            line_bytes.to_string(),
            word(replacement),
            hit_cycles.to_string(),
            shared(*shared_by),
            if *write_allocate { String::new() } else { "stores don't fill it".into() },
        ]);
    }
    table
}

fn costs(out: &mut String, m: &Machine) -> std::fmt::Result {
    let ns = m.memory.cycles * 1000.0 / m.clock_mhz;
    writeln!(out, "\nMemory: {} cycles ({ns:.0} ns)", m.memory.cycles)?;
    if let Some(Stream { cache_cycles, memory_cycles, walk_cycles }) = &m.stream {
        write!(out, "Ascending walks: {cache_cycles} cycles a line from caches, {memory_cycles} from memory")?;
        match walk_cycles {
            Some(cycles) => writeln!(out, "; a page-table walk {cycles}")?,
            None => writeln!(out)?,
        }
    }
    let last = m.caches.iter().map(|c| c.level).max().unwrap_or(0);
    let place = match m.walker.first_cache_level {
        first if first > last => "memory only".to_string(),
        first => format!("caches from level {first} on"),
    };
    write!(out, "Walks: {} cycles each, beside references to {place}", m.walker.base_cycles)?;
    if let Some(cycles) = m.walker.memory_cycles {
        write!(out, "; a reference to memory {cycles}")?;
    }
    let action = match m.context_switch.action {
        SwitchAction::Nothing => "flushes nothing",
        SwitchAction::FlushTlb => "flushes TLBs and walk caches",
        SwitchAction::FlushTlbAndCaches => "flushes TLBs, walk caches and the core's caches",
    };
    let held = m.context_switch.address_spaces.filter(|_| m.context_switch.action == SwitchAction::Nothing);
    let held = held.map(|n| format!(", entries of {n} processes at a time"));
    writeln!(out, "\nContext switch: {action}{}, {} cycles", held.unwrap_or_default(), m.context_switch.cycles)
}

fn serves(kinds: &[Serves]) -> String {
    kinds.iter().map(word).collect::<Vec<_>>().join(",")
}

fn shared(by: SharedBy) -> String {
    word(&by)
}

fn words<T: Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// Left-aligned columns, two spaces apart.
struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|h| (*h).to_string()).collect()] }
    }

    fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl Display for TextTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |c: usize| self.rows.iter().filter_map(|row| row.get(c)).map(|s| s.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        for row in &self.rows {
            let line = row.iter().zip(&widths).map(|(cell, w)| format!("{cell:w$}")).collect::<Vec<_>>().join("  ");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
