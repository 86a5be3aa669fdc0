//! The processor: two TLBs, two virtual caches, a write buffer, and what misses and flushes cost.

use lookaside_engine::{LineUse, StandaloneTlb, VirtualCache};
use lookaside_machine::{Cache, Machine, Serves, SwitchAction, Tlb};
use lookaside_trace::Kind;

use super::error::DomainModelError;
use crate::domains::{DomainHardware, WalkedPage, PAGE_BYTES, PAGE_SHIFT, SECTION_SHIFT};

/// Cycles of a flush of the caches whose lines are all dirty ([FASS] section 2: 1,000 to 18,000 cycles; the least is
/// the preset's `context_switch.cycles`). With 768 lines and 64 TLB entries to be fetched again that makes the 75,000
/// of the paper's worst case.
const FLUSH_MOST_CYCLES: f64 = 18_000.0;
/// Blocks of 1 to 16 bytes that the write buffer holds ([DEV] section 6.3).
const BUFFERED_BLOCKS: f64 = 8.0;
/// Blocks of a dirty line: each half is one (Furber, ARM System-on-Chip Architecture, StrongARM SA-110).
const BLOCKS_A_LINE: f64 = 2.0;
/// Pages from which on an area's lines are not dropped one by one, but with all others (Linux 2.4, `MAX_AREA_SIZE` of
/// arch/arm/mm/proc-sa110.S).
const AREA_PAGES: u32 = 9;
/// Number of a section's TLB entry: above all pages' numbers.
const OF_SECTION: u64 = 1 << 32;
/// In an entry's word, above the domain.
const WRITABLE: u32 = 1 << 8;
const UNCACHED: u32 = 1 << 9;

/// Seed of random replacement, which the SA-1100 has none of.
const SEED: u64 = 1;

/// What happened to TLBs and caches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreCounts {
    /// Accesses.
    pub accesses: u64,
    /// Walks of page tables.
    pub walks: u64,
    /// Lines fetched.
    pub lines: u64,
    /// Flushes of both caches.
    pub flushes: u64,
    /// Dirty lines that were written back.
    pub written: u64,
    /// Stores that the data cache did not take, each a block of the write buffer.
    pub passed: u64,
}

#[derive(Clone, Debug)]
struct Costs {
    line_cycles: f64,
    uncached_cycles: f64,
    /// Of one level of the page table.
    walk_level_cycles: f64,
    flush_cycles: f64,
    /// For each dirty line, beside.
    write_cycles: f64,
    /// Time that the memory takes for a block of the write buffer, however full.
    block_cycles: f64,
    /// For each line of a range.
    range_line_cycles: f64,
}

/// The processor.
#[derive(Clone, Debug)]
pub(super) struct StrongArmCore {
    dtlb: StandaloneTlb,
    itlb: StandaloneTlb,
    dcache: VirtualCache,
    icache: VirtualCache,
    line_bytes: u32,
    dcache_lines: u32,
    costs: Costs,
    dacr: u32,
    slot: u8,
    /// Time that the memory will take for what is in the write buffer.
    buffered_cycles: f64,
    pub(super) cycles: f64,
    pub(super) counts: CoreCounts,
}

/// What an access finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessOutcome {
    Done,
    /// No entry, and none was filled.
    Miss,
    /// The domain, or the rights, do not allow it.
    Denied,
}

