//! Cores, page tables, and what memory, walks and context switches cost.

use lookaside_machine::{Machine, Stream, SwitchAction};
use lookaside_report::{num, Fact, RichText};

use super::origins;
use super::toml_words::{word, words};

/// A label and a line of each.
pub fn facts(machine: &Machine) -> Vec<Fact> {
    let seconds = num::seconds(machine.memory.cycles / machine.clock_mhz / 1e6);
    let bandwidth = machine.memory.bytes_per_second.map_or(String::new(), |rate| format!(", {} GB/s", rate / 1e9));
    let memory = format!("{} cycles ({seconds}){bandwidth}", machine.memory.cycles);
    let host = machine.page_table.host.is_some().then_some("page_table.host");
    let facts = [
        ("cores", Some(cores(machine)), "clock_mhz"),
        ("page table", Some(page_table(machine)), host.unwrap_or("page_table")),
        ("memory", Some(memory), "memory"),
        ("ascending reads", machine.stream.as_ref().map(ascending), "stream"),
        ("walks", Some(walks(machine)), "walker"),
        ("context switch", Some(context_switch(machine)), "context_switch"),
    ];
    let fact = |(label, words, path): (&str, Option<String>, &str)| {
        let words = words.map(|words| words + &origins::in_brackets(machine, path));
        words.map(|words| Fact { label: label.into(), words: RichText::from(words) })
    };
    facts.into_iter().filter_map(fact).collect()
}

fn cores(machine: &Machine) -> String {
    let topology = machine.topology;
    format!(
        "{} × {} × {}, {} MHz",
        num::counted(topology.sockets as usize, "socket"),
        num::counted(topology.cores_per_socket as usize, "core"),
        num::counted(topology.threads_per_core as usize, "thread"),
        machine.clock_mhz
    )
}

fn page_table(machine: &Machine) -> String {
    let format = machine.page_table.format;
    let guest = format!("{}, {} levels ({})", word(&format), format.levels().len(), words(&format.page_sizes()));
    let Some(host) = &machine.page_table.host else { return guest };
    let memory = host.memory_bits.map_or(String::new(), |bits| format!(", 2^{bits} bytes"));
    format!("{guest}, nested over {} backed with {} pages{memory}", word(&host.format), host.page_size)
}

fn ascending(stream: &Stream) -> String {
    let Stream { cache_cycles, memory_cycles, walk_cycles } = stream;
    let walk = walk_cycles.map_or(String::new(), |cycles| format!("; a page-table walk {cycles}"));
    format!("{cache_cycles} cycles a line from caches, {memory_cycles} from memory{walk}")
}

fn walks(machine: &Machine) -> String {
    let last = machine.caches.iter().map(|cache| cache.level).max().unwrap_or(0);
    let references = match machine.walker.first_cache_level {
        first if first > last => "memory only".to_string(),
        first => format!("caches from level {first} on"),
    };
    let memory = machine.walker.memory_cycles;
    let memory = memory.map_or(String::new(), |cycles| format!("; a reference to memory {cycles}"));
    format!("{} cycles each, beside references to {references}{memory}", machine.walker.base_cycles)
}

fn context_switch(machine: &Machine) -> String {
    let switch = &machine.context_switch;
    let action = match switch.action {
        SwitchAction::Nothing => "flushes nothing",
        SwitchAction::FlushTlb => "flushes TLBs and walk caches",
        SwitchAction::FlushTlbAndCaches => "flushes TLBs, walk caches and the core's caches",
    };
    let held = switch.address_spaces.filter(|_| switch.action == SwitchAction::Nothing);
    let held = held.map_or(String::new(), |n| format!(", entries of {n} processes at a time"));
    format!("{action}{held}, {} cycles", switch.cycles)
}
