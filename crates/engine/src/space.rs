//! One process's (or the kernel's) address space: mappings, size decisions, sites, live allocations.

use std::collections::BTreeMap;
use std::sync::Arc;

use lookaside_machine::TableFormat;
use lookaside_trace::{Event, MapSource, SiteId};

use crate::classes::{BASE, BASE_SHIFT, HUGE};
use crate::fasthash::FastMap;
use crate::os::{HOST_SPACE, KERNEL_SPACE};
use crate::pages::{PageStates, NONE};
use crate::plan::EnginePlan;
use crate::{PagePolicy, ProcessRange};

/// One address space.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    /// Process id; 0 for the kernel.
    pub(crate) process: u32,
    /// Space number as `os.rs` takes it.
    pub(crate) number: u64,
    /// Of its contiguous frames from their addresses.
    pub(crate) offset: u64,
    pub(crate) pages: PageStates,
    /// By first byte.
    pub(crate) mappings: BTreeMap<u64, MappedRange>,
    /// First byte and end of the heap, as `Brk` said last.
    pub(crate) heap: Option<(u64, u64)>,
    pub(crate) sites: FastMap<SiteId, Vec<u64>>,
    /// Live allocations of 64 KiB and more: length and object, by first byte.
    pub(crate) allocations: BTreeMap<u64, (u64, u32)>,
    /// Accesses by kind.
    pub(crate) accesses: [u64; 3],
    /// The last `Totals`: loads, stores, instructions.
    pub(crate) totals: Option<[u64; 3]>,
}

/// A mapping or the part of one that is left.
#[derive(Clone, Debug)]
pub(crate) struct MappedRange {
    pub(crate) end: u64,
    /// Index in the list of regions.
    pub(crate) region: u32,
    pub(crate) source: Arc<MapSource>,
    /// Call frames of its mmap.
    pub(crate) site: Arc<Vec<u64>>,
}

impl MappedRange {
    /// May the OS back it with huge pages unasked?
    fn may_be_huge(&self) -> bool {
        !self.source.is_file() && *self.source != MapSource::Stack
    }
}

impl AddressSpace {
    pub(crate) fn process(process: u32, plan: &EnginePlan) -> Self {
        Self::new(process, u64::from(process), plan)
    }

    pub(crate) fn kernel(plan: &EnginePlan) -> Self {
        Self::new(0, KERNEL_SPACE, plan)
    }

    fn new(process: u32, number: u64, plan: &EnginePlan) -> Self {
        Self {
            process,
            number,
            offset: plan.guest_memory.offset(number),
            pages: PageStates::new(plan.leaf_shift[HUGE]),
            mappings: BTreeMap::new(),
            heap: None,
            sites: FastMap::default(),
            allocations: BTreeMap::new(),
            accesses: [0; 3],
            totals: None,
        }
    }

    pub(crate) fn is_kernel(&self) -> bool {
        self.number == KERNEL_SPACE
    }

    /// The region that holds this address, [`NONE`] if no mapping is known.
    pub(crate) fn region_at(&self, va: u64) -> u32 {
        self.mapping_at(va).map_or(NONE, |mapping| mapping.region)
    }

    /// The mapping that holds this address.
    pub(crate) fn mapping_at(&self, va: u64) -> Option<&MappedRange> {
        let (_, mapping) = self.mappings.range(..=va).next_back()?;
        (va < mapping.end).then_some(mapping)
    }

    /// The object that the whole page lies in, [`NONE`] if in none.
    pub(crate) fn object_over(&self, start: u64, end: u64) -> u32 {
        match self.allocations.range(..=start).next_back() {
            Some((&first, &(len, object))) if end <= first.saturating_add(len) => object,
            _ => NONE,
        }
    }

    /// Does a live allocation overlap this range?
    pub(crate) fn has_object_in(&self, start: u64, end: u64) -> bool {
        self.allocations.range(..end).next_back().is_some_and(|(&first, &(len, _))| start < first.saturating_add(len))
    }

    /// The size class of the page at `va`, deciding it if this is the first touch.
    #[inline]
    pub(crate) fn class_at(&mut self, va: u64, policy: &PagePolicy, huge_shift: u32) -> usize {
        if *policy == PagePolicy::Base {
            return BASE;
        }
        if let Some(class) = self.pages.decided(va) {
            return class;
        }
        let start = va >> huge_shift << huge_shift;
        let end = start + (1 << huge_shift);
        let class = if self.may_be_huge(start, end, policy) { HUGE } else { BASE };
        self.pages.decide(va, class);
        class
    }

