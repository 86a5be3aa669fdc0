//! The kernel's part: processes come, run, fault and go.

use super::address::{in_process, section_of, PAGE_SHIFT, REGIONS, SECTION_SHIFT, SHARED_START, SLOTS, SLOT_SECTIONS};
use super::counts::{DomainCounts, FlushCause};
use super::directory::{CachingDirectory, DirectoryEntry};
use super::error::{AddressSpaceError, Denied};
use super::free_sections::FreeSections;
use super::hardware::{DomainHardware, WalkedPage};
use super::pool::{bit, DomainOwner, DomainPool, DOMAINS, NONE};
use super::process::{ProcessId, ProcessSpace, SectionEntry};
use super::region::SharedRegion;
use super::tables::LeafTables;

/// Domains that must be left beside the kernel's: one for the running process, and three more, so that an instruction
/// whose fetch and data lie in several regions does not take the domains that it needs from itself.
const LEAST_DOMAINS: u8 = 4;

/// What the system reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Domains of the kernel, from 0: always granted.
    pub reserved_domains: u8,
    /// First address of the kernel's part, which no process maps.
    pub kernel_start: u32,
}

impl Config {
    /// ARM Linux: three domains (section 4.2); the kernel above 3 GiB, as ever on 32 bits.
    pub const LINUX: Self = Self { reserved_domains: 3, kernel_start: 0xc000_0000 };
    /// L4: one domain (section 4.2); the kernel's addresses are Pistachio's on ARM \[recalled\].
    pub const L4: Self = Self { reserved_domains: 1, kernel_start: 0xf000_0000 };
}

/// A moment, by the flushes up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlushMark(pub(super) u64);

/// All address spaces, and what the processor sees of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressSpaces {
    pub(super) config: Config,
    /// By slot.
    pub(super) processes: Vec<Option<ProcessSpace>>,
    pub(super) regions: Vec<Option<SharedRegion>>,
    /// Slot of who runs.
    pub(super) running: Option<u8>,
    pub(super) pool: DomainPool,
    pub(super) directory: CachingDirectory,
    pub(super) tables: LeafTables,
    pub(super) free_sections: FreeSections,
    /// Flushes of the caches so far, and one: 0 is before all of them.
    pub(super) flushes: u64,
    /// Spaces made so far.
    pub(super) serials: u64,
    /// Where the search for a free slot begins: one just given up is used again last.
    next_slot: u8,
    pub(super) counts: DomainCounts,
}

impl AddressSpaces {
    /// No processes, nothing in TLBs and caches.
    ///
    /// # Errors
    /// The kernel reserves no domain, or leaves fewer than four; its part begins at no section above 2 GiB.
    pub fn new(config: Config) -> Result<Self, AddressSpaceError> {
        let most = DOMAINS as u8 - LEAST_DOMAINS;
        if !(1..=most).contains(&config.reserved_domains) {
            return Err(AddressSpaceError::Reserved { reserved: config.reserved_domains, most });
        }
        if config.kernel_start <= SHARED_START || !config.kernel_start.is_multiple_of(1 << SECTION_SHIFT) {
            return Err(AddressSpaceError::KernelStart { addr: config.kernel_start });
        }
        Ok(Self {
            config,
            processes: vec![None; SLOTS],
            regions: vec![None; REGIONS],
            running: None,
            pool: DomainPool::new(config.reserved_domains),
            directory: CachingDirectory::new(),
            tables: LeafTables::default(),
            free_sections: FreeSections::new(config.kernel_start),
            flushes: 1,
            serials: 0,
            next_slot: 0,
            counts: DomainCounts::default(),
        })
    }