impl StrongArmCore {
    /// The first level's caches and TLBs of a machine.
    ///
    /// # Errors
    /// It lacks one of them, has more levels, or does not flush on a switch: then it is another kind of machine.
    pub(super) fn new(machine: &Machine) -> Result<Self, DomainModelError> {
        let fault = |what: &'static str| DomainModelError::Machine { machine: machine.name.clone(), what };
        let tlb = |kind| -> Result<&Tlb, DomainModelError> {
            let mut all = machine.tlbs.iter().filter(|tlb| tlb.serves.contains(&kind));
            all.next().filter(|_| all.next().is_none()).ok_or(fault("one TLB for data and one for fetches"))
        };
        let cache = |kind| -> Result<&Cache, DomainModelError> {
            let mut all = machine.caches.iter().filter(|cache| cache.serves.contains(&kind));
            all.next().filter(|_| all.next().is_none()).ok_or(fault("one cache for data and one for fetches"))
        };
        if machine.context_switch.action != SwitchAction::FlushTlbAndCaches {
            return Err(fault("caches and TLBs that are flushed on a switch"));
        }
        let (dcache, icache) = (cache(Serves::Load)?, cache(Serves::Fetch)?);
        let (lines, flush_cycles) = (f64::from(dcache.lines()), machine.context_switch.cycles);
        let write_cycles = (FLUSH_MOST_CYCLES - flush_cycles).max(0.0) / lines;
        Ok(Self {
            dtlb: StandaloneTlb::new(tlb(Serves::Load)?, SEED),
            itlb: StandaloneTlb::new(tlb(Serves::Fetch)?, SEED),
            dcache: VirtualCache::new(dcache, SEED),
            icache: VirtualCache::new(icache, SEED),
            line_bytes: dcache.line_bytes,
            dcache_lines: dcache.lines(),
            costs: Costs {
                line_cycles: machine.memory.cycles,
                uncached_cycles: machine.walk_memory_cycles(), // one word, as a walk's
                walk_level_cycles: machine.walk_memory_cycles(),
                flush_cycles,
                write_cycles,
                block_cycles: write_cycles / BLOCKS_A_LINE,
                range_line_cycles: flush_cycles / lines,
            },
            dacr: 0,
            slot: 0,
            buffered_cycles: 0.0,
            cycles: 0.0,
            counts: CoreCounts::default(),
        })
    }

    pub(super) fn slot(&self) -> u8 {
        self.slot
    }

    /// An access to the kernel's part, which is mapped by sections under domain 0, the same for all.
    pub(super) fn kernel(&mut self, kind: Kind, addr: u32) {
        self.counts.accesses += 1;
        let number = u64::from(addr >> SECTION_SHIFT) | OF_SECTION;
        if self.tlb(kind).find(number).is_none() {
            self.walked(1);
            self.tlb(kind).fill(number, WRITABLE);
        }
        self.line(kind, addr, true);
    }

    /// An access of a process, if the TLB has its page and the DACR and the rights allow it.
    #[inline]
    pub(super) fn user(&mut self, kind: Kind, addr: u32) -> AccessOutcome {
        let Some(word) = self.tlb(kind).find(u64::from(addr >> PAGE_SHIFT)) else { return AccessOutcome::Miss };
        let allowed = self.dacr >> (2 * (word & 15)) & 3 == 1 && (kind != Kind::Store || word & WRITABLE != 0);
        if !allowed {
            return AccessOutcome::Denied;
        }
        self.counts.accesses += 1;
        self.line(kind, addr, word & UNCACHED == 0);
        AccessOutcome::Done
    }

    /// A walk's result is put into the TLB.
    pub(super) fn fill(&mut self, kind: Kind, addr: u32, page: &WalkedPage) {
        self.walked(2);
        let flags = if page.writable { WRITABLE } else { 0 } | if page.cached { 0 } else { UNCACHED };
        self.tlb(kind).fill(u64::from(addr >> PAGE_SHIFT), u32::from(page.domain) | flags);
    }

    /// A walk found nothing at the first level.
    pub(super) fn walked_in_vain(&mut self) {
        self.walked(1);
    }

    fn walked(&mut self, levels: u32) {
        self.counts.walks += 1;
        self.cycles += f64::from(levels) * self.costs.walk_level_cycles;
    }

    fn tlb(&mut self, kind: Kind) -> &mut StandaloneTlb {
        match kind {
            Kind::Fetch => &mut self.itlb,
            Kind::Load | Kind::Store => &mut self.dtlb,
        }
    }

    #[inline]
    fn line(&mut self, kind: Kind, addr: u32, cached: bool) {
        if !cached {
            self.cycles += self.costs.uncached_cycles;
            return;
        }
        let addr = u64::from(addr);
        let used = match kind {
            Kind::Fetch => self.icache.access(addr, false),
            Kind::Load | Kind::Store => self.dcache.access(addr, kind == Kind::Store),
        };
        match used {
            LineUse::Hit => {}
            LineUse::Filled => self.fetched(),
            LineUse::FilledOverDirty => {
                self.fetched();
                self.counts.written += 1;
                self.buffer(BLOCKS_A_LINE);
            }
            LineUse::Passed => {
                self.counts.passed += 1;
                self.buffer(1.0);
            }
        }
    }

