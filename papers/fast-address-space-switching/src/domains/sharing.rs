//! Shared regions: one address, one set of leaf tables and one domain for all who use them, and so the same TLB entries
//! (section 3.2).

use super::address::{SECTION_PAGES, SECTION_SHIFT, SHARED_START};
use super::counts::FlushCause;
use super::error::AddressSpaceError;
use super::hardware::DomainHardware;
use super::mapping::{check_frames, PageMapping};
use super::page_span::PageSpan;
use super::pool::{bit, NONE};
use super::process::{Attachment, ProcessId, SectionEntry};
use super::region::{RegionId, SharedRegion};
use super::spaces::{AddressSpaces, FlushMark};
use super::tables::LeafEntry;

fn slot_bit(slot: u8) -> u64 {
    1 << slot
}

impl AddressSpaces {
    /// A region that processes can attach to, at home at `at` (a library's preferred link address), or where there is
    /// room.
    ///
    /// # Errors
    /// There are 64 already; no pages, or frames beyond 4 GiB; `at` is no multiple of 1 MiB, below 2 GiB, in the
    /// kernel's part or another region's home; no room.
    pub fn create_region(&mut self, at: Option<u32>, mapping: PageMapping) -> Result<RegionId, AddressSpaceError> {
        check_frames(&mapping)?;
        let home = self.find_home(at, mapping.pages)?;
        let number = self.regions.iter().position(Option::is_none).ok_or(AddressSpaceError::NoRegion)?;
        if home.sections().any(|section| self.free_sections.users(section) > 0) {
            self.counts.overlaps[FlushCause::FixedInShared as usize] += 1;
        }
        let last = home.sections().end() + 1;
        if at.is_none() {
            self.free_sections.go_on_at(last);
        }
        let first = LeafEntry::new(mapping.frame, mapping.writable);
        let mut tables = Vec::new();
        for (section, part) in home.parts() {
            self.free_sections.enter(section);
            let table = self.tables.make();
            for page in part.iter() {
                self.tables.set(table, page, first.later(page - home.first));
            }
            tables.push(table);
        }
        let serial = self.next_serial();
        self.regions[number] = Some(SharedRegion {
            serial,
            home,
            first,
            writable: mapping.writable,
            cached: true,
            tables,
            domain: NONE,
            sharing: 0,
            attached: 0,
        });
        Ok(RegionId { number: number as u8, serial })
    }

    /// Where a region can be at home. Two never overlap.
    fn find_home(&self, at: Option<u32>, pages: u32) -> Result<PageSpan, AddressSpaceError> {
        let Some(addr) = at else {
            let sections = pages.div_ceil(SECTION_PAGES) as usize;
            let first = self.free_blocks(sections).ok_or(AddressSpaceError::NoRoom { pages })?;
            return PageSpan::new((first as u32) << SECTION_SHIFT, pages, self.config.kernel_start);
        };
        let home = PageSpan::new(addr, pages, self.config.kernel_start)?;
        if !addr.is_multiple_of(1 << SECTION_SHIFT) {
            return Err(AddressSpaceError::Unaligned { addr, to: 1 << SECTION_SHIFT });
        }
        if addr < SHARED_START {
            return Err(AddressSpaceError::NotShared { addr });
        }
        let apart = |other: &PageSpan| {
            home.sections().end() < other.sections().start() || other.sections().end() < home.sections().start()
        };
        if self.regions.iter().flatten().all(|region| apart(&region.home)) {
            Ok(home)
        } else {
            Err(AddressSpaceError::Taken { addr })
        }
    }

    /// Attaches a process to a region: at home (`None`), where it shares all TLB entries with others there, or at
    /// another address. At home where the process has mappings of its own in the same megabytes, and anywhere else, it
    /// has tables of its own. A writable region that somebody has at a second address is kept out of the caches from
    /// then on: they would hold it twice.
    ///
    /// # Errors
    /// No such process or region; it is attached already; as for a fixed mapping. Taken at home: a private copy is the
    /// way out.
    pub fn attach(
        &mut self,
        id: ProcessId,
        region: RegionId,
        at: Option<u32>,
        hardware: &mut impl DomainHardware,
    ) -> Result<u32, AddressSpaceError> {
        let slot = self.slot_of(id)?;
        let number = self.number_of(region)?;
        let found = self.region(number).ok_or(AddressSpaceError::NoSuchRegion)?;
        if found.attached & slot_bit(slot) != 0 {
            return Err(AddressSpaceError::Attached);
        }
        let (home, first, writable, cached, domain) =
            (found.home, found.first, found.writable, found.cached, found.domain);
        let range = self.free_range(slot, at.unwrap_or(home.start()), home.pages)?;
        let empty = |section: usize| {
            self.process(slot).is_some_and(|process| process.directory[section] == SectionEntry::Empty)
        };
        let shared = range == home && range.sections().all(empty);
        if shared {
            self.share(slot, number);
            if let Some(process) = self.process_mut(slot) {
                process.dacr |= bit(domain);
            }
            if self.running == Some(slot) {
                self.grant(hardware);
            }
        } else {
            self.count_overlap(slot, range);
            if range != home && writable && cached {
                self.keep_out_of_caches(number, hardware);
            }
            let cached = self.region(number).is_some_and(|region| region.cached);
            let leaf = if cached { first } else { first.uncached() };
            self.write(slot, range, leaf.of_region(), true, hardware);
        }
        if let Some(region) = self.region_mut(number) {
            region.attached |= slot_bit(slot);
        }
        if let Some(process) = self.process_mut(slot) {
            process.attachments.push(Attachment { region: number, addr: range.start(), shared });
        }
        Ok(range.start())
    }

