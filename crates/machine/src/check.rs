//! Can this machine be? The first thing that cannot is named with its key and the reason.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::check_cache_order::check_order;
use crate::check_timing::check_timing;
use crate::toml_word::word;
use crate::tree::MAX_UNEVEN_TREE_WAYS;
use crate::violation::{fault, CheckResult};
use crate::{
    Cache, IndexFn, Machine, PageSize, Replacement, Serves, SharedBy, Stage, SwitchAction, Tag, Tlb, WalkCache, Ways,
};

/// Most TLBs, most walk caches and most caches that a machine may list.
pub(crate) const MAX_ARRAYS: usize = 64;
/// Most entries of one TLB or walk cache; real ones stop at a few thousand.
pub(crate) const MAX_ENTRIES: u32 = 1 << 20;
/// Most lockable entries of one TLB.
pub(crate) const MAX_LOCKABLE: u32 = 1 << 10;
/// Largest data cache in bytes.
pub(crate) const MAX_CACHE_BYTES: u64 = 1 << 30;
/// Most hardware threads: sockets × cores × threads.
pub(crate) const MAX_HARDWARE_THREADS: u64 = 1 << 10;
/// Most address spaces of a hardware thread: x86's PCIDs have 12 bits.
pub(crate) const MOST_ADDRESS_SPACES: u32 = 1 << 12;
/// Most TLB entries, walk-cache entries and cache lines in all instances together: a few gigabytes of model.
pub(crate) const MAX_TOTAL_ENTRIES: u64 = 1 << 26;
/// Largest cost of anything, in cycles, and largest clock, in MHz.
pub(crate) const MAX_COST_CYCLES: f64 = 1e9;

/// Most evictions of a set, a second or an event: more than one a nanosecond is none.
const MAX_EVICTIONS: f64 = 1e9;

/// Longest name of anything.
const MAX_NAME: usize = 64;
/// Bits of the mask of pages that a coalesced entry covers.
const MAX_COALESCE: u32 = 64;

/// Bits of a physical address: what x86-64 cores of today address.
const PHYSICAL_BITS: u32 = 46;

/// log2 of the largest memory of a guest: half of that.
const MOST_MEMORY_BITS: u32 = PHYSICAL_BITS - 1;

/// Bytes a second that a memory may transfer: a megabyte to a petabyte. So a line takes cycles that can be counted.
const BANDWIDTHS: RangeInclusive<f64> = 1e6..=1e15;

/// Checks everything that the types do not already say.
pub(crate) fn check(machine: &Machine) -> CheckResult {
    name("name", &machine.name)?;
    if machine.clock_mhz == 0.0 {
        return fault("clock_mhz", "must be more than 0");
    }
    cost("clock_mhz", machine.clock_mhz)?;
    topology(machine)?;
    page_table(machine)?;

    lengths(machine)?;
    unique_names(machine)?;
    for (i, array) in machine.tlbs.iter().enumerate() {
        tlb(machine, array, &format!("tlb[{i}]"))?;
    }
    for (i, array) in machine.walk_caches.iter().enumerate() {
        walk_cache(machine, array, &format!("walk_cache[{i}]"))?;
    }
    for (i, array) in machine.caches.iter().enumerate() {
        cache(array, &format!("cache[{i}]"))?;
        check_order(machine, i)?;
    }
    levels("tlb", machine.tlbs.iter().map(|t| t.level))?;
    levels("cache", machine.caches.iter().map(|c| c.level))?;
    for (kind, word) in [(Serves::Load, "loads"), (Serves::Store, "stores")] {
        if !machine.tlbs.iter().any(|t| t.serves.contains(&kind)) {
            return fault("tlb", format!("no TLB serves {word}"));
        }
    }

    cost("memory.cycles", machine.memory.cycles)?;
    bandwidth(machine)?;
    if let Some(stream) = &machine.stream {
        cost("stream.cache_cycles", stream.cache_cycles)?;
        cost("stream.memory_cycles", stream.memory_cycles)?;
        cost("stream.walk_cycles", stream.walk_cycles.unwrap_or_default())?;
    }
    walker(machine)?;
    context_switch(machine)?;
    disturbances(machine)?;
    machine.timing.as_ref().map_or(Ok(()), check_timing)?;
    total(machine)
}

