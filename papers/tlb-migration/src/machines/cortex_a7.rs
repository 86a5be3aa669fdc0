//! A core of the Cortex-A7 with its memory.

use lookaside_machine::{Machine, Serves};

use super::cache::SimulatedCache;
use super::dram::Dram;
use super::main_tlb::{MainTlb, MicroTlb};
use super::paging::{Leaf, PageTables, PAGE_SHIFT};
use super::stride::Stride;
use super::MigrationModelError;
use crate::interface::{A7_SETS, A7_WAYS};

/// Cycles from one line that memory delivers to the next, when it is asked for more than one at a time. **Fitted** on
/// Table A.4, 64 pages, migrated access: what is prefetched, or loaded by `pld`, comes at this rate and not at the
/// latency of 150.
pub const A7_INTERVAL_CYCLES: u64 = 92;
/// Consecutive `pld` that fill a line; those after only walk. **Fitted** on Table A.2's cache accesses, which stay at
/// 17 from 17 pages on.
pub const PLD_MOST: u32 = 17;
/// "A write to the operation register takes 4 cycles, while a read from a data register takes 1 cycle" (section 4.1).
const OPERATION_CYCLES: u64 = 4;
const DATA_CYCLES: u64 = 1;
/// "This limit seems to be at two" (section 4.2).
const PLD_SLOTS: usize = 2;

/// The core, its TLBs and caches, and the page tables it walks. Time is in cycles, and passes with what it does.
///
/// In order: a load waits for its line, a store does not. A `pld` waits for its translation, walk and all ("the table
/// walk happens before the instruction retires", section 4.2) and for a free slot, not for its line. Walks read L1, L2,
/// memory like loads. A hit in the micro TLB takes no time. The walk cache of the core's manual is left out:
/// first-level descriptors, which it would hold, are in L1 after the first walk.
#[derive(Clone, Debug)]
pub struct CortexA7 {
    /// Page tables.
    pub tables: PageTables,
    /// Prefetches by stride; off in the benchmark of section 4.2.
    pub prefetching: bool,
    micro: MicroTlb,
    main: MainTlb,
    main_hit_cycles: u64,
    l1: SimulatedCache,
    l2: SimulatedCache,
    dram: Dram,
    loads: Stride,
    walks: Stride,
    slots: [u64; PLD_SLOTS],
    plds_in_a_row: u32,
    asid: u8,
    now: u64,
    /// Accesses to L1, without those of walks: what the core counts.
    pub accesses: u64,
}

impl CortexA7 {
    /// Of a machine like preset `cortex-a7`: empty, nothing mapped. `seed` is what random replacement draws from.
    ///
    /// # Errors
    /// The machine lacks the TLBs or caches.
    pub fn new(machine: &Machine, seed: u64) -> Result<Self, MigrationModelError> {
        let lacks = |what| MigrationModelError::Machine { machine: machine.name.clone(), what };
        let tlb = |level| machine.tlbs.iter().find(|tlb| tlb.level == level && tlb.serves.contains(&Serves::Load));
        let micro = tlb(1).ok_or(lacks("a micro TLB for data"))?;
        let main = tlb(2).ok_or(lacks("a main TLB"))?;
        if main.sets() != u32::from(A7_SETS) || main.ways.count(main.entries) != u32::from(A7_WAYS) {
            return Err(lacks("a main TLB of 128 sets and 2 ways"));
        }
        let cache = |level| {
            let mut caches = machine.caches.iter();
            caches.find(|cache| cache.level == level && cache.serves.contains(&Serves::Load)).ok_or(lacks("two caches"))
        };
        Ok(Self {
            tables: PageTables::new(),
            prefetching: true,
            micro: MicroTlb::new(micro.entries),
            main: MainTlb::new(seed),
            main_hit_cycles: main.hit_cycles.round() as u64,
            l1: SimulatedCache::new(cache(1)?, &machine.name, seed ^ 1)?,
            l2: SimulatedCache::new(cache(2)?, &machine.name, seed ^ 2)?,
            dram: Dram::new(machine.memory.cycles.round() as u64, A7_INTERVAL_CYCLES),
            loads: Stride::default(),
            walks: Stride::default(),
            slots: [0; PLD_SLOTS],
            plds_in_a_row: 0,
            asid: 1,
            now: 0,
            accesses: 0,
        })
    }

    /// Memory is refreshed, so many cycles after its last refresh now. Without this it is not.
    pub fn refresh(&mut self, phase: u64) {
        self.dram.refresh(phase);
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.now
    }

    /// Lines fetched from memory, for loads, `pld`, prefetches and walks.
    pub fn lines(&self) -> u64 {
        self.dram.lines
    }

