//! The sampler's view: time by region and instruction. Each sample stands for a slice of a thread's
//! time; whether that time was translation, a cache miss or work it cannot say.

use std::collections::BTreeMap;

use lookaside_engine::Cost;
use lookaside_trace::{Block, Event, MapSource};

use crate::{names::dearest_first, NamedCost, Namer};

/// Tallies samples while blocks go by.
#[derive(Default)]
pub struct SampleTally {
    /// Mappings of each process by first byte: (end, source).
    maps: BTreeMap<u32, BTreeMap<u64, (u64, MapSource)>>,
    /// Samples by (process, mapping's first byte, end, source); unmapped addresses under `None`.
    by_region: BTreeMap<(u32, u64, u64), (Option<MapSource>, u64)>,
    by_ip: BTreeMap<(u32, u64), u64>,
    /// Resolved samples by (process, page): weights of the independent-reference curve.
    by_page: BTreeMap<(u32, u64), u64>,
    samples: u64,
    resolved: u64,
}

impl SampleTally {
    /// Counts a block of samples and follows its events.
    pub fn run(&mut self, block: &Block) {
        let mut events = block.events.iter().peekable();
        for at in 0..=block.len() {
            while let Some((_, event)) = events.next_if(|(position, _)| *position as usize <= at) {
                self.follow(block.process, event);
            }
            if at < block.len() {
                self.sample(block.process, block.addr[at], block.ip.get(at).copied().unwrap_or(0));
            }
        }
    }

    /// Samples taken.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Samples whose data address is known.
    pub fn resolved(&self) -> u64 {
        self.resolved
    }

    /// Weights of pages, largest first.
    pub fn page_weights(&self) -> Vec<u64> {
        let mut weights: Vec<u64> = self.by_page.values().copied().collect();
        weights.sort_unstable_by(|a, b| b.cmp(a));
        weights
    }

    /// Mappings by samples of their addresses, most first.
    pub fn regions(&self) -> Vec<NamedCost> {
        let rows = self.by_region.iter().map(|(&(process, start, end), (source, samples))| NamedCost {
            name: match source {
                Some(MapSource::File { path, .. }) => path.rsplit('/').next().unwrap_or(path).to_string(),
                Some(MapSource::Heap) => "[heap]".into(),
                Some(MapSource::Stack) => "[stack]".into(),
                Some(MapSource::Anonymous) => "anonymous".into(),
                None => "no mapping known".into(),
            },
            process,
            bytes: end - start,
            addr: start,
            source: source.clone(),
            accesses: 0,
            cost: Cost::default(),
            samples: *samples,
        });
        dearest_first(rows.collect())
    }

    /// Functions by samples, most first.
    pub fn functions(&self, namer: &dyn Namer) -> Vec<NamedCost> {
        let mut by_name: BTreeMap<(u32, String), (u64, u64)> = BTreeMap::new();
        for (&(process, ip), &samples) in &self.by_ip {
            let row = by_name.entry((process, namer.function(process, ip))).or_insert((ip, 0));
            row.1 += samples;
        }
        let rows = by_name.into_iter().map(|((process, name), (addr, samples))| NamedCost {
            name,
            process,
            bytes: 0,
            addr,
            source: None,
            accesses: 0,
            cost: Cost::default(),
            samples,
        });
        dearest_first(rows.collect())
    }

    fn sample(&mut self, process: u32, addr: u64, ip: u64) {
        self.samples += 1;
        *self.by_ip.entry((process, ip)).or_default() += 1;
        if addr == 0 {
            return;
        }
        self.resolved += 1;
        *self.by_page.entry((process, addr >> 12)).or_default() += 1;
        let known = self.maps.get(&process).and_then(|maps| {
            let (&start, (end, source)) = maps.range(..=addr).next_back()?;
            (addr < *end).then(|| (start, *end, source.clone()))
        });
        let (start, end, source) = match known {
            Some((start, end, source)) => (start, end, Some(source)),
            None => (0, 0, None),
        };
        self.by_region.entry((process, start, end)).or_insert((source, 0)).1 += 1;
    }

