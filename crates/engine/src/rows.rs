//! Attribution: which page, region, object, instruction and thread the cost belongs to (`SEMANTICS.md` §11).

use lookaside_trace::MapSource;

use crate::fasthash::FastMap;
use crate::os::to_cycles;
use crate::pages::NONE;
use crate::space::AddressSpace;
use crate::Cost;

/// Allocations below this many bytes are no objects.
pub(crate) const OBJECT_BYTES: u64 = 64 << 10;

/// Cost of accesses that missed the first level, in whole units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCost {
    pub(crate) l1_misses: u64,
    pub(crate) walks: u64,
    pub(crate) walk_references: u64,
    pub(crate) walk_references_memory: u64,
    pub(crate) hit_units: u64,
    pub(crate) walk_units: u64,
}

impl RowCost {
    #[inline]
    pub(crate) fn add(&mut self, other: &Self) {
        self.l1_misses += other.l1_misses;
        self.walks += other.walks;
        self.walk_references += other.walk_references;
        self.walk_references_memory += other.walk_references_memory;
        // A machine file may say a billion cycles a hit; totals are 128 bits wide, rows stop at 64.
        self.hit_units = self.hit_units.saturating_add(other.hit_units);
        self.walk_units = self.walk_units.saturating_add(other.walk_units);
    }

    /// As an outcome gives it.
    pub(crate) fn cost(&self) -> Cost {
        Cost {
            l1_misses: self.l1_misses,
            walks: self.walks,
            walk_references: self.walk_references,
            walk_references_memory: self.walk_references_memory,
            tlb_hit_cycles: to_cycles(self.hit_units.into()),
            walk_cycles: to_cycles(self.walk_units.into()),
        }
    }

    /// Sort key: cycles.
    pub(crate) fn units(&self) -> u64 {
        self.hit_units.saturating_add(self.walk_units)
    }
}

/// One page row: what every miss changes in the first cache line, the rest in the second.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct PageTotals {
    pub(crate) accesses: u64,
    pub(crate) cost: RowCost,
    pub(crate) region: u32,
    object: u32,
    /// First byte, translated bits.
    pub(crate) va: u64,
    /// Index of the space.
    pub(crate) space: u32,
    /// Next row of the same page with another region.
    older: u32,
    /// Accesses when the object was set.
    object_mark: u64,
    pub(crate) class: u8,
}

/// One region.
#[derive(Clone, Debug)]
pub(crate) struct RegionTotals {
    pub(crate) process: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) source: MapSource,
    pub(crate) site: Vec<u64>,
}

/// One allocation site's objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectTotals {
    pub(crate) process: u32,
    pub(crate) site: Vec<u64>,
    pub(crate) allocations: u64,
    live_bytes: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) largest: (u64, u64),
    pub(crate) accesses: u64,
    pub(crate) cost: RowCost,
}

/// One thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadTotals {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    /// Its hardware thread.
    pub(crate) hw: usize,
    pub(crate) accesses: u64,
    pub(crate) cost: RowCost,
}

/// All rows but the threads', which the engine needs whatever the detail.
#[derive(Debug, Default)]
pub(crate) struct Attribution {
    pub(crate) pages: Vec<PageTotals>,
    pub(crate) regions: Vec<RegionTotals>,
    merged_regions: FastMap<(u32, Option<String>), u32>,
    pub(crate) objects: Vec<ObjectTotals>,
    object_of: FastMap<(u32, Vec<u64>), u32>,
    pub(crate) ips: Vec<(u32, u64, RowCost)>,
    ip_of: FastMap<(u32, u64), u32>,
    /// Numbers of instructions charged lately, by the low bits of their addresses.
    recent_ips: Vec<(u32, u64, u32)>,
}

/// Instructions remembered, in 16 KiB.
const RECENT_IPS: usize = 1 << 10;

impl Attribution {
    /// The region row for a new mapping.
    pub(crate) fn region(&mut self, process: u32, start: u64, end: u64, source: &MapSource, site: &[u64]) -> u32 {
        let next = self.regions.len() as u32;
        let key = match source {
            MapSource::File { path, .. } => Some((process, Some(path.clone()))),
            MapSource::Heap => Some((process, None)),
            MapSource::Anonymous | MapSource::Stack => None,
        };
        let number = key.map_or(next, |key| *self.merged_regions.entry(key).or_insert(next));
        if number == next {
            let site = if *source == MapSource::Anonymous { site.to_vec() } else { Vec::new() };
            self.regions.push(RegionTotals { process, start, end, source: source.clone(), site });
        } else {
            self.widen_region(number, start, end);
        }
        number
    }

    /// A region reaches over these bounds too.
    pub(crate) fn widen_region(&mut self, number: u32, start: u64, end: u64) {
        let region = &mut self.regions[number as usize];
        region.start = region.start.min(start);
        region.end = region.end.max(end);
    }

    /// The row of the page of `space` at `va`, made or found again at its first access in this life.
    #[inline]
    pub(crate) fn page(
        &mut self,
        spaces: &mut [AddressSpace],
        space: usize,
        va: u64,
        class: usize,
        leaf_shift: u32,
    ) -> usize {
        let owner = &mut spaces[space];
        let slot = owner.pages.row_slot(va, class);
        if slot.is_live() {
            return *slot.row as usize;
        }
        let row = self.present_row(owner, space as u32, va, class, leaf_shift);
        owner.pages.row_slot(va, class).make_live();
        row
    }

