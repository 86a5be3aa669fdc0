//! What `auto` bakes of the regions that a program named: the parts whose pages are small and have frames. Huge pages and untouched parts
//! are left out.

use std::sync::atomic::Ordering;

use super::clock::{now_nanos, thread_nanos};
use super::counters::Counters;
use super::kernel::{Scanner, LET_IN};
use super::small::{add_small, Found, Looks, Range, Ranges, FOUND_RANGES, GAP_BYTES, MOST_RANGES};
use super::Target;

/// Looks at them again and again.
#[derive(Debug)]
pub(super) struct Own {
    /// None where the kernel has no `PAGEMAP_SCAN`: then all of the regions is baked.
    scanner: Option<Scanner>,
    ranges: Vec<Range>,
    room: Vec<[u64; 3]>,
    /// Gap between ranges that are made one; grows when there are too many.
    gap_bytes: u64,
    looks: Looks,
    found: Found,
}

impl Own {
    /// Before the first look.
    pub(super) fn new() -> Self {
        Self {
            scanner: Scanner::open(Target::Own).ok(),
            ranges: vec![Range::default(); MOST_RANGES],
            room: vec![[0; 3]; FOUND_RANGES],
            gap_bytes: GAP_BYTES,
            looks: Looks::new(0),
            found: Found::default(),
        }
    }

    /// Whether it is time to look again.
    pub(super) fn is_time(&self, now_nanos: u64) -> bool {
        now_nanos >= self.looks.next_nanos
    }

    /// Looks; tells what it found by the counters, and gives whether that is what was there before. `None` = it was stopped meanwhile.
    pub(super) fn look(
        &mut self,
        regions: &[(u64, u64)],
        counters: &Counters,
        stopped: impl Fn() -> bool,
    ) -> Option<bool> {
        let (begin, used) = (now_nanos(), thread_nanos());
        let mut list = Ranges::new(&mut self.ranges, self.gap_bytes);
        for &(start, end) in regions {
            let span = Range { start, end };
            let mark = list.mark();
            let seen = self.scanner.as_ref().map(|scanner| {
                let scan = |range, found: &mut [[u64; 3]]| match stopped() {
                    true => Err(libc::EINTR),
                    false => scanner.find(range, found),
                };
                add_small(span, &mut self.room, &mut list, scan, || std::thread::sleep(LET_IN))
            });
            if stopped() {
                return None;
            }
            if !matches!(seen, Some(Ok(()))) {
                list.back(mark);
                list.add(start, end);
            }
        }
        if list.full {
            // Coarser from the next look on.
            self.gap_bytes = self.gap_bytes.saturating_mul(4).min(1 << 40);
        }
        let found = list.found();
        let as_before = std::mem::replace(&mut self.found, found) == found;
        let end = now_nanos();
        self.looks.after(end, thread_nanos().saturating_sub(used), as_before);
        counters.looks.fetch_add(1, Ordering::Relaxed);
        counters.longest_look_nanos.fetch_max(end.saturating_sub(begin), Ordering::Relaxed);
        counters.found(found.ranges as u64, found.small_bytes);
        Some(as_before)
    }

    /// Bytes in small pages.
    pub(super) fn small_bytes(&self) -> u64 {
        self.found.small_bytes
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
        let mut own = Own::new();
        own.scanner = None;
        let counters = Counters::default();
        let regions = [(0x1000_0000, 0x2000_0000), (0x8000_0000, 0x9000_0000)];
        assert_eq!(own.look(&regions, &counters, || false), Some(false));
        assert_eq!(own.look(&regions, &counters, || false), Some(true));
        assert_eq!(own.small_bytes(), 0x2000_0000);
        assert_eq!(own.part(0, 0x1000_0000), None);
        assert_eq!(own.part(0, 0x1800_0000), Some((0x1000_0000, 0x1800_0000)));
        assert_eq!(own.part(0x1800_0000, 0x8800_0000), Some((0x1800_0000, 0x2000_0000)));
        assert_eq!(own.part(0x2000_0000, u64::MAX), Some((0x8000_0000, 0x9000_0000)));
        assert_eq!(own.part(0x9000_0000, u64::MAX), None);
        assert_eq!(own.look(&regions, &counters, || true), None);
        assert_eq!(counters.looks.load(Ordering::Relaxed), 2);
    }
}