fn topology(machine: &Machine) -> CheckResult {
    let t = machine.topology;
    for (key, count) in
        [("sockets", t.sockets), ("cores_per_socket", t.cores_per_socket), ("threads_per_core", t.threads_per_core)]
    {
        if count == 0 {
            return fault(format!("topology.{key}"), "must be at least 1");
        }
    }
    match hardware_threads(machine) {
        Some(n) if n <= MAX_HARDWARE_THREADS => Ok(()),
        _ => fault("topology", format!("more than {MAX_HARDWARE_THREADS} hardware threads, the most that is modelled")),
    }
}

fn hardware_threads(machine: &Machine) -> Option<u64> {
    let t = machine.topology;
    u64::from(t.sockets).checked_mul(u64::from(t.cores_per_socket))?.checked_mul(u64::from(t.threads_per_core))
}

fn page_table(machine: &Machine) -> CheckResult {
    let Some(host) = &machine.page_table.host else { return Ok(()) };
    let largest = machine.page_table.format.page_sizes().iter().map(|size| size.shift()).max().unwrap_or(0);
    if let Some(bits) = host.memory_bits.filter(|bits| !(largest..=MOST_MEMORY_BITS).contains(bits)) {
        return fault(
            "page_table.host.memory_bits",
            format!("{bits} is not possible; {largest} (the largest page) to {MOST_MEMORY_BITS}"),
        );
    }
    let sizes = host.format.page_sizes();
    if sizes.contains(&host.page_size) {
        return Ok(());
    }
    fault(
        "page_table.host.page_size",
        format!("{} is no page of {} ({})", host.page_size, word(&host.format), list(&sizes)),
    )
}

fn lengths(machine: &Machine) -> CheckResult {
    for (key, len) in
        [("tlb", machine.tlbs.len()), ("walk_cache", machine.walk_caches.len()), ("cache", machine.caches.len())]
    {
        if len > MAX_ARRAYS {
            return fault(key, format!("{len} of them are more than {MAX_ARRAYS}, the most that are modelled"));
        }
    }
    Ok(())
}

fn unique_names(machine: &Machine) -> CheckResult {
    let tlbs = machine.tlbs.iter().enumerate().map(|(i, t)| (format!("tlb[{i}].name"), &t.name));
    let walk_caches = machine.walk_caches.iter().enumerate().map(|(i, w)| (format!("walk_cache[{i}].name"), &w.name));
    let caches = machine.caches.iter().enumerate().map(|(i, c)| (format!("cache[{i}].name"), &c.name));
    let mut seen = BTreeSet::new();
    for (at, text) in tlbs.chain(walk_caches).chain(caches) {
        name(&at, text)?;
        if !seen.insert(text) {
            return fault(at, format!("{text:?} is the name of another TLB, walk cache or cache too"));
        }
    }
    Ok(())
}

/// Names stand in `--set tlb.NAME.key=value` and in file names: letters, digits, `-` and `_`.
fn name(at: &str, text: &str) -> CheckResult {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() || text.len() > MAX_NAME || !text.chars().all(fits) {
        return fault(at, format!("{text:?} is no name: 1 to {MAX_NAME} letters, digits, - and _"));
    }
    Ok(())
}

fn tlb(machine: &Machine, tlb: &Tlb, at: &str) -> CheckResult {
    serves(&tlb.serves, at)?;
    page_sizes(machine, tlb, at)?;
    let sets = geometry(tlb.entries, tlb.ways, tlb.replacement, at)?;
    coalesce(machine, tlb, at)?;
    index(machine, tlb, sets, at)?;
    no_repeats(&tlb.tags, &format!("{at}.tags"))?;
    if tlb.directory_entries && tlb.level == 1 {
        return fault(format!("{at}.directory_entries"), "a first level holds pages alone");
    }
    if tlb.lockable_entries > MAX_LOCKABLE {
        return fault(
            format!("{at}.lockable_entries"),
            format!("{} is more than {MAX_LOCKABLE}, the most that is modelled", tlb.lockable_entries),
        );
    }
    cost(&format!("{at}.hit_cycles"), tlb.hit_cycles)
}

