//! From addresses to names: the tables that people read.

use std::collections::BTreeMap;

use lookaside_engine::{Cost, IpRow, ObjectRow, RegionRow};
use lookaside_trace::MapSource;

use crate::NamedCost;

/// Names code; who captured the program knows how.
pub trait Namer {
    /// The function that an instruction lies in, as `function (file)` or `module+0x…`.
    fn function(&self, process: u32, ip: u64) -> String;

    /// The call site of an allocation, as `function (file:line)`; empty when the stack is.
    fn site(&self, process: u32, frames: &[u64]) -> String;
}

/// Names nothing: addresses stay addresses. For traces whose programs are not at hand.
pub struct Unnamed;

impl Namer for Unnamed {
    fn function(&self, _process: u32, ip: u64) -> String {
        format!("{ip:#x}")
    }

    fn site(&self, _process: u32, frames: &[u64]) -> String {
        frames.first().map(|ip| format!("{ip:#x}")).unwrap_or_default()
    }
}

/// A mapping's name: its file's last part, `[heap]`, `[stack]`, or `anonymous`, with its mmap's site where known.
pub(crate) fn region_name(row: &RegionRow, namer: &dyn Namer) -> String {
    mapping_name(row.process, &row.source, &row.site, namer)
}

/// The same of a mapping with its mmap's call stack, innermost first.
pub(crate) fn mapping_name(process: u32, source: &MapSource, site: &[u64], namer: &dyn Namer) -> String {
    match source {
        MapSource::File { path, .. } => path.rsplit('/').next().unwrap_or(path).to_string(),
        MapSource::Heap => "[heap]".into(),
        MapSource::Stack => "[stack]".into(),
        MapSource::Anonymous => match namer.site(process, site) {
            site if site.is_empty() => "anonymous".into(),
            site => format!("anonymous, mmap in {site}"),
        },
    }
}

/// Mappings, dearest first.
pub fn name_regions(rows: &[RegionRow], namer: &dyn Namer) -> Vec<NamedCost> {
    let named = rows.iter().map(|row| NamedCost {
        name: region_name(row, namer),
        process: row.process,
        bytes: row.end - row.start,
        addr: row.start,
        source: Some(row.source.clone()),
        accesses: row.accesses,
        cost: row.cost,
        samples: 0,
    });
    dearest_first(named.collect())
}

/// Heap objects by allocation site, dearest first. Sites that read the same are one row.
pub fn name_objects(rows: &[ObjectRow], namer: &dyn Namer) -> Vec<NamedCost> {
    let mut by_name: BTreeMap<(u32, String), NamedCost> = BTreeMap::new();
    for row in rows {
        let site = namer.site(row.process, &row.site);
        let name = if site.is_empty() { "unknown allocation site".to_string() } else { site };
        let sum = by_name.entry((row.process, name.clone())).or_insert_with(|| NamedCost {
            name,
            process: row.process,
            bytes: 0,
            addr: row.largest.0,
            source: None,
            accesses: 0,
            cost: Cost::default(),
            samples: 0,
        });
        sum.bytes += row.peak_bytes;
        sum.accesses += row.accesses;
        sum.cost.add(&row.cost);
    }
    dearest_first(by_name.into_values().collect())
}

/// Functions by the cost of their accesses, dearest first.
pub fn name_functions(rows: &[IpRow], namer: &dyn Namer) -> Vec<NamedCost> {
    let mut by_name: BTreeMap<(u32, String), NamedCost> = BTreeMap::new();
    for row in rows {
        let name = if row.ip == 0 { "instruction not recorded".into() } else { namer.function(row.process, row.ip) };
        let sum = by_name.entry((row.process, name.clone())).or_insert_with(|| NamedCost {
            name,
            process: row.process,
            bytes: 0,
            addr: row.ip,
            source: None,
            accesses: 0,
            cost: Cost::default(),
            samples: 0,
        });
        sum.cost.add(&row.cost);
    }
    dearest_first(by_name.into_values().collect())
}

/// Sorts by cycles, then samples, then accesses, all descending, then by process and name: a total order.
pub(crate) fn dearest_first(mut rows: Vec<NamedCost>) -> Vec<NamedCost> {
    rows.sort_by(|a, b| {
        b.cost
            .cycles()
            .total_cmp(&a.cost.cycles())
            .then(b.samples.cmp(&a.samples))
            .then(b.accesses.cmp(&a.accesses))
            .then_with(|| (a.process, &a.name, a.addr).cmp(&(b.process, &b.name, b.addr)))
    });
    rows
}
