//! Which aligned windows of a traced program's memory can be huge: those that lie in one region of anonymous memory,
//! heap or stack.

use std::collections::BTreeMap;

use lookaside_trace::{Block, Event, MemoryMap, Region};

use super::{Window, WINDOW_BYTES};

/// The memory maps of all processes of a trace.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    maps: BTreeMap<u32, MemoryMap>,
}

/// Where a window lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowLocation {
    /// Wholly in this region of memory: it can be huge.
    In(Region),
    /// The process's map is not known at all.
    Unknown,
    /// At least partly in no region, beyond a region's end, or in several.
    Outside,
    /// It is touched by a file's mapping.
    File,
}

impl Regions {
    /// Learns a block's events.
    pub fn run(&mut self, block: &Block) {
        for (_, event) in &block.events {
            match event {
                Event::Fork { parent, child } => {
                    let copy = self.maps.get(parent).cloned().unwrap_or_default();
                    self.maps.insert(*child, copy);
                }
                event => self.maps.entry(block.process).or_default().apply(event),
            }
        }
    }

    /// The regions of each process at the end, and what was there before where nothing is now.
    pub fn finish(self) -> KnownRegions {
        let of = |(process, map): (u32, MemoryMap)| {
            let last = map.last_known();
            let mappings = joined(&last, |a, b| a.made == b.made);
            (process, Map { listed: joined(&last, |a, b| a.made == b.made || !a.gone), mappings })
        };
        KnownRegions(self.maps.into_iter().map(of).collect())
    }
}

/// Regions by process.
#[derive(Clone, Debug, Default)]
pub struct KnownRegions(BTreeMap<u32, Map>);

/// Regions of one process, in order of address.
#[derive(Clone, Debug, Default)]
struct Map {
    /// As they were made, a call each.
    mappings: Vec<Region>,
    /// As the kernel lists them: neighbours of one kind and protection are one. What is gone was not there with its
    /// neighbours for sure.
    listed: Vec<Region>,
}

impl KnownRegions {
    /// Where a window lies: of one mapping if it holds all of it, else of several that the kernel has as one region.
    pub fn find(&self, window: Window) -> WindowLocation {
        let Some(map) = self.0.get(&window.process).filter(|map| !map.listed.is_empty()) else {
            return WindowLocation::Unknown;
        };
        let end = window.addr.saturating_add(WINDOW_BYTES);
        let holds = |region: &&Region| region.start <= window.addr && end <= region.end && can_be_huge(region);
        let holding = |regions: &[Region]| regions[behind(regions, window.addr)..].first().filter(holds).cloned();
        if let Some(region) = holding(&map.mappings).or_else(|| holding(&map.listed)) {
            return WindowLocation::In(region);
        }
        let mut near = map.listed[behind(&map.listed, window.addr)..].iter().take_while(|region| region.start < end);
        match near.any(|region| region.source.is_file()) {
            true => WindowLocation::File,
            false => WindowLocation::Outside,
        }
    }

    /// Which of the regions of its kind, protection and size this is, in the order of making, from 0; and how many
    /// there are.
    pub(crate) fn among_equals(&self, process: u32, region: &Region) -> (u32, u32) {
        let Some(map) = self.0.get(&process) else { return (0, 1) };
        let list = if map.mappings.contains(region) { &map.mappings } else { &map.listed };
        let mut equals: Vec<&Region> = list.iter().filter(|other| is_equal(other, region)).collect();
        equals.sort_by_key(|other| other.made);
        let nth = equals.iter().position(|other| other.start == region.start).unwrap_or(0);
        (nth as u32, equals.len() as u32)
    }
}

/// Index of the first region that ends behind an address.
fn behind(regions: &[Region], addr: u64) -> usize {
    regions.partition_point(|region| region.end <= addr)
}

/// Same kind, protection and size: what only its place in the order can tell apart. Names of memory can't, as another
/// run may have none.
fn is_equal(a: &Region, b: &Region) -> bool {
    (a.prot, a.bytes()) == (b.prot, b.bytes()) && a.source.is_like(&b.source)
}

/// The kernel makes anonymous memory huge that somebody may access; of files' pages only what its file system and
/// `CONFIG_READ_ONLY_THP_FOR_FS` allow.
fn can_be_huge(region: &Region) -> bool {
    region.prot != 0 && !region.source.is_file()
}

