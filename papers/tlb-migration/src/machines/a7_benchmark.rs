//! The paper's benchmarks on the Cortex-A7: reading the TLB (section 4.1), `pld` (4.2), and the six steps (4.3).

use lookaside_machine::Machine;

use super::cortex_a7::CortexA7;
use super::paging::{KERNEL_OFFSET, PAGE_SHIFT};
use super::{MigrationModelError, Steps};
use crate::interface::{Descriptor, ReadOperation};

/// The first page's number. **Fitted** on Table A.2, 13 pages, which take one line of descriptors more than 12: its
/// descriptor is the fifth of a line of 16.
const FIRST_PAGE: u32 = 0x4_0004;
/// Its frame. The others' follow without gap.
const FIRST_FRAME: u32 = 0x1_0000;
/// Pages at most: all that the main TLB holds.
const PAGES_MOST: u32 = 256;
/// The address space's other pages that the save finds: the module's code and data (assumed; section 4.3 says that
/// "there are inevitably more TLB entries for the current address space than the ones used for the benchmark").
const OTHER_PAGES: u32 = 2;
const FIRST_OTHER: u32 = 0x7_f100;
/// Where entries are saved.
const BUFFER: u32 = KERNEL_OFFSET + 0x0200_0000;
/// Of a page, beside the line that `pld` brought: "memory accesses are performed with an offset into the page" (section
/// 4.3).
const OFFSET: u32 = 128;
/// Cycles of a loop's counter and branch, and of entering and leaving it: Table A.1 is 10 an entry, where 4 + 3 are the
/// registers, and 3 over all.
const LOOP_CYCLES: u64 = 3;
/// Cycles to judge an entry: valid bit, ASID out of two registers. **Fitted** on Table A.3, 1 page, save.
pub const JUDGE_CYCLES: u64 = 9;
/// Cycles to put an address together and store it: some eight instructions (assumed).
const STORE_CYCLES: u64 = 8;
/// Cycles to compute the addresses of two descriptors: some sixteen instructions (assumed).
const ADDRESSES_CYCLES: u64 = 16;

/// How entries are written where there is no register for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Restore {
    /// `pld` of each page: the walk fills the TLB.
    Direct,
    /// `pld` of each page's second-level descriptor, so that walks find it in the cache.
    Indirect,
}

/// What preloading took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preloaded {
    /// Cycles.
    pub cycles: u64,
    /// Accesses to the cache without those of walks.
    pub accesses: u64,
    /// Lines fetched, with those of walks.
    pub misses: u64,
}

/// A core with the benchmark's pages mapped.
#[derive(Clone, Debug)]
pub struct A7Benchmark {
    core: CortexA7,
    pages: Vec<u32>,
    others: Vec<u32>,
}

impl A7Benchmark {
    /// So many pages, each `stride` pages from the one before, on a machine like preset `cortex-a7`. `seed` is what
    /// random replacement draws from, and when memory was refreshed last.
    ///
    /// # Errors
    /// Too many or no pages, or another kind of machine.
    pub fn new(machine: &Machine, pages: u32, stride: u32, seed: u64) -> Result<Self, MigrationModelError> {
        if pages == 0 || pages > PAGES_MOST {
            return Err(MigrationModelError::Pages { pages, most: PAGES_MOST });
        }
        let mut core = CortexA7::new(machine, seed)?;
        core.refresh(lookaside_engine::os::mix(seed, 0, 0, 0));
        let numbers = |first: u32, count: u32, stride: u32| (0..count).map(move |page| first + page * stride);
        for page in numbers(FIRST_PAGE, pages, stride) {
            core.tables.map(page, FIRST_FRAME + page - FIRST_PAGE, 3)?;
        }
        for page in numbers(FIRST_OTHER, OTHER_PAGES, 1) {
            core.tables.map(page, page & 0xfff, 1)?;
        }
        let addresses = |pages: &mut dyn Iterator<Item = u32>| pages.map(|page| page << PAGE_SHIFT).collect();
        Ok(Self {
            core,
            pages: addresses(&mut numbers(FIRST_PAGE, pages, stride)),
            others: addresses(&mut numbers(FIRST_OTHER, OTHER_PAGES, 1)),
        })
    }

