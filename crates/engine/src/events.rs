//! What the trace's events do to the model: map, unmap, fork, exec … (`SEMANTICS.md` §10).

use std::sync::Arc;

use lookaside_trace::{Event, MapSource, SiteId};

use crate::classes::BASE;
use crate::context::KERNEL;
use crate::engine::Engine;
use crate::fasthash::FastMap;
use crate::os::{is_global, translated};
use crate::rows::OBJECT_BYTES;
use crate::space::{page_range, AddressSpace, MappedRange};
use crate::Detail;

/// `MADV_DONTNEED` and `MADV_FREE` of Linux: the pages' contents go.
const DROPPING_ADVICE: [i32; 2] = [4, 8];

impl Engine {
    /// An event in a block of this space and thread.
    pub(crate) fn apply_event(&mut self, event: &Event, space: usize, thread: usize) {
        let format = self.plan.format;
        match event {
            Event::Site { .. }
            | Event::Marker { .. }
            | Event::Totals { .. }
            | Event::Waits { .. }
            | Event::Interval { .. }
            | Event::Counts
            | Event::ThreadStart { .. }
            | Event::ThreadExit { .. }
            | Event::ContextSwitch { .. }
            | Event::Migrate { .. } => {}
            Event::Alloc { .. } | Event::Free { .. } if self.setup.detail == Detail::Totals => {}
            _ => self.chunks.forget(),
        }
        match *event {
            Event::Map { addr, len, ref source, site, .. } => {
                if let Some((start, end)) = page_range(format, addr, len) {
                    let site = Arc::new(self.frames(space, site));
                    self.map(space, start, end, Arc::new(source.clone()), site);
                }
            }
            Event::Unmap { addr, len } => {
                if let Some((start, end)) = page_range(format, addr, len) {
                    self.unmap(space, start, end);
                }
            }
            Event::Remap { old_addr, old_len, new_addr, new_len } => {
                self.remap(space, (old_addr, old_len), (new_addr, new_len));
            }
            Event::Protect { addr, len, .. } => {
                if let Some(range) = page_range(format, addr, len) {
                    self.shoot_down(space, Some(range));
                }
            }
            Event::Advise { addr, len, advice } if DROPPING_ADVICE.contains(&advice) => {
                if let Some((start, end)) = page_range(format, addr, len) {
                    self.drop_pages(space, start, end);
                }
            }
            Event::Brk { start, end } => self.brk(space, start, end),
            Event::Fork { parent, child } => self.fork(parent, child),
            Event::Exec { .. } | Event::ProcessExit { .. } => {
                self.forget(space);
                self.shoot_down(space, None);
            }
            Event::ContextSwitch { cpu } | Event::Migrate { cpu } => {
                self.threads[thread].hw = cpu as usize % self.plan.hw_threads;
            }
            Event::Site { id, ref frames } => {
                self.spaces[space].sites.insert(id, frames.clone());
            }
            Event::Alloc { addr, len, site } => self.allocate(space, addr, len, site),
            Event::Free { addr } => {
                if self.setup.detail == Detail::Rows {
                    self.rows.free(&mut self.spaces[space], translated(format, addr));
                }
            }
            Event::Repeats { addr, kind, count } => self.repeats(space, thread, addr, kind as usize, count),
            Event::Totals { .. } => self.spaces[space].set_totals(event),
            Event::Interval { cpu_ns } => self.begin_interval(cpu_ns),
            Event::Counts => self.count_interval(),
            // They go with the accesses around them.
            Event::Waits { .. } => {}
            Event::Advise { .. } | Event::ThreadStart { .. } | Event::ThreadExit { .. } | Event::Marker { .. } => {}
        }
    }

    /// Call frames of a site; none if it is not defined.
    fn frames(&self, space: usize, site: SiteId) -> Vec<u64> {
        self.spaces[space].sites.get(&site).cloned().unwrap_or_default()
    }

    fn map(&mut self, space: usize, start: u64, end: u64, source: Arc<MapSource>, site: Arc<Vec<u64>>) {
        if self.spaces[space].has_mapping_in(start, end) {
            self.unmap(space, start, end);
        }
        let owner = &mut self.spaces[space];
        let region = self.rows.region(owner.process, start, end, &source, &site);
        owner.mappings.insert(start, MappedRange { end, region, source, site });
        owner.pages.undecide_base(start, end);
    }

    fn unmap(&mut self, space: usize, start: u64, end: u64) {
        let mapped = self.spaces[space].has_mapping_in(start, end);
        self.spaces[space].cut_mappings(start, end);
        let range = self.spaces[space].pages.widened(start, end);
        let touched = self.spaces[space].pages.forget(start, end);
        if mapped || touched {
            self.shoot_down(space, Some(range));
        }
    }

    /// The pages' contents go, the mappings stay.
    fn drop_pages(&mut self, space: usize, start: u64, end: u64) {
        let range = self.spaces[space].pages.widened(start, end);
        self.spaces[space].pages.forget(start, end);
        self.shoot_down(space, Some(range));
    }

    /// Invalidates a space's entries over a range (`None` = all).
    fn shoot_down(&mut self, space: usize, range: Option<(u64, u64)>) {
        self.counts.shootdowns += 1;
        self.invalidate(space, range);
    }

