//! A process's memory map as the kernel shows it, and how it changes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Event, MapSource};

/// Bytes of the pages that the kernel maps; a heap's end need not be on their border.
const PAGE_BYTES: u64 = 4096;

/// Which file, whatever its name is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileId {
    /// Device number: major, minor.
    pub device: (u32, u32),
    /// Inode on it, not 0.
    pub inode: u64,
}

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// `PROT_READ` 1, `PROT_WRITE` 2, `PROT_EXEC` 4.
    pub prot: u8,
    /// What is behind it.
    pub source: MapSource,
    /// The file behind it, where a listing said so; events say nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileId>,
    /// Number of the call that made it: those of a [`MemoryMap`] count from 1. 0 = not known, as in a listing.
    #[serde(default)]
    pub made: u64,
    /// It is mapped no longer, and nothing else is there.
    #[serde(default)]
    pub gone: bool,
}

impl Region {
    /// Of which nothing else is known.
    pub fn new(start: u64, end: u64, prot: u8, source: MapSource) -> Region {
        Region { start, end, prot, source, file: None, made: 0, gone: false }
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// `addr` lies in it.
    pub fn holds(&self, addr: u64) -> bool {
        (self.start..self.end).contains(&addr)
    }

    fn event(&self) -> Event {
        let len = self.end - self.start;
        Event::Map { addr: self.start, len, prot: self.prot, source: self.source.clone(), site: 0 }
    }

    /// The part of it from `start` on.
    pub fn tail(&self, start: u64) -> Region {
        let source = match &self.source {
            MapSource::File { path, offset } => {
                MapSource::File { path: path.clone(), offset: offset.wrapping_add(start - self.start) }
            }
            source => source.clone(),
        };
        Region { start, source, ..self.clone() }
    }
}

/// What the kernel's name for a mapping means.
pub fn source_of(name: &str, offset: u64) -> MapSource {
    match name {
        "[heap]" => MapSource::Heap,
        "[stack]" => MapSource::Stack,
        "" | "//anon" => MapSource::Anonymous,
        _ if name.starts_with("[anon:") || name.starts_with("[stack:") => MapSource::Anonymous,
        path => MapSource::File { path: path.to_owned(), offset },
    }
}

/// Reads `/proc/PID/maps`; lines that it does not understand are left out.
pub fn parse_maps(text: &str) -> Vec<Region> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Region> {
    let mut rest = line;
    let mut field = || {
        let (field, tail) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = tail;
        field
    };
    let (start, end) = field().split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let flags = field().as_bytes();
    let prot =
        [b'r', b'w', b'x'].iter().zip(flags).enumerate().map(|(i, (want, got))| u8::from(want == got) << i).sum();
    let offset = u64::from_str_radix(field(), 16).ok()?;
    let file = file_id(field(), field());
    let source = source_of(rest.trim_start(), offset);
    (start < end).then_some(Region { file, ..Region::new(start, end, prot, source) })
}

fn file_id(device: &str, inode: &str) -> Option<FileId> {
    let (major, minor) = device.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = inode.parse().ok().filter(|&inode| inode != 0)?;
    Some(FileId { device, inode })
}

/// The known map of one process.
#[derive(Clone, Debug, Default)]
pub struct MemoryMap {
    regions: BTreeMap<u64, Region>,
    /// What was mapped where nothing is now.
    gone: BTreeMap<u64, Region>,
    /// Mappings made so far.
    made: u64,
}

impl MemoryMap {
    /// What is mapped, in order of address.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.regions.values()
    }

    /// What is mapped, and what was where nothing is now ([`Region::gone`]), in order of address.
    pub fn last_known(&self) -> Vec<Region> {
        let mut known: Vec<Region> = self.regions.values().chain(self.gone.values()).cloned().collect();
        known.sort_by_key(|region| region.start);
        known
    }

    /// The mapping that holds `addr`.
    pub fn find(&self, addr: u64) -> Option<&Region> {
        self.regions.range(..=addr).next_back().map(|(_, region)| region).filter(|region| region.holds(addr))
    }

