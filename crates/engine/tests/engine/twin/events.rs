//! What events do (SEMANTICS.md §10).

use std::ops::Range;

use lookaside_engine::os;
use lookaside_trace::{Block, Event, FrameList, MapSource, SiteId};

use super::hardware::total_threads;
use super::model::Twin;
use super::space::{overlap, LiveAllocation, PageMark, TwinMapping, TwinSpace};

/// Allocations from this size on have objects.
const OBJECT_BYTES: u64 = 64 << 10;

/// Everything.
const ALL: Range<u64> = 0..u64::MAX;

impl Twin {
    pub fn event(&mut self, block: &Block, event: &Event) {
        let process = block.process;
        match event {
            Event::Map { addr, len, source, site, .. } => {
                let range = self.widened(*addr, *len);
                let site = self.frames(process, *site);
                self.map(process, range, source, site);
            }
            Event::Unmap { addr, len } => {
                let range = self.widened(*addr, *len);
                self.unmap(process, &range);
            }
            Event::Remap { old_addr, old_len, new_addr, new_len } => {
                let old = os::translated(self.format, *old_addr);
                let (source, site) = match self.space(process).mapping_at(old) {
                    Some(m) => (m.source.clone(), m.site.clone()),
                    None => (MapSource::Anonymous, FrameList::new()),
                };
                let range = self.widened(*old_addr, *old_len);
                self.unmap(process, &range);
                let range = self.widened(*new_addr, *new_len);
                self.map(process, range, &source, site);
            }
            Event::Protect { addr, len, .. } => {
                let range = self.widened(*addr, *len);
                if !range.is_empty() {
                    self.shoot_down(process, std::slice::from_ref(&range));
                }
            }
            Event::Advise { addr, len, advice: 4 | 8 } => {
                let range = self.widened(*addr, *len);
                if !range.is_empty() {
                    self.forget(process, &range);
                }
            }
            Event::Brk { start, end } => self.brk(process, *start, *end),
            Event::Fork { parent, child } => self.fork(*parent, *child),
            Event::Exec { .. } | Event::ProcessExit { .. } => {
                self.clear(process);
                self.shoot_down(process, &[ALL]);
            }
            Event::ContextSwitch { cpu } | Event::Migrate { cpu } => {
                let cpu = *cpu as usize % total_threads(&self.setup.machine);
                self.threads.insert((process, block.thread), cpu);
            }
            Event::Site { id, frames } => {
                self.space(process).sites.insert(*id, frames.clone());
            }
            Event::Alloc { addr, len, site } => self.alloc(process, *addr, *len, *site),
            Event::Free { addr } => {
                let start = os::translated(self.format, *addr);
                self.free(process, |live| live.range.start == start);
            }
            Event::Waits { .. } => {}
            Event::Interval { cpu_ns } => self.interval(*cpu_ns),
            Event::Counts => self.counts(),
            Event::Repeats { addr, kind, count } => self.repeats(block, *addr, *kind, *count),
            Event::Totals { loads, stores, instructions, .. } => {
                self.totals.insert(process, [*loads, *stores, *instructions]);
            }
            Event::Advise { .. } | Event::Marker { .. } | Event::ThreadStart { .. } | Event::ThreadExit { .. } => {}
        }
    }

    fn space(&mut self, process: u32) -> &mut TwinSpace {
        self.spaces.entry(process).or_default()
    }

    /// A range of translated addresses.
    fn cut(&self, addr: u64, len: u64) -> Range<u64> {
        let start = os::translated(self.format, addr);
        start..start.saturating_add(len).min(1 << self.format.address_bits())
    }

    /// The same, widened to whole base pages.
    fn widened(&self, addr: u64, len: u64) -> Range<u64> {
        let range = self.cut(addr, len);
        if range.is_empty() {
            return 0..0;
        }
        let page = self.base.bytes();
        range.start / page * page..range.end.div_ceil(page) * page
    }

    fn frames(&mut self, process: u32, site: SiteId) -> FrameList {
        self.space(process).sites.get(&site).cloned().unwrap_or_default()
    }

    fn map(&mut self, process: u32, range: Range<u64>, source: &MapSource, site: FrameList) {
        if range.is_empty() {
            return;
        }
        if self.space(process).maps_any(&range) {
            self.unmap(process, &range);
        }
        let region = self.rows.map(process, &range, source, site.clone());
        let huge = self.huge;
        let space = self.space(process);
        space.undecide_base(&range, huge);
        space.mappings.push(TwinMapping { range, source: source.clone(), site, region });
    }

