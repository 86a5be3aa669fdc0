//! Addresses: pages, sections, PID slots.

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
/// Shared regions that there can be.
pub const REGIONS: usize = 64;
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
}