fn page_sizes(machine: &Machine, tlb: &Tlb, at: &str) -> CheckResult {
    let at = format!("{at}.page_sizes");
    if tlb.page_sizes.is_empty() {
        return fault(at, "is empty; an array without a page size holds nothing");
    }
    no_repeats(&tlb.page_sizes, &at)?;
    let known = leaf_sizes(machine);
    match tlb.page_sizes.iter().find(|size| !known.contains(size)) {
        None => Ok(()),
        Some(size) => fault(at, format!("{size} is no page of {} ({})", formats(machine), list(&known))),
    }
}

/// Page sizes that a translation may have: the program's, and the host's below it.
fn leaf_sizes(machine: &Machine) -> Vec<PageSize> {
    let mut sizes = machine.page_table.format.page_sizes();
    if let Some(host) = &machine.page_table.host {
        sizes.extend(host.format.page_sizes());
        sizes.sort();
        sizes.dedup();
    }
    sizes
}

fn coalesce(machine: &Machine, tlb: &Tlb, at: &str) -> CheckResult {
    let at = format!("{at}.coalesce_pages");
    let pages = tlb.coalesce_pages;
    if !pages.is_power_of_two() || pages > MAX_COALESCE {
        return fault(at, format!("{pages} is not possible; a power of two from 1 to {MAX_COALESCE}"));
    }
    let base = machine.page_table.format.page_sizes()[0];
    if pages > 1 && !tlb.page_sizes.contains(&base) {
        return fault(at, format!("only {base} pages are coalesced, and page_sizes does not have them"));
    }
    Ok(())
}

fn index(machine: &Machine, tlb: &Tlb, sets: u32, at: &str) -> CheckResult {
    let at = format!("{at}.index");
    let Some(smallest) = tlb.page_sizes.iter().min() else { return Ok(()) };
    let index_bits = sets.trailing_zeros();
    // The index is taken of the block number: what is left of the address above page and block.
    let number_bits = (machine.page_table.format.address_bits())
        .saturating_sub(smallest.shift())
        .saturating_sub(tlb.coalesce_pages.trailing_zeros());
    if tlb.index.is_linear() && index_bits > number_bits {
        return fault(at, format!("{sets} sets need {index_bits} bits; a page number has {number_bits}"));
    }
    masks(&tlb.index, sets, (number_bits, &format!("a page number ({smallest} pages)")), at)
}

/// Checks the masks, if there are any, of an index of numbers of so many bits.
fn masks(index: &IndexFn, sets: u32, (number_bits, number): (u32, &str), at: String) -> CheckResult {
    let IndexFn::Masks(masks) = index else { return Ok(()) };
    let index_bits = sets.trailing_zeros();
    if masks.len() != index_bits as usize {
        return fault(at, format!("{} masks for {sets} sets, which need {index_bits}", masks.len()));
    }
    for (i, mask) in masks.iter().enumerate() {
        if number_bits < u64::BITS && mask >> number_bits != 0 {
            return fault(format!("{at}[{i}]"), format!("{mask:#x} has bits above the {number_bits} of {number}"));
        }
    }
    match index.first_dependent() {
        Some(i) => fault(
            format!("{at}[{i}]"),
            format!("{:#x} is 0 or the XOR of masks before it, so some sets could never be used", masks[i]),
        ),
        None => Ok(()),
    }
}

fn walk_cache(machine: &Machine, cache: &WalkCache, at: &str) -> CheckResult {
    let (format, lowest) = match (cache.stage, &machine.page_table.host) {
        (Stage::Guest, _) => (machine.page_table.format, 2),
        (Stage::Host, Some(host)) => (host.format, 1),
        (Stage::Host, None) => return fault(format!("{at}.stage"), "\"host\" needs [page_table.host]"),
    };
    let root = format.levels()[0].level;
    if !(lowest..=root).contains(&cache.table_level) {
        return fault(
            format!("{at}.table_level"),
            format!("{} is not possible; {} has {lowest} to {root}", cache.table_level, word(&format)),
        );
    }
    geometry(cache.entries, cache.ways, cache.replacement, at)?;
    cost(&format!("{at}.hit_cycles"), cache.hit_cycles)
}

