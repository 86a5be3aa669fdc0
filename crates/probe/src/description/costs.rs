//! Puts the costs of caches, memory and walks into a machine description.

use lookaside_machine::{
    Full, HostTable, Machine, PageSize, Replacement, Serves, SharedBy, Stage, Stream, Tlb, WalkCache, Ways,
};

use crate::agreed_range::MeasuredRange;
use crate::description::arrays::{drop_empty, serves};
use crate::description::caches::put_caches;
use crate::description::walk_caches::put_walk_caches;
use crate::report::access_patterns::AccessPatternCosts;
use crate::report::entry_coverage::EntryCoverage;
use crate::report::walks::{PteLocation, WalkCosts};
use crate::report::ProbeReport;

/// Host walk caches, by table level: no source and no measurement, but that walks with warm tables take no longer.
const HOST_CACHES: [(u32, u32); 3] = [(1, 64), (2, 1024), (3, 64)];

/// Puts what was found into `machine`, and names what was not, which is `from` where the description comes from.
pub(super) fn describe_costs(report: &ProbeReport, machine: &mut Machine, from: &str) {
    let mut lack = Vec::new();
    match report.ns_a_cycle() {
        Some(ns) => machine.clock_mhz = (1e3 / ns).round(),
        None => lack.push(format!("clock_mhz: {from}")),
    }
    match &report.caches {
        Some(caches) => put_caches(caches, machine, from, &mut lack),
        None => lack.push(format!("cache.*, memory: {from}")),
    }
    match &report.walks {
        Some(walks) => put_walks(walks, machine, from, &mut lack),
        None => lack.push(format!("walker: {from}")),
    }
    match &report.spread {
        Some(spread) => put_spread(spread, machine, &mut lack),
        None => lack.push("stream, page_table.host: not looked at".into()),
    }
    if let Some(covers) = &report.covers {
        put_covers(covers, machine, &mut lack);
    }
    match &report.walk_caches {
        Some(found) => put_walk_caches(found, machine, from, &mut lack),
        None => lack.push(format!("walk_cache.*: {from}, but for hit_cycles where walker.base_cycles is measured")),
    }
    for name in machine.drop_unfed_victims() {
        lack.push(format!(
            "cache.{name}.filled_by: misses stand in; victims don't fit what was found of lines and walks"
        ));
    }
    machine.not_determined.extend(lack);
}

fn put_covers(covers: &EntryCoverage, machine: &mut Machine, lack: &mut Vec<String>) {
    for cover in &covers.levels {
        let small = |tlb: &&Tlb| serves(tlb, cover.level) && tlb.page_sizes == [PageSize::K4];
        let Some(name) = machine.tlbs.iter().find(small).map(|tlb| tlb.name.clone()) else { continue };
        let line = format!("tlb.{name}.coalesce_pages:");
        match cover.small.value() {
            Some(1) => machine.not_determined.retain(|other| !other.starts_with(&line)),
            // The index found is one of pages; with coalescing the model would take it for one of blocks.
            Some(pages) => lack.push(format!("{line} {pages} measured, 1 stands in")),
            None => {}
        }
        if cover.huge.value() == Some(&1) {
            // Without an array of their size they take entries of the largest smaller one.
            let loads = |tlb: &&mut Tlb| tlb.level == cover.level && tlb.serves.contains(&Serves::Load);
            for tlb in machine.tlbs.iter_mut().filter(loads).filter(|tlb| tlb.name != name) {
                tlb.page_sizes.retain(|&size| size != PageSize::M2);
            }
        }
    }
    drop_empty(machine);
    if covers.second_stage_cycles.value().is_some() && machine.page_table.host.is_none() {
        let costs = "walker's costs hold it as measured, and no stage of its own is described";
        lack.push(format!("page_table.host: a second stage that maps by 4K was seen; {costs}"));
    }
}