    /// Takes what an event of this process says; events that change no map are passed over, forks too.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Map { addr, len, prot, source, .. } => {
                self.map(Region::new(*addr, addr.saturating_add(*len), *prot, source.clone()));
            }
            Event::Unmap { addr, len } => {
                let gone = self.cut_out(*addr, addr.saturating_add(*len));
                self.retire(gone);
            }
            Event::Remap { old_addr, old_len, new_addr, new_len } => {
                let old = self.cut_out(*old_addr, old_addr.saturating_add(*old_len));
                let moved = old.first().cloned().filter(|_| *new_len > 0);
                self.retire(old);
                if let Some(moved) = moved {
                    let end = new_addr.saturating_add(*new_len);
                    self.cut_out(*new_addr, end);
                    cut_out(&mut self.gone, *new_addr, end);
                    self.regions.insert(*new_addr, Region { start: *new_addr, end, ..moved });
                }
            }
            Event::Protect { addr, len, prot } => {
                for region in self.cut_out(*addr, addr.saturating_add(*len)) {
                    self.regions.insert(region.start, Region { prot: *prot, ..region });
                }
            }
            Event::Brk { start, end } => {
                let (start, end) = (start.next_multiple_of(PAGE_BYTES), end.next_multiple_of(PAGE_BYTES));
                let is_heap = |region: &&Region| region.source == MapSource::Heap;
                let old: Vec<Region> = self.regions.values().filter(is_heap).cloned().collect();
                self.regions.retain(|_, region| !is_heap(&&*region));
                self.retire(old);
                // Heap pages can be read and written, unless the program says otherwise.
                self.map(Region::new(start, end, 3, MapSource::Heap));
            }
            Event::Exec { .. } => self.clear(),
            _ => {}
        }
    }

    /// Takes note of a mapping; its event, unless that was known.
    pub fn map(&mut self, region: Region) -> Option<Event> {
        if region.start >= region.end || self.knows(&region) {
            return None;
        }
        let event = region.event();
        self.cut_out(region.start, region.end);
        cut_out(&mut self.gone, region.start, region.end);
        self.made += 1;
        self.regions.insert(region.start, Region { made: self.made, ..region });
        Some(event)
    }

    /// Everything is gone, and was another program's.
    pub fn clear(&mut self) {
        self.regions.clear();
        self.gone.clear();
    }

    /// Takes a fresh listing (in order of address); the events that lead there.
    pub fn reconcile(&mut self, listing: Vec<Region>) -> Vec<Event> {
        let mut events = Vec::new();
        let mut gap_start = 0;
        for region in listing {
            self.unmap(gap_start, region.start, &mut events);
            gap_start = region.end;
            events.extend(self.map(region));
        }
        self.unmap(gap_start, u64::MAX, &mut events);
        events
    }

    fn unmap(&mut self, start: u64, end: u64, events: &mut Vec<Event>) {
        if start < end {
            let gone = self.cut_out(start, end);
            events
                .extend(gone.iter().map(|region| Event::Unmap { addr: region.start, len: region.end - region.start }));
            self.retire(gone);
        }
    }

    /// All of `region` is known, in one or several pieces.
    fn knows(&self, region: &Region) -> bool {
        let mut at = region.start;
        while at < region.end {
            let Some(known) = self.regions.range(..=at).next_back().map(|(_, known)| known) else { return false };
            let same = known.prot == region.prot && known.tail(at).source == region.tail(at).source;
            if at >= known.end || !same {
                return false;
            }
            at = known.end;
        }
        true
    }

    /// Keeps what was mapped in mind.
    fn retire(&mut self, gone: Vec<Region>) {
        for region in gone {
            cut_out(&mut self.gone, region.start, region.end);
            self.gone.insert(region.start, Region { gone: true, ..region });
        }
    }

    fn cut_out(&mut self, start: u64, end: u64) -> Vec<Region> {
        cut_out(&mut self.regions, start, end)
    }
}