    fn invalidate(&mut self, space: usize, range: Option<(u64, u64)>) {
        if let Some(id) = self.ids.of(space) {
            self.hardware.shoot_down(&self.plan, id, range, &mut self.counts.invalidated);
        }
    }

    fn remap(&mut self, space: usize, old: (u64, u64), new: (u64, u64)) {
        let format = self.plan.format;
        let first = translated(format, old.0);
        let (source, site) = match self.spaces[space].mapping_at(first) {
            Some(mapping) => (Arc::clone(&mapping.source), Arc::clone(&mapping.site)),
            None => (Arc::new(MapSource::Anonymous), Arc::default()),
        };
        if let Some((start, end)) = page_range(format, old.0, old.1) {
            self.unmap(space, start, end);
        }
        if let Some((start, end)) = page_range(format, new.0, new.1) {
            self.map(space, start, end, source, site);
        }
    }

    fn brk(&mut self, space: usize, start: u64, end: u64) {
        let format = self.plan.format;
        let start = translated(format, start);
        let len = end.saturating_sub(start);
        // The ends of the heap move by whole pages; an empty one is at its start.
        let Some((start, _)) = page_range(format, start, 1) else { return };
        let end = page_range(format, start, len).map_or(start, |(_, end)| end);
        match self.spaces[space].heap {
            Some((known, old_end)) if known == start => {
                if end > old_end {
                    self.map(space, old_end, end, Arc::new(MapSource::Heap), Arc::default());
                    self.spaces[space].join_heap(old_end);
                } else if end < old_end {
                    self.unmap(space, end, old_end);
                }
            }
            known => {
                if let Some((old_start, old_end)) = known.filter(|(old_start, old_end)| old_start < old_end) {
                    self.unmap(space, old_start, old_end);
                }
                if start < end {
                    self.map(space, start, end, Arc::new(MapSource::Heap), Arc::default());
                }
            }
        }
        self.spaces[space].heap = Some((start, end));
    }

    /// Forgets a space's pages, map, heap and live allocations.
    fn forget(&mut self, space: usize) {
        let owner = &mut self.spaces[space];
        self.rows.free_all(owner);
        owner.pages.forget_all();
        owner.mappings.clear();
        owner.heap = None;
    }

    fn fork(&mut self, parent: u32, child: u32) {
        if parent == child {
            return;
        }
        let (from, to) = (self.space(parent), self.space(child));
        self.forget(to);
        let counted = self.counts.invalidated.clone();
        self.invalidate(to, None);
        self.counts.invalidated = counted;
        if let Some((parent, child)) = pair(&mut self.spaces, from, to) {
            child.pages.copy_from(&parent.pages);
            child.heap = parent.heap;
            child.sites = parent.sites.clone();
            let mut regions = FastMap::default();
            for (&start, mapping) in &parent.mappings {
                let region = *regions.entry(mapping.region).or_insert_with(|| {
                    self.rows.region(child.process, start, mapping.end, &mapping.source, &mapping.site)
                });
                self.rows.widen_region(region, start, mapping.end);
                child.mappings.insert(start, MappedRange { region, ..mapping.clone() });
            }
            for (&addr, &(len, object)) in &parent.allocations {
                let site = self.rows.objects[object as usize].site.clone();
                self.rows.allocate(child, addr, len, site);
            }
        }
        self.shoot_down(from, None);
    }

    fn allocate(&mut self, space: usize, addr: u64, len: u64, site: SiteId) {
        if self.setup.detail == Detail::Totals {
            return;
        }
        let addr = translated(self.plan.format, addr);
        let len = len.min(self.plan.address_mask - addr + 1);
        self.rows.end_overlapped(&mut self.spaces[space], addr, len);
        if len >= OBJECT_BYTES {
            let site = self.frames(space, site);
            self.rows.allocate(&mut self.spaces[space], addr, len, site);
        }
    }

    fn repeats(&mut self, space: usize, thread: usize, addr: u64, kind: usize, count: u64) {
        if count == 0 {
            return;
        }
        let va = translated(self.plan.format, addr);
        let owner = if is_global(self.plan.format, addr) { KERNEL } else { space };
        let class = self.spaces[owner].pages.decided(va).unwrap_or(BASE);
        let first = self.plan.routes[kind][class].levels.first().map(|level| level.arrays[0]);
        self.counts.repeats[kind] += count;
        if let Some(array) = first {
            let counts = &mut self.counts.tlbs[array];
            counts.repeat_lookups += count;
            counts.hits[kind][class] += count;
        }
        self.spaces[space].accesses[kind] += count;
        self.threads[thread].accesses += count;
        self.spaces[owner].pages.count(va, class);
        if self.setup.detail == Detail::Rows {
            let shift = self.plan.leaf_shift[class];
            self.rows.add_repeats(&mut self.spaces[owner], owner as u32, va, class, shift, count);
        }
    }
}

/// Two different spaces at once.
fn pair(spaces: &mut [AddressSpace], a: usize, b: usize) -> Option<(&AddressSpace, &mut AddressSpace)> {
    if a < b {
        let (low, high) = spaces.split_at_mut(b);
        Some((low.get(a)?, high.first_mut()?))
    } else {
        let (low, high) = spaces.split_at_mut(a);
        Some((high.first()?, low.get_mut(b)?))
    }
}
