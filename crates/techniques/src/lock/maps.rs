//! The memory map of a trace, as lines of `/proc/PID/maps` (Song et al. 2022, Figure 3: a page is told by its line and
//! the distance from the line's start).

use std::collections::BTreeMap;

use lookaside_trace::{Block, Event, MapSource};
use serde::{Deserialize, Serialize};

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListedMapping {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// As it was mapped: `PROT_READ` 1, `PROT_WRITE` 2, `PROT_EXEC` 4.
    pub prot: u8,
    /// What is behind it.
    pub source: MapSource,
    /// Number of the call site in the trace; 0 = not known.
    pub site: u32,
}

/// All mappings that a trace told of. What was unmapped is remembered: names are asked for when all is over.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    /// By process, in the order of mapping.
    mappings: BTreeMap<u32, Vec<ListedMapping>>,
    /// Call stacks by process and number.
    sites: BTreeMap<(u32, u32), Vec<u64>>,
}

/// `PROT_READ` and `PROT_WRITE`: what a heap has.
const READ_WRITE: u8 = 3;

impl Maps {
    /// Learns a block's events.
    pub fn run(&mut self, block: &Block) {
        for (_, event) in &block.events {
            self.happen(block.process, event);
        }
    }

    fn happen(&mut self, process: u32, event: &Event) {
        let known = self.mappings.entry(process).or_default();
        match event {
            Event::Map { addr, len, prot, source, site } => {
                let end = addr.saturating_add(*len);
                known.push(ListedMapping { start: *addr, end, prot: *prot, source: source.clone(), site: *site });
            }
            Event::Brk { start, end } => {
                match known.iter_mut().rfind(|m| m.source == MapSource::Heap && m.start == *start) {
                    Some(heap) => heap.end = heap.end.max(*end),
                    None => {
                        let (start, end) = (*start, *end);
                        known.push(ListedMapping { start, end, prot: READ_WRITE, source: MapSource::Heap, site: 0 });
                    }
                }
            }
            Event::Remap { old_addr, new_addr, new_len, .. } => {
                let old = known.iter().rfind(|m| (m.start..m.end).contains(old_addr)).cloned();
                let (start, end) = (*new_addr, new_addr.saturating_add(*new_len));
                let anonymous = MapSource::Anonymous;
                let old = old.unwrap_or(ListedMapping { start, end, prot: READ_WRITE, source: anonymous, site: 0 });
                known.push(ListedMapping { start, end, ..old });
            }
            Event::Fork { parent, child } => {
                let copy = self.mappings.get(parent).cloned().unwrap_or_default();
                let of_parent = |((process, id), frames): (&(u32, u32), &Vec<u64>)| {
                    (process == parent).then(|| ((*child, *id), frames.clone()))
                };
                let sites: Vec<_> = self.sites.iter().filter_map(of_parent).collect();
                self.sites.extend(sites);
                self.mappings.insert(*child, copy);
            }
            Event::Exec { .. } => known.clear(),
            Event::Site { id, frames } => {
                self.sites.insert((process, *id), frames.clone());
            }
            _ => {}
        }
    }

    /// The mapping that held an address last.
    pub fn find(&self, process: u32, addr: u64) -> Option<&ListedMapping> {
        self.mappings.get(&process)?.iter().rfind(|mapping| (mapping.start..mapping.end).contains(&addr))
    }

    /// The call stack that a mapping was made in, innermost first; empty = not known.
    pub fn site(&self, process: u32, mapping: &ListedMapping) -> &[u64] {
        self.sites.get(&(process, mapping.site)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(addr: u64, len: u64, source: MapSource, site: u32) -> Event {
        Event::Map { addr, len, prot: 5, source, site }
    }

    #[test]
    fn pages_lie_in_what_held_them_last() {
        let file = |offset| MapSource::File { path: "/lib/x".into(), offset };
        let events = [
            (1, Event::Site { id: 1, frames: vec![7] }),
            (1, map(0x1000, 0x2000, file(0), 0)),
            (1, map(0x3000, 0x1000, file(0x2000), 0)),
            (1, map(0x2000, 0x1000, MapSource::Anonymous, 1)),
            (1, Event::Brk { start: 0x8000, end: 0x8000 }),
            (1, Event::Brk { start: 0x8000, end: 0xa000 }),
            (1, Event::Brk { start: 0x8000, end: 0x9000 }),
            (1, Event::Fork { parent: 1, child: 2 }),
            (1, Event::Remap { old_addr: 0x2000, old_len: 0x1000, new_addr: 0x20000, new_len: 0x3000 }),
            (1, Event::Unmap { addr: 0x3000, len: 0x1000 }),
        ];
        let mut maps = Maps::default();
        for (process, event) in events {
            let mut block = Block { process, ..Block::default() };
            block.push_event(event);
            maps.run(&block);
        }
        let at = |process, addr| maps.find(process, addr).map(|m| (m.start, m.end, m.prot, m.source.clone()));
        assert_eq!(at(1, 0x1fff), Some((0x1000, 0x3000, 5, file(0))));
        assert_eq!(at(1, 0x2000), Some((0x2000, 0x3000, 5, MapSource::Anonymous)));
        assert_eq!(at(1, 0x3000), Some((0x3000, 0x4000, 5, file(0x2000))));
        // The heap has been longer.
        assert_eq!([at(1, 0x8fff), at(1, 0x9fff)], [(); 2].map(|()| Some((0x8000, 0xa000, 3, MapSource::Heap))));
        assert_eq!(at(1, 0x22fff), Some((0x20000, 0x23000, 5, MapSource::Anonymous)));
        assert_eq!((at(2, 0x20000), at(1, 0x4000), at(3, 0x1000)), (None, None, None));
        assert_eq!(maps.find(2, 0x2000).map(|m| maps.site(2, m)), Some(&[7][..]));
        assert!(maps.find(2, 0x1000).is_some_and(|m| maps.site(2, m).is_empty()));
    }

    #[test]
    fn a_heap_goes_on_where_it_began_until_the_next_program() {
        let mut maps = Maps::default();
        let mut happen = |process, event| {
            let mut block = Block { process, ..Block::default() };
            block.push_event(event);
            maps.run(&block);
            maps.clone()
        };
        happen(1, map(0x8000, 0x1000, MapSource::Stack, 0));
        happen(1, Event::Brk { start: 0x8000, end: 0x8000 });
        happen(1, Event::Brk { start: 0x8000, end: 0xa000 });
        happen(2, Event::Brk { start: 0x8000, end: 0x9000 });
        let known = happen(1, Event::Brk { start: 0x20000, end: 0x21000 });
        let heap = |maps: &Maps, process, addr| {
            maps.find(process, addr).map(|m| (m.start, m.end, m.source == MapSource::Heap))
        };
        assert_eq!(heap(&known, 1, 0x9fff), Some((0x8000, 0xa000, true)));
        assert_eq!([heap(&known, 1, 0x1ffff), heap(&known, 1, 0x21000)], [None, None]);
        assert_eq!(heap(&known, 1, 0x20000), Some((0x20000, 0x21000, true)));
        let next = happen(1, Event::Exec { path: "/bin/y".into() });
        assert_eq!([heap(&next, 1, 0x8000), heap(&next, 1, 0x20000)], [None, None]);
        assert_eq!(heap(&next, 2, 0x8000), Some((0x8000, 0x9000, true)));
    }
}