fn put_spread(spread: &AccessPatternCosts, machine: &mut Machine, lack: &mut Vec<String>) {
    // Programs' loads lie apart: in other rows of DRAM than the one before.
    match spread.random_memory_cycles.value() {
        Some(seen) => machine.memory.cycles = seen.middle_to_a_tenth(),
        None => {
            let reason = spread.random_memory_cycles.reason().unwrap_or_default();
            lack.push(format!("memory.cycles under random loads: {reason}; that of nearby ones stands in"));
        }
    }
    let walk_cycles = spread.stream_walk_cycles.value().map(MeasuredRange::middle_to_a_tenth);
    match (spread.stream_cache_cycles.value(), spread.stream_memory_cycles.value()) {
        (Some(caches), Some(memory)) => {
            machine.stream = Some(Stream {
                cache_cycles: caches.middle_to_a_tenth(),
                memory_cycles: memory.middle_to_a_tenth(),
                walk_cycles,
            });
        }
        (None, Some(memory)) => {
            // Caches are no slower than memory.
            let memory_cycles = memory.middle_to_a_tenth();
            machine.stream = Some(Stream { cache_cycles: memory_cycles, memory_cycles, walk_cycles });
            let reason = spread.stream_cache_cycles.reason().unwrap_or_default();
            lack.push(format!("stream.cache_cycles: {reason}; memory's stands in"));
        }
        (caches, _) => {
            let finding = if caches.is_some() { &spread.stream_memory_cycles } else { &spread.stream_cache_cycles };
            lack.push(format!("stream: {}; not modelled", finding.reason().unwrap_or_default()));
        }
    }
    if let (Some(_), Some(reason)) = (&machine.stream, spread.stream_walk_cycles.reason()) {
        lack.push(format!("stream.walk_cycles: {reason}; as any other walk's"));
    }
    match spread.huge_pages_are_whole.value() {
        Some(false) => put_host(spread, machine, lack),
        Some(true) => {}
        None => {
            let reason = spread.huge_pages_are_whole.reason().unwrap_or_default();
            lack.push(format!("page_table.host: {reason}; none stands in"));
        }
    }
}

/// A host whose small pages back the guest, as no huge page is held whole.
fn put_host(spread: &AccessPatternCosts, machine: &mut Machine, lack: &mut Vec<String>) {
    let format = machine.page_table.format;
    let Some(&page_size) = format.page_sizes().first() else { return };
    let bits = |bytes: u64| bytes.next_power_of_two().ilog2().clamp(30, 45);
    machine.page_table.host = Some(HostTable { format, page_size, memory_bits: spread.memory_bytes.map(bits) });
    // The walks timed were over one frame: the host's leaf entry of it was read from the first cache that walks read.
    let first = machine
        .caches
        .iter()
        .find(|cache| cache.level == machine.walker.first_cache_level && cache.serves.contains(&Serves::Load));
    let hit = first.map_or(0.0, |cache| cache.hit_cycles);
    machine.walker.base_cycles = ((machine.walker.base_cycles - hit).max(0.0) * 10.0).round() / 10.0;
    machine.walker.memory_cycles = None;
    for (table_level, entries) in HOST_CACHES {
        machine.walk_caches.push(WalkCache {
            name: format!("host-{table_level}"),
            table_level,
            entries,
            ways: Ways::Full(Full::Full),
            replacement: Replacement::Lru,
            hit_cycles: 0.0,
            stage: Stage::Host,
            shared_by: SharedBy::Core,
        });
    }
    lack.push(
        "page_table.host: a 2M page is held as small ones; that the host's tables are of the guest's format is assumed"
            .into(),
    );
    lack.push("walk_cache.host-*: not measured; sizes assumed".into());
}

