//! Page tables of ARMv7's short descriptors, word by word at addresses of their own, as 32-bit Linux lays them out.

use super::MigrationModelError;
use crate::interface::ArmPageSize;

/// log2 of a small page's bytes.
pub const PAGE_SHIFT: u32 = 12;
/// log2 of a section's bytes.
const SECTION_SHIFT: u32 = 20;
/// Where the kernel has memory mapped by sections: virtual less physical address (Raspberry Pi 2; 2 GiB for the
/// kernel).
pub const KERNEL_OFFSET: u32 = 0x8000_0000;
/// The first-level table: `swapper_pg_dir`, 16 KiB below the kernel.
const FIRST_LEVEL: u32 = 0x4000;
/// Second-level tables, of two MiB in a page: its upper half. In the lower, Linux keeps its own copy.
const SECOND_LEVEL: u32 = 0x0100_0000;
const SECOND_LEVEL_BYTES: u32 = 0x0060_0000;
/// Address spaces that have room in the kernel's sections.
pub const SPACES_MOST: u32 = 6;
/// Where the others' tables are, and from one to the next: so that they do not all lie in the same sets of caches
/// (assumed).
const OTHERS_FIRST_LEVEL: u32 = 0x00c0_0000;
const FIRST_LEVEL_APART: u32 = 0x0001_4000;
const SECOND_LEVEL_APART: u32 = 0x007f_d000;
/// Sections that the kernel has. A line has descriptors of 16: the first-level table, the second-level ones and what
/// else the kernel has lie in different lines (assumed: memory is given out from everywhere).
const KERNEL_SECTIONS: u32 = 64;

/// What an address translates to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// A 4 KiB page, or a 1 MiB section.
    pub page: ArmPageSize,
    /// Virtual address in units of 4 KiB, a multiple of the size.
    pub v_page: u32,
    /// Physical address in units of 4 KiB, a multiple of the size.
    pub p_page: u32,
    /// Access permissions: AP\[1:0\].
    pub ap: u8,
    /// Holds for all address spaces.
    pub global: bool,
}

/// A table walk: the physical addresses that it reads, and what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableWalk {
    /// Of the first-level descriptor.
    pub first: u32,
    /// Of the second-level descriptor, if there is such a table.
    pub second: Option<u32>,
    /// The translation, if there is one.
    pub leaf: Option<Leaf>,
}

/// The tables of one address space, the kernel's part in them.
#[derive(Clone, Debug)]
pub struct PageTables {
    /// Physical addresses of the first-level table and of the second-level ones.
    first_at: u32,
    second_at: u32,
    first: Vec<u32>,
    /// Pairs of second-level tables.
    second: Vec<[u32; 512]>,
}

impl Default for PageTables {
    fn default() -> Self {
        Self::new()
    }
}

impl PageTables {
    /// With nothing mapped but the kernel's first 64 MiB, by sections.
    pub fn new() -> Self {
        Self::at(FIRST_LEVEL, SECOND_LEVEL)
    }

