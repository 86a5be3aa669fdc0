//! What there is to bake: ranges of addresses with small pages that have frames, found in the tables themselves.

use lookaside_runtime::bake::freestanding::{
    add_small_pages, AddressRange, AddressRanges, PmScanArg, SmallPages, GAP_BYTES, PAGEMAP_SCAN,
};
use lookaside_runtime::bake::PAGE_BYTES;

use crate::helper_memory::BakerBuffers;
use crate::maps::{each_line, Span, Spans};
use crate::sys::{self, Errno};

/// A span with less in small pages is left out: its page-table entries, 8 bytes a page, fit in a first-level cache.
pub(crate) const LEAST_BYTES: u64 = 4 << 20;
/// The files of the process that tell about its memory.
pub(crate) struct PageFiles {
    pub(crate) maps: i32,
    pub(crate) pagemap: i32,
}

/// Finds small pages in the page tables.
pub(crate) struct SmallPageFinder {
    files: PageFiles,
    /// The kernel has `PAGEMAP_SCAN`; else `mincore` tells resident pages, and huge ones are among them.
    pub(crate) has_scan: bool,
    /// Gap between ranges that are made one; grows when there are too many.
    gap_bytes: u64,
}

impl SmallPageFinder {
    /// Tries what the kernel has.
    pub(crate) fn new(files: PageFiles) -> Result<Self, Errno> {
        let mut finder = Self { files, has_scan: true, gap_bytes: GAP_BYTES };
        match finder.scan(AddressRange { start: 0, end: PAGE_BYTES }, &mut [[0; 3]; 1]) {
            Ok(_) => Ok(finder),
            Err(Errno::ENOTTY | Errno::EINVAL) => {
                finder.has_scan = false;
                Ok(finder)
            }
            Err(errno) => Err(errno),
        }
    }

    /// Looks at all of the process's memory.
    pub(crate) fn look(&mut self, buffers: &mut BakerBuffers) -> Result<SmallPages, Errno> {
        let BakerBuffers { ranges, text, found, resident } = buffers;
        let gap_bytes = if self.has_scan { GAP_BYTES } else { 0 }; // mincore stops at holes
        let mut spans = Spans::new(gap_bytes);
        let mut list = AddressRanges::new(ranges, self.gap_bytes);
        let mut failed = None;
        let mut each = |span: Span| {
            if span.end.wrapping_sub(span.start) >= LEAST_BYTES && failed.is_none() {
                let before = list.mark();
                let seen = if self.has_scan {
                    let scan = |range, found: &mut [[u64; 3]]| self.scan(range, found);
                    add_small_pages(
                        AddressRange { start: span.start, end: span.end },
                        found,
                        &mut list,
                        scan,
                        sys::let_others_in,
                    )
                } else {
                    resident_in(span, resident, &mut list)
                };
                failed = seen.err();
                list.drop_less(before, LEAST_BYTES);
            }
        };
        each_line(self.files.maps, text, |line| spans.line(line, &mut each))?;
        spans.finish(&mut each);
        if let Some(errno) = failed {
            return Err(errno);
        }
        self.gap_bytes = list.next_gap_bytes(self.gap_bytes);
        Ok(list.found())
    }

    /// One call: how many ranges it found, and where it ended.
    fn scan(&self, range: AddressRange, found: &mut [[u64; 3]]) -> Result<(usize, u64), Errno> {
        let mut arg = PmScanArg::small_pages(range, found);
        // SAFETY: the structure that the call takes; it fills at most the ranges that there is room for.
        let count = unsafe { sys::ioctl(self.files.pagemap, PAGEMAP_SCAN, &mut arg) }?;
        Ok((count, arg.walk_end))
    }

    /// Has the kernel read all entries of a range, and fill in nothing: what the baker's `scan` does.
    pub(crate) fn read_entries(&self, range: AddressRange) -> Result<(), Errno> {
        let mut room = [0u64; 3];
        let mut arg = PmScanArg::reading(range.start, range.end, &mut room);
        // SAFETY: as above.
        unsafe { sys::ioctl(self.files.pagemap, PAGEMAP_SCAN, &mut arg) }.map(|_| ())
    }
}