    /// Puts the region's own tables into the process's page directory.
    fn share(&mut self, slot: u8, number: u8) {
        let Some(region) = self.region_mut(number) else { return };
        region.sharing |= slot_bit(slot);
        let sections: Vec<(usize, u32)> = region.home.sections().zip(region.tables.iter().copied()).collect();
        if let Some(process) = self.process_mut(slot) {
            for (section, table) in sections {
                process.directory[section] = SectionEntry::Shared { region: number, table };
            }
        }
    }

    /// The process has the region, which it shares, by tables of its own from now on.
    pub(super) fn unshare(&mut self, slot: u8, number: u8, hardware: &mut impl DomainHardware) {
        let Some(region) = self.region(number) else { return };
        let (home, writable) = (region.home, region.writable);
        let tables = region.tables.clone();
        self.stop_sharing(slot, number, hardware);
        for (section, table) in home.sections().zip(tables) {
            let table = self.tables.copy_of_region(table);
            self.free_sections.enter(section);
            if let Some(process) = self.process_mut(slot) {
                process.directory[section] = SectionEntry::Private { table, fixed: true };
            }
        }
        if let Some(process) = self.process_mut(slot) {
            process.attachments.iter_mut().filter(|of| of.region == number).for_each(|of| of.shared = false);
        }
        if writable {
            self.add_writable(slot, i64::from(home.pages));
        }
    }

    /// The process has nothing under the region's domain any more.
    fn stop_sharing(&mut self, slot: u8, number: u8, hardware: &mut impl DomainHardware) {
        let Some(region) = self.region_mut(number) else { return };
        region.sharing &= !slot_bit(slot);
        let (home, domain) = (region.home, region.domain);
        if let Some(process) = self.process_mut(slot) {
            home.sections().for_each(|section| process.directory[section] = SectionEntry::Empty);
            process.dacr &= !bit(domain);
        }
        if self.running == Some(slot) {
            self.grant(hardware);
        }
    }

    /// From now on nobody's accesses to the region are cached.
    fn keep_out_of_caches(&mut self, number: u8, hardware: &mut impl DomainHardware) {
        self.flush(FlushCause::Alias, hardware);
        let Some(region) = self.region_mut(number) else { return };
        region.cached = false;
        let (tables, pages) = (region.tables.clone(), region.home.pages);
        tables.iter().for_each(|table| self.tables.change(*table, LeafEntry::uncached));
        // Those that have it at home by tables of their own.
        for process in self.processes.iter().flatten() {
            let own = process.attachments.iter().filter(|of| of.region == number && !of.shared);
            for range in own.filter_map(|of| PageSpan::new(of.addr, pages, self.config.kernel_start).ok()) {
                for (section, part) in range.parts() {
                    let SectionEntry::Private { table, .. } = process.directory[section] else { continue };
                    for page in part.iter() {
                        let leaf = self.tables.leaf(table, page).uncached();
                        self.tables.set(table, page, leaf);
                    }
                }
            }
        }
    }

    /// Detaches a process from a region.
    ///
    /// # Errors
    /// No such process or region; it is not attached.
    pub fn detach(
        &mut self,
        id: ProcessId,
        region: RegionId,
        hardware: &mut impl DomainHardware,
    ) -> Result<(), AddressSpaceError> {
        let slot = self.slot_of(id)?;
        let number = self.number_of(region)?;
        let process = self.process_mut(slot).ok_or(AddressSpaceError::NoProcess)?;
        let at = process.attachments.iter().position(|of| of.region == number).ok_or(AddressSpaceError::NotAttached)?;
        let attachment = process.attachments.remove(at);
        if attachment.shared {
            self.stop_sharing(slot, number, hardware);
        } else if let Some(home) = self.region(number).map(|region| region.home) {
            let range = PageSpan::new(attachment.addr, home.pages, self.config.kernel_start)?;
            self.erase(slot, range, hardware);
        }
        if let Some(region) = self.region_mut(number) {
            region.attached &= !slot_bit(slot);
        }
        Ok(())
    }

    /// The region is gone. As for a process that exits, its frames may be used again after the mark.
    ///
    /// # Errors
    /// No such region; somebody is attached.
    pub fn destroy_region(&mut self, region: RegionId) -> Result<FlushMark, AddressSpaceError> {
        let number = self.number_of(region)?;
        let found = self.region(number).ok_or(AddressSpaceError::NoSuchRegion)?;
        if found.attached != 0 {
            return Err(AddressSpaceError::RegionInUse { processes: found.attached.count_ones() });
        }
        if let Some(region) = self.regions[usize::from(number)].take() {
            region.home.sections().for_each(|section| self.free_sections.leave(section));
            region.tables.iter().for_each(|table| self.tables.give_back(*table));
            self.pool.orphan(region.domain);
        }
        Ok(FlushMark(self.flushes))
    }

    pub(super) fn region(&self, number: u8) -> Option<&SharedRegion> {
        self.regions.get(usize::from(number))?.as_ref()
    }

    pub(super) fn region_mut(&mut self, number: u8) -> Option<&mut SharedRegion> {
        self.regions.get_mut(usize::from(number))?.as_mut()
    }

    fn number_of(&self, id: RegionId) -> Result<u8, AddressSpaceError> {
        match self.region(id.number) {
            Some(region) if region.serial == id.serial => Ok(id.number),
            _ => Err(AddressSpaceError::NoSuchRegion),
        }
    }
}