    /// The same for another address space, numbered from 0; [`PageTables::new`]'s is number 0. None if there is no room
    /// for so many.
    pub fn of_space(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::new()),
            SPACES_MOST.. => None,
            _ => Some(Self::at(
                OTHERS_FIRST_LEVEL + number * FIRST_LEVEL_APART,
                SECOND_LEVEL + number * SECOND_LEVEL_APART,
            )),
        }
    }

    fn at(first_at: u32, second_at: u32) -> Self {
        let mut tables = Self { first_at, second_at, first: vec![0; 4096], second: Vec::new() };
        for section in 0..KERNEL_SECTIONS {
            tables.map_section((KERNEL_OFFSET >> SECTION_SHIFT) + section, section);
        }
        tables
    }

    /// Maps a section of the kernel's to a MiB of memory.
    fn map_section(&mut self, section: u32, mib: u32) {
        // AP 1: privileged access only; domain 1; a section, not nG.
        self.first[section as usize] = mib << SECTION_SHIFT | 1 << 10 | 1 << 5 | 0b10;
    }

    /// Maps a small page, `ap` 1 (kernel only), 2 or 3.
    ///
    /// # Errors
    /// The kernel has a section there, or there are more tables than the kernel's sections hold.
    pub fn map(&mut self, v_page: u32, p_page: u32, ap: u8) -> Result<(), MigrationModelError> {
        let word = p_page << PAGE_SHIFT | 1 << 11 | 1 << 10 | u32::from(ap & 3) << 4 | 0b10;
        *self.small(v_page)? = word;
        Ok(())
    }

    /// Unmaps a small page: whether it was mapped.
    pub fn unmap(&mut self, v_page: u32) -> bool {
        self.existing(v_page).is_some_and(|word| std::mem::take(word) & 0b10 != 0)
    }

    /// Changes a small page's access permissions: whether it was mapped.
    pub fn protect(&mut self, v_page: u32, ap: u8) -> bool {
        let Some(word) = self.existing(v_page).filter(|word| **word & 0b10 != 0) else { return false };
        *word = *word & !(3 << 4) | u32::from(ap & 3) << 4;
        true
    }

    /// Walks for an address.
    pub fn walk(&self, va: u32) -> TableWalk {
        let section = va >> SECTION_SHIFT;
        let first = self.first_address(va);
        let word = self.first.get(section as usize).copied().unwrap_or(0);
        match word & 0b11 {
            0b10 => {
                let page = |addr: u32| addr >> SECTION_SHIFT << (SECTION_SHIFT - PAGE_SHIFT);
                let ap = (word >> 10 & 3) as u8;
                let (v_page, p_page) = (page(va), page(word));
                let leaf = Leaf { page: ArmPageSize::Section, v_page, p_page, ap, global: true };
                TableWalk { first, second: None, leaf: Some(leaf) }
            }
            0b01 => {
                let second = Self::second_address(word, va);
                let small = self.word(second);
                let leaf = Leaf {
                    page: ArmPageSize::Small,
                    v_page: va >> PAGE_SHIFT,
                    p_page: small >> PAGE_SHIFT,
                    ap: (small >> 4 & 3) as u8,
                    global: small >> 11 & 1 == 0,
                };
                TableWalk { first, second: Some(second), leaf: (small & 0b10 != 0).then_some(leaf) }
            }
            _ => TableWalk { first, second: None, leaf: None },
        }
    }

    /// Physical address of the first-level descriptor of an address.
    pub fn first_address(&self, va: u32) -> u32 {
        self.first_at + (va >> SECTION_SHIFT) * 4
    }

    /// Physical address of the second-level descriptor, by the first-level one.
    fn second_address(first: u32, va: u32) -> u32 {
        (first & !0x3ff) + (va >> PAGE_SHIFT & 0xff) * 4
    }

    /// Which pair of tables, and which of its words.
    fn place(&self, addr: u32) -> (usize, usize) {
        let at = addr.wrapping_sub(self.second_at);
        ((at >> PAGE_SHIFT) as usize, (at >> 2 & 511) as usize)
    }

    /// A word of a second-level table; 0 outside them.
    fn word(&self, addr: u32) -> u32 {
        let (pair, at) = self.place(addr);
        self.second.get(pair).map_or(0, |words| words[at])
    }

    fn existing(&mut self, v_page: u32) -> Option<&mut u32> {
        let (pair, at) = self.place(self.walk(v_page << PAGE_SHIFT).second?);
        self.second.get_mut(pair).map(|words| &mut words[at])
    }

    /// The word of a small page, in tables that are made if there are none yet.
    fn small(&mut self, v_page: u32) -> Result<&mut u32, MigrationModelError> {
        let va = v_page << PAGE_SHIFT;
        let section = (va >> SECTION_SHIFT) as usize;
        match self.first[section] & 0b11 {
            0b10 => return Err(MigrationModelError::Section { va }),
            0b01 => {}
            _ => {
                let bytes = (self.second.len() as u32) << PAGE_SHIFT;
                if bytes >= SECOND_LEVEL_BYTES {
                    return Err(MigrationModelError::Tables);
                }
                let page = self.second_at + bytes;
                self.second.push([0; 512]);
                // Two neighbours share a page: 2 KiB of the hardware's tables in its upper half.
                for (half, of) in [(0, section & !1), (1, section | 1)] {
                    self.first[of] = (page + 2048 + half * 1024) | 1 << 5 | 0b01;
                }
            }
        }
        self.existing(v_page).ok_or(MigrationModelError::Tables)
    }
}