    /// Section 4.1: cycles to read so many entries without storing them.
    ///
    /// # Errors
    /// None, in a main TLB.
    pub fn read_entries(&mut self, entries: usize) -> Result<u64, MigrationModelError> {
        let start = self.core.cycles();
        self.core.work(LOOP_CYCLES);
        for at in ReadOperation::all().take(entries) {
            self.core.read_tlb(at.encode())?;
            self.core.work(LOOP_CYCLES);
        }
        Ok(self.core.cycles() - start)
    }

    /// Section 4.2: `pld` of all pages, caches and TLB clean, prefetching off.
    ///
    /// # Errors
    /// None, as all are mapped.
    pub fn preload(&mut self) -> Result<Preloaded, MigrationModelError> {
        let core = &mut self.core;
        core.flush();
        core.prefetching = false;
        let (start, accesses, lines) = (core.cycles(), core.accesses, core.lines());
        for va in &self.pages {
            core.pld(*va)?;
            core.work(LOOP_CYCLES);
        }
        core.prefetching = true;
        Ok(Preloaded {
            cycles: core.cycles() - start,
            accesses: core.accesses - accesses,
            misses: core.lines() - lines,
        })
    }

    /// Section 4.3: the six steps.
    ///
    /// # Errors
    /// None, as all are mapped.
    pub fn six_steps(&mut self, restore: Restore) -> Result<Steps, MigrationModelError> {
        self.core.flush();
        for va in &self.others {
            self.core.load(*va)?;
        }
        self.core.settle();
        let clean_cycles = self.access(0)?;
        self.core.settle();
        let start = self.core.cycles();
        let saved = self.save()?;
        let save_cycles = self.core.cycles() - start;
        self.core.flush();
        let start = self.core.cycles();
        self.restore(&saved, restore)?;
        let restore_cycles = self.core.cycles() - start;
        self.core.settle();
        let migrated_cycles = self.access(OFFSET)?;
        let saved_entries = saved.len() as u32;
        Ok(Steps { clean_cycles, save_cycles, restore_cycles, migrated_cycles, saved_entries })
    }

    /// Cycles to access all pages.
    fn access(&mut self, offset: u32) -> Result<u64, MigrationModelError> {
        let start = self.core.cycles();
        for va in &self.pages {
            self.core.load(va + offset)?;
            self.core.work(LOOP_CYCLES);
        }
        Ok(self.core.cycles() - start)
    }

    /// Reads all entries and stores the addresses of the relevant ones: valid, of this address space, 4 KiB.
    fn save(&mut self) -> Result<Vec<u32>, MigrationModelError> {
        let mut saved = Vec::new();
        self.core.work(LOOP_CYCLES);
        for at in ReadOperation::all() {
            let registers = self.core.read_tlb(at.encode())?;
            self.core.work(LOOP_CYCLES + JUDGE_CYCLES);
            // The valid bit, before anything else is looked at.
            if registers[0] & 1 == 0 {
                continue;
            }
            let entry = Descriptor::decode(registers)?;
            // A section's address cannot be told (README.md, "As read").
            if entry.asid != self.core.asid() || entry.size >> 1 != 0 {
                continue;
            }
            self.core.work(STORE_CYCLES);
            self.core.store(BUFFER + 4 * saved.len() as u32)?;
            saved.push(entry.virtual_address(at)?);
        }
        Ok(saved)
    }

    fn restore(&mut self, saved: &[u32], how: Restore) -> Result<(), MigrationModelError> {
        let core = &mut self.core;
        core.work(LOOP_CYCLES);
        for (va, at) in saved.iter().zip((BUFFER..).step_by(4)) {
            core.load(at)?;
            match how {
                Restore::Direct => core.pld(*va)?,
                Restore::Indirect => {
                    core.work(ADDRESSES_CYCLES);
                    core.load(KERNEL_OFFSET + core.tables.first_address(*va))?;
                    if let Some(second) = core.tables.walk(*va).second {
                        core.pld(KERNEL_OFFSET + second)?;
                    }
                }
            }
            core.work(LOOP_CYCLES);
        }
        Ok(())
    }
}
