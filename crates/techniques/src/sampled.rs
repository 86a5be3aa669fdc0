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
