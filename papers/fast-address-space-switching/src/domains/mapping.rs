//! Mappings of one process: where they are placed, made and unmade.

use super::address::{relocate, section_of, PAGE_SHIFT, SECTION_PAGES, SHARED_START, SLOT_SECTIONS};
use super::counts::FlushCause;
use super::error::AddressSpaceError;
use super::hardware::DomainHardware;
use super::page_span::PageSpan;
use super::process::{ProcessId, ProcessSpace, SectionEntry};
use super::spaces::{relocated_section, AddressSpaces};
use super::tables::LeafEntry;

/// Frames of a machine with 32 bits of physical addresses.
const FRAMES: u64 = 1 << (32 - PAGE_SHIFT);

/// Neighbouring pages in neighbouring frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMapping {
    /// How many; at least 1.
    pub pages: u32,
    /// Frame number of the first. A writable mapping's frames are in no other; those of shared memory are a region's
    /// ([`AddressSpaces::create_region`]).
    pub frame: u32,
    /// Stores are allowed.
    pub writable: bool,
}

/// Where a mapping goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingAddress {
    /// Above 2 GiB: into a block of 1 MiB that only this process uses, while there is one (section 3.1).
    Anywhere,
    /// At this address: a program's own text, data and stack below 32 MiB, or `MAP_FIXED` anywhere.
    Fixed(u32),
}

impl AddressSpaces {
    /// Maps pages for a process, and says where.
    ///
    /// # Errors
    /// No such process; no pages, or frames beyond 4 GiB. A fixed place that is no multiple of a page, reaches beyond
    /// the address space or into the kernel's part, lies in the process's own PID slot, or where it has something
    /// already. No room anywhere.
    pub fn map(
        &mut self,
        id: ProcessId,
        place: MappingAddress,
        mapping: PageMapping,
        hardware: &mut impl DomainHardware,
    ) -> Result<u32, AddressSpaceError> {
        let slot = self.slot_of(id)?;
        check_frames(&mapping)?;
        let (range, fixed) = match place {
            MappingAddress::Fixed(addr) => (self.free_range(slot, addr, mapping.pages)?, true),
            MappingAddress::Anywhere => (self.place(slot, mapping.pages)?, false),
        };
        if fixed {
            self.count_overlap(slot, range);
        }
        self.write(slot, range, LeafEntry::new(mapping.frame, mapping.writable), fixed, hardware);
        Ok(range.start())
    }

    /// Unmaps pages of a process. Their frames may be used again at once.
    ///
    /// # Errors
    /// No such process; no pages, or a range that cannot be; a page that is not mapped, or a shared region's.
    pub fn unmap(
        &mut self,
        id: ProcessId,
        addr: u32,
        pages: u32,
        hardware: &mut impl DomainHardware,
    ) -> Result<(), AddressSpaceError> {
        let slot = self.slot_of(id)?;
        let range = PageSpan::new(addr, pages, self.config.kernel_start)?;
        for page in range.iter() {
            let leaf = self.leaf(slot, page);
            let addr = page << PAGE_SHIFT;
            if !leaf.is_valid() {
                return Err(AddressSpaceError::NotMapped { addr });
            }
            if leaf.is_of_region() {
                return Err(AddressSpaceError::OfRegion { addr });
            }
        }
        self.erase(slot, range, hardware);
        Ok(())
    }

    /// A range where the process has nothing.
    pub(super) fn free_range(&self, slot: u8, addr: u32, pages: u32) -> Result<PageSpan, AddressSpaceError> {
        let range = PageSpan::new(addr, pages, self.config.kernel_start)?;
        let own = usize::from(slot) * SLOT_SECTIONS;
        let in_own_slot = |section: usize| section >= SLOT_SECTIONS && (own..own + SLOT_SECTIONS).contains(&section);
        if range.sections().any(in_own_slot) {
            return Err(AddressSpaceError::OwnSlot { addr, slot });
        }
        match range.iter().find(|page| self.leaf(slot, *page).is_valid()) {
            Some(page) => Err(AddressSpaceError::Taken { addr: page << PAGE_SHIFT }),
            None => Ok(range),
        }
    }

    /// The process's entry of a page, by its own page number; those of regions are marked.
    fn leaf(&self, slot: u8, page: u32) -> LeafEntry {
        let section = (page / SECTION_PAGES) as usize;
        match self.process(slot).map(|process| process.directory[section]) {
            Some(SectionEntry::Private { table, .. }) => self.tables.leaf(table, page),
            Some(SectionEntry::Shared { table, .. }) => self.tables.leaf(table, page).of_region(),
            Some(SectionEntry::Empty) | None => LeafEntry::EMPTY,
        }
    }

    /// Room for pages above 2 GiB.
    fn place(&mut self, slot: u8, pages: u32) -> Result<PageSpan, AddressSpaceError> {
        let process = self.process(slot).ok_or(AddressSpaceError::NoProcess)?;
        let gap = |section: usize, alone: bool| match process.directory[section] {
            SectionEntry::Private { table, fixed } if !alone || !fixed && self.free_sections.users(section) == 1 => {
                self.tables
                    .gap(table, pages)
                    .map(|page| PageSpan { first: section as u32 * SECTION_PAGES + page, pages })
            }
            _ => None,
        };
        if let Some(range) = self.free_sections.shared().find_map(|section| gap(section, true)) {
            return Ok(range);
        }
        let sections = pages.div_ceil(SECTION_PAGES) as usize;
        let blocks = |first: usize| PageSpan { first: first as u32 * SECTION_PAGES, pages };
        if let Some(first) = self.free_blocks(sections) {
            self.free_sections.go_on_at(first + sections);
            return Ok(blocks(first));
        }
        // Case 3: over others' blocks.
        let empty = |section: usize| process.directory[section] == SectionEntry::Empty;
        let crowded = self.free_sections.shared().find_map(|section| gap(section, false));
        let range = crowded.or_else(|| self.free_sections.run(sections, empty).map(blocks));
        let range = range.ok_or(AddressSpaceError::NoRoom { pages })?;
        self.counts.overlaps[FlushCause::NoRoom as usize] += 1;
        Ok(range)
    }