fn cache(cache: &Cache, at: &str) -> CheckResult {
    serves(&cache.serves, at)?;
    // 16 bytes hold two entries; 4 KiB is a page.
    if !cache.line_bytes.is_power_of_two() || !(16..=4096).contains(&cache.line_bytes) {
        return fault(
            format!("{at}.line_bytes"),
            format!("{} is not possible; a power of two from 16 to 4096", cache.line_bytes),
        );
    }
    let at_size = format!("{at}.size");
    if cache.size > MAX_CACHE_BYTES {
        return fault(at_size, "is more than 1G, the most that is modelled");
    }
    if cache.size == 0 || !cache.size.is_multiple_of(u64::from(cache.line_bytes)) {
        return fault(at_size, format!("{} is no multiple of line_bytes {}", cache.size, cache.line_bytes));
    }
    let sets = sets_of(cache.lines(), "lines", cache.ways, cache.replacement, at)?;
    let number_bits = PHYSICAL_BITS - cache.line_bytes.trailing_zeros();
    masks(&cache.index, sets, (number_bits, "a line number"), format!("{at}.index"))?;
    cost(&format!("{at}.hit_cycles"), cache.hit_cycles)
}

fn serves(kinds: &[Serves], at: &str) -> CheckResult {
    let at = format!("{at}.serves");
    if kinds.is_empty() {
        return fault(at, "is empty; name at least one of load, store, fetch");
    }
    no_repeats(kinds, &at)
}

/// Checks entries, ways and replacement of a TLB or walk cache; gives the number of sets.
fn geometry(entries: u32, ways: Ways, replacement: Replacement, at: &str) -> CheckResult<u32> {
    if entries == 0 || entries > MAX_ENTRIES {
        return fault(format!("{at}.entries"), format!("{entries} is not possible; from 1 to {MAX_ENTRIES}"));
    }
    if replacement == Replacement::Srrip {
        return fault(format!("{at}.replacement"), "srrip is for data caches alone");
    }
    sets_of(entries, "entries", ways, replacement, at)
}

fn sets_of(entries: u32, what: &str, ways: Ways, replacement: Replacement, at: &str) -> CheckResult<u32> {
    let at_ways = format!("{at}.ways");
    let count = ways.count(entries);
    if count == 0 {
        return fault(at_ways, "0 is not possible; a number from 1, or \"full\"");
    }
    if count > entries {
        return fault(at_ways, format!("{count} is more than {what} {entries}"));
    }
    if !entries.is_multiple_of(count) {
        return fault(at_ways, format!("{count} does not divide {what} {entries}"));
    }
    let sets = entries / count;
    if !sets.is_power_of_two() {
        return fault(at_ways, format!("{what} {entries} in {count} ways are {sets} sets, which is no power of two"));
    }
    if replacement == Replacement::TreePlru && !count.is_power_of_two() && count > MAX_UNEVEN_TREE_WAYS {
        let most = format!("tree-plru of {count} ways: more than {MAX_UNEVEN_TREE_WAYS} have to be a power of two");
        return fault(format!("{at}.replacement"), most);
    }
    Ok(sets)
}

/// Levels run from 1 without a gap.
fn levels(key: &str, levels: impl Iterator<Item = u32> + Clone) -> CheckResult {
    let present: BTreeSet<u32> = levels.clone().collect();
    for (i, level) in levels.enumerate() {
        if level == 0 {
            return fault(format!("{key}[{i}].level"), "0 is not possible; the first level is 1");
        }
        if level > 1 && !present.contains(&(level - 1)) {
            return fault(format!("{key}[{i}].level"), format!("there is a level {level} but no level {}", level - 1));
        }
    }
    Ok(())
}

fn walker(machine: &Machine) -> CheckResult {
    let last = machine.caches.iter().map(|c| c.level).max().unwrap_or(0);
    let first = machine.walker.first_cache_level;
    if first == 0 || first > last + 1 {
        return fault(
            "walker.first_cache_level",
            format!("{first} is not possible; 1 to {} ({last} cache levels, one more = memory only)", last + 1),
        );
    }
    cost("walker.memory_cycles", machine.walk_memory_cycles())?;
    cost("walker.base_cycles", machine.walker.base_cycles)
}

fn context_switch(machine: &Machine) -> CheckResult {
    cost("context_switch.cycles", machine.context_switch.cycles)?;
    if let Some(n) = machine.context_switch.address_spaces.filter(|n| !(1..=MOST_ADDRESS_SPACES).contains(n)) {
        return fault("context_switch.address_spaces", format!("{n} is not possible; 1 to {MOST_ADDRESS_SPACES}"));
    }
    if machine.context_switch.action != SwitchAction::Nothing {
        return Ok(());
    }
    match machine.tlbs.iter().find(|t| !t.tags.contains(&Tag::Asid)) {
        None => Ok(()),
        Some(t) => fault(
            "context_switch.action",
            format!("\"nothing\" needs every TLB tagged with asid, {:?} is not; tag it or flush", t.name),
        ),
    }
}