    fn may_be_huge(&self, start: u64, end: u64, policy: &PagePolicy) -> bool {
        let selected = |ranges: &[ProcessRange]| ranges.iter().any(|range| self.selects(range, start, end));
        match policy {
            PagePolicy::Base => false,
            PagePolicy::Thp => self.is_memory(start, end),
            PagePolicy::Selective(ranges) => selected(ranges) && self.is_memory(start, end),
            PagePolicy::SelectiveFiles(ranges) => selected(ranges) && self.is_in_one_file(start, end),
        }
    }

    /// Does the range lie wholly in one mapping of a file?
    fn is_in_one_file(&self, start: u64, end: u64) -> bool {
        self.mapping_at(start).is_some_and(|mapping| end <= mapping.end && mapping.source.is_file())
    }

    /// Does the range lie wholly in memory that may be huge, or where no mapping is known?
    fn is_memory(&self, start: u64, end: u64) -> bool {
        // Backwards over the mappings that overlap the range: they must leave no gap.
        let mut open_end = end;
        for (&first, mapping) in self.mappings.range(..end).rev().take_while(|(_, m)| start < m.end) {
            if mapping.end < open_end || !mapping.may_be_huge() {
                return false;
            }
            open_end = first;
        }
        open_end <= start || open_end == end
    }

    /// Does a range, widened to huge-page bounds, hold these?
    fn selects(&self, range: &ProcessRange, start: u64, end: u64) -> bool {
        let of_process = match range.process {
            None => true,
            Some(process) => !self.is_kernel() && process == self.process,
        };
        of_process && range.start < range.end && range.start < end && start < range.end
    }

    /// Whether a known mapping overlaps the range.
    pub(crate) fn has_mapping_in(&self, start: u64, end: u64) -> bool {
        self.mappings.range(..end).next_back().is_some_and(|(_, mapping)| start < mapping.end)
    }

    /// Cuts the range out of the mappings.
    pub(crate) fn cut_mappings(&mut self, start: u64, end: u64) {
        let overlapping: Vec<(u64, MappedRange)> = self
            .mappings
            .range(..end)
            .rev()
            .take_while(|(_, mapping)| start < mapping.end)
            .map(|(&first, mapping)| (first, mapping.clone()))
            .collect();
        for (first, mapping) in overlapping {
            self.mappings.remove(&first);
            if first < start {
                self.mappings.insert(first, MappedRange { end: start, ..mapping.clone() });
            }
            if end < mapping.end {
                self.mappings.insert(end, mapping);
            }
        }
    }

    /// Joins the heap mapping that begins here with the one that ends here.
    pub(crate) fn join_heap(&mut self, at: u64) {
        let Some(end) = self.mappings.get(&at).map(|new| new.end) else { return };
        if let Some((_, before)) = self.mappings.range_mut(..at).next_back() {
            if before.end == at && *before.source == MapSource::Heap {
                before.end = end;
                self.mappings.remove(&at);
            }
        }
    }

    /// Notes the totals of an event; others are not for here.
    pub(crate) fn set_totals(&mut self, event: &Event) {
        if let Event::Totals { loads, stores, instructions, .. } = *event {
            self.totals = Some([loads, stores, instructions]);
        }
    }
}

/// Physical address of a byte.
pub(crate) fn physical(plan: &EnginePlan, space: &AddressSpace, va: u64, class: usize) -> u64 {
    let guest = plan.guest_memory.data_address_at(space.number, space.offset, va, plan.leaf_shift[class]);
    match &plan.host {
        None => guest,
        Some(host) => host.memory.data_address(HOST_SPACE, guest, host.page_shift),
    }
}

/// An event's range cut to the format's addresses and widened to whole base pages; `None` if empty.
pub(crate) fn page_range(format: TableFormat, addr: u64, len: u64) -> Option<(u64, u64)> {
    if len == 0 {
        return None;
    }
    let limit = 1u64 << format.address_bits();
    let start = addr & (limit - 1);
    let end = start.saturating_add(len).min(limit);
    let mask = (1 << BASE_SHIFT) - 1;
    Some((start & !mask, (end + mask) & !mask))
}