    fn unmap(&mut self, process: u32, range: &Range<u64>) {
        let huge = self.huge;
        let space = self.space(process);
        if range.is_empty() {
            return;
        }
        if !space.maps_any(range) && !space.touches_any(range) {
            // Only decisions can be left to forget.
            space.forget(range, huge);
            return;
        }
        space.cut(range);
        self.forget(process, range);
    }

    /// Pages of the range are forgotten, mappings stay.
    fn forget(&mut self, process: u32, range: &Range<u64>) {
        let huge = self.huge;
        let space = self.space(process);
        let widened = space.widened_to_huge(range, huge);
        space.forget(range, huge);
        self.shoot_down(process, &widened);
    }

    fn shoot_down(&mut self, process: u32, ranges: &[Range<u64>]) {
        self.hardware.shoot_down(process, ranges);
        self.shootdowns += 1;
    }

    fn brk(&mut self, process: u32, start: u64, end: u64) {
        let page = self.base.bytes();
        let new = self.widened(start, end.saturating_sub(start));
        let start = os::translated(self.format, start) / page * page;
        let new = if new.is_empty() { start..start } else { new };
        let old = self.space(process).heap.replace(new.clone());
        match old {
            Some(old) if old.start == new.start => {
                if new.end < old.end {
                    self.unmap(process, &(new.end..old.end));
                } else if new.end > old.end {
                    self.map(process, old.end..new.end, &MapSource::Heap, FrameList::new());
                    let space = self.space(process);
                    let mut grown = space.mappings.pop().expect("just mapped");
                    let joins = |m: &TwinMapping| m.source == MapSource::Heap && m.range.end == old.end;
                    if let Some(i) = space.mappings.iter().position(joins) {
                        grown.range.start = space.mappings.remove(i).range.start;
                    }
                    space.mappings.push(grown);
                }
            }
            old => {
                self.unmap(process, &old.unwrap_or(0..0));
                self.map(process, new, &MapSource::Heap, FrameList::new());
            }
        }
    }

    fn alloc(&mut self, process: u32, addr: u64, len: u64, site: SiteId) {
        let range = self.cut(addr, len);
        self.free(process, |live| overlap(&live.range, &range));
        if range.end - range.start >= OBJECT_BYTES {
            let site = self.frames(process, site);
            self.rows.allocated(process, &range, &site);
            self.space(process).live.push(LiveAllocation { range, site });
        }
    }

    fn free(&mut self, process: u32, meant: impl Fn(&LiveAllocation) -> bool) {
        let (gone, stay) = self.space(process).live.drain(..).partition(|live| meant(live));
        self.space(process).live = stay;
        let gone: Vec<LiveAllocation> = gone;
        for live in gone {
            self.rows.freed(process, &live.range, &live.site);
        }
    }

    /// The space is empty now; its call sites stay known.
    fn clear(&mut self, process: u32) {
        self.free(process, |_| true);
        let sites = std::mem::take(&mut self.space(process).sites);
        self.spaces.insert(process, TwinSpace { sites, ..TwinSpace::default() });
    }

    fn fork(&mut self, parent: u32, child: u32) {
        if parent == child {
            return;
        }
        self.clear(child);
        let counted = self.hardware.tlb_counts.clone();
        self.hardware.shoot_down(child, &[ALL]);
        self.hardware.tlb_counts = counted;
        let mut copy = self.space(parent).clone();
        copy.touched.values_mut().for_each(|mark| *mark = PageMark::Copied);
        copy.mappings.sort_by_key(|m| m.range.start);
        copy.live.sort_by_key(|live| live.range.start);
        let mut rows = std::collections::BTreeMap::new();
        for m in &mut copy.mappings {
            let new = || self.rows.map(child, &m.range, &m.source, m.site.clone());
            let row = *rows.entry(m.region).or_insert_with(new);
            self.rows.widen(row, &m.range);
            m.region = row;
        }
        for live in &copy.live {
            self.rows.allocated(child, &live.range, &live.site);
        }
        self.spaces.insert(child, copy);
        self.shoot_down(parent, &[ALL]);
    }
}