    /// A process without mappings, in a PID slot where nobody has mappings and nothing is left in the caches, if there
    /// is one.
    ///
    /// # Errors
    /// All 64 slots are taken.
    pub fn create(&mut self) -> Result<ProcessId, AddressSpaceError> {
        let next = usize::from(self.next_slot);
        let in_order = || (0..SLOTS).map(move |n| (next + n) % SLOTS);
        let free = |slot: &usize| self.processes[*slot].is_none();
        let unused = |slot: &usize| {
            let mut sections = slot * SLOT_SECTIONS..(slot + 1) * SLOT_SECTIONS;
            sections
                .all(|section| self.free_sections.users(section) == 0 && !self.lingers(&self.directory.get(section)))
        };
        let found = in_order().filter(free).find(unused).or_else(|| in_order().find(free));
        let slot = found.ok_or(AddressSpaceError::NoSlot)?;
        let serial = self.next_serial();
        self.processes[slot] = Some(ProcessSpace::new(serial, self.pool.kernel()));
        self.next_slot = ((slot + 1) % SLOTS) as u8;
        Ok(ProcessId { slot: slot as u8, serial })
    }

    /// The process exits: all its mappings go. Nothing is flushed; lines that it wrote may be written back later, so
    /// its frames may only be used again once [`AddressSpaces::is_flushed_since`] the mark.
    ///
    /// # Errors
    /// No such process; it is attached to shared regions.
    pub fn exit(&mut self, id: ProcessId, hardware: &mut impl DomainHardware) -> Result<FlushMark, AddressSpaceError> {
        let slot = self.slot_of(id)?;
        let regions = self.process(slot).map_or(0, |process| process.attachments.len());
        if regions > 0 {
            return Err(AddressSpaceError::StillShares { regions });
        }
        let Some(process) = self.processes[usize::from(slot)].take() else { return Err(AddressSpaceError::NoProcess) };
        for (section, entry) in process.directory.iter().enumerate() {
            if let SectionEntry::Private { table, .. } = entry {
                self.tables.give_back(*table);
                self.free_sections.leave(relocated_section(section, slot));
            }
        }
        self.pool.orphan(process.domain);
        if self.running == Some(slot) {
            self.running = None;
            hardware.set_dacr(self.pool.kernel());
        }
        Ok(FlushMark(self.flushes))
    }

    /// The process runs from now on: its DACR and its slot are set. It is given a domain if it has none, which may need
    /// a flush.
    ///
    /// # Errors
    /// No such process.
    pub fn switch(&mut self, to: ProcessId, hardware: &mut impl DomainHardware) -> Result<(), AddressSpaceError> {
        let slot = self.slot_of(to)?;
        if self.running == Some(slot) {
            return Ok(());
        }
        // Who ran until now makes no more accesses: a flush on the way leaves nothing of it.
        self.running = Some(slot);
        if self.process(slot).is_some_and(|process| process.domain == NONE) {
            self.allocate(DomainOwner::Process(slot), hardware);
        } else {
            self.grant(hardware);
        }
        hardware.set_pid(slot);
        self.counts.switches += 1;
        Ok(())
    }

    /// What the processor's walk finds at a relocated address, whoever runs: the caching page directory's, or `None`
    /// for a translation fault.
    #[inline]
    pub fn walk(&self, addr: u32) -> Option<WalkedPage> {
        let entry = self.directory.get(section_of(addr));
        if entry.domain == NONE {
            return None;
        }
        self.tables.leaf(entry.table, addr >> PAGE_SHIFT).page(entry.domain)
    }

    /// The running process faulted at a relocated address: what it lacks is loaded from its own page directory, with a
    /// flush if another space's lines may lie there. `Ok`: the access is to be made again.
    ///
    /// # Errors
    /// The process may not do that.
    pub fn fault(&mut self, addr: u32, store: bool, hardware: &mut impl DomainHardware) -> Result<(), Denied> {
        self.counts.faults += 1;
        // The processor may keep what it walked, under a tag that whoever runs is not granted.
        hardware.drop_entry(addr);
        let resolved = self.resolve(addr, store, hardware);
        self.counts.denied += u64::from(resolved.is_err());
        resolved
    }

