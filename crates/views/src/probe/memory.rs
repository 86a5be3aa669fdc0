//! Data caches, memory, walks, and what entries cover.

use lookaside_machine::PageSize;
use lookaside_probe::{CacheReport, CountCost, LatencyPoint, ProbeReport, WalkCacheReport, WalkCacheSize};
use lookaside_report::chart::{Axis, Lines, Point, Scale, Series};
use lookaside_report::{Chart, Fact, RichText};

use super::words::{cycles, fact, followed, said, tlb};

/// What one entry of a TLB translates, by page size; the second stage of translation.
pub(super) fn coverage(report: &ProbeReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    for level in report.covers.iter().flat_map(|found| &found.levels) {
        let small = said(&level.small, |&pages| match pages {
            1 => "one page, even of contiguous ones".into(),
            pages => format!("up to {pages} contiguous pages"),
        });
        let huge = said(&level.huge, |&pages| match pages {
            1 => "one of its small pages".into(),
            16.. => "16 of its small pages or more".into(),
            pages => format!("{pages} of its small pages"),
        });
        facts.push(fact(format!("{}, 4K pages", tlb(level.level)), small));
        facts.push(fact(format!("{}, a 2M page", tlb(level.level)), huge));
    }
    if let Some(gigantic) = &report.gigantic {
        for (level, part) in gigantic.levels.iter().zip(&gigantic.parts) {
            let covers = said(part, |&part| match part {
                PageSize::G1 => "all of it".into(),
                PageSize::M2 => "2M of it".into(),
                _ => "one of its small pages".into(),
            });
            facts.push(fact(format!("{}, a 1G page", tlb(level.level)), covers));
        }
        facts.extend(gigantic.lacks.iter().map(|reason| fact("1G pages", format!("not measured: {reason}").into())));
    }
    if let Some(found) = &report.spread {
        let whole = said(&found.huge_pages_are_whole, |&whole| match whole {
            true => "one translation each".into(),
            false => "translated as small pages: the host backs them with small pages".into(),
        });
        facts.push(fact("2M pages", whole));
    }
    if let Some(found) = &report.covers {
        let guest = found.is_guest.map(|guest| if guest { "yes" } else { "not according to the system" });
        facts.extend(guest.map(|words| fact("virtual machine", words.into())));
        if !found.second_stage_cycles.is_unasked() {
            let adds = said(&found.second_stage_cycles, |range| {
                format!("maps small pages; where the first stage does too, a step takes {} longer", cycles(range))
            });
            facts.push(fact("second stage", adds));
        }
    }
    facts
}

pub(super) fn caches(report: &ProbeReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(found) = &report.caches {
        facts.push(fact("cache lines", said(&found.line_bytes, |bytes| format!("{bytes} bytes"))));
        facts.extend(found.levels.iter().map(cache));
        facts.push(fact("memory", said(&found.memory_cycles, |range| format!("a load takes {}", cycles(range)))));
    }
    if let Some(found) = &report.spread {
        for (label, took) in [
            ("memory, loads far apart", &found.random_memory_cycles),
            ("ascending, line in cache", &found.stream_cache_cycles),
            ("ascending, line in memory", &found.stream_memory_cycles),
            ("ascending, walk a page", &found.stream_walk_cycles),
        ] {
            facts.push(fact(label, said(took, cycles)));
        }
    }
    facts
}

fn cache(level: &CacheReport) -> Fact {
    let holds = match level.shape.value() {
        Some(shape) => format!("{} KiB, {} sets of {} ways", shape.bytes >> 10, shape.sets, shape.ways).into(),
        None => said(&level.bytes, |range| format!("{:.0} to {:.0} KiB", range.low / 1024.0, range.high / 1024.0)),
    };
    let mut words: RichText = followed(holds, "; a hit takes ", said(&level.cycles, cycles));
    if level.shape.value().is_none() && !level.ways.is_unasked() {
        words = followed(words, "; ways of a set: ", said(&level.ways, u32::to_string));
    }
    fact(format!("data cache {}", level.level), words)
}

pub(super) fn walks(report: &ProbeReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(found) = &report.walks {
        facts.push(fact("an L2 TLB hit adds", said(&found.second_level_cycles, cycles)));
        for walk in &found.walks {
            facts.push(fact(
                "a walk adds",
                followed(said(&walk.cycles, cycles), ", leaf entries in ", walk.place.to_string().into()),
            ));
        }
        facts.push(fact("of this, before the leaf", said(&found.base_cycles, cycles)));
        let level = said(&found.first_cache_level, |level| format!("reads from data cache {level} on"));
        facts.push(fact("the walker", level));
    }
    facts.extend(report.walk_caches.iter().flat_map(|found| &found.levels).map(walk_cache));
    facts
}

fn walk_cache(level: &WalkCacheReport) -> Fact {
    let mut words = said(&level.entries, WalkCacheSize::to_string);
    if level.entries.value().is_some() {
        let longer = said(&level.miss_cycles, |range| format!("{} longer", cycles(range)));
        words = followed(words, "; a miss: ", longer);
    }
    fact(format!("walk cache, table level {}", level.table_level), words)
}

/// Cycles a load over the size of the memory that is loaded from.
pub(super) fn latencies(report: &ProbeReport) -> Vec<Chart> {
    let curves = report.caches.iter().map(|found| {
        let series = found.curves.iter().map(|curve| {
            let point = |at: &LatencyPoint| Point::new(at.bytes as f64, at.cycles);
            Series::new("", curve.iter().map(point).collect())
        });
        let lines = Lines::new(Axis::new("bytes", Scale::Log2), Axis::new("cycles a load", Scale::Log10));
        Chart::lines("Cycles a load", Lines { series: series.collect(), ..lines })
    });
    curves.collect()
}

/// Cycles that a walk takes longer over the number of regions.
pub(super) fn walk_cache_charts(report: &ProbeReport) -> Vec<Chart> {
    let levels = report.walk_caches.iter().flat_map(|found| &found.levels);
    let chart = |level: &WalkCacheReport| {
        let series = level.curves.iter().map(|curve| {
            let point = |at: &CountCost| Point::new(at.count.into(), at.cycles);
            Series::new("", curve.iter().map(point).collect())
        });
        let lines = Lines::new(Axis::new("regions", Scale::Log2), Axis::new("cycles a walk more", Scale::Linear));
        let title = format!("Walk cache, table level {}", level.table_level);
        Chart::lines(title, Lines { series: series.collect(), ..lines })
    };
    levels.map(chart).collect()
}
