//! A process's memory map as the kernel shows it, and how it changes.

use std::collections::BTreeMap;

use lookaside_trace::{Event, MapSource};

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// `PROT_READ` 1, `PROT_WRITE` 2, `PROT_EXEC` 4.
    pub prot: u8,
    /// What is behind it.
    pub source: MapSource,
}

impl Region {
    fn event(&self) -> Event {
        let len = self.end - self.start;
        Event::Map { addr: self.start, len, prot: self.prot, source: self.source.clone(), site: 0 }
    }

    /// The part of it from `start` on.
    fn tail(&self, start: u64) -> Region {
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
    let (_device, _inode) = (field(), field());
    let source = source_of(rest.trim_start(), offset);
    (start < end).then_some(Region { start, end, prot, source })
}

/// The known map of one process.
#[derive(Clone, Debug, Default)]
pub struct Regions(BTreeMap<u64, Region>);

impl Regions {
    /// Takes note of a mapping; its event, unless that was known.
    pub fn map(&mut self, region: Region) -> Option<Event> {
        if region.start >= region.end || self.knows(&region) {
            return None;
        }
        let event = region.event();
        self.cut_out(region.start, region.end);
        self.0.insert(region.start, region);
        Some(event)
    }

    /// Something is mapped at `addr`.
    #[cfg(test)]
    pub fn holds(&self, addr: u64) -> bool {
        self.0.range(..=addr).next_back().is_some_and(|(_, known)| addr < known.end)
    }

    /// Everything is gone.
    pub fn clear(&mut self) {
        self.0.clear();
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
        }
    }

    /// All of `region` is known, in one or several pieces.
    fn knows(&self, region: &Region) -> bool {
        let mut at = region.start;
        while at < region.end {
            let Some(known) = self.0.range(..=at).next_back().map(|(_, known)| known) else { return false };
            let same = known.prot == region.prot && known.tail(at).source == region.tail(at).source;
            if at >= known.end || !same {
                return false;
            }
            at = known.end;
        }
        true
    }

    /// Takes out all of `start..end`, cutting regions at its borders.
    fn cut_out(&mut self, start: u64, end: u64) -> Vec<Region> {
        for border in [start, end] {
            if let Some((_, whole)) = self.0.range_mut(..border).next_back() {
                if whole.end > border {
                    let tail = whole.tail(border);
                    whole.end = border;
                    self.0.insert(border, tail);
                }
            }
        }
        let starts: Vec<u64> = self.0.range(start..end).map(|(&start, _)| start).collect();
        starts.into_iter().filter_map(|start| self.0.remove(&start)).collect()
    }
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
                    10-8 rw-p 0 0:0 0\n";
        let regions = parse_maps(text);
        assert_eq!(regions.len(), 4);
        let file = MapSource::File { path: "/usr/bin/a b".into(), offset: 0x1000 };
        assert_eq!(regions[0], Region { start: 0x55d0_c0a0_0000, end: 0x55d0_c0a0_2000, prot: 5, source: file });
        assert_eq!((regions[1].prot, &regions[1].source), (3, &MapSource::Heap));
        assert_eq!((regions[2].prot, &regions[2].source), (0, &MapSource::Anonymous));
        assert_eq!(regions[3].source, MapSource::Stack);
    }

    fn region(start: u64, end: u64, prot: u8, file: Option<u8>) -> Region {
        // Offsets such that neighbours of one file can be one mapping.
        let source = file.map_or(MapSource::Anonymous, |f| MapSource::File { path: f.to_string(), offset: start });
        Region { start, end, prot, source }
    }

    fn pages(regions: &Regions) -> Vec<Option<(u8, MapSource)>> {
        let page = |at: u64| {
            let known = regions.0.values().find(|r| r.start <= at && at < r.end)?;
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
            let mut known = Regions::default();
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
                        played.map(Region { start: addr, end: addr + len, prot, source });
                    }
                    Event::Unmap { addr, len } => drop(played.cut_out(addr, addr + len)),
                    other => panic!("{other:?}"),
                }
            }
            let mut wanted = Regions::default();
            for region in listing {
                wanted.map(region);
            }
            prop_assert_eq!(pages(&played), pages(&wanted));
            prop_assert_eq!(pages(&known), pages(&wanted));
        }
    }

    #[test]
    fn what_is_known_makes_no_event() {
        let mut regions = Regions::default();
        assert!(regions.map(region(0, 10, 3, None)).is_some());
        assert!(regions.map(region(10, 20, 3, None)).is_some());
        assert!(regions.map(region(2, 18, 3, None)).is_none());
        assert!(regions.map(region(2, 18, 1, None)).is_some());
        assert!(regions
            .reconcile(vec![region(0, 2, 3, None), region(2, 18, 1, None), region(18, 20, 3, None)])
            .is_empty());
    }
}
