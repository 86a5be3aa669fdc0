//! The small OS model: where data pages and page-table pages lie in physical memory.
//!
//! All of it is pure functions of a seed and an address, so that the engine, its slow twin and the
//! techniques agree without sharing state (`SEMANTICS.md` §1 and §3).

use lookaside_machine::{HostTable, PageTable, Stage, TableFormat, TableLevel};
use lookaside_stats::SplitMix64;

use crate::FrameLayout;

/// Space number of the kernel: one above every process id.
pub const KERNEL_SPACE: u64 = 1 << 32;

/// Space number of the host's tables and frames when nested.
pub const HOST_SPACE: u64 = KERNEL_SPACE + 1;

/// Physical address bits where nothing narrows them: 64 TiB, as Linux's `MAX_PHYSMEM_BITS` on x86-64 with 4 levels.
pub(crate) const PHYSICAL_BITS: u32 = 46;

// Keeps the hashes for different purposes apart; any distinct numbers do.
const FRAME_TAG: u64 = 0x10;
const CONTIGUOUS_TAG: u64 = 0x20;
const TABLE_TAG: u64 = 0x30;

/// Hash of four words: each in turn is XORed into a seed of SplitMix64, whose first number is the next seed.
#[inline]
pub fn mix(a: u64, b: u64, c: u64, d: u64) -> u64 {
    [a, b, c, d].into_iter().fold(0, |h, word| SplitMix64::new(h ^ word).next_u64())
}

/// Kind of structure, in the seed of its generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Structure {
    /// A TLB array.
    Tlb = 1,
    /// A walk cache.
    WalkCache = 2,
    /// A data cache.
    Cache = 3,
}

/// The generator of one instance, which random replacement asks for victims: `number` counts the structures of its kind
/// in the machine file from 0.
pub fn generator(seed: u64, kind: Structure, number: usize, instance: usize) -> SplitMix64 {
    SplitMix64::new(mix(seed, kind as u64, number as u64, instance as u64))
}

/// Units in which cycles are summed: 1/65536 cycle. Sums of whole units do not depend on their order.
pub(crate) const UNITS_PER_CYCLE: f64 = 65536.0;

/// A cost in 65,536ths of a cycle, rounded to the nearest; negative and not-a-number are 0.
pub fn to_units(cycles: f64) -> u64 {
    (cycles * UNITS_PER_CYCLE).round() as u64
}

/// A sum of units in cycles.
pub fn to_cycles(units: u128) -> f64 {
    units as f64 / UNITS_PER_CYCLE
}

/// Where the kernel's part begins with 32-bit addresses: the 3:1 split of Linux.
pub(crate) const NARROW_KERNEL_START: u64 = 0xc000_0000;

/// Is this address in the kernel's half?
#[inline]
pub fn is_global(format: TableFormat, addr: u64) -> bool {
    if format.address_bits() <= 32 {
        addr & 0xffff_ffff >= NARROW_KERNEL_START
    } else {
        addr >> 63 != 0
    }
}

/// The bits of an address that the format translates.
#[inline]
pub fn translated(format: TableFormat, addr: u64) -> u64 {
    addr & ((1 << format.address_bits()) - 1)
}

/// Physical memory as one stage sees it: data pages in the lower half, page tables in the upper half.
///
/// Not nested: the machine's memory. Nested: one for guest-physical, one for host-physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalMemory {
    seed: u64,
    frames: FrameLayout,
    stage: Stage,
    format: TableFormat,
    half_bits: u32,
    base_shift: u32,
}

impl PhysicalMemory {
    /// The memory that the program's (guest's) tables point into.
    pub fn guest(table: &PageTable, frames: FrameLayout, seed: u64) -> Self {
        let reach = |host: &HostTable| {
            // Tables lie above the data, in as much again.
            let wanted = host.memory_bits.map_or(PHYSICAL_BITS, |bits| bits + 1);
            wanted.min(host.format.address_bits()).min(PHYSICAL_BITS)
        };
        let bits = table.host.as_ref().map_or(PHYSICAL_BITS, reach);
        Self::new(table.format, Stage::Guest, bits, frames, seed)
    }

    /// The memory that the host's tables point into; `None` when not nested.
    pub fn host(table: &PageTable, frames: FrameLayout, seed: u64) -> Option<Self> {
        let host = table.host.as_ref()?;
        Some(Self::new(host.format, Stage::Host, PHYSICAL_BITS, frames, seed))
    }

