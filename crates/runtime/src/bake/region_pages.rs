//! What `auto` bakes of the regions that a program named: the parts whose pages are small and have frames. Huge pages
//! and untouched parts are left out.

use super::address_range::AddressRange;
use super::kernel::Scanner;
use super::pm_scan::LET_IN;
use super::region::Target;
use super::small_pages::{add_small_pages, AddressRanges, SmallPages, GAP_BYTES, MOST_RANGES, SCAN_RANGES};

/// The small pages of the regions, as the last look found them.
#[derive(Debug)]
pub(super) struct RegionPages {
    /// None where the kernel has no `PAGEMAP_SCAN`: then all of the regions is baked.
    scanner: Option<Scanner>,
    ranges: Vec<AddressRange>,
    room: Vec<[u64; 3]>,
    /// Gap between ranges that are made one; grows when there are too many.
    gap_bytes: u64,
    found: SmallPages,
}

impl RegionPages {
    /// Before the first look.
    pub(super) fn new() -> Self {
        Self {
            scanner: Scanner::open(Target::Own).ok(),
            ranges: vec![AddressRange::default(); MOST_RANGES],
            room: vec![[0; 3]; SCAN_RANGES],
            gap_bytes: GAP_BYTES,
            found: SmallPages::default(),
        }
    }

    /// Looks at the regions anew. `None` = it was stopped meanwhile.
    pub(super) fn look(&mut self, regions: &[(u64, u64)], stopped: impl Fn() -> bool) -> Option<SmallPages> {
        let mut list = AddressRanges::new(&mut self.ranges, self.gap_bytes);
        for &(start, end) in regions {
            let span = AddressRange { start, end };
            let mark = list.mark();
            let seen = self.scanner.as_ref().map(|scanner| {
                let scan = |range, found: &mut [[u64; 3]]| match stopped() {
                    true => Err(libc::EINTR),
                    false => scanner.find(range, found),
                };
                add_small_pages(span, &mut self.room, &mut list, scan, || std::thread::sleep(LET_IN))
            });
            if stopped() {
                return None;
            }
            if !matches!(seen, Some(Ok(()))) {
                list.back(mark);
                list.add(start, end);
            }
        }
        self.gap_bytes = list.next_gap_bytes(self.gap_bytes);
        self.found = list.found();
        Some(self.found)
    }

    /// The first part from here on, up to there, with small pages in it.
    pub(super) fn part(&self, from: u64, end: u64) -> Option<(u64, u64)> {
        let ranges = &self.ranges[..self.found.ranges];
        let range = ranges.get(ranges.partition_point(|range| range.end <= from))?;
        (range.start < end).then_some((range.start.max(from), range.end.min(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_ranges_that_lie_within() {
        let mut pages = RegionPages::new();
        pages.scanner = None;
        let regions = [(0x1000_0000, 0x2000_0000), (0x8000_0000, 0x9000_0000)];
        let found = pages.look(&regions, || false).expect("not stopped");
        assert_eq!(pages.look(&regions, || false), Some(found));
        assert_eq!((found.ranges, found.small_bytes), (2, 0x2000_0000));
        assert_eq!(pages.part(0, 0x1000_0000), None);
        assert_eq!(pages.part(0, 0x1800_0000), Some((0x1000_0000, 0x1800_0000)));
        assert_eq!(pages.part(0x1800_0000, 0x8800_0000), Some((0x1800_0000, 0x2000_0000)));
        assert_eq!(pages.part(0x2000_0000, u64::MAX), Some((0x8000_0000, 0x9000_0000)));
        assert_eq!(pages.part(0x9000_0000, u64::MAX), None);
        assert_eq!(pages.look(&regions, || true), None);
    }
}
