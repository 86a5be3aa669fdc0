//! Addresses: pages, sections, PID slots, and which ranges a mapping may have.

use super::DomainsError;

/// log2 of a small page's bytes.
pub const PAGE_SHIFT: u32 = 12;
/// Bytes of a small page.
pub const PAGE_BYTES: u32 = 1 << PAGE_SHIFT;
/// log2 of a section's bytes: what an entry of the page directory covers (ARM: 1 MiB).
pub const SECTION_SHIFT: u32 = 20;
/// Pages in a section.
pub const SECTION_PAGES: u32 = 1 << (SECTION_SHIFT - PAGE_SHIFT);
/// Sections of the address space: entries of a page directory.
pub(super) const SECTIONS: usize = 1 << (32 - SECTION_SHIFT);
/// PID slots (section 2.2).
pub const SLOTS: usize = 64;
/// log2 of a slot's bytes: 32 MiB.
pub const SLOT_SHIFT: u32 = 25;
/// Sections in a slot.
pub(super) const SLOT_SECTIONS: usize = 1 << (SLOT_SHIFT - SECTION_SHIFT);
/// Above all slots, 2 GiB: where mappings are placed so that they do not overlap (section 2.3).
pub const SHARED_START: u32 = (SLOTS as u32) << SLOT_SHIFT;

/// PID relocation: an address below 32 MiB is moved to the slot in the PID register, any other stays.
///
/// The result is what TLBs, caches and page tables see (ARM: modified virtual address).
#[inline]
pub fn relocate(addr: u32, slot: u8) -> u32 {
    if addr >> SLOT_SHIFT == 0 {
        addr | u32::from(slot) << SLOT_SHIFT
    } else {
        addr
    }
}

/// The address by which the process in the slot has what lies at a relocated address.
#[inline]
pub(super) fn in_process(addr: u32, slot: u8) -> u32 {
    if addr >> SLOT_SHIFT == u32::from(slot) {
        addr & ((1 << SLOT_SHIFT) - 1)
    } else {
        addr
    }
}

/// Number of an address's section.
#[inline]
pub(super) fn section_of(addr: u32) -> usize {
    (addr >> SECTION_SHIFT) as usize
}

/// Whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// Page number of the first.
    pub(super) first: u32,
    /// How many; at least one.
    pub(super) pages: u32,
}

impl Range {
    /// A range of user addresses.
    ///
    /// # Errors
    /// It is empty, does not begin at a page, ends beyond 4 GiB, or reaches into the kernel's part.
    pub(super) fn new(addr: u32, pages: u32, kernel_start: u32) -> Result<Self, DomainsError> {
        if pages == 0 {
            return Err(DomainsError::Empty);
        }
        if !addr.is_multiple_of(PAGE_BYTES) {
            return Err(DomainsError::Unaligned { addr, to: PAGE_BYTES });
        }
        let first = addr >> PAGE_SHIFT;
        // Page numbers, not bytes: no sum here wraps.
        let end = u64::from(first) + u64::from(pages);
        if end > 1 << (32 - PAGE_SHIFT) {
            return Err(DomainsError::OverTheEnd { addr, pages });
        }
        if end > u64::from(kernel_start >> PAGE_SHIFT) {
            return Err(DomainsError::Kernel { addr, pages, kernel_start });
        }
        Ok(Self { first, pages })
    }

    /// First address.
    pub(super) fn start(self) -> u32 {
        self.first << PAGE_SHIFT
    }

    /// Page numbers.
    pub(super) fn iter(self) -> std::ops::Range<u32> {
        self.first..self.first + self.pages
    }

    /// Sections that it touches.
    pub(super) fn sections(self) -> std::ops::RangeInclusive<usize> {
        let section = |page: u32| (page / SECTION_PAGES) as usize;
        section(self.first)..=section(self.first + self.pages - 1)
    }

    /// Its part in each section that it touches, ascending.
    pub(super) fn parts(self) -> impl Iterator<Item = (usize, Range)> {
        self.sections().map(move |section| {
            let begin = section as u32 * SECTION_PAGES;
            let first = self.first.max(begin);
            let end = (self.first + self.pages).min(begin + SECTION_PAGES);
            (section, Range { first, pages: end - first })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_fill_the_lower_half_and_go_there_and_back() {
        assert_eq!(SHARED_START, 0x8000_0000);
        assert_eq!(relocate(0x0123_4567, 63), 0x7f23_4567);
        assert_eq!(relocate(0x0123_4567, 0), 0x0123_4567);
        // The first address of 32 MiB is not moved.
        assert_eq!(relocate(1 << SLOT_SHIFT, 5), 1 << SLOT_SHIFT);
        for slot in 0..SLOTS as u8 {
            assert_eq!(in_process(relocate(0x01ff_fffc, slot), slot), 0x01ff_fffc);
        }
        assert_eq!(in_process(0x7f23_4567, 62), 0x7f23_4567);
    }

    #[test]
    fn ranges_that_cannot_be() {
        let range = |addr, pages| Range::new(addr, pages, 0xc000_0000);
        assert!(matches!(range(0x1000, 0), Err(DomainsError::Empty)));
        assert!(matches!(range(0x1004, 1), Err(DomainsError::Unaligned { .. })));
        assert!(matches!(range(0xffff_f000, 2), Err(DomainsError::OverTheEnd { .. })));
        assert!(matches!(range(0x1000, u32::MAX), Err(DomainsError::OverTheEnd { .. })));
        assert!(matches!(range(0xffff_f000, 1), Err(DomainsError::Kernel { .. })));
        assert!(matches!(range(0xbfff_f000, 2), Err(DomainsError::Kernel { .. })));
        assert_eq!(range(0xbfff_f000, 1).unwrap().sections(), 0xbff..=0xbff);
        let parts: Vec<_> = range(0x000f_e000, 260).unwrap().parts().collect();
        let part = |first, pages| Range { first, pages };
        assert_eq!(parts, [(0, part(254, 2)), (1, part(256, 256)), (2, part(512, 2))]);
    }
}