/// Neighbours of one kind and protection as one, where `may` they join.
fn joined(regions: &[Region], may: impl Fn(&Region, &Region) -> bool) -> Vec<Region> {
    let mut all: Vec<Region> = Vec::with_capacity(regions.len());
    for region in regions {
        let joins = |before: &&mut Region| {
            let same = (before.prot, &before.source, before.gone) == (region.prot, &region.source, region.gone);
            before.end == region.start && same && !region.source.is_file() && may(before, region)
        };
        match all.last_mut().filter(joins) {
            Some(before) => before.end = region.end,
            None => all.push(region.clone()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use lookaside_trace::MapSource;

    use super::*;

    const M: u64 = 1 << 20;

    fn known(events: Vec<Event>) -> KnownRegions {
        let mut regions = Regions::default();
        for event in events {
            let mut block = Block { process: 1, ..Block::default() };
            block.push_event(event);
            regions.run(&block);
        }
        regions.finish()
    }

    fn map(addr: u64, len: u64, prot: u8, source: MapSource) -> Event {
        Event::Map { addr, len, prot, source, site: 0 }
    }

    #[test]
    fn windows_lie_in_one_region_or_are_left_out() {
        let file = MapSource::File { path: "/x".into(), offset: 0 };
        let of = known(vec![
            map(10 * M, 3 * M, 3, MapSource::Anonymous),
            map(13 * M, 5 * M, 3, MapSource::Anonymous), // listed as 10 to 18
            map(18 * M, 4 * M, 1, MapSource::Anonymous), // another protection
            map(22 * M, 6 * M, 3, file),
            Event::Brk { start: 31 * M, end: 31 * M },
            Event::Brk { start: 31 * M, end: 34 * M },
            map(40 * M, 4 * M, 0, MapSource::Anonymous),
            map(50 * M, 2 * M, 3, MapSource::Stack),
            map(60 * M, 2 * M, 3, MapSource::Anonymous),
            map(62 * M, 2 * M, 3, MapSource::Anonymous),
            Event::Unmap { addr: 62 * M, len: 2 * M },
            map(70 * M, 2 * M, 3, MapSource::named("table")),
        ]);
        let at = |mib: u64| of.find(Window { process: 1, addr: mib * M });
        let inside = |mib: u64| match at(mib) {
            WindowLocation::In(region) => Some((region.start / M, region.end / M, region.gone)),
            _ => None,
        };
        assert_eq!(
            [10, 12, 14, 16].map(inside),
            [Some((10, 13, false)), Some((10, 18, false)), Some((13, 18, false)), Some((13, 18, false))]
        );
        assert_eq!((inside(18), inside(20)), (Some((18, 22, false)), Some((18, 22, false))));
        assert_eq!((at(22), at(28), at(30)), (WindowLocation::File, WindowLocation::Outside, WindowLocation::Outside));
        assert_eq!((inside(32), at(34)), (Some((31, 34, false)), WindowLocation::Outside));
        assert_eq!((at(40), inside(50)), (WindowLocation::Outside, Some((50, 52, false))));
        assert_eq!((inside(60), inside(62)), (Some((60, 62, false)), Some((62, 64, true))));
        assert_eq!(inside(70), Some((70, 72, false)));
        assert_eq!(of.find(Window { process: 2, addr: 0 }), WindowLocation::Unknown);
        assert_eq!(of.find(Window { process: 1, addr: u64::MAX - WINDOW_BYTES + 1 }), WindowLocation::Outside);
    }

    #[test]
    fn what_is_gone_is_one_region_only_if_one_call_made_it() {
        let of = known(vec![
            map(10 * M, 3 * M, 3, MapSource::Anonymous),
            map(13 * M, 3 * M, 3, MapSource::Anonymous),
            Event::Unmap { addr: 10 * M, len: 6 * M },
            map(20 * M, 6 * M, 3, MapSource::Anonymous),
            Event::Unmap { addr: 20 * M, len: 3 * M },
            Event::Unmap { addr: 23 * M, len: 3 * M },
        ]);
        let at = |mib: u64| of.find(Window { process: 1, addr: mib * M });
        assert_eq!(at(12), WindowLocation::Outside);
        let WindowLocation::In(region) = at(22) else { panic!("{:?}", at(22)) };
        assert_eq!((region.start, region.end, region.gone), (20 * M, 26 * M, true));
    }

    #[test]
    fn a_file_right_behind_a_window_is_not_near_it() {
        let file = MapSource::File { path: "/x".into(), offset: 0 };
        let of = known(vec![map(10 * M, M, 3, MapSource::Anonymous), map(12 * M, M, 3, file)]);
        let at = |mib: u64| of.find(Window { process: 1, addr: mib * M });
        assert_eq!([at(10), at(12), at(14)], [WindowLocation::Outside, WindowLocation::File, WindowLocation::Outside]);
    }

    #[test]
    fn equals_are_told_by_their_order() {
        let of = known(vec![
            map(30 * M, 2 * M, 3, MapSource::Anonymous),
            map(10 * M, 2 * M, 3, MapSource::Anonymous),
            map(20 * M, 2 * M, 1, MapSource::Anonymous),
            map(40 * M, 3 * M, 3, MapSource::Anonymous),
            map(50 * M, 4 * M, 3, MapSource::named("a")),
            map(60 * M, 4 * M, 3, MapSource::named("b")),
        ]);
        let equals = |mib: u64| match of.find(Window { process: 1, addr: mib * M }) {
            WindowLocation::In(region) => of.among_equals(1, &region),
            lies => panic!("{lies:?}"),
        };
        assert_eq!((equals(10), equals(30), equals(20), equals(40)), ((1, 2), (0, 2), (0, 1), (0, 1)));
        // Names tell nothing: in another run there may be none.
        assert_eq!((equals(50), equals(60)), ((0, 2), (1, 2)));
    }
}