    /// Neighbouring sections above 2 GiB that nobody uses; those where nothing is left in the caches first.
    pub(super) fn free_blocks(&self, sections: usize) -> Option<usize> {
        let free = |section: usize| self.free_sections.users(section) == 0;
        let flushed = |section: usize| !self.lingers(&self.directory.get(section));
        self.free_sections
            .run(sections, |section| free(section) && flushed(section))
            .or_else(|| self.free_sections.run(sections, free))
    }

    /// Counts a mapping by address that lies where others have theirs, or over the slot of a process.
    pub(super) fn count_overlap(&mut self, slot: u8, range: PageSpan) {
        let shared = section_of(SHARED_START);
        let overlaps = |section: usize| {
            let private = |process: &ProcessSpace| matches!(process.directory[section], SectionEntry::Private { .. });
            let own = u8::from(self.process(slot).is_some_and(private));
            let at = relocated_section(section, slot);
            let live = (SLOT_SECTIONS..shared).contains(&section) && self.processes[section / SLOT_SECTIONS].is_some();
            self.free_sections.users(at) > own || live
        };
        let below = range.sections().filter(|section| *section < shared).any(overlaps);
        let above = range.sections().filter(|section| *section >= shared).any(overlaps);
        self.counts.overlaps[FlushCause::FixedInSlot as usize] += u64::from(below);
        self.counts.overlaps[FlushCause::FixedInShared as usize] += u64::from(above);
    }

    /// Makes pages under the process's own domain. What it shares in the same sections it has privately from then on: a
    /// section has one domain.
    pub(super) fn write(
        &mut self,
        slot: u8,
        range: PageSpan,
        first: LeafEntry,
        fixed: bool,
        hardware: &mut impl DomainHardware,
    ) {
        for (section, part) in range.parts() {
            let there = self.process(slot).map_or(SectionEntry::Empty, |process| process.directory[section]);
            if let SectionEntry::Shared { region, .. } = there {
                self.unshare(slot, region, hardware);
            }
            let table = self.private_table(slot, section, fixed);
            for page in part.iter() {
                self.tables.set(table, page, first.later(page - range.first));
            }
        }
        if first.is_writable() {
            self.add_writable(slot, i64::from(range.pages));
        }
    }

    /// The process's own table of a section, made if there is none.
    fn private_table(&mut self, slot: u8, section: usize, fixed: bool) -> u32 {
        let there = self.process(slot).map_or(SectionEntry::Empty, |process| process.directory[section]);
        let (table, fixed) = match there {
            SectionEntry::Private { table, fixed: before } => (table, before || fixed),
            SectionEntry::Empty | SectionEntry::Shared { .. } => {
                self.free_sections.enter(relocated_section(section, slot));
                (self.tables.make(), fixed)
            }
        };
        if let Some(process) = self.process_mut(slot) {
            process.directory[section] = SectionEntry::Private { table, fixed };
        }
        table
    }

    /// Unmakes pages that the process has under its own domain. Lines of theirs can only be in the caches if the
    /// sections' entries of the caching page directory are the process's.
    pub(super) fn erase(&mut self, slot: u8, range: PageSpan, hardware: &mut impl DomainHardware) {
        let mut writable = 0;
        for (section, part) in range.parts() {
            let Some(process) = self.process(slot) else { return };
            let SectionEntry::Private { table, .. } = process.directory[section] else { continue };
            let at = relocated_section(section, slot);
            let entry = self.directory.get(at);
            let own = entry.serial == process.serial;
            if own && self.lingers(&entry) {
                hardware.flush_range(relocate(part.start(), slot) >> PAGE_SHIFT, part.pages);
                self.counts.range_flushes += 1;
            }
            for page in part.iter() {
                writable += i64::from(self.tables.leaf(table, page).is_writable());
                self.tables.set(table, page, LeafEntry::EMPTY);
            }
            if self.tables.is_empty(table) {
                self.tables.give_back(table);
                self.free_sections.leave(at);
                if own {
                    self.directory.clear(at);
                }
                if let Some(process) = self.process_mut(slot) {
                    process.directory[section] = SectionEntry::Empty;
                }
            }
        }
        self.add_writable(slot, -writable);
    }

    /// The process has so many writable pages more, or fewer.
    pub(super) fn add_writable(&mut self, slot: u8, pages: i64) {
        let Some(process) = self.process_mut(slot) else { return };
        process.writable_pages = process.writable_pages.saturating_add_signed(pages as i32);
        let (domain, writable) = (process.domain, process.writable_pages > 0);
        self.pool.set_writable(domain, writable);
        if self.running == Some(slot) {
            self.pool.granted(self.running_dacr());
        }
    }
}

/// # Errors
/// No pages, or frames beyond 4 GiB.
pub(super) fn check_frames(mapping: &PageMapping) -> Result<(), AddressSpaceError> {
    let PageMapping { pages, frame, .. } = *mapping;
    if pages == 0 {
        return Err(AddressSpaceError::Empty);
    }
    if u64::from(frame) + u64::from(pages) > FRAMES {
        return Err(AddressSpaceError::Frames { frame, pages });
    }
    Ok(())
}