    fn follow(&mut self, process: u32, event: &Event) {
        match event {
            Event::Map { addr, len, source, .. } => {
                self.unmap(process, *addr, *len);
                self.map(process, *addr, addr.saturating_add(*len), source.clone());
            }
            Event::Unmap { addr, len } => self.unmap(process, *addr, *len),
            Event::Remap { old_addr, old_len, new_addr, new_len } => {
                let source = self
                    .maps
                    .get(&process)
                    .and_then(|maps| maps.range(..=*old_addr).next_back().map(|(_, (_, source))| source.clone()));
                self.unmap(process, *old_addr, *old_len);
                let end = new_addr.saturating_add(*new_len);
                self.map(process, *new_addr, end, source.unwrap_or(MapSource::Anonymous));
            }
            Event::Brk { start, end } => self.map(process, *start, *end, MapSource::Heap),
            Event::Fork { parent, child } => {
                let maps = self.maps.get(parent).cloned().unwrap_or_default();
                self.maps.insert(*child, maps);
            }
            Event::Exec { .. } | Event::ProcessExit { .. } => {
                self.maps.remove(&process);
            }
            _ => {}
        }
    }

    fn map(&mut self, process: u32, start: u64, end: u64, source: MapSource) {
        if end > start {
            self.maps.entry(process).or_default().insert(start, (end, source));
        }
    }