    /// Counts left-out repeats to the row that the page has or would have now.
    pub(crate) fn add_repeats(
        &mut self,
        owner: &mut AddressSpace,
        space: u32,
        va: u64,
        class: usize,
        shift: u32,
        count: u64,
    ) {
        let slot = owner.pages.row_slot(va, class);
        let live = slot.is_live().then_some(*slot.row as usize);
        let row = live.unwrap_or_else(|| self.present_row(owner, space, va, class, shift));
        self.pages[row].accesses += count;
    }

    /// The row of a page whose region is what now holds the address.
    #[cold]
    fn present_row(&mut self, owner: &mut AddressSpace, space: u32, va: u64, class: usize, leaf_shift: u32) -> usize {
        let start = va >> leaf_shift << leaf_shift;
        let region = owner.region_at(va);
        let object = owner.object_over(start, start + (1 << leaf_shift));
        let slot = owner.pages.row_slot(va, class);
        let head = *slot.row;
        let row = self.find_or_make(
            head,
            PageTotals {
                space,
                class: class as u8,
                va: start,
                region,
                older: NONE,
                object: NONE,
                object_mark: 0,
                accesses: 0,
                cost: RowCost::default(),
            },
        );
        *slot.row = row;
        self.set_object(row, object);
        row as usize
    }

    /// Finds the row of the new page's region in the list from `head` on, moved to its front, or adds the new page
    /// there.
    fn find_or_make(&mut self, head: u32, new: PageTotals) -> u32 {
        let (mut newer, mut at) = (NONE, head);
        while at != NONE && self.pages[at as usize].region != new.region {
            newer = at;
            at = self.pages[at as usize].older;
        }
        if at == NONE {
            self.pages.push(PageTotals { older: head, ..new });
            return (self.pages.len() - 1) as u32;
        }
        if newer != NONE {
            self.pages[newer as usize].older = self.pages[at as usize].older;
            self.pages[at as usize].older = head;
        }
        at
    }

    /// From now on the page's accesses belong to this object.
    fn set_object(&mut self, row: u32, object: u32) {
        let page = &mut self.pages[row as usize];
        if page.object != object {
            if page.object != NONE {
                self.objects[page.object as usize].accesses += page.accesses - page.object_mark;
            }
            page.object_mark = page.accesses;
            page.object = object;
        }
    }

    /// Accesses of pages that now belong to an object and are not yet in its count, by object.
    pub(crate) fn pending_object_accesses(&self) -> Vec<u64> {
        let mut pending = vec![0; self.objects.len()];
        for page in &self.pages {
            if page.object != NONE {
                pending[page.object as usize] += page.accesses - page.object_mark;
            }
        }
        pending
    }

    /// A new allocation of a process that has these call frames.
    pub(crate) fn allocate(&mut self, space: &mut AddressSpace, addr: u64, len: u64, site: Vec<u64>) {
        let key = (space.process, site);
        let next = self.objects.len() as u32;
        let number = match self.object_of.get(&key) {
            Some(&number) => number,
            None => {
                self.objects.push(ObjectTotals { process: key.0, site: key.1.clone(), ..ObjectTotals::default() });
                self.object_of.insert(key, next);
                next
            }
        };
        let object = &mut self.objects[number as usize];
        object.allocations += 1;
        object.live_bytes += len;
        object.peak_bytes = object.peak_bytes.max(object.live_bytes);
        if len > object.largest.1 {
            object.largest = (addr, len);
        }
        space.allocations.insert(addr, (len, number));
        space.pages.live_rows_within(addr, addr + len, |row| self.set_object(row, number));
    }

    /// Live allocations that overlap a new one end.
    pub(crate) fn end_overlapped(&mut self, space: &mut AddressSpace, addr: u64, len: u64) {
        let overlapping: Vec<u64> = space
            .allocations
            .range(..addr + len)
            .rev()
            .take_while(|(&first, &(its_len, _))| addr < first + its_len && len > 0)
            .map(|(&first, _)| first)
            .collect();
        for first in overlapping {
            self.free(space, first);
        }
    }

    /// The allocation that starts here ends.
    pub(crate) fn free(&mut self, space: &mut AddressSpace, addr: u64) {
        if let Some((len, object)) = space.allocations.remove(&addr) {
            self.objects[object as usize].live_bytes -= len;
            space.pages.live_rows_within(addr, addr + len, |row| self.set_object(row, NONE));
        }
    }

    /// All allocations of a space end.
    pub(crate) fn free_all(&mut self, space: &mut AddressSpace) {
        let all: Vec<u64> = space.allocations.keys().copied().collect();
        for addr in all {
            self.free(space, addr);
        }
    }

    /// Charges an access that missed the first level to its instruction.
    #[inline]
    pub(crate) fn charge_ip(&mut self, process: u32, ip: u64, cost: &RowCost) {
        let recent = ip as usize % RECENT_IPS;
        if let Some(&(_, _, number)) = self.recent_ips.get(recent).filter(|r| r.0 == process && r.1 == ip) {
            self.ips[number as usize].2.add(cost);
            return;
        }
        let next = self.ips.len() as u32;
        let number = *self.ip_of.entry((process, ip)).or_insert(next);
        if number == next {
            self.ips.push((process, ip, RowCost::default()));
        }
        self.ips[number as usize].2.add(cost);
        if self.recent_ips.is_empty() {
            self.recent_ips = vec![(process, ip, number); RECENT_IPS];
        }
        self.recent_ips[recent] = (process, ip, number);
    }

    /// Charges it to the object at its address, if any.
    #[inline]
    pub(crate) fn charge_object(&mut self, space: &AddressSpace, va: u64, cost: &RowCost) {
        if space.allocations.is_empty() {
            return;
        }
        let object = space.object_over(va, va + 1);
        if object != NONE {
            self.objects[object as usize].cost.add(cost);
        }
    }
}