    fn resolve(&mut self, addr: u32, store: bool, hardware: &mut impl DomainHardware) -> Result<(), Denied> {
        let slot = self.running.ok_or(Denied::Nobody)?;
        let process = self.processes[usize::from(slot)].as_ref().ok_or(Denied::Nobody)?;
        if addr >= self.config.kernel_start {
            return Err(Denied::Kernel);
        }
        let found = process.directory[section_of(in_process(addr, slot))];
        let (table, space, serial, fixed) = match found {
            SectionEntry::Empty => return Err(Denied::Unmapped),
            SectionEntry::Private { table, fixed } => (table, DomainOwner::Process(slot), process.serial, fixed),
            SectionEntry::Shared { region, table } => {
                let serial = self.region(region).map_or(0, |region| region.serial);
                (table, DomainOwner::Region(region), serial, false)
            }
        };
        let leaf = self.tables.leaf(table, addr >> PAGE_SHIFT);
        if !leaf.is_valid() {
            return Err(Denied::Unmapped);
        }
        if store && !leaf.is_writable() {
            return Err(Denied::ReadOnly);
        }
        let domain = match self.domain_of(space) {
            NONE => self.allocate(space, hardware),
            domain => domain,
        };
        let section = section_of(addr);
        let there = self.directory.get(section);
        if there.serial == serial && there.domain == domain {
            return Ok(()); // only the DACR lacked it
        }
        if there.serial != serial && self.lingers(&there) {
            let cause = self.cause(addr, fixed, &there);
            self.flush(cause, hardware);
        }
        self.directory.load(section, DirectoryEntry { space, serial, since: 0, table, domain, fixed });
        self.counts.reloads += 1;
        Ok(())
    }

    /// Gives up a domain that nobody needs now: its space gets another when it runs, or is touched, next.
    ///
    /// # Errors
    /// The domain is the kernel's, granted to the running process, or nobody's.
    pub fn free_domain(&mut self, domain: u8, hardware: &mut impl DomainHardware) -> Result<(), AddressSpaceError> {
        if self.pool.owner(domain).is_none() || (self.running_dacr() | self.pool.kernel()) & bit(domain) != 0 {
            return Err(AddressSpaceError::DomainInUse { domain });
        }
        self.revoke(domain, hardware);
        Ok(())
    }

    /// Flushes caches and TLBs for what the library does not see: frames that are wanted before another flush comes by
    /// itself, or that a fork's two processes have in common until one writes.
    pub fn flush_now(&mut self, hardware: &mut impl DomainHardware) {
        self.flush(FlushCause::Asked, hardware);
    }

    /// Everything that was in the caches at the mark has left them.
    pub fn is_flushed_since(&self, mark: FlushMark) -> bool {
        self.flushes > mark.0
    }

    /// The process that runs.
    pub fn running(&self) -> Option<ProcessId> {
        let slot = self.running?;
        self.process(slot).map(|process| ProcessId { slot, serial: process.serial })
    }

    /// The process's DACR: what is set while it runs.
    ///
    /// # Errors
    /// No such process.
    pub fn dacr(&self, id: ProcessId) -> Result<u32, AddressSpaceError> {
        let slot = self.slot_of(id)?;
        self.process(slot).map(|process| process.dacr).ok_or(AddressSpaceError::NoProcess)
    }

    /// What happened so far.
    pub fn counts(&self) -> &DomainCounts {
        &self.counts
    }

    pub(super) fn process(&self, slot: u8) -> Option<&ProcessSpace> {
        self.processes.get(usize::from(slot))?.as_ref()
    }

    pub(super) fn process_mut(&mut self, slot: u8) -> Option<&mut ProcessSpace> {
        self.processes.get_mut(usize::from(slot))?.as_mut()
    }

    pub(super) fn slot_of(&self, id: ProcessId) -> Result<u8, AddressSpaceError> {
        match self.process(id.slot) {
            Some(process) if process.serial == id.serial => Ok(id.slot),
            _ => Err(AddressSpaceError::NoProcess),
        }
    }

    pub(super) fn next_serial(&mut self) -> u64 {
        self.serials += 1;
        self.serials
    }
}

/// The section that PID relocation makes of a process's.
pub(super) fn relocated_section(section: usize, slot: u8) -> usize {
    if section < SLOT_SECTIONS {
        section + usize::from(slot) * SLOT_SECTIONS
    } else {
        section
    }
}
