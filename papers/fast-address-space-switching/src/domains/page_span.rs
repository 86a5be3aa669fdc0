//! Ranges of pages, and which a mapping may have.

use super::address::{PAGE_BYTES, PAGE_SHIFT, SECTION_PAGES};
use super::error::AddressSpaceError;

/// Whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageSpan {
    /// Page number of the first.
    pub(super) first: u32,
    /// How many; at least one.
    pub(super) pages: u32,
}

impl PageSpan {
    /// A range of user addresses.
    ///
    /// # Errors
    /// It is empty, does not begin at a page, ends beyond 4 GiB, or reaches into the kernel's part.
    pub(super) fn new(addr: u32, pages: u32, kernel_start: u32) -> Result<Self, AddressSpaceError> {
        if pages == 0 {
            return Err(AddressSpaceError::Empty);
        }
        if !addr.is_multiple_of(PAGE_BYTES) {
            return Err(AddressSpaceError::Unaligned { addr, to: PAGE_BYTES });
        }
        let first = addr >> PAGE_SHIFT;
        // Page numbers, not bytes: no sum here wraps.
        let end = u64::from(first) + u64::from(pages);
        if end > 1 << (32 - PAGE_SHIFT) {
            return Err(AddressSpaceError::OverTheEnd { addr, pages });
        }
        if end > u64::from(kernel_start >> PAGE_SHIFT) {
            return Err(AddressSpaceError::Kernel { addr, pages, kernel_start });
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
    pub(super) fn parts(self) -> impl Iterator<Item = (usize, PageSpan)> {
        self.sections().map(move |section| {
            let begin = section as u32 * SECTION_PAGES;
            let first = self.first.max(begin);
            let end = (self.first + self.pages).min(begin + SECTION_PAGES);
            (section, PageSpan { first, pages: end - first })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_cannot_be() {
        let range = |addr, pages| PageSpan::new(addr, pages, 0xc000_0000);
        assert!(matches!(range(0x1000, 0), Err(AddressSpaceError::Empty)));
        assert!(matches!(range(0x1004, 1), Err(AddressSpaceError::Unaligned { .. })));
        assert!(matches!(range(0xffff_f000, 2), Err(AddressSpaceError::OverTheEnd { .. })));
        assert!(matches!(range(0x1000, u32::MAX), Err(AddressSpaceError::OverTheEnd { .. })));
        assert!(matches!(range(0xffff_f000, 1), Err(AddressSpaceError::Kernel { .. })));
        assert!(matches!(range(0xbfff_f000, 2), Err(AddressSpaceError::Kernel { .. })));
        assert_eq!(range(0xbfff_f000, 1).unwrap().sections(), 0xbff..=0xbff);
        let parts: Vec<_> = range(0x000f_e000, 260).unwrap().parts().collect();
        let part = |first, pages| PageSpan { first, pages };
        assert_eq!(parts, [(0, part(254, 2)), (1, part(256, 256)), (2, part(512, 2))]);
    }
}