/// Resident pages of a span without holes, by `mincore`.
fn resident_in(span: Span, resident: &mut [u8; 4096], list: &mut AddressRanges<'_>) -> Result<(), Errno> {
    let mut at = span.start;
    while at < span.end {
        let pages = (span.end.wrapping_sub(at) / PAGE_BYTES).min(resident.len() as u64);
        match sys::mincore(at, pages, resident) {
            Ok(()) => {
                for (page, _) in resident.iter().take(pages as usize).enumerate().filter(|(_, byte)| **byte & 1 == 1) {
                    let start = at.wrapping_add((page as u64).wrapping_mul(PAGE_BYTES));
                    list.add(start, start.wrapping_add(PAGE_BYTES));
                }
            }
            Err(Errno::ENOMEM) => {} // unmapped since the list was read
            Err(errno) => return Err(errno),
        }
        sys::let_others_in();
        at = at.saturating_add(pages.max(1).saturating_mul(PAGE_BYTES));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffers() -> Box<BakerBuffers> {
        // SAFETY: plain numbers.
        unsafe { Box::new(std::mem::zeroed()) }
    }

    fn finder() -> SmallPageFinder {
        let open = |path| sys::open(libc::AT_FDCWD, path, libc::O_RDONLY).expect("our own file");
        SmallPageFinder::new(PageFiles { maps: open(c"/proc/self/maps"), pagemap: open(c"/proc/self/pagemap") })
            .expect("a finder")
    }

    fn map(bytes: usize) -> u64 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping wherever the system likes.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: advice about it.
        unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
        at as u64
    }

    fn touch(start: u64, bytes: u64) {
        for at in (start..start + bytes).step_by(PAGE_BYTES as usize) {
            // SAFETY: the mappings above.
            unsafe { (at as *mut u8).write_volatile(1) };
        }
    }

    fn bytes_in(buffers: &BakerBuffers, found: SmallPages, start: u64, bytes: u64) -> u64 {
        let part = |range: &AddressRange| range.end.min(start + bytes).saturating_sub(range.start.max(start));
        buffers.ranges[..found.ranges].iter().map(part).sum()
    }

    #[test]
    fn touched_parts_of_large_mappings_are_found_both_ways() {
        const TIB: u64 = 1 << 40;
        let (large, small) = (map(64 << 20), map(3 << 20));
        let giant = map(TIB as usize);
        touch(large + (8 << 20), 16 << 20);
        touch(giant + TIB / 2, 8 << 20);
        let mut buffers = buffers();
        let mut finder = finder();
        for has_scan in [finder.has_scan, false] {
            finder.has_scan = has_scan;
            if !has_scan {
                // By mincore the giant takes a second.
                // SAFETY: our own mapping.
                unsafe { libc::munmap(giant as *mut _, TIB as usize) };
            }
            let found = finder.look(&mut buffers).expect("a look");
            assert_eq!(bytes_in(&buffers, found, large, 64 << 20), 16 << 20, "scan: {has_scan}");
            if has_scan {
                assert_eq!(bytes_in(&buffers, found, giant, TIB), 8 << 20);
            }
            assert!(found.small_bytes >= 16 << 20);
            assert!(buffers.ranges[..found.ranges].windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
        let mut resident = vec![0u8; 16 << 10];
        sys::mincore(large, 16 << 10, &mut resident).expect("our mapping");
        assert_eq!(resident.iter().filter(|&&byte| byte & 1 == 1).count(), 4 << 10, "a look faults nothing in");
        // SAFETY: our own mappings.
        unsafe {
            libc::munmap(large as *mut _, 64 << 20);
            libc::munmap(small as *mut _, 3 << 20);
        }
    }

    #[test]
    fn ten_thousand_neighbours_are_a_range_or_two() {
        const BYTES: u64 = 5 * PAGE_BYTES;
        let start = map(10_000 * BYTES as usize);
        for region in (start..start + 10_000 * BYTES).step_by(BYTES as usize) {
            touch(region + PAGE_BYTES, 2 * PAGE_BYTES);
            // SAFETY: pages of our own mapping that nobody uses.
            assert_eq!(unsafe { libc::mprotect(region as *mut _, PAGE_BYTES as usize, libc::PROT_NONE) }, 0);
        }
        let mut buffers = buffers();
        let found = finder().look(&mut buffers).expect("a look");
        let here = |range: &&AddressRange| range.end > start && range.start < start + 10_000 * BYTES;
        let ours: Vec<&AddressRange> = buffers.ranges[..found.ranges].iter().filter(here).collect();
        assert!(found.small_bytes >= 10_000 * 2 * PAGE_BYTES && (1..3).contains(&ours.len()), "{found:?}");
        // SAFETY: our own mapping.
        unsafe { libc::munmap(start as *mut _, 10_000 * BYTES as usize) };
    }
}
