//! Data caches, memory, walks and what entries cover, in words.

use lookaside_probe::{MeasuredRange, ProbeReport, WalkCacheReport, WalkCacheSize};

use super::{cycles, said, tlb};

pub(super) fn caches(report: &ProbeReport) -> Vec<String> {
    let Some(found) = &report.caches else { return Vec::new() };
    let mut lines = vec![format!("cache lines: {}", said(&found.line_bytes, |bytes| format!("{bytes} bytes")))];
    for level in &found.levels {
        let took = said(&level.cycles, cycles);
        let holds = match level.shape.value() {
            Some(shape) => format!("{} KiB, {} sets of {} ways", shape.bytes >> 10, shape.sets, shape.ways),
            None => said(&level.bytes, |seen| format!("{:.0} to {:.0} KiB", seen.low / 1024.0, seen.high / 1024.0)),
        };
        lines.push(format!("data cache {}: {holds}; a hit takes {took}", level.level));
        if level.shape.value().is_none() && !level.ways.is_unasked() {
            lines.push(format!("  ways of a set: {}", said(&level.ways, u32::to_string)));
        }
    }
    lines.push(format!("memory: a load takes {}", said(&found.memory_cycles, cycles)));
    lines
}

pub(super) fn walks(report: &ProbeReport) -> Vec<String> {
    let Some(found) = &report.walks else { return Vec::new() };
    let mut lines = vec![format!(
        "beside a hit of the L1 DTLB, a hit of the L2 TLB adds {}",
        said(&found.second_level_cycles, cycles)
    )];
    for walk in &found.walks {
        lines.push(format!("a walk with leaf entries in {} adds {}", walk.place, said(&walk.cycles, cycles)));
    }
    lines.push(format!("  beside the leaf entry: {}", said(&found.base_cycles, cycles)));
    let level = said(&found.first_cache_level, |level| format!("reads from data cache {level} on"));
    lines.push(format!("  the walker: {level}"));
    lines
}

pub(super) fn walk_caches(report: &ProbeReport) -> Vec<String> {
    let Some(found) = &report.walk_caches else { return Vec::new() };
    let level = |level: &WalkCacheReport| {
        let points_to = match level.table_level {
            2 => "leaf tables",
            _ => "tables of those",
        };
        let mut lines = vec![format!(
            "walk cache of entries that point to {points_to}: {}",
            said(&level.entries, WalkCacheSize::to_string)
        )];
        if level.entries.value().is_some() {
            let longer = |seen: &MeasuredRange| format!("takes {} longer", cycles(seen));
            lines.push(format!("  a walk that misses there: {}", said(&level.miss_cycles, longer)));
        }
        lines
    };
    found.levels.iter().flat_map(level).collect()
}

pub(super) fn covers(report: &ProbeReport) -> Vec<String> {
    let Some(found) = &report.covers else { return Vec::new() };
    let mut lines = Vec::new();
    for level in &found.levels {
        let small = said(&level.small, |&pages| match pages {
            1 => "one page, be they contiguous or not".into(),
            pages => format!("up to {pages} contiguous pages"),
        });
        let huge = said(&level.huge, |&pages| match pages {
            1 => "one of its small pages".into(),
            16.. => "16 of its small pages or more".into(),
            pages => format!("{pages} of its small pages"),
        });
        lines.push(format!("{}: an entry covers {small}", tlb(level.level)));
        lines.push(format!("  of a 2M page: {huge}"));
    }
    if let Some(guest) = found.is_guest {
        lines.push(format!("virtual machine: {}", if guest { "yes" } else { "nobody says so" }));
    }
    let stage = &found.second_stage_cycles;
    if !stage.is_unasked() {
        let adds = said(stage, |seen| {
            format!("maps by small pages; where the first does so too, a step takes {} longer", cycles(seen))
        });
        lines.push(format!("second stage of translation: {adds}"));
    }
    lines
}

pub(super) fn spread(report: &ProbeReport) -> Vec<String> {
    let Some(found) = &report.spread else { return Vec::new() };
    vec![
        format!("memory, loads far apart: a load takes {}", said(&found.random_memory_cycles, cycles)),
        format!("ascending walks: a line from caches takes {}", said(&found.stream_cache_cycles, cycles)),
        format!("ascending walks: a line from memory takes {}", said(&found.stream_memory_cycles, cycles)),
        format!("ascending walks: a page-table walk takes {}", said(&found.stream_walk_cycles, cycles)),
        format!(
            "huge pages: {}",
            said(&found.huge_pages_are_whole, |&whole| {
                let words =
                    if whole { "one translation each" } else { "held as small ones (a host backs them with such)" };
                words.to_string()
            })
        ),
    ]
}