    /// A line was fetched: before what waits in the write buffer, which goes on waiting.
    fn fetched(&mut self) {
        self.counts.lines += 1;
        self.cycles += self.costs.line_cycles;
    }

    /// So many blocks are put into the write buffer: the processor waits until there is room.
    fn buffer(&mut self, blocks: f64) {
        self.buffered_cycles += blocks * self.costs.block_cycles;
        let over = (self.buffered_cycles - BUFFERED_BLOCKS * self.costs.block_cycles).max(0.0);
        self.cycles += over;
        self.buffered_cycles -= over;
    }

    /// The processor waits until the write buffer is empty.
    fn drain(&mut self) {
        self.cycles += std::mem::take(&mut self.buffered_cycles);
    }

    /// Instructions take so long, beside what their accesses take; the memory empties the write buffer meanwhile.
    pub(super) fn work(&mut self, cycles: f64) {
        self.cycles += cycles;
        self.buffered_cycles = (self.buffered_cycles - cycles).max(0.0);
    }

    /// Lines and TLB entries of an area are dropped; code, if at all, as a whole, since the instruction cache and the
    /// instruction TLB know no other way.
    pub(super) fn flush_area(&mut self, addr: u32, pages: u32, code: bool) {
        if pages >= AREA_PAGES {
            self.flush_all();
            return;
        }
        let (start, end) = (u64::from(addr), u64::from(addr) + u64::from(pages * PAGE_BYTES));
        let written = self.dcache.flush_range(start, end);
        self.dtlb.invalidate(|number| (start >> PAGE_SHIFT..end >> PAGE_SHIFT).contains(&number));
        if code {
            self.icache.flush();
            self.itlb.invalidate(|_| true);
        }
        self.counts.written += written;
        let lines = pages * PAGE_BYTES / self.line_bytes;
        self.cycles += self.costs.range_line_cycles * f64::from(lines) + self.costs.write_cycles * written as f64;
    }

    fn drop_entries(&mut self, picks: impl Fn(u64) -> bool) {
        self.dtlb.invalidate(&picks);
        self.itlb.invalidate(&picks);
    }
}

impl DomainHardware for StrongArmCore {
    /// Linux drains the write buffer with each of these (arch/arm/mm/proc-sa110.S, 2.4).
    fn flush_all(&mut self) {
        self.drain();
        let written = self.dcache.flush();
        self.icache.flush();
        self.drop_entries(|_| true);
        self.counts.flushes += 1;
        self.counts.written += written;
        self.cycles += self.costs.flush_cycles + self.costs.write_cycles * written as f64;
    }

    fn flush_tlbs(&mut self) {
        self.drain();
        self.drop_entries(|_| true);
    }

    fn flush_range(&mut self, first_page: u32, pages: u32) {
        self.drain();
        let (first, end) = (u64::from(first_page), u64::from(first_page) + u64::from(pages));
        let written = self.dcache.flush_range(first << PAGE_SHIFT, end << PAGE_SHIFT);
        self.icache.flush_range(first << PAGE_SHIFT, end << PAGE_SHIFT);
        self.drop_entries(|number| (first..end).contains(&number));
        self.counts.written += written;
        // Line by line, or all of it if that is less.
        let lines = pages.saturating_mul(PAGE_BYTES / self.line_bytes).min(self.dcache_lines);
        self.cycles += self.costs.range_line_cycles * f64::from(lines) + self.costs.write_cycles * written as f64;
    }

    fn drop_entry(&mut self, addr: u32) {
        let page = u64::from(addr >> PAGE_SHIFT);
        self.drop_entries(|number| number == page);
    }

    fn set_dacr(&mut self, dacr: u32) {
        self.dacr = dacr;
    }

    fn set_pid(&mut self, slot: u8) {
        self.slot = slot;
    }
}