    /// The address space that runs.
    pub fn asid(&self) -> u8 {
        self.asid
    }

    /// Other instructions take so long.
    pub fn work(&mut self, cycles: u64) {
        self.now += cycles;
    }

    /// Waits until nothing is on its way.
    pub fn settle(&mut self) {
        self.now = self.now.max(self.dram.last);
        self.loads = Stride::default();
        self.plds_in_a_row = 0;
    }

    /// Empties caches and TLBs; memory is idle then.
    pub fn flush(&mut self) {
        self.settle();
        self.l1.flush();
        self.l2.flush();
        self.micro.flush();
        self.main.flush();
        self.walks = Stride::default();
    }

    /// A load.
    ///
    /// # Errors
    /// No page is mapped there.
    pub fn load(&mut self, va: u32) -> Result<(), MigrationModelError> {
        let pa = self.translate(va)?;
        self.accesses += 1;
        self.plds_in_a_row = 0;
        let ready = self.line(pa);
        // Asked for at once, not when this line has come.
        if let Some(next) = self.loads.access(pa).filter(|_| self.prefetching) {
            self.line(next);
        }
        self.now = ready;
        Ok(())
    }

    /// A store: its line comes in the background.
    ///
    /// # Errors
    /// No page is mapped there.
    pub fn store(&mut self, va: u32) -> Result<(), MigrationModelError> {
        let pa = self.translate(va)?;
        self.accesses += 1;
        self.line(pa);
        Ok(())
    }

    /// A preload.
    ///
    /// # Errors
    /// No page is mapped there. (The instruction would do nothing; here it is a mistake.)
    pub fn pld(&mut self, va: u32) -> Result<(), MigrationModelError> {
        let pa = self.translate(va)?;
        self.plds_in_a_row += 1;
        if self.plds_in_a_row > PLD_MOST {
            return Ok(());
        }
        self.accesses += 1;
        // What is there, or on its way, needs no slot.
        if self.l1.find(pa).is_some() {
            return Ok(());
        }
        let first = if self.slots[0] <= self.slots[1] { 0 } else { 1 };
        self.now = self.now.max(self.slots[first]);
        self.slots[first] = self.line(pa);
        Ok(())
    }

    /// An entry of the main TLB by its registers: one written, three read.
    ///
    /// # Errors
    /// The operation register cannot contain that.
    pub fn read_tlb(&mut self, operation: u32) -> Result<[u32; 3], MigrationModelError> {
        let registers = self.main.read(operation)?;
        self.now += OPERATION_CYCLES + 3 * DATA_CYCLES;
        Ok(registers)
    }

    /// Whether an address needs no walk.
    pub fn translates(&self, va: u32) -> bool {
        self.tables.walk(va).leaf.is_some_and(|leaf| self.main.finds(&leaf))
    }

    /// The physical address, by TLBs and walk.
    fn translate(&mut self, va: u32) -> Result<u32, MigrationModelError> {
        let walk = self.tables.walk(va);
        let leaf = walk.leaf.ok_or(MigrationModelError::Unmapped { va })?;
        if !self.micro.finds(&leaf) {
            self.now += self.main_hit_cycles;
            if !self.main.finds(&leaf) {
                self.walk(walk.first, walk.second, &leaf)?;
            }
            self.micro.fill(&leaf);
        }
        let offset = va & ((1 << leaf.page.shift()) - 1);
        Ok((leaf.p_page << PAGE_SHIFT) + offset)
    }

    fn walk(&mut self, first: u32, second: Option<u32>, leaf: &Leaf) -> Result<(), MigrationModelError> {
        self.now = self.line(first);
        if let Some(second) = second {
            let ready = self.line(second);
            // The prefetcher sees the second level's reads too (assumed): neighbours in a stride of 68 KiB are 68 bytes
            // apart.
            if let Some(next) = self.walks.access(second).filter(|_| self.prefetching) {
                self.line(next);
            }
            self.now = ready;
        }
        self.main.fill(leaf, self.asid)?;
        Ok(())
    }

    /// The line of a byte is asked for: when it is there.
    fn line(&mut self, pa: u32) -> u64 {
        if let Some(ready) = self.l1.find(pa) {
            return ready.max(self.now + self.l1.hit_cycles);
        }
        let ready = match self.l2.find(pa) {
            Some(ready) => ready.max(self.now + self.l2.hit_cycles),
            None => {
                let ready = self.dram.request(self.now);
                self.l2.fill(pa, ready);
                ready
            }
        };
        self.l1.fill(pa, ready);
        ready
    }
}
