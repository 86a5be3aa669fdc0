//! What there is to bake: ranges of addresses whose pages are small and have frames, found in the tables themselves,
//! for the preloaded helper and for `auto`. Nothing here allocates, panics or asks the system.

use super::address_range::AddressRange;
use super::region::PAGE_BYTES;

/// AddressRanges with a smaller gap between them are one: touching a gap's few entries costs less than a range more.
pub const GAP_BYTES: u64 = 64 * PAGE_BYTES;
/// AddressRanges that are kept at most.
pub const MOST_RANGES: usize = 8192;
/// AddressRanges that a call finds at most.
pub const SCAN_RANGES: usize = 512;
/// Addresses of one call that finds small pages: bounds the time in which `mmap_lock` is held where tables are there
/// but empty.
const SCAN_BYTES: u64 = 256 << 20;
/// Shortest and longest time between two looks at what there is; the longer, the longer nothing has changed.
const LOOK_NANOS: (u64, u64) = (200_000_000, 1_600_000_000);
/// A look takes at most one part in so many of a CPU, else looks are rarer.
const LOOK_PART: u64 = 50;

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmallPages {
    /// AddressRanges in the buffer.
    pub ranges: usize,
    /// Bytes in small pages that have frames.
    pub small_bytes: u64,
    /// Which ranges, in a number.
    pub digest: u64,
}

/// The ranges as they are found, ascending.
#[derive(Debug)]
pub struct AddressRanges<'a> {
    ranges: &'a mut [AddressRange],
    length: usize,
    gap_bytes: u64,
    small_bytes: u64,
    /// More were found than there is room for.
    full: bool,
}

impl<'a> AddressRanges<'a> {
    /// None yet. Those with at most so many bytes between them will be one.
    pub fn new(ranges: &'a mut [AddressRange], gap_bytes: u64) -> Self {
        Self { ranges, length: 0, gap_bytes, small_bytes: 0, full: false }
    }

    /// One more, after those before.
    pub fn add(&mut self, start: u64, end: u64) {
        self.small_bytes = self.small_bytes.saturating_add(end.saturating_sub(start));
        let last = self.length.checked_sub(1).and_then(|last| self.ranges.get_mut(last));
        if let Some(last) = last {
            if start >= last.end && start.wrapping_sub(last.end) <= self.gap_bytes {
                last.end = end;
                return;
            }
        }
        match self.ranges.get_mut(self.length) {
            Some(next) => {
                *next = AddressRange { start, end };
                self.length = self.length.wrapping_add(1);
            }
            None => self.full = true,
        }
    }

    /// Where it stands, to go back to.
    pub fn mark(&self) -> (usize, u64) {
        (self.length, self.small_bytes)
    }

    /// Drops what was added since, if that is less than so many bytes.
    pub fn drop_less(&mut self, mark: (usize, u64), bytes: u64) {
        if self.small_bytes.wrapping_sub(mark.1) < bytes {
            self.back(mark);
        }
    }

    /// Drops what was added since.
    pub fn back(&mut self, mark: (usize, u64)) {
        (self.length, self.small_bytes) = mark;
    }

    /// Gap to use at the next look: a coarser one where there was no room for all ranges.
    pub fn next_gap_bytes(&self, gap_bytes: u64) -> u64 {
        match self.full {
            true => gap_bytes.saturating_mul(4).min(1 << 40),
            false => gap_bytes,
        }
    }

    /// What was found.
    pub fn found(&self) -> SmallPages {
        let mix = |digest: u64, number: u64| (digest ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let ranges = self.ranges.iter().take(self.length);
        let digest = ranges.fold(0, |digest, range| mix(mix(digest, range.start), range.end));
        SmallPages { ranges: self.length, small_bytes: self.small_bytes, digest: mix(digest, self.small_bytes) }
    }
}

/// Adds the small pages of a span. `scan` makes the call
/// ([`PmScanArg::small_pages`](super::pm_scan::PmScanArg::small_pages)) and gives how many ranges it found and where it
/// ended; after a call that took some time `let_in` lets those in who wait for `mmap_lock`.
///
/// # Errors
/// The call's.
pub fn add_small_pages<E>(
    span: AddressRange,
    found: &mut [[u64; 3]],
    list: &mut AddressRanges<'_>,
    mut scan: impl FnMut(AddressRange, &mut [[u64; 3]]) -> Result<(usize, u64), E>,
    let_in: impl Fn(),
) -> Result<(), E> {
    let mut at = span.start;
    let mut calls = 0u32;
    while at < span.end {
        let end = at.saturating_add(SCAN_BYTES).min(span.end);
        let (count, next) = scan(AddressRange { start: at, end }, found)?;
        calls = calls.wrapping_add(1);
        // A call that finds nothing is over in a microsecond.
        if count > 0 || calls.is_multiple_of(64) {
            let_in();
        }
        for [start, end, _] in found.iter().take(count) {
            list.add(*start, *end);
        }
        // A walk that does not come on would go on for ever.
        at = if next > at { next } else { end };
    }
    Ok(())
}

/// When to look.
#[derive(Debug)]
pub struct LookSchedule {
    /// When to look next, in nanoseconds of the clock.
    pub next_nanos: u64,
    nanos: u64,
}

impl LookSchedule {
    /// The first one: now.
    pub const fn new(now_nanos: u64) -> Self {
        Self { next_nanos: now_nanos, nanos: LOOK_NANOS.0 }
    }