    fn new(format: TableFormat, stage: Stage, bits: u32, frames: FrameLayout, seed: u64) -> Self {
        let base_shift = format.page_sizes().first().map_or(12, |size| size.shift());
        Self { seed, frames, stage, format, half_bits: bits - 1, base_shift }
    }

    /// log2 of the bytes of either half.
    pub fn half_bits(&self) -> u32 {
        self.half_bits
    }

    /// log2 of the bytes that one aligned run of frames holds together for a page of `2^page_shift` bytes;
    /// `None` = all frames are one run.
    #[inline]
    pub(crate) fn run_shift(&self, page_shift: u32) -> Option<u32> {
        match self.frames {
            FrameLayout::Contiguous => None,
            FrameLayout::Fragmented { run_pages } => {
                Some(page_shift.max(self.base_shift + run_pages.max(1).ilog2()).min(self.half_bits))
            }
            FrameLayout::Random => Some(page_shift),
        }
    }

    /// Physical address of the byte at `va` (translated bits only) in a data page of `2^page_shift` bytes of `space`.
    #[inline]
    pub fn data_address(&self, space: u64, va: u64, page_shift: u32) -> u64 {
        match self.run_shift(page_shift) {
            None => self.moved(va, self.offset(space)),
            Some(run_shift) => {
                let number = va >> run_shift;
                let hash = mix(self.seed, FRAME_TAG + self.stage as u64, space, number << 6 | u64::from(run_shift));
                low_bits(hash, self.half_bits.saturating_sub(run_shift)) << run_shift | low_bits(va, run_shift)
            }
        }
    }

    /// How far contiguous frames of a space lie from their addresses.
    pub(crate) fn offset(&self, space: u64) -> u64 {
        mix(self.seed, CONTIGUOUS_TAG + self.stage as u64, space, 0) << 30
    }

    /// As [`Self::data_address`], with the space's [`Self::offset`] at hand.
    #[inline]
    pub(crate) fn data_address_at(&self, space: u64, offset: u64, va: u64, page_shift: u32) -> u64 {
        match self.frames {
            FrameLayout::Contiguous => self.moved(va, offset),
            _ => self.data_address(space, va, page_shift),
        }
    }

    #[inline]
    fn moved(&self, va: u64, offset: u64) -> u64 {
        low_bits(va.wrapping_add(offset), self.half_bits)
    }

    /// Physical address of the first entry of the table that `va` uses at `level` in `space`.
    #[inline]
    pub(crate) fn table_base(&self, space: u64, level: &TableLevel, va: u64) -> u64 {
        let prefix = table_prefix(level, va);
        let size_shift = level.index_bits + level.entry_bytes.trailing_zeros();
        let hash = mix(self.seed, TABLE_TAG + self.stage as u64, space, prefix << 6 | u64::from(level.level));
        1 << self.half_bits | low_bits(hash, self.half_bits - size_shift) << size_shift
    }

    /// Physical address of the entry that a walk for `va` reads at `level` in `space`.
    #[inline]
    pub fn entry_address(&self, space: u64, level: &TableLevel, va: u64) -> u64 {
        let index = low_bits(va >> level.index_low_bit, level.index_bits);
        self.table_base(space, level, va) + index * u64::from(level.entry_bytes)
    }

    /// Format of the tables that point into this memory.
    pub fn format(&self) -> TableFormat {
        self.format
    }
}

/// The address bits above a level's index: they say which table of that level.
#[inline]
pub fn table_prefix(level: &TableLevel, va: u64) -> u64 {
    va >> (level.index_low_bit + level.index_bits)
}

/// The address bits down to and including a level's index: they say which entry of that level, and key walk caches.
#[inline]
pub fn entry_prefix(level: &TableLevel, va: u64) -> u64 {
    va >> level.index_low_bit
}

