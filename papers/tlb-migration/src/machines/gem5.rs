//! The simulated machine of Listing 6.1: cores in order, one instruction and one reference at a time.

use std::num::NonZeroU32;

use lookaside_machine::{Machine, Serves};

use super::cache::SimulatedCache;
use super::data_tlb::{DataTlb, Restored};
use super::paging::{Leaf, PageTables, PAGE_SHIFT};
use super::MigrationModelError;
use crate::interface::{ArmPageSize, Entry, Port, Register, Slots, Version};

/// Cycles of a load that misses all caches. **Fitted** on Table A.13, 64 pages, clean access. (Preset `gem5-armv7` has
/// 143 from Table A.16, where 335 - 176 ns is a difference of two readings of a clock of 39.7 ns.)
pub const GEM5_MEMORY_CYCLES: u64 = 110;
/// Frequency of gem5's generic timer, which Linux's `ktime_get` reads. Published times are multiples of its 39.7 ns, or
/// of them and 17 ns.
pub const COUNTER_HZ: u64 = 0x0180_0000;
/// Cycles of an instruction beside its fetch (TimingSimpleCPU).
const EXECUTE_CYCLES: u64 = 1;

#[derive(Clone, Debug)]
struct Gem5Core {
    tlb: DataTlb,
    l1: SimulatedCache,
    port: Port,
}

/// The machine. One core does something at a time; which, the caller says. Time is in cycles, for all cores the same.
///
/// An instruction takes its fetch from L1 and a cycle; a load or store waits for its line. Walks begin at the L2.
/// Instruction TLBs are left out.
#[derive(Clone, Debug)]
pub struct Gem5 {
    /// Page tables.
    pub tables: PageTables,
    cores: Vec<Gem5Core>,
    l2: SimulatedCache,
    instruction_cycles: u64,
    asid: u8,
    now: u64,
    /// Table walks.
    pub walks: u64,
}

impl Gem5 {
    /// Of a machine like preset `gem5-armv7`: empty, nothing mapped, with interfaces of a version.
    ///
    /// # Errors
    /// The machine lacks the TLB or the caches.
    pub fn new(machine: &Machine, version: Version) -> Result<Self, MigrationModelError> {
        let lacks = |what| MigrationModelError::Machine { machine: machine.name.clone(), what };
        let mut tlbs = machine.tlbs.iter().filter(|tlb| tlb.serves.contains(&Serves::Load));
        let tlb = tlbs.next().filter(|tlb| tlb.sets() == 1 && tlb.entries > 0 && tlbs.next().is_none());
        let entries = tlb.ok_or(lacks("one data TLB, fully associative"))?.entries as usize;
        let cache = |level, kind| {
            let mut caches = machine.caches.iter();
            caches
                .find(|cache| cache.level == level && cache.serves.contains(&kind))
                .ok_or(lacks("two levels of caches"))
        };
        let core = Gem5Core {
            tlb: DataTlb::new(entries),
            l1: SimulatedCache::new(cache(1, Serves::Load)?, &machine.name, 0)?,
            port: Port::new(version),
        };
        Ok(Self {
            tables: PageTables::new(),
            cores: vec![core; (machine.topology.sockets * machine.topology.cores_per_socket) as usize],
            l2: SimulatedCache::new(cache(2, Serves::Load)?, &machine.name, 0)?,
            instruction_cycles: EXECUTE_CYCLES + cache(1, Serves::Fetch)?.hit_cycles.round() as u64,
            asid: 1,
            now: 0,
            walks: 0,
        })
    }