    /// A look is over that took so much of a CPU, and found what the one before had found or not.
    pub fn after(&mut self, now_nanos: u64, cpu_nanos: u64, as_before: bool) {
        self.nanos = if as_before { self.nanos.saturating_mul(2).min(LOOK_NANOS.1) } else { LOOK_NANOS.0 };
        self.next_nanos = now_nanos.saturating_add(self.nanos.max(cpu_nanos.saturating_mul(LOOK_PART)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scattered_pages_get_coarser_until_they_fit() {
        let mut ranges = [AddressRange::default(); 4];
        let mut list = AddressRanges::new(&mut ranges, GAP_BYTES);
        for page in 0..5 {
            list.add(page << 30, (page << 30) + PAGE_BYTES);
        }
        assert!(list.full);
        assert_eq!((list.found().ranges, list.found().small_bytes), (4, 5 * PAGE_BYTES));
        let mut list = AddressRanges::new(&mut ranges, 1 << 30);
        for page in 0..5 {
            list.add(page << 30, (page << 30) + PAGE_BYTES);
        }
        assert_eq!((list.found().ranges, list.full), (1, false));
    }

    /// The ranges that come of adding these, with what was found.
    fn ranges_of(gap_bytes: u64, added: &[(u64, u64)]) -> (Vec<(u64, u64)>, SmallPages) {
        let mut ranges = [AddressRange::default(); 8];
        let mut list = AddressRanges::new(&mut ranges, gap_bytes);
        added.iter().for_each(|&(start, end)| list.add(start, end));
        let found = list.found();
        (ranges[..found.ranges].iter().map(|range| (range.start, range.end)).collect(), found)
    }

    #[test]
    fn a_gap_reaches_to_the_next_range() {
        let of = |added: &[(u64, u64)]| ranges_of(0x1000, added).0;
        assert_eq!(of(&[(0x1000, 0x2000), (0x3000, 0x4000)]), [(0x1000, 0x4000)], "as large as may be");
        assert_eq!(of(&[(0x1000, 0x2000), (0x3001, 0x4000)]), [(0x1000, 0x2000), (0x3001, 0x4000)]);
        assert_eq!(of(&[(0x1000, 0x2000), (0x2000, 0x4000)]), [(0x1000, 0x4000)], "none");
        // What begins before the end of the last is no part of it, however near.
        assert_eq!(of(&[(0x1000, 0x2000), (0x1800, 0x4000)]), [(0x1000, 0x2000), (0x1800, 0x4000)]);
        assert_eq!(GAP_BYTES, 256 << 10);
    }

    #[test]
    fn the_next_gap_is_fourfold_where_there_was_no_room_and_the_same_elsewhere() {
        let mut ranges = [AddressRange::default(); 1];
        let mut list = AddressRanges::new(&mut ranges, 0);
        list.add(0x1000, 0x2000);
        assert_eq!(list.next_gap_bytes(256 << 10), 256 << 10);
        list.add(0x8000, 0x9000);
        assert_eq!([256 << 10, 1 << 39, u64::MAX].map(|gap| list.next_gap_bytes(gap)), [1 << 20, 1 << 40, 1 << 40]);
    }

    #[test]
    fn what_was_added_since_a_mark_is_dropped_alone_or_where_it_is_too_little() {
        let mut ranges = [AddressRange::default(); 8];
        let mut list = AddressRanges::new(&mut ranges, 0);
        list.add(0x1000, 0x3000);
        list.add(0x8000, 0x9000);
        let (mark, before) = (list.mark(), list.found());
        assert_eq!((before.ranges, before.small_bytes), (2, 0x3000));
        list.add(0x10000, 0x14000);
        let after = list.found();
        list.drop_less(mark, 0x4000);
        assert_eq!(list.found(), after, "as much as was asked for");
        list.drop_less(mark, 0x4001);
        assert_eq!(list.found(), before);
        list.add(0x20000, 0x30000);
        list.back(mark);
        assert_eq!(list.found(), before);
    }

    #[test]
    fn other_ranges_have_another_digest_and_so_have_other_pages_in_the_same() {
        let one = |start: u64| ranges_of(0, &[(start, start + 0x1000)]).1.digest;
        assert_eq!(one(0x5000), one(0x5000));
        assert_eq!((12..48).map(|bit| one(1 << bit)).collect::<BTreeSet<u64>>().len(), 36);
        // From the first page to the last, with so many bytes in it.
        let filled = |bytes: u64| ranges_of(1 << 30, &[(0, bytes), (0xff_f000, 0x100_0000)]);
        assert_eq!(filled(0x1000).0, filled(0x3000).0);
        let digests: BTreeSet<u64> = (1..=1000).map(|pages| filled(pages * PAGE_BYTES).1.digest).collect();
        assert_eq!(digests.len(), 1000);
    }

    /// Calls of a scan over so many times [`SCAN_BYTES`], and how often others were let in.
    fn calls(spans: u64, mut found: impl FnMut(AddressRange) -> (usize, u64)) -> (u32, u32) {
        let (calls, let_in) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let span = AddressRange { start: 0x1000, end: 0x1000 + spans * (256 << 20) };
        let scan = |range: AddressRange, _: &mut [[u64; 3]]| {
            assert!(range.start < range.end && calls.get() < 1000, "a call for nothing: {range:?}");
            calls.set(calls.get() + 1);
            Ok::<_, ()>(found(range))
        };
        let mut ranges = [AddressRange::default(); 1];
        let mut list = AddressRanges::new(&mut ranges, 0);
        add_small_pages(span, &mut [[0; 3]], &mut list, scan, || let_in.set(let_in.get() + 1)).expect("never refused");
        (calls.get(), let_in.get())
    }

    #[test]
    fn others_are_let_in_after_a_call_that_found_something_and_now_and_then_after_others() {
        assert_eq!(calls(130, |range| (0, range.end)), (130, 2));
        assert_eq!(calls(130, |range| (1, range.end)), (130, 130));
    }

    #[test]
    fn a_call_that_does_not_come_on_is_the_last_for_its_part() {
        assert_eq!(calls(3, |range| (0, range.start)), (3, 0));
        assert_eq!(calls(3, |_| (0, 0)), (3, 0));
        // One that comes on goes on from there.
        assert_eq!(calls(3, |range| (0, range.end.min(range.start + (128 << 20)))), (6, 0));
    }

    #[test]
    fn looks_are_rarer_the_longer_nothing_changes_and_the_longer_they_take() {
        let mut looks = LookSchedule::new(7);
        assert_eq!(looks.next_nanos, 7);
        looks.after(0, 0, false);
        let mut gaps = vec![looks.next_nanos];
        (0..5).for_each(|_| {
            looks.after(0, 1000, true);
            gaps.push(looks.next_nanos);
        });
        assert_eq!(gaps, [2, 4, 8, 16, 16, 16].map(|tenths| tenths * 100_000_000));
        looks.after(1, 1_000_000_000, false);
        assert_eq!(looks.next_nanos, 1 + 50_000_000_000);
    }

    proptest! {
        /// A kernel made up, which finds as many pages a call as it is let: its pages are those of the ranges, and no
        /// others but in gaps.
        #[test]
        fn all_small_pages_are_in_the_ranges(
            pages in prop::collection::btree_set(0..200_000u64, 0..200), begin in 0..100_000u64, most in 1..9usize
        ) {
            let span = AddressRange { start: begin * PAGE_BYTES, end: 150_000 * PAGE_BYTES };
            let scan = |range: AddressRange, found: &mut [[u64; 3]]| {
                assert!(range.end - range.start <= SCAN_BYTES);
                let here = pages.range(range.start / PAGE_BYTES..range.end / PAGE_BYTES).take(most);
                let mut count = 0;
                for (page, found) in here.zip(found.iter_mut()) {
                    *found = [page * PAGE_BYTES, (page + 1) * PAGE_BYTES, 0];
                    count += 1;
                }
                let next = if count == most { found[count - 1][1] } else { range.end };
                Ok::<_, ()>((count, next))
            };
            let (mut ranges, mut found) = (vec![AddressRange::default(); 256], [[0; 3]; 16]);
            let mut list = AddressRanges::new(&mut ranges, GAP_BYTES);
            add_small_pages(span, &mut found, &mut list, scan, || ()).expect("never refused");
            let here: BTreeSet<u64> = pages.range(begin..150_000.max(begin)).copied().collect();
            let told = list.found();
            prop_assert_eq!(told.small_bytes, here.len() as u64 * PAGE_BYTES);
            let ranges = &ranges[..told.ranges];
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end + GAP_BYTES < pair[1].start));
            prop_assert!(here.iter().all(|page| ranges.iter().any(|r| (r.start..r.end).contains(&(page * PAGE_BYTES)))));
            let is_page = |at: u64| here.contains(&(at / PAGE_BYTES));
            prop_assert!(ranges.iter().all(|range| is_page(range.start) && is_page(range.end - PAGE_BYTES)));
        }
    }
}