fn put_walks(walks: &WalkCosts, machine: &mut Machine, from: &str, lack: &mut Vec<String>) {
    let small = |level| move |tlb: &&mut lookaside_machine::Tlb| serves(tlb, level) && tlb.page_sizes == [PageSize::K4];
    if let (Some(seen), Some(second)) = (walks.second_level_cycles.value(), machine.tlbs.iter_mut().find(small(2))) {
        second.hit_cycles = seen.middle_to_a_tenth();
        let name = format!("tlb.{}.hit_cycles", second.name);
        machine.not_determined.retain(|line| !line.starts_with(&name));
    }
    match walks.first_cache_level.value() {
        Some(&level) if level as usize <= machine.caches.len() => machine.walker.first_cache_level = level,
        _ => {
            let reason = walks.first_cache_level.reason().unwrap_or_default();
            lack.push(format!("walker.first_cache_level: {reason}; {from}"));
        }
    }
    let Some(base) = walks.base_cycles.value() else {
        let reason = walks.base_cycles.reason().unwrap_or_default();
        lack.push(format!("walker.base_cycles: {reason}; {from}"));
        return;
    };
    // Measured with the entries above the leaf's at hand: what the walk caches take is in it, and so is the lookup of
    // the second level, which the model charges for hits only.
    machine.walker.base_cycles = base.middle_to_a_tenth();
    for cache in machine.walk_caches.iter_mut().filter(|cache| cache.stage == Stage::Guest) {
        cache.hit_cycles = 0.0;
    }
    let far = walks.walks.iter().find(|walk| walk.place == PteLocation::Memory).and_then(|walk| walk.cycles.value());
    if let Some(far) = far {
        // What a walk adds whose leaf entry is in memory, tables of the host beside it, is in this one figure.
        let cycles = (far.middle_to_a_tenth() - base.middle_to_a_tenth()).max(0.0);
        machine.walker.memory_cycles = Some((cycles * 10.0).round() / 10.0);
    } else {
        lack.push("walker.memory_cycles: not measured; as memory.cycles".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::report::caches::{CacheReport, CacheReports, CacheShape};
    use crate::report::entry_coverage::LevelCoverage;
    use crate::report::levels::LevelReport;
    use crate::report::walks::WalkReport;
    use crate::tlb::geometry::Geometry;
    use lookaside_machine::{preset, Cache};

    fn seen(low: f64, high: f64) -> Finding<MeasuredRange> {
        Finding::confirmed(MeasuredRange { low, high, passes: 2 }, Vec::new())
    }

    #[test]
    fn the_model_charges_what_was_measured() {
        let shape = Finding::confirmed(CacheShape { bytes: 48 << 10, ways: 12, sets: 64 }, Vec::new());
        let levels = vec![
            CacheReport {
                level: 1,
                cycles: seen(5.0, 5.0),
                bytes: seen(49_152.0, 60_000.0),
                ways: Finding::not_asked(),
                shape,
            },
            CacheReport {
                level: 2,
                cycles: seen(15.0, 16.0),
                bytes: seen(1e6, 2.3e6),
                ways: Finding::not_asked(),
                shape: Finding::not_asked(),
            },
        ];
        let caches = CacheReports {
            line_bytes: Finding::confirmed(64, Vec::new()),
            levels,
            memory_cycles: seen(300.0, 310.0),
            memory_from: None,
            curves: Vec::new(),
        };
        let walks = WalkCosts {
            second_level_cycles: seen(7.0, 7.4),
            walks: vec![WalkReport { place: PteLocation::Memory, table_bytes: 1 << 26, cycles: seen(400.0, 402.0) }],
            base_cycles: seen(20.0, 21.0),
            first_cache_level: Finding::confirmed(1, Vec::new()),
        };
        let one = || Finding::confirmed(1, Vec::new());
        let cover = |level| LevelCoverage { level, small: one(), huge: one() };
        let covers = EntryCoverage {
            levels: vec![cover(1), cover(2)],
            is_guest: Some(true),
            second_stage_cycles: seen(20.0, 21.0),
        };
        let level = |level, entries| LevelReport {
            level,
            page_size: PageSize::K4,
            geometry: Finding::confirmed(Geometry { entries, ways: entries, sets: 1, masks: vec![] }, Vec::new()),
            miss_cycles: Finding::not_asked(),
            policy: Finding::not_asked(),
            trials: Vec::new(),
        };
        let report = ProbeReport {
            levels: vec![level(1, 64), level(2, 1024)],
            covers: Some(covers),
            cycles_per_tick: 1.5,
            ticks_per_second: Some(2e9),
            caches: Some(caches),
            walks: Some(walks),
            ..ProbeReport::default()
        };
        let base = preset("ryzen-5900x").expect("a preset");
        let machine = report.machine(&base);
        machine.check().expect("a possible machine");
        assert_eq!(machine.clock_mhz, 3000.0);
        let data: Vec<&Cache> = machine.caches.iter().filter(|cache| cache.serves.contains(&Serves::Load)).collect();
        assert_eq!((data[0].size, data[0].ways, data[0].hit_cycles), (48 << 10, Ways::Count(12), 5.0));
        assert_eq!((data[1].size, data[1].hit_cycles), (2 << 20, 15.5));
        assert_eq!((data[2].size, data[2].hit_cycles), (32 << 20, 46.0));
        assert!(machine.not_determined.iter().any(|line| line.starts_with("cache.l3: not seen")));
        assert_eq!((machine.memory.cycles, machine.walker.base_cycles), (305.0, 20.5));
        assert_eq!((machine.walker.first_cache_level, machine.walker.memory_cycles), (1, Some(380.5)));
        // 2 MiB pages take the small pages' entries; 1 GiB pages were not looked at.
        let sizes = |level| {
            let loads = machine.tlbs.iter().filter(|tlb| tlb.level == level && tlb.serves.contains(&Serves::Load));
            loads.flat_map(|tlb| tlb.page_sizes.clone()).collect::<Vec<_>>()
        };
        assert_eq!((sizes(1), sizes(2)), (vec![PageSize::K4, PageSize::G1], vec![PageSize::K4]));
        let names = |line: &str| machine.not_determined.iter().any(|other| other.starts_with(line));
        assert!(names("page_table.host:") && names("tlb.l1d-other-sizes:"));
        assert!(!names("tlb.l1d.coalesce_pages:") && !names("tlb.l2d-other-sizes:"));
        assert!(machine.walk_caches.iter().all(|cache| cache.hit_cycles == 0.0));

        // Lines or walks that a last level filled by victims can't have: then misses stand in.
        assert!(!names("cache.l3.filled_by: misses"));
        let caches = |report: &ProbeReport| report.caches.clone().expect("caches");
        let wide = CacheReports { line_bytes: Finding::confirmed(128, Vec::new()), ..caches(&report) };
        let walks = |first| WalkCosts {
            first_cache_level: Finding::confirmed(first, Vec::new()),
            ..report.walks.clone().expect("walks")
        };
        let odd = [
            ProbeReport { caches: Some(wide), ..report.clone() },
            ProbeReport { walks: Some(walks(3)), ..report.clone() },
        ];
        for report in odd {
            let machine = report.machine(&base);
            machine.check().expect("a possible machine");
            assert!(machine.not_determined.iter().any(|line| line.starts_with("cache.l3.filled_by: misses")));
        }
    }

    #[test]
    fn a_host_of_small_pages_is_put_below_the_guest() {
        let mut spread = AccessPatternCosts::nothing("not looked at");
        spread.random_memory_cycles = seen(500.0, 510.0);
        spread.stream_cache_cycles = seen(5.0, 5.2);
        spread.stream_memory_cycles = seen(8.0, 9.0);
        spread.stream_walk_cycles = seen(5.0, 6.0);
        spread.huge_pages_are_whole = Finding::confirmed(false, Vec::new());
        spread.memory_bytes = Some(24 << 30);
        let base = preset("ryzen-5900x").expect("a preset");
        let report = ProbeReport { spread: Some(spread.clone()), ..ProbeReport::default() };
        let machine = report.machine(&base);
        machine.check().expect("a possible machine");
        let host = machine.page_table.host.as_ref().expect("a host");
        assert_eq!((host.page_size, host.memory_bits), (PageSize::K4, Some(35)));
        assert_eq!(machine.memory.cycles, 505.0);
        assert_eq!(machine.stream, Some(Stream { cache_cycles: 5.1, memory_cycles: 8.5, walk_cycles: Some(5.5) }));
        // The preset's walks read from the second cache on, whose hit is in what was timed.
        assert_eq!(machine.walker.base_cycles, (base.walker.base_cycles - 12.0).max(0.0));

        spread.huge_pages_are_whole = Finding::confirmed(true, Vec::new());
        spread.stream_memory_cycles = Finding::not_determined("unsteady");
        let report = ProbeReport { spread: Some(spread), ..ProbeReport::default() };
        let machine = report.machine(&base);
        assert_eq!((machine.page_table.host.as_ref(), machine.stream), (None, None));
        assert!(machine.not_determined.iter().any(|line| line == "stream: unsteady; not modelled"));
    }
}