    /// How many cores.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.now
    }

    /// The address space that runs.
    pub fn asid(&self) -> u8 {
        self.asid
    }

    /// Another address space, or the same under another number.
    pub fn set_asid(&mut self, asid: u8) {
        self.asid = asid;
    }

    /// So many instructions that no data line is waited for.
    pub fn instructions(&mut self, count: u64) {
        self.now += count * self.instruction_cycles;
    }

    /// So many lines from memory, or to it.
    pub fn lines(&mut self, count: u64) {
        self.now += count * GEM5_MEMORY_CYCLES;
    }

    /// Empties all data caches. What was stored to is written to memory, a line at a time.
    pub fn flush_caches(&mut self) {
        let written = self.cores.iter().map(|core| core.l1.dirty()).sum();
        self.lines(written);
        self.cores.iter_mut().for_each(|core| core.l1.flush());
        self.l2.flush();
    }

    /// Empties all TLBs.
    pub fn flush_tlbs(&mut self) {
        self.cores.iter_mut().for_each(|core| core.tlb.flush());
    }

    /// Drops the entries of a page from all TLBs, as the kernel has to when it unmaps or protects it.
    pub fn invalidate(&mut self, v_page: u32) {
        let asid = self.asid;
        self.cores.iter_mut().for_each(|core| core.tlb.drop_page(asid, v_page));
    }

    /// Entries of a core's TLB, the one used last first.
    ///
    /// # Errors
    /// No such core.
    pub fn entries(&mut self, core: usize) -> Result<Vec<Entry>, MigrationModelError> {
        Ok(self.core(core)?.tlb.held().iter().map(|slot| slot.entry).collect())
    }

    /// A load by a core.
    ///
    /// # Errors
    /// No page is mapped there, or no such core.
    pub fn load(&mut self, core: usize, va: u32) -> Result<(), MigrationModelError> {
        let pa = self.translate(core, va)?;
        self.data(core, pa)
    }

    /// A store by a core: the other cores' copies of the line are dropped.
    ///
    /// # Errors
    /// As a load.
    pub fn store(&mut self, core: usize, va: u32) -> Result<(), MigrationModelError> {
        let pa = self.translate(core, va)?;
        self.data(core, pa)?;
        self.core(core)?.l1.store(pa);
        self.cores.iter_mut().enumerate().filter(|of| of.0 != core).for_each(|of| of.1.l1.drop_line(pa));
        Ok(())
    }

    /// A page is accessed, whatever lines that takes: its translation alone takes time.
    ///
    /// # Errors
    /// As a load.
    pub fn touch(&mut self, core: usize, va: u32) -> Result<(), MigrationModelError> {
        self.translate(core, va).map(|_| ())
    }

    /// So many more accesses by a core to the line that it accessed last.
    ///
    /// # Errors
    /// No such core.
    pub fn repeat(&mut self, core: usize, count: u32) -> Result<(), MigrationModelError> {
        let asid = self.asid;
        let core = self.core(core)?;
        core.tlb.repeat(asid, count.into());
        let cycles = u64::from(count) * core.l1.hit_cycles;
        self.now += cycles;
        Ok(())
    }

    /// Beyond the paper: entries of all TLBs get ages, in periods of so many lookups of their TLB.
    pub fn count_ages(&mut self, period: NonZeroU32) {
        self.cores.iter_mut().for_each(|core| core.tlb.count_ages(period));
    }

    /// What came of the programs' entries that were restored.
    pub fn restored(&self) -> Restored {
        let all = self.cores.iter().map(|core| core.tlb.restored);
        all.fold(Restored::default(), |sum, of| Restored {
            entries: sum.entries + of.entries,
            used: sum.used + of.used,
        })
    }

    /// Writes a register of the interface.
    ///
    /// # Errors
    /// The interface refuses, or no such core.
    pub fn write(&mut self, core: usize, register: Register, value: u32) -> Result<(), MigrationModelError> {
        let core = self.core(core)?;
        Ok(core.port.write(register, value, &mut core.tlb)?)
    }

    /// Reads a register of the interface.
    ///
    /// # Errors
    /// The interface refuses, or no such core.
    pub fn read(&mut self, core: usize, register: Register) -> Result<u32, MigrationModelError> {
        Ok(self.core(core)?.port.read(register)?)
    }

    /// Entries that a TLB has room for.
    pub fn slots(&self) -> u32 {
        self.cores.first().map_or(0, |core| core.tlb.slots())
    }

    fn core(&mut self, core: usize) -> Result<&mut Gem5Core, MigrationModelError> {
        let cores = self.cores.len();
        self.cores.get_mut(core).ok_or(MigrationModelError::Core { core, cores })
    }

    fn translate(&mut self, core: usize, va: u32) -> Result<u32, MigrationModelError> {
        let (asid, v_page) = (self.asid, va >> PAGE_SHIFT);
        let entry = match self.core(core)?.tlb.find(asid, v_page) {
            Some(entry) => entry,
            None => {
                let walk = self.tables.walk(va);
                let entry = entry(&walk.leaf.ok_or(MigrationModelError::Unmapped { va })?, asid);
                self.walks += 1;
                self.descriptor(walk.first);
                walk.second.into_iter().for_each(|second| self.descriptor(second));
                self.core(core)?.tlb.fill(entry);
                entry
            }
        };
        Ok((entry.p_page << PAGE_SHIFT) + (va & ((1 << entry.page.shift()) - 1)))
    }

    /// A walk's reference.
    fn descriptor(&mut self, pa: u32) {
        self.now += match self.l2.find(pa) {
            Some(_) => self.l2.hit_cycles,
            None => {
                self.l2.fill(pa, 0);
                // Not by way of L1.
                GEM5_MEMORY_CYCLES.saturating_sub(self.cores.first().map_or(0, |core| core.l1.hit_cycles))
            }
        };
    }

    fn data(&mut self, core: usize, pa: u32) -> Result<(), MigrationModelError> {
        let l1 = &mut self.core(core)?.l1;
        if l1.find(pa).is_some() {
            let cycles = l1.hit_cycles;
            self.now += cycles;
            return Ok(());
        }
        l1.fill(pa, 0);
        self.now += match self.l2.find(pa) {
            Some(_) => self.l2.hit_cycles,
            None => {
                self.l2.fill(pa, 0);
                GEM5_MEMORY_CYCLES
            }
        };
        Ok(())
    }
}

/// What a walk puts into the TLB.
fn entry(leaf: &Leaf, asid: u8) -> Entry {
    Entry {
        asid,
        page: leaf.page,
        v_page: leaf.v_page,
        p_page: leaf.p_page,
        ap: leaf.ap,
        attributes: 0,
        inner_attrs: 1,
        outer_attrs: true,
        // The kernel's and programs' are client domains.
        domain: 1,
        // Normal memory is gem5's 2, for which one bit has no code that is published (README.md): here it is 1.
        mtype: 1,
        non_cacheable: false,
        shareable: true,
        xn: leaf.page == ArmPageSize::Small,
        global: leaf.global,
    }
}