/// Takes out all of `start..end`, cutting regions at its borders.
fn cut_out(regions: &mut BTreeMap<u64, Region>, start: u64, end: u64) -> Vec<Region> {
    for border in [start, end] {
        if let Some((_, whole)) = regions.range_mut(..border).next_back() {
            if whole.end > border {
                let tail = whole.tail(border);
                whole.end = border;
                regions.insert(border, tail);
            }
        }
    }
    let starts: Vec<u64> = regions.range(start..end).map(|(&start, _)| start).collect();
    starts.into_iter().filter_map(|start| regions.remove(&start)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_kernels_listing() {
        let text = "55d0c0a00000-55d0c0a02000 r-xp 00001000 fd:00 1234                       /usr/bin/a b\n\
                    55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                          [heap]\n\
                    7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n\
                    7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n\
                    nonsense\n\
                    10-8 rw-p 0 0:0 0\n\
                    10-10 rw-p 0 0:0 0\n";
        let regions = parse_maps(text);
        assert_eq!(regions.len(), 4);
        assert_eq!(regions.iter().map(Region::bytes).collect::<Vec<_>>(), [0x2000, 0x2_1000, 0x1000, 0x2_1000]);
        let source = MapSource::File { path: "/usr/bin/a b".into(), offset: 0x1000 };
        let file = Some(FileId { device: (0xfd, 0), inode: 1234 });
        assert_eq!(regions[0], Region { file, ..Region::new(0x55d0_c0a0_0000, 0x55d0_c0a0_2000, 5, source) });
        assert_eq!(regions[1].file, None);
        assert_eq!((regions[1].prot, &regions[1].source), (3, &MapSource::Heap));
        assert_eq!((regions[2].prot, &regions[2].source), (0, &MapSource::Anonymous));
        assert_eq!(regions[3].source, MapSource::Stack);
    }

    #[test]
    fn the_kernels_names_have_their_meanings() {
        let anonymous = ["", "//anon", "[anon:heap of x]", "[stack:4711]"];
        assert!(anonymous.iter().all(|name| source_of(name, 8192) == MapSource::Anonymous));
        assert_eq!((source_of("[heap]", 0), source_of("[stack]", 0)), (MapSource::Heap, MapSource::Stack));
        for name in ["[vdso]", "/lib/x.so", "anon", "[stack"] {
            assert_eq!(source_of(name, 8192), MapSource::File { path: name.into(), offset: 8192 });
        }
    }

    /// A part of a file's mapping begins further into the file.
    #[test]
    fn a_tail_lies_further_into_its_file() {
        let file = |offset| MapSource::File { path: "x".into(), offset };
        let whole = Region::new(0x10_0000, 0x18_0000, 1, file(0x3000));
        assert_eq!(whole.tail(0x14_0000), Region::new(0x14_0000, 0x18_0000, 1, file(0x4_3000)));
        let mut map = MemoryMap::default();
        map.map(whole);
        map.apply(&Event::Unmap { addr: 0x12_0000, len: 0x1000 });
        let parts: Vec<_> = map.regions().map(|part| (part.start, part.end, part.source.clone())).collect();
        let expected = [(0x10_0000, 0x12_0000, file(0x3000)), (0x12_1000, 0x18_0000, file(0x2_4000))];
        assert_eq!(parts, expected);
    }

    fn region(start: u64, end: u64, prot: u8, file: Option<u8>) -> Region {
        // Offsets such that neighbours of one file can be one mapping.
        let source = file.map_or(MapSource::Anonymous, |f| MapSource::File { path: f.to_string(), offset: start });
        Region::new(start, end, prot, source)
    }

    fn pages(regions: &MemoryMap) -> Vec<Option<(u8, MapSource)>> {
        let page = |at: u64| {
            let known = regions.regions.values().find(|r| r.start <= at && at < r.end)?;
            Some((known.prot, known.tail(at).source))
        };
        (0..40).map(page).collect()
    }

    proptest! {
        /// The events of a reconciliation, played back on the old map, give the listing.
        #[test]
        fn events_lead_to_the_listing(
            before in prop::collection::vec((0u64..30, 1u64..8, 0u8..3, prop::option::of(0u8..2)), 0..12),
            after in prop::collection::vec((0u64..3, 1u64..8, 0u8..3, prop::option::of(0u8..2)), 0..6),
        ) {
            let mut known = MemoryMap::default();
            for (start, len, prot, file) in before {
                known.map(region(start, start + len, prot, file));
            }
            let mut played = known.clone();
            let mut listing = Vec::new();
            let mut at = 0;
            for (gap, len, prot, file) in after {
                at += gap;
                listing.push(region(at, (at + len).min(40), prot, file));
                at += len;
            }
            listing.retain(|r| r.start < r.end);
            let events = known.reconcile(listing.clone());
            for event in events {
                match event {
                    Event::Map { addr, len, prot, source, .. } => {
                        played.map(Region::new(addr, addr + len, prot, source));
                    }
                    Event::Unmap { addr, len } => drop(played.cut_out(addr, addr + len)),
                    other => panic!("{other:?}"),
                }
            }
            let mut wanted = MemoryMap::default();
            for region in listing {
                wanted.map(region);
            }
            prop_assert_eq!(pages(&played), pages(&wanted));
            prop_assert_eq!(pages(&known), pages(&wanted));
        }
    }

    proptest! {
        /// Against a list of what each byte was last.
        #[test]
        fn keeps_in_mind_what_was_where_nothing_is(
            ops in prop::collection::vec((0u64..30, 1u64..8, prop::option::of(0u8..3)), 1..20),
        ) {
            let (mut map, mut naive) = (MemoryMap::default(), vec![None; 40]);
            for (addr, len, prot) in ops {
                let source = MapSource::Anonymous;
                map.apply(&match prot {
                    Some(prot) => Event::Map { addr, len, prot, source, site: 0 },
                    None => Event::Unmap { addr, len },
                });
                for byte in &mut naive[addr as usize..(addr + len) as usize] {
                    *byte = prot.map(|prot| (prot, false)).or(byte.map(|(prot, _)| (prot, true)));
                }
            }
            let known = map.last_known();
            prop_assert!(known.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for (addr, last) in naive.into_iter().enumerate() {
                let found = known.iter().find(|region| region.holds(addr as u64));
                prop_assert_eq!(found.map(|region| (region.prot, region.gone)), last);
                let live = last.filter(|(_, gone)| !gone).map(|(prot, _)| prot);
                prop_assert_eq!(map.find(addr as u64).map(|region| region.prot), live);
            }
        }
    }

    #[test]
    fn follows_the_calls_of_a_program() {
        let mut map = MemoryMap::default();
        let anonymous = |addr, len| Event::Map { addr, len, prot: 3, source: MapSource::Anonymous, site: 0 };
        for event in [
            anonymous(0x10000, 0x4000),
            anonymous(0x20000, 0x4000),
            Event::Protect { addr: 0x11000, len: 0x1000, prot: 1 },
            Event::Remap { old_addr: 0x20000, old_len: 0x4000, new_addr: 0x30000, new_len: 0x8000 },
            Event::Unmap { addr: 0x13000, len: 0x1000 },
            Event::Brk { start: 0x8010, end: 0x9010 },
            Event::Brk { start: 0x8010, end: 0xa010 },
        ] {
            map.apply(&event);
        }
        let seen: Vec<_> =
            map.regions().map(|r| (r.start, r.end, r.prot, r.source == MapSource::Heap, r.made)).collect();
        let wanted = [
            (0x9000, 0xb000, 3, true, 4),
            (0x10000, 0x11000, 3, false, 1),
            (0x11000, 0x12000, 1, false, 1),
            (0x12000, 0x13000, 3, false, 1),
            (0x30000, 0x38000, 3, false, 2),
        ];
        assert_eq!(seen, wanted);
        let gone: Vec<_> = map.last_known().into_iter().filter(|r| r.gone).map(|r| (r.start, r.end, r.made)).collect();
        assert_eq!(gone, [(0x13000, 0x14000, 1), (0x20000, 0x24000, 2)]);
        map.apply(&Event::Brk { start: 0x8010, end: 0x9800 });
        let gone: Vec<_> = map.last_known().into_iter().filter(|r| r.gone).map(|r| (r.start, r.end)).collect();
        assert_eq!(gone[0], (0xa000, 0xb000));
        map.apply(&anonymous(0x22000, 0x1000));
        assert_eq!(map.last_known().iter().filter(|r| r.gone).count(), 4);
        assert!(map.find(0x12fff).is_some() && map.find(0x13000).is_none());
        map.apply(&Event::Exec { path: String::new() });
        assert_eq!(map.regions().count(), 0);
    }

    #[test]
    fn what_is_known_makes_no_event() {
        let mut regions = MemoryMap::default();
        assert!(regions.map(region(0, 10, 3, None)).is_some());
        assert!(regions.map(region(10, 20, 3, None)).is_some());
        assert!(regions.map(region(2, 18, 3, None)).is_none());
        assert!(regions.map(region(2, 18, 1, None)).is_some());
        assert!(regions
            .reconcile(vec![region(0, 2, 3, None), region(2, 18, 1, None), region(18, 20, 3, None)])
            .is_empty());
        // One mapping that is listed in two parts stays one.
        let mut whole = MemoryMap::default();
        whole.map(region(0, 20, 3, None));
        assert!(whole.reconcile(vec![region(0, 10, 3, None), region(10, 20, 3, None)]).is_empty());
        assert_eq!(whole.regions().count(), 1);
    }

    #[test]
    fn what_moves_into_no_bytes_is_gone() {
        let mut map = MemoryMap::default();
        map.map(region(0x1000, 0x3000, 3, None));
        map.apply(&Event::Remap { old_addr: 0x1000, old_len: 0x2000, new_addr: 0x8000, new_len: 0 });
        assert_eq!(map.regions().count(), 0);
        assert_eq!(map.last_known(), [Region { made: 1, gone: true, ..region(0x1000, 0x3000, 3, None) }]);
    }
}