/// At most one for each TLB, with a figure for each of its sets.
fn disturbances(machine: &Machine) -> CheckResult {
    for (i, disturbance) in machine.disturbances.iter().enumerate() {
        let at = format!("disturbance[{i}]");
        let Some(tlb) = machine.tlbs.iter().find(|tlb| tlb.name == disturbance.tlb) else {
            return fault(format!("{at}.tlb"), format!("no TLB is named {:?}", disturbance.tlb));
        };
        if machine.disturbances[..i].iter().any(|other| other.tlb == disturbance.tlb) {
            return fault(format!("{at}.tlb"), format!("{:?} has a disturbance already", disturbance.tlb));
        }
        for (key, evictions) in [
            ("evictions_per_second", &disturbance.evictions_per_second),
            ("evictions_per_system_call", &disturbance.evictions_per_system_call),
            ("evictions_per_context_switch", &disturbance.evictions_per_context_switch),
        ] {
            let sets = tlb.sets() as usize;
            if !evictions.is_empty() && evictions.len() != sets {
                return fault(
                    format!("{at}.{key}"),
                    format!("{} figures; tlb {:?} has {sets} sets", evictions.len(), tlb.name),
                );
            }
            for (set, &count) in evictions.iter().enumerate() {
                if !(0.0..=MAX_EVICTIONS).contains(&count) {
                    let reason = format!("{count} is not possible; a number from 0 to {MAX_EVICTIONS:e}");
                    return fault(format!("{at}.{key}[{set}]"), reason);
                }
            }
        }
    }
    Ok(())
}

/// Bounds the memory that a model of the machine takes.
fn total(machine: &Machine) -> CheckResult {
    let t = machine.topology;
    let instances = |shared| {
        u64::from(t.sockets)
            * match shared {
                SharedBy::Socket => 1,
                SharedBy::Core => u64::from(t.cores_per_socket),
                SharedBy::Thread => u64::from(t.cores_per_socket) * u64::from(t.threads_per_core),
            }
    };
    let tlbs = machine.tlbs.iter().map(|a| instances(a.shared_by) * u64::from(a.entries));
    let walk_caches = machine.walk_caches.iter().map(|a| instances(a.shared_by) * u64::from(a.entries));
    let caches = machine.caches.iter().map(|a| instances(a.shared_by) * u64::from(a.lines()));
    let total: u64 = tlbs.chain(walk_caches).chain(caches).sum();
    if total > MAX_TOTAL_ENTRIES {
        return fault(
            "topology",
            format!(
                "all TLBs and caches together have {total} entries and lines; at most {MAX_TOTAL_ENTRIES} are modelled"
            ),
        );
    }
    Ok(())
}

fn cost(at: &str, cycles: f64) -> CheckResult {
    if (0.0..=MAX_COST_CYCLES).contains(&cycles) {
        return Ok(());
    }
    fault(at, format!("{cycles} is not possible; a number from 0 to {MAX_COST_CYCLES:e}"))
}

fn bandwidth(machine: &Machine) -> CheckResult {
    match machine.memory.bytes_per_second {
        Some(rate) if !BANDWIDTHS.contains(&rate) => {
            fault("memory.bytes_per_second", format!("{rate} is not possible; a number from 1e6 to 1e15"))
        }
        _ => Ok(()),
    }
}

fn no_repeats<T: PartialEq>(items: &[T], at: &str) -> CheckResult {
    match (1..items.len()).find(|&i| items[..i].contains(&items[i])) {
        None => Ok(()),
        Some(i) => fault(format!("{at}[{i}]"), "is there twice"),
    }
}

fn formats(machine: &Machine) -> String {
    match &machine.page_table.host {
        None => word(&machine.page_table.format),
        Some(host) => format!("{} over {}", word(&machine.page_table.format), word(&host.format)),
    }
}

fn list(sizes: &[PageSize]) -> String {
    sizes.iter().map(PageSize::to_string).collect::<Vec<_>>().join(", ")
}
