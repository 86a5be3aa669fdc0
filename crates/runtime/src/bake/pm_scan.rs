//! `PAGEMAP_SCAN`, a call of the kernel that reads page-table entries (Linux 6.7 and later).

use std::time::Duration;

use super::address_range::AddressRange;
use super::region::PAGE_BYTES;

/// Bytes of addresses of one call: 4096 entries. The kernel holds `mmap_lock` for reading meanwhile, which keeps the
/// program's mmap and munmap waiting: some 20 µs at 4.6 ns an entry (measured on Linux 6.18).
pub const CHUNK_BYTES: u64 = 16 << 20;

/// Pause after a call that held `mmap_lock`: the next call, made at once, would take the lock again before a thread of
/// the program that waits for it is awake, until the kernel hands it over after 4 ms (kernel/locking/rwsem.c,
/// RWSEM_WAIT_TIMEOUT).
pub const LET_IN: Duration = Duration::from_micros(50);

/// Pages found by one call: bounds it where they are there, to some 20 µs at 4.6 ns an entry (measured on Linux 6.18).
const SCAN_PAGES: u64 = CHUNK_BYTES / PAGE_BYTES;

/// `_IOWR('f', 16, struct pm_scan_arg)` (Linux, include/uapi/linux/fs.h).
pub const PAGEMAP_SCAN: libc::c_ulong =
    3 << 30 | (size_of::<PmScanArg>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 16;
/// A category of `PAGEMAP_SCAN` (the same file): pages that have a frame.
pub const PAGE_IS_PRESENT: u64 = 1 << 3;
/// Pages that are swapped out.
const PAGE_IS_SWAPPED: u64 = 1 << 4;
/// Parts of a page larger than a base page.
pub const PAGE_IS_HUGE: u64 = 1 << 6;

/// `struct pm_scan_arg` of Linux 6.7.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PmScanArg {
    /// Bytes of this structure.
    pub size: u64,
    /// None are used here.
    pub flags: u64,
    /// First byte; a multiple of a page.
    pub start: u64,
    /// The byte after the last; a multiple of a page.
    pub end: u64,
    /// Filled in: where the walk ended.
    pub walk_end: u64,
    /// Address of the ranges that are filled in: first byte, byte after the last, categories, a u64 each.
    pub vec: u64,
    /// AddressRanges that there is room for.
    pub vec_len: u64,
    /// The walk ends after so many pages found; 0 = no bound.
    pub max_pages: u64,
    /// Categories that are meant the other way round.
    pub category_inverted: u64,
    /// Categories that a page must all have.
    pub category_mask: u64,
    /// Categories of which a page must have one, if any is named.
    pub category_anyof_mask: u64,
    /// Categories that are told.
    pub return_mask: u64,
}

impl PmScanArg {
    /// Has the kernel read all entries from `start` to `end` and tell nothing: no page is both present and swapped out,
    /// so that each is looked at and none is found. `room` is for the one range that it may fill and never does.
    pub fn reading(start: u64, end: u64, room: &mut [u64; 3]) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            start,
            end,
            vec: room.as_mut_ptr() as u64,
            vec_len: 1,
            category_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
            return_mask: PAGE_IS_PRESENT,
            ..Self::default()
        }
    }

    /// A call that finds small pages with frames; `found` is filled with the first byte, the byte after the last, and
    /// categories of each range.
    pub fn small_pages(range: AddressRange, found: &mut [[u64; 3]]) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            start: range.start,
            end: range.end,
            vec: found.as_mut_ptr() as u64,
            vec_len: found.len() as u64,
            max_pages: SCAN_PAGES,
            category_inverted: PAGE_IS_HUGE,
            category_mask: PAGE_IS_PRESENT | PAGE_IS_HUGE,
            return_mask: PAGE_IS_PRESENT,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_has_the_kernels_number() {
        assert_eq!(size_of::<PmScanArg>(), 96);
        assert_eq!(PAGEMAP_SCAN, 0xc060_6610);
    }

    /// The numbers of Linux, include/uapi/linux/fs.h: present 8, swapped out 16, huge 64; and 4096 entries a call.
    #[test]
    fn calls_ask_for_what_they_say() {
        let words = |arg: PmScanArg| {
            let PmScanArg { size, flags, start, end, walk_end, vec, .. } = arg;
            let PmScanArg { vec_len, max_pages, category_inverted, category_mask, .. } = arg;
            let PmScanArg { category_anyof_mask, return_mask, .. } = arg;
            (
                [size, flags, start, end, walk_end, vec, vec_len, max_pages],
                [category_inverted, category_mask, category_anyof_mask, return_mask],
            )
        };
        let mut room = [0; 3];
        let at = room.as_ptr() as u64;
        let reading = words(PmScanArg::reading(0x5000, 0x9000, &mut room));
        assert_eq!(reading, ([96, 0, 0x5000, 0x9000, 0, at, 1, 0], [0, 8 | 16, 0, 8]));
        let mut found = [[0; 3]; 7];
        let at = found.as_ptr() as u64;
        let range = AddressRange { start: 0x5000, end: 0x9000 };
        let small = words(PmScanArg::small_pages(range, &mut found));
        assert_eq!(small, ([96, 0, 0x5000, 0x9000, 0, at, 7, 4096], [64, 8 | 64, 0, 8]));
        assert_eq!(CHUNK_BYTES, 4096 * 4096);
    }
}