#[inline]
fn low_bits(value: u64, bits: u32) -> u64 {
    value & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: PageTable = PageTable { format: TableFormat::X86_64L4, host: None };

    #[test]
    fn mix_of_four_words_is_four_rounds() {
        let round = |state: u64| SplitMix64::new(state).next_u64();
        assert_eq!(mix(1, 2, 3, 4), round(round(round(round(1) ^ 2) ^ 3) ^ 4));
        assert_ne!(mix(1, 2, 3, 4), mix(1, 2, 4, 3));
    }

    #[test]
    fn contiguous_pages_have_neighbouring_frames() {
        let memory = PhysicalMemory::guest(&X86, FrameLayout::Contiguous, 1);
        let at = |va| memory.data_address(7, va, 12);
        assert_eq!(at(0x5555_0000_1234) & 0x3fff_ffff, 0x1234);
        assert_eq!(at(0x1000), at(0x0fff) + 1);
        assert!(at(0x7fff_ffff_f000) < 1 << 45);
        assert_ne!(memory.data_address(8, 0, 12), at(0));
    }

    #[test]
    fn fragments_are_aligned_runs() {
        let memory = PhysicalMemory::guest(&X86, FrameLayout::Fragmented { run_pages: 8 }, 1);
        let at = |page: u64| memory.data_address(7, page << 12, 12);
        for run in 0..4 {
            assert_eq!(at(run * 8) % (8 << 12), 0);
            assert!((1..8).all(|i| at(run * 8 + i) == at(run * 8) + (i << 12)));
        }
        assert_ne!(at(8), at(7) + 4096);
        assert_eq!(memory.data_address(7, 5 << 21, 21) % (1 << 21), 0);
    }

    #[test]
    fn random_frames_are_scattered_and_keep_the_offset() {
        let memory = PhysicalMemory::guest(&X86, FrameLayout::Random, 1);
        let at = |va| memory.data_address(7, va, 12);
        assert_eq!(at(0x1abc), at(0x1000) + 0xabc);
        assert_ne!(at(0x2000), at(0x1000) + 0x1000);
    }

    #[test]
    fn eight_leaf_entries_share_a_line_and_tables_lie_in_the_upper_half() {
        let memory = PhysicalMemory::guest(&X86, FrameLayout::Random, 1);
        let leaf = &TableFormat::X86_64L4.levels()[3];
        let at = |page: u64| memory.entry_address(7, leaf, page << 12);
        assert!((0..8).all(|i| at(16 + i) == at(16) + 8 * i && at(16 + i) / 64 == at(16) / 64));
        assert_ne!(at(24) / 64, at(16) / 64);
        assert_eq!(at(0) % 4096, 0);
        assert_eq!(at(0) >> 45, 1);
        assert_eq!(at(511), at(0) + 4088);
    }

    #[test]
    fn arm_tables_have_their_own_sizes() {
        let table = PageTable { format: TableFormat::Armv7Short, host: None };
        let memory = PhysicalMemory::guest(&table, FrameLayout::Contiguous, 1);
        let [first, second] = TableFormat::Armv7Short.levels() else { panic!("two levels") };
        // 16 KiB first-level table: VA[31:20] * 4; 1 KiB second-level table: VA[19:12] * 4.
        assert_eq!(memory.entry_address(1, first, 0x1234_5678) & 0x3fff, 0x123 * 4);
        assert_eq!(memory.entry_address(1, second, 0x1234_5678) & 0x3ff, 0x45 * 4);
    }

    #[test]
    fn a_narrow_host_narrows_guest_memory() {
        let host =
            HostTable { format: TableFormat::Armv7Lpae, page_size: lookaside_machine::PageSize::K4, memory_bits: None };
        let table = PageTable { format: TableFormat::Armv7Short, host: Some(host) };
        let guest = PhysicalMemory::guest(&table, FrameLayout::Random, 1);
        assert_eq!(guest.half_bits(), 31);
        assert_eq!(PhysicalMemory::host(&table, FrameLayout::Random, 1).map(|m| m.half_bits()), Some(45));
    }

    #[test]
    fn a_guest_with_little_memory_has_its_frames_in_it() {
        let host = HostTable {
            format: TableFormat::X86_64L4,
            page_size: lookaside_machine::PageSize::K4,
            memory_bits: Some(30),
        };
        let table = PageTable { format: TableFormat::X86_64L4, host: Some(host) };
        let guest = PhysicalMemory::guest(&table, FrameLayout::Random, 1);
        let leaf = &TableFormat::X86_64L4.levels()[3];
        for page in 0..1000u64 {
            assert!(guest.data_address(7, page << 12, 12) < 1 << 30);
            assert_eq!(guest.entry_address(7, leaf, page << 12) >> 30, 1);
        }
    }

    #[test]
    fn costs_are_whole_units() {
        assert_eq!(to_units(1.5), 98_304);
        assert_eq!(to_units(-1.0), 0);
        assert_eq!(to_units(f64::NAN), 0);
        assert_eq!(to_cycles(98_304), 1.5);
    }
}
