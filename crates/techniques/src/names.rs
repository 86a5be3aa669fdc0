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

#[cfg(test)]
mod tests {
    use super::*;

    /// A symbol table of two functions; sites are their innermost frames.
    struct Symbols;

    impl Namer for Symbols {
        fn function(&self, _process: u32, ip: u64) -> String {
            let name = if ip < 0x2000 { "parse" } else { "sort" };
            name.into()
        }

        fn site(&self, process: u32, frames: &[u64]) -> String {
            frames.first().map(|ip| self.function(process, *ip)).unwrap_or_default()
        }
    }

    fn cost(walks: u64, walk_cycles: f64) -> Cost {
        Cost { walks, walk_cycles, ..Cost::default() }
    }

    /// What a table shows of its rows.
    fn shown(rows: &[NamedCost]) -> Vec<(u32, &str, u64, u64, u64, u64, f64)> {
        rows.iter()
            .map(|row| {
                (row.process, &row.name[..], row.bytes, row.addr, row.accesses, row.cost.walks, row.cost.walk_cycles)
            })
            .collect()
    }

    #[test]
    fn without_names_addresses_stay_addresses() {
        assert_eq!(Unnamed.function(1, 0x4a0), "0x4a0");
        assert_eq!((Unnamed.site(1, &[0x4a0, 0x500]), Unnamed.site(1, &[])), ("0x4a0".into(), String::new()));
    }

    #[test]
    fn mappings_are_named_by_what_is_behind_them() {
        let file = MapSource::File { path: "/usr/lib/libz.so.1".into(), offset: 4096 };
        let row = |start: u64, end: u64, source: &MapSource, site: &[u64], cycles| RegionRow {
            process: 1,
            start,
            end,
            source: source.clone(),
            site: site.to_vec(),
            pages: 9,
            accesses: start / 4096,
            cost: cost(3, cycles),
        };
        let rows = [
            row(0x1000, 0x3000, &file, &[], 1.0),
            row(0x4000, 0x5000, &MapSource::Heap, &[0x1000], 2.0),
            row(0x6000, 0x9000, &MapSource::Anonymous, &[], 5.0),
            row(0xa000, 0xb000, &MapSource::Anonymous, &[0x2000, 0x1000], 4.0),
            row(0xc000, 0xd000, &MapSource::Stack, &[], 3.0),
        ];
        let named = name_regions(&rows, &Symbols);
        // Dearest first.
        let expected = [
            (1, "anonymous", 0x3000, 0x6000, 6, 3, 5.0),
            (1, "anonymous, mmap in sort", 0x1000, 0xa000, 10, 3, 4.0),
            (1, "[stack]", 0x1000, 0xc000, 12, 3, 3.0),
            (1, "[heap]", 0x1000, 0x4000, 4, 3, 2.0),
            (1, "libz.so.1", 0x2000, 0x1000, 1, 3, 1.0),
        ];
        assert_eq!(shown(&named), expected);
        assert_eq!(named[4].source, Some(file));
    }

    #[test]
    fn sites_that_read_the_same_are_one_row_of_a_process() {
        let row = |process, site: &[u64], addr, peak_bytes, accesses, cost| ObjectRow {
            process,
            site: site.to_vec(),
            allocations: 1,
            peak_bytes,
            largest: (addr, peak_bytes),
            accesses,
            cost,
        };
        let rows = [
            row(1, &[0x1000], 0x10_0000, 1 << 16, 20, cost(2, 10.0)),
            row(1, &[0x1800, 7], 0x20_0000, 1 << 17, 30, cost(3, 15.0)),
            row(2, &[0x1000], 0x30_0000, 1 << 18, 40, cost(4, 30.0)),
            row(1, &[], 0x40_0000, 1 << 19, 50, cost(5, 20.0)),
        ];
        let expected = [
            (2, "parse", 1 << 18, 0x30_0000, 40, 4, 30.0),
            (1, "parse", 3 << 16, 0x10_0000, 50, 5, 25.0),
            (1, "unknown allocation site", 1 << 19, 0x40_0000, 50, 5, 20.0),
        ];
        assert_eq!(shown(&name_objects(&rows, &Symbols)), expected);
    }

    #[test]
    fn functions_have_the_cost_of_their_instructions() {
        let row = |process, ip, walks, cycles| IpRow { process, ip, cost: cost(walks, cycles) };
        let rows = [
            row(1, 0x1000, 1, 4.0),
            row(1, 0x2000, 2, 9.0),
            row(1, 0x1004, 3, 4.5),
            row(1, 0, 4, 1.0),
            row(2, 0x1000, 5, 8.5),
        ];
        // Of equal cost the lower process.
        let expected = [
            (1, "sort", 0, 0x2000, 0, 2, 9.0),
            (1, "parse", 0, 0x1000, 0, 4, 8.5),
            (2, "parse", 0, 0x1000, 0, 5, 8.5),
            (1, "instruction not recorded", 0, 0, 0, 4, 1.0),
        ];
        assert_eq!(shown(&name_functions(&rows, &Symbols)), expected);
    }
}