    /// Takes [addr, addr + len) out, splitting mappings that stick out.
    fn unmap(&mut self, process: u32, addr: u64, len: u64) {
        let end = addr.saturating_add(len);
        let Some(maps) = self.maps.get_mut(&process) else { return };
        let hit: Vec<u64> = maps.range(..end).filter(|(_, (e, _))| *e > addr).map(|(&s, _)| s).collect();
        for start in hit {
            let Some((old_end, source)) = maps.remove(&start) else { continue };
            if start < addr {
                maps.insert(start, (addr, source.clone()));
            }
            if old_end > end {
                maps.insert(end, (old_end, source));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lookaside_trace::Kind;

    use super::*;
    use crate::names::Unnamed;

    /// Names sixteen bytes of code a function.
    struct Sixteen;

    impl Namer for Sixteen {
        fn function(&self, process: u32, ip: u64) -> String {
            format!("f{:x} of {process}", ip >> 4)
        }

        fn site(&self, _process: u32, _frames: &[u64]) -> String {
            String::new()
        }
    }

    fn mapped(addr: u64, len: u64, source: MapSource) -> Event {
        Event::Map { addr, len, prot: 3, source, site: 0 }
    }

    fn file() -> MapSource {
        MapSource::File { path: "/usr/lib/libx.so".into(), offset: 0 }
    }

    /// A block of one process, of samples at these addresses.
    fn samples(process: u32, addresses: &[u64]) -> Block {
        let mut block = Block { process, ..Block::default() };
        addresses.iter().for_each(|&addr| block.push(Kind::Load, addr));
        block
    }

    fn tally(blocks: &[Block]) -> SampleTally {
        let mut tally = SampleTally::default();
        blocks.iter().for_each(|block| tally.run(block));
        tally
    }

    /// Name, process, first byte, length and samples.
    type Row = (String, u32, u64, u64, u64);

    fn rows(named: Vec<NamedCost>) -> Vec<Row> {
        named.into_iter().map(|row| (row.name, row.process, row.addr, row.bytes, row.samples)).collect()
    }

    fn row(name: &str, process: u32, addr: u64, bytes: u64, samples: u64) -> Row {
        (name.into(), process, addr, bytes, samples)
    }

    #[test]
    fn samples_count_where_their_address_lies() {
        // First and last byte of the file, and the one behind it; one that could not be found.
        let mut block =
            samples(1, &[0x1_0000, 0x1_3fff, 0x1_4000, 0x2_0008, 0x3_0000, 0, 0x4_0000, 0x4_0800, 0x4_0fff]);
        block.events = vec![
            (0, mapped(0x1_0000, 0x4000, file())),
            (0, Event::Brk { start: 0x2_0000, end: 0x2_2000 }),
            (0, mapped(0x3_0000, 0x1000, MapSource::Stack)),
            (0, mapped(0x4_0000, 0x1000, MapSource::Anonymous)),
        ];
        let tally = tally(&[block, samples(2, &[0x1_0000])]);
        assert_eq!((tally.samples(), tally.resolved()), (10, 9));
        assert_eq!(tally.page_weights(), [3, 1, 1, 1, 1, 1, 1]);
        let regions = tally.regions();
        assert_eq!(regions[1].source, Some(file()));
        assert_eq!(
            rows(regions),
            [
                row("anonymous", 1, 0x4_0000, 0x1000, 3),
                row("libx.so", 1, 0x1_0000, 0x4000, 2),
                row("[heap]", 1, 0x2_0000, 0x2000, 1),
                row("[stack]", 1, 0x3_0000, 0x1000, 1),
                row("no mapping known", 1, 0, 0, 1),
                row("no mapping known", 2, 0, 0, 1),
            ]
        );
    }

    #[test]
    fn samples_count_for_the_function_whatever_their_address() {
        let mut block = samples(1, &[0, 0x1000, 0x2000, 0, 0x1000, 0x1000]);
        block.ip = vec![0x18, 0x20, 0x10, 0x20, 0x24, 0x28];
        let tally = tally(&[block, samples(2, &[0x1000])]);
        let expected = [row("f2 of 1", 1, 0x20, 0, 4), row("f1 of 1", 1, 0x10, 0, 2), row("f0 of 2", 2, 0, 0, 1)];
        assert_eq!(rows(tally.functions(&Sixteen)), expected);
        assert_eq!(tally.functions(&Unnamed).len(), 6);
    }

    #[test]
    fn a_sample_sees_the_mappings_of_its_time() {
        let mut block = samples(1, &[0x1000, 0x1000, 0x1000]);
        block.events = vec![
            (0, mapped(0x1000, 0x1000, file())),
            (1, mapped(0x1000, 0x2000, MapSource::Stack)),
            (2, Event::Unmap { addr: 0x1000, len: 0x2000 }),
        ];
        let expected = [
            row("[stack]", 1, 0x1000, 0x2000, 1),
            row("libx.so", 1, 0x1000, 0x1000, 1),
            row("no mapping known", 1, 0, 0, 1),
        ];
        assert_eq!(rows(tally(&[block]).regions()), expected);
    }

    /// First bytes and ends of a process's mappings after these events of process 1.
    fn ranges(events: &[Event], process: u32) -> Vec<(u64, u64)> {
        let events = events.iter().map(|event| (0, event.clone())).collect();
        let tally = tally(&[Block { process: 1, events, ..Block::default() }]);
        tally.maps.get(&process).into_iter().flatten().map(|(&start, &(end, _))| (start, end)).collect()
    }

    #[test]
    fn what_sticks_out_of_an_unmapped_range_stays() {
        let left = |addr, end: u64| {
            let unmap = Event::Unmap { addr, len: end - addr };
            ranges(&[mapped(0x1000, 0x8000, file()), unmap], 1)
        };
        assert_eq!(left(0x3000, 0x5000), [(0x1000, 0x3000), (0x5000, 0x9000)]);
        assert_eq!(left(0x1000, 0x5000), [(0x5000, 0x9000)]);
        assert_eq!(left(0x3000, 0x9000), [(0x1000, 0x3000)]);
        assert_eq!(left(0x1000, 0x9000), []);
        assert_eq!(left(0x0000, u64::MAX), []);
        for (addr, end) in [(0x0000, 0x1000), (0x9000, 0xa000)] {
            assert_eq!(left(addr, end), [(0x1000, 0x9000)]);
        }
        // What is mapped anew takes the place of what was there; nothing takes no place.
        let over = [mapped(0x1000, 0x8000, file()), mapped(0x3000, 0x2000, file())];
        assert_eq!(ranges(&over, 1), [(0x1000, 0x3000), (0x3000, 0x5000), (0x5000, 0x9000)]);
        assert_eq!(ranges(&[mapped(0x1000, 0, file())], 1), []);
    }

    #[test]
    fn mappings_grow_move_and_end_with_their_process() {
        let heap = |end| Event::Brk { start: 0x1000, end };
        assert_eq!(ranges(&[heap(0x2000), heap(0x4000)], 1), [(0x1000, 0x4000)]);
        let moves = Event::Remap { old_addr: 0x1000, old_len: 0x3000, new_addr: 0x10_0000, new_len: 0x5000 };
        assert_eq!(ranges(&[heap(0x4000), moves.clone()], 1), [(0x10_0000, 0x10_5000)]);
        let fork = |parent| Event::Fork { parent, child: 2 };
        assert_eq!([1, 2].map(|process| ranges(&[heap(0x4000), fork(1)], process)), [[(0x1000, 0x4000)]; 2]);
        assert_eq!(ranges(&[fork(3)], 2), []);
        for end in [Event::Exec { path: "/bin/true".into() }, Event::ProcessExit { code: 0 }] {
            assert_eq!([1, 2].map(|process| ranges(&[heap(0x4000), fork(1), end.clone()], process).len()), [0, 1]);
        }
        // What is behind it moves along, as far as it is known.
        let sources = |events: Vec<Event>| {
            let events = events.into_iter().map(|event| (0, event)).collect();
            let moved = tally(&[Block { process: 1, events, ..samples(1, &[0x10_0000]) }]);
            moved.regions().into_iter().map(|region| region.source).collect::<Vec<_>>()
        };
        assert_eq!(sources(vec![mapped(0x1000, 0x3000, file()), moves.clone()]), [Some(file())]);
        assert_eq!(sources(vec![moves]), [Some(MapSource::Anonymous)]);
    }
}
