//! Puts the data caches and memory that were found into a machine description.

use lookaside_machine::{Cache, Machine, Serves, SharedBy, Ways};

use crate::report::caches::{CacheReport, CacheReports, UNEVEN};

/// Sizes of caches are mostly powers of two: one that is so near is meant.
const NEARLY: f64 = 0.13;

pub(super) fn put_caches(caches: &CacheReports, machine: &mut Machine, from: &str, lack: &mut Vec<String>) {
    for found in &caches.levels {
        put_cache(found, caches.line_bytes.value().copied(), machine, lack);
    }
    let data = |cache: &&Cache| cache.serves.contains(&Serves::Load);
    for cache in machine.caches.iter().filter(data).filter(|cache| cache.level as usize > caches.levels.len()) {
        lack.push(format!("cache.{}: not seen; {from}", cache.name));
    }
    match caches.memory_cycles.value() {
        Some(seen) => machine.memory.cycles = seen.middle_to_a_tenth(),
        None => {
            let reason = caches.memory_cycles.reason().unwrap_or_default();
            lack.push(format!("memory.cycles: {reason}; {from}"));
        }
    }
}

fn put_cache(found: &CacheReport, line: Option<u64>, machine: &mut Machine, lack: &mut Vec<String>) {
    let Some(took) = found.cycles.value() else { return };
    let level = found.level;
    let at = machine.caches.iter().position(|cache| cache.level == level && cache.serves.contains(&Serves::Load));
    let at = at.unwrap_or_else(|| {
        // The preset has fewer levels.
        machine.caches.push(Cache {
            name: format!("l{level}"),
            level,
            serves: vec![Serves::Load, Serves::Store],
            size: 0,
            ways: Ways::Count(8),
            line_bytes: 64,
            index: lookaside_machine::IndexFn::Linear,
            replacement: lookaside_machine::Replacement::Lru,
            write_allocate: true,
            filled_by: lookaside_machine::FilledBy::Misses,
            hit_cycles: 0.0,
            shared_by: SharedBy::Core,
        });
        machine.caches.len() - 1
    });
    let cache = &mut machine.caches[at];
    cache.hit_cycles = took.middle_to_a_tenth();
    match line.and_then(|line| u32::try_from(line).ok()) {
        Some(line) => cache.line_bytes = line,
        None => lack.push(format!("cache.{}.line_bytes: not determined", cache.name)),
    }
    if let Some(shape) = found.shape.value() {
        cache.set_shape(shape.bytes, Ways::Count(shape.ways));
        lack.push(format!("cache.{}.replacement and shared_by: not measured", cache.name));
        return;
    }
    let ways = found.ways.value().map(|ways| format!("{ways} found, but not its sets; "));
    let ways = ways.or_else(|| found.ways.reason().map(|reason| format!("{reason}; ")));
    lack.push(format!("cache.{}.ways: {}as the size needs", cache.name, ways.unwrap_or_default()));
    lack.push(format!("cache.{}.replacement and shared_by: not measured", cache.name));
    match found.bytes.value() {
        Some(seen) => {
            // In a circle half of the steps miss a little beyond what fits.
            let ways = eighths(seen.high / UNEVEN / f64::from(cache.line_bytes));
            cache.set_shape(ways.0 * u64::from(ways.1) * u64::from(cache.line_bytes), Ways::Count(ways.1));
            let (low, high) = (seen.low / 1024.0, seen.high / 1024.0);
            lack.push(format!("cache.{}.size: about, {low:.0} to {high:.0} KiB by latency", cache.name));
        }
        None => {
            let reason = found.bytes.reason().unwrap_or_default();
            lack.push(format!("cache.{}.size: {reason}", cache.name));
            if cache.size == 0 {
                machine.caches.remove(at);
            }
        }
    }
}

/// The power of two of lines that this is nearly, or else the largest number below it that 10 or 12 ways of a power
/// of two of sets make: sets and ways.
fn eighths(lines: f64) -> (u64, u32) {
    let power = lines.max(8.0).log2().round().exp2();
    if (lines / power - 1.0).abs() < NEARLY {
        return (power as u64 / 8, 8);
    }
    let sets = 1u64 << ((lines / 8.0).max(1.0) as u64).ilog2();
    let ways = ((lines / sets as f64) as u32).clamp(8, 15) / 2 * 2;
    (sets, ways)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_of_a_power_of_two_of_sets() {
        for (lines, expected) in [
            (512.0, (64, 8)),
            (20_500.0, (2048, 10)),
            (31_000.0, (4096, 8)),
            (3.0, (1, 8)),
            (15_300.0, (2048, 8)),
            (18_600.0, (2048, 8)),
            (19_000.0, (2048, 8)),
            (26_000.0, (2048, 12)),
        ] {
            assert_eq!(eighths(lines), expected, "{lines}");
        }
    }
}
