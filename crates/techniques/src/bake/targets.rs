//! What `lookaside bake run` would bake of a recorded program.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lookaside_trace::{Block, Event, MemoryMap, Source};

use crate::names::{mapping_name, Unnamed};

/// Spans with less than this in small pages are left out, as by the preloaded baker (docs/explanation/baking.md).
const LEAST_BYTES: u64 = 4 << 20;
/// What lies closer than this is one span, as there.
const NEAR_BYTES: u64 = 256 << 10;
/// log2 of the bytes that a leaf table of 512 entries translates. What is touched is kept by such windows: where one is
/// touched there is a table, and its lines can be read.
const WINDOW_SHIFT: u32 = 21;

/// What is baked of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BakeTargets {
    /// The process, of all the one with the most to bake; of equals that of the lowest number.
    pub process: u32,
    /// By address: parts of its mappings; where the trace tells of none, what it touches.
    pub regions: Vec<TargetRegion>,
    /// Processes in the trace.
    pub processes: usize,
    /// Threads in the trace.
    pub threads: usize,
}

impl BakeTargets {
    /// The addresses alone, as [`super::ModelledBaker`] takes them.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.regions.iter().map(|region| region.range.clone()).collect()
    }
}

/// A range that is baked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRegion {
    /// The mapping's, as reports name it; `touched` where none is known.
    pub name: String,
    /// Its addresses.
    pub range: Range<u64>,
}

/// Reads a trace to its end, or to where it can't be read further, and finds what to bake: of each mapping, at whatever
/// time it was there, the windows of 2 MiB that are touched at some time; spans of less than 4 MiB are left out.
/// `None`: nothing is left.
///
/// `keep_on` is asked after each block; `false` ends the search, with what was seen until then.
pub fn find_targets(source: &mut dyn Source, mut keep_on: impl FnMut() -> bool) -> Option<BakeTargets> {
    let mut finder = TargetFinder::default();
    let mut block = Block::default();
    // What can't be read here can't be read by the run that follows either, which says so.
    while matches!(source.next_block(&mut block), Ok(true)) && keep_on() {
        finder.run(&block);
    }
    finder.finish()
}

/// Finds what to bake of blocks that pass, as [`find_targets`] does.
#[derive(Default)]
pub(crate) struct TargetFinder {
    processes: BTreeMap<u32, TouchedMemory>,
    threads: BTreeSet<(u32, u32)>,
}

impl TargetFinder {
    /// The next block.
    pub(crate) fn run(&mut self, block: &Block) {
        let processes = &mut self.processes;
        if !block.addr.is_empty() {
            self.threads.insert((block.process, block.thread));
        }
        let mut from = 0;
        for (at, event) in &block.events {
            let at = (*at as usize).clamp(from, block.len());
            processes.entry(block.process).or_default().touch(&block.addr[from..at]);
            from = at;
            if let Event::Fork { parent, child } = event {
                let copy = processes.get(parent).cloned().unwrap_or_default();
                processes.insert(*child, copy);
            } else {
                processes.entry(block.process).or_default().follow(event);
            }
        }
        processes.entry(block.process).or_default().touch(&block.addr[from..]);
    }

    /// Of all that passed.
    pub(crate) fn finish(&self) -> Option<BakeTargets> {
        let mut best: Option<(u64, BakeTargets)> = None;
        for (&process, seen) in &self.processes {
            let regions = large(seen.pieces());
            let bytes = regions.iter().map(|region| region.range.end - region.range.start).sum();
            if bytes > best.as_ref().map_or(0, |best| best.0) {
                let processes = self.threads.iter().map(|thread| thread.0).collect::<BTreeSet<_>>().len();
                best = Some((bytes, BakeTargets { process, regions, processes, threads: self.threads.len() }));
            }
        }
        best.map(|best| best.1)
    }
}

/// What is known of a process.
#[derive(Clone, Default)]
struct TouchedMemory {
    map: MemoryMap,
    is_mapped: bool,
    windows: BTreeSet<u64>,
    recent: RecentWindows,
}

/// Windows that were touched of late: most touches are to these.
#[derive(Clone)]
struct RecentWindows([u64; 64]);

impl Default for RecentWindows {
    fn default() -> Self {
        // No window has this number.
        Self([u64::MAX; 64])
    }
}

impl RecentWindows {
    /// Puts the window among them; it was not.
    fn is_new(&mut self, window: u64) -> bool {
        let slot = &mut self.0[(window % 64) as usize];
        std::mem::replace(slot, window) != window
    }
}

impl TouchedMemory {
    fn follow(&mut self, event: &Event) {
        self.map.apply(event);
        match event {
            Event::Map { .. } | Event::Brk { .. } => self.is_mapped = true,
            Event::Exec { .. } => (self.windows, self.recent) = Default::default(),
            _ => {}
        }
    }

    fn touch(&mut self, addresses: &[u64]) {
        for addr in addresses {
            let window = addr >> WINDOW_SHIFT;
            // The upper half is the kernel's, in 64-bit formats: nobody bakes it.
            if self.recent.is_new(window) && addr >> 63 == 0 {
                self.windows.insert(window);
            }
        }
    }

    /// What is touched of each mapping, by address.
    fn pieces(&self) -> Vec<TargetRegion> {
        let mut pieces = Vec::new();
        if !self.is_mapped {
            self.cut("touched", &(0..1 << 63), &mut pieces);
        }
        for region in self.map.last_known().iter().filter(|region| region.prot != 0) {
            // Who called mmap tells nobody where to look; the address does.
            let name = mapping_name(0, &region.source, &[], &Unnamed);
            self.cut(&name, &(region.start..region.end), &mut pieces);
        }
        pieces
    }

    /// Adds the touched windows in a range, cut at its borders.
    fn cut(&self, name: &str, range: &Range<u64>, pieces: &mut Vec<TargetRegion>) {
        let last = range.end.saturating_sub(1) >> WINDOW_SHIFT;
        for window in self.windows.range(range.start >> WINDOW_SHIFT..=last) {
            let (start, end) = (window << WINDOW_SHIFT, (window + 1) << WINDOW_SHIFT);
            let part = start.max(range.start)..end.min(range.end);
            match pieces.last_mut().filter(|before| before.range.end == part.start && before.name == name) {
                Some(before) => before.range.end = part.end,
                None => pieces.push(TargetRegion { name: name.into(), range: part }),
            }
        }
    }
}

/// Those that with their neighbours make a large span.
fn large(pieces: Vec<TargetRegion>) -> Vec<TargetRegion> {
    let near = |a: &TargetRegion, b: &TargetRegion| b.range.start.saturating_sub(a.range.end) < NEAR_BYTES;
    let bytes = |span: &[TargetRegion]| span.iter().map(|piece| piece.range.end - piece.range.start).sum::<u64>();
    pieces.chunk_by(near).filter(|span| bytes(span) >= LEAST_BYTES).flatten().cloned().collect()
}
