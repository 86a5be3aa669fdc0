//! Which pages the processor walked the tables for: exact misses of the last level, without a PMU and without a timer.
//!
//! The system's referenced bits tell ([`ReferencedBits`]). They are counted and cleared whenever a job ends, for all
//! tasks: a page counts once for each time that its task began or went on, however often it was lost meanwhile.
//!
//! The system counts by mapping, not by page. So each row of pages of one owner is made a mapping of its own: it gets
//! an advice that its neighbours have not, of two that mean nothing to memory without a file.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use lookaside_host::ReferencedBits;
use lookaside_techniques::color::work::PAGE_BYTES;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::error::TaskRunError;

/// Left free behind each mapping, where the C library's heap grows, and before each, where a stack does (to 8 MiB
/// mostly). No room for tasks' pages: a heap takes 64 MiB at least.
const LEFT_BYTES: [u64; 2] = [1 << 20, 16 << 20];
/// What tells a row from the one before it.
const ADVICE: [Advice; 2] = [Advice::Random, Advice::Sequential];

/// What was walked for of one owner's pages, in the parts of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageWalks {
    /// Pages, added up over the parts.
    pub pages: u64,
    /// Parts in which it was more than one page in eight.
    pub many: u64,
}

/// The rows of pages of some owners, and what was walked for.
#[derive(Debug)]
pub(super) struct PageWalkCounter {
    rows: Vec<OwnedRow>,
    /// Pages of each owner.
    owned: Vec<usize>,
    state: Mutex<PageWalkState>,
}

/// Neighbouring pages of one owner: addresses of its first byte and the one after its last. There may be pages of
/// nobody's between.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedRow {
    at: Range<u64>,
    owner: usize,
}

#[derive(Debug)]
struct PageWalkState {
    bits: ReferencedBits,
    /// What was walked for of each owner's pages in parts of a job that has not ended.
    so_far: Vec<PageWalks>,
    failed: Option<TaskRunError>,
}

impl PageWalkCounter {
    /// For so many owners' pages (any address in each), which all are there and stay where they are as long as this
    /// lives. A page has one owner.
    pub(super) fn new(owners: &[Vec<u64>]) -> Result<Self, TaskRunError> {
        let mut bits = ReferencedBits::here().map_err(|error| {
            TaskRunError(format!("{error}; walks are counted by it (Linux, CONFIG_PROC_PAGE_MONITOR)"))
        })?;
        let mut pages: Vec<(u64, usize)> = (0..)
            .zip(owners)
            .flat_map(|(owner, pages)| pages.iter().map(move |at| (at / PAGE_BYTES * PAGE_BYTES, owner)))
            .collect();
        pages.sort_unstable();
        pages.dedup();
        let mut owned = vec![0; owners.len()];
        pages.iter().for_each(|(_, owner)| owned[*owner] += 1);
        let last = pages.last().map_or(0, |(page, _)| *page + PAGE_BYTES);
        let rows = rows(&pages, bits.look(last)?);
        let so_far = vec![PageWalks::default(); owners.len()];
        Ok(Self { rows, owned, state: Mutex::new(PageWalkState { bits, so_far, failed: None }) })
    }

    /// Makes mappings of the rows, until what this gives is dropped: the same pages may be others' between.
    pub(super) fn apart(&self) -> Result<SeparateMappings<'_>, TaskRunError> {
        let apart = SeparateMappings(&self.rows);
        for (row, advice) in self.rows.iter().zip(ADVICE.into_iter().cycle()) {
            advise(&row.at, advice)
                .map_err(|error| TaskRunError(format!("pages of a task cannot be a mapping: {error}")))?;
        }
        Ok(apart)
    }

    /// Pages of an owner.
    pub(super) fn pages(&self, owner: usize) -> usize {
        self.owned[owner]
    }

    /// Forgets what was walked for so far.
    pub(super) fn anew(&self) {
        self.with(|state| {
            state.so_far.fill(PageWalks::default());
            Ok(state.bits.clear()?)
        });
    }

    /// A job begins, once nobody counts: what was walked for in it would be cleared and not counted.
    pub(super) fn begins(&self) {
        self.with(|_| Ok(()));
    }

    /// A job with these owners' pages ends: what was walked for in it. Of those that it interrupted that is written
    /// down.
    pub(super) fn ends(&self, owners: &[usize]) -> Vec<PageWalks> {
        self.with(|state| {
            let seen = state.bits.look(self.rows.last().map_or(0, |row| row.at.end))?;
            let counts = referenced(seen, &self.rows, self.owned.len())?;
            state.bits.clear()?;
            for ((pages, owned), walks) in counts.into_iter().zip(&self.owned).zip(&mut state.so_far) {
                walks.pages += pages;
                walks.many += u64::from(8 * pages > *owned as u64);
            }
            Ok(owners.iter().map(|owner| std::mem::take(&mut state.so_far[*owner])).collect())
        })
        .unwrap_or_else(|| vec![PageWalks::default(); owners.len()])
    }

    /// Pages of an owner that are walked for while this runs.
    pub(super) fn of(&self, owner: usize, run: impl FnOnce()) -> Result<u64, TaskRunError> {
        self.anew();
        run();
        let walks = self.ends(&[owner]);
        self.check()?;
        Ok(walks.first().map_or(0, |walks| walks.pages))
    }

    /// Why counts since the last time are none, if so.
    pub(super) fn check(&self) -> Result<(), TaskRunError> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failed.take().map_or(Ok(()), Err)
    }

    /// Does this alone. A task that is interrupted meanwhile by one that wants to do it too finishes first.
    fn with<T>(&self, act: impl FnOnce(&mut PageWalkState) -> Result<T, TaskRunError>) -> Option<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match act(&mut state) {
            Ok(done) => Some(done),
            Err(error) => {
                state.failed.get_or_insert(error);
                None
            }
        }
    }
}

/// The addresses that the system would map at next are taken; so what is mapped meanwhile lies below all else, and the
/// system's text begins with it. To read about some ten mappings takes a fourth of the time that all take.
#[derive(Debug)]
pub(super) struct FirstInText(Vec<Range<u64>>);

impl FirstInText {
    /// Where that cannot be had counting takes longer.
    pub(super) fn take() -> Self {
        let mut bits = ReferencedBits::here().ok();
        let all = bits.as_mut().and_then(|bits| bits.look(u64::MAX).ok()).unwrap_or_default();
        // The system's own are in the upper half.
        let all: Vec<&Range<u64>> = all.iter().map(|(at, _)| at).filter(|at| at.end >> 63 == 0).collect();
        let [behind, before] = LEFT_BYTES;
        let gap = |two: &[&Range<u64>]| two[0].end.saturating_add(behind)..two[1].start.saturating_sub(before);
        let gaps = all.windows(2).map(gap).filter(|gap| gap.start < gap.end);
        Self(gaps.filter(take).collect())
    }
}

/// Takes these addresses, if they are free.
fn take(gap: &Range<u64>) -> bool {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    let bytes = (gap.end - gap.start) as usize;
    // SAFETY: a new mapping where none is, of addresses only.
    unsafe { rustix::mm::mmap_anonymous(gap.start as *mut _, bytes, ProtFlags::empty(), flags) }.is_ok()
}

impl Drop for FirstInText {
    fn drop(&mut self) {
        for gap in &self.0 {
            // SAFETY: mapped above, and never used.
            let _ = unsafe { rustix::mm::munmap(gap.start as *mut _, (gap.end - gap.start) as usize) };
        }
    }
}

/// Rows that are mappings of their own.
#[derive(Debug)]
pub(super) struct SeparateMappings<'a>(&'a [OwnedRow]);

impl Drop for SeparateMappings<'_> {
    fn drop(&mut self) {
        // The C library's pages go back to it as they came.
        for row in self.0 {
            // What is gone already needs no advice.
            let _ = advise(&row.at, Advice::Normal);
        }
    }
}

/// Rows of pages (sorted) that are one owner's, each within a mapping.
fn rows(pages: &[(u64, usize)], mapped: &[(Range<u64>, u64)]) -> Vec<OwnedRow> {
    let mut rows: Vec<OwnedRow> = Vec::new();
    let mut of = 0..0;
    for &(page, owner) in pages {
        match rows.last_mut() {
            Some(row) if row.owner == owner && of.contains(&page) => row.at.end = page + PAGE_BYTES,
            _ => rows.push(OwnedRow { at: page..page + PAGE_BYTES, owner }),
        }
        if !of.contains(&page) {
            let mapped = mapped.iter().map(|(at, _)| at).find(|at| at.contains(&page));
            of = mapped.cloned().unwrap_or(page..page + PAGE_BYTES);
        }
    }
    rows
}

/// Pages referenced of each of so many owners.
fn referenced(mapped: &[(Range<u64>, u64)], rows: &[OwnedRow], owners: usize) -> Result<Vec<u64>, TaskRunError> {
    let mut counts = vec![0; owners];
    let mut seen = 0;
    for (at, bytes) in mapped {
        let row = rows.partition_point(|row| row.at.start <= at.start).checked_sub(1).map(|row| &rows[row]);
        if let Some(row) = row.filter(|row| at.end <= row.at.end) {
            counts[row.owner] += bytes / PAGE_BYTES;
            seen += at.end - at.start;
        }
    }
    let all: u64 = rows.iter().map(|row| row.at.end - row.at.start).sum();
    match seen == all {
        true => Ok(counts),
        false => Err(TaskRunError(format!(
            "of {all} bytes of the tasks' mappings {seen} are there alone; walks cannot be counted"
        ))),
    }
}

fn advise(at: &Range<u64>, advice: Advice) -> rustix::io::Result<()> {
    // SAFETY: these advices change nothing of what memory holds.
    unsafe { rustix::mm::madvise(at.start as *mut _, (at.end - at.start) as usize, advice) }
}

#[cfg(test)]
pub(super) mod tests {
    use std::hint::black_box;

    use lookaside_probe::flush_tlb;
    use proptest::prelude::*;

    use super::*;

    /// Who has it counts walks alone: the bits are the whole process's.
    pub(in super::super) static ALONE: Mutex<()> = Mutex::new(());

    proptest! {
        /// Each page is in the row of its owner, and in no other's; a row is within a mapping.
        #[test]
        fn rows_have_the_pages_of_one_owner(owners in proptest::collection::btree_map(0u64..64, 0usize..3, 1..40), cuts in proptest::collection::btree_set(1u64..63, 0..4)) {
            let pages: Vec<(u64, usize)> = owners.iter().map(|(page, owner)| (page * PAGE_BYTES, *owner)).collect();
            let ends: Vec<u64> = std::iter::once(0).chain(cuts).chain([64]).map(|page| page * PAGE_BYTES).collect();
            let mapped: Vec<(Range<u64>, u64)> = ends.windows(2).map(|two| (two[0]..two[1], 0)).collect();
            let rows = rows(&pages, &mapped);
            for (page, owner) in &pages {
                let of: Vec<usize> = rows.iter().filter(|row| row.at.contains(page)).map(|row| row.owner).collect();
                prop_assert_eq!(of, vec![*owner]);
            }
            prop_assert!(rows.windows(2).all(|two| two[0].at.end <= two[1].at.start));
            prop_assert!(rows.iter().all(|row| mapped.iter().any(|(at, _)| at.start <= row.at.start && row.at.end <= at.end)));
            // The system's words, a page of each row set.
            let seen: Vec<(Range<u64>, u64)> = rows.iter().map(|row| (row.at.clone(), PAGE_BYTES)).collect();
            let mut expected = vec![0; 3];
            rows.iter().for_each(|row| expected[row.owner] += 1);
            prop_assert_eq!(referenced(&seen, &rows, 3), Ok(expected));
            // A row that became one mapping with its neighbour is not counted wrongly, but not at all.
            let mut merged = seen;
            merged[0].0.end += PAGE_BYTES;
            prop_assert!(referenced(&merged, &rows, 3).is_err());
        }
    }

    /// Pages that nobody else has, all there.
    fn pages(count: usize) -> Vec<u64> {
        let bytes = count * PAGE_BYTES as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which stays.
        let start = unsafe {
            let start =
                rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE).expect("pages");
            let _ = rustix::mm::madvise(start, bytes, Advice::LinuxNoHugepage);
            start as u64
        };
        let pages: Vec<u64> = (0..count as u64).map(|page| start + page * PAGE_BYTES).collect();
        pages.iter().for_each(|page| load(*page));
        // SAFETY: as above.
        pages.iter().for_each(|page| unsafe { (*page as *mut u64).write_volatile(1) });
        pages
    }

    fn load(page: u64) {
        // SAFETY: a page of the test's.
        black_box(unsafe { (page as *const u64).read_volatile() });
    }

    #[test]
    fn what_is_walked_for_is_counted_to_the_page() {
        if ReferencedBits::here().is_err() {
            eprintln!("LEFT OUT: this system counts no referenced bits");
            return;
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // Pages of two owners in turns, and some of nobody's.
        let all = pages(60);
        let own = |owner: usize| all.iter().copied().skip(owner).step_by(3).collect::<Vec<u64>>();
        let [first, second] = [own(0), own(1)];
        let walked = PageWalkCounter::new(&[first.clone(), second.clone(), Vec::new()]).expect("counts");
        let apart = walked.apart().expect("mappings");
        assert_eq!([0, 1, 2].map(|owner| walked.pages(owner)), [20, 20, 0]);
        let count = |owner, loads: &dyn Fn()| {
            flush_tlb().expect("out");
            walked.of(owner, loads).expect("a count")
        };
        for some in [0, 1, 7, 20] {
            let loads = || first[..some].iter().chain(&second).chain(&first[..some]).for_each(|page| load(*page));
            assert_eq!(count(0, &loads), some as u64);
        }
        // The second owner's job is interrupted by the first's: its parts are added up.
        flush_tlb().expect("out");
        walked.anew();
        second[..5].iter().for_each(|page| load(*page));
        walked.begins();
        first[..2].iter().for_each(|page| load(*page));
        assert_eq!(walked.ends(&[0]), [PageWalks { pages: 2, many: 0 }]);
        flush_tlb().expect("out");
        second[..1].iter().for_each(|page| load(*page));
        assert_eq!(walked.ends(&[1, 2]), [PageWalks { pages: 6, many: 1 }, PageWalks::default()]);
        assert_eq!(walked.ends(&[0, 1]), [PageWalks::default(); 2]);
        assert_eq!(walked.check(), Ok(()));
        // Rows that are no mappings any more.
        drop(apart);
        assert_eq!(walked.ends(&[0]), [PageWalks::default()]);
        let error = walked.check().expect_err("rows are together").to_string();
        assert!(error.contains("walks cannot be counted") && walked.check().is_ok(), "{error}");
    }

    #[test]
    fn what_is_mapped_meanwhile_comes_before_the_program() {
        let first = FirstInText::take();
        let all = pages(20_000);
        let code = what_is_mapped_meanwhile_comes_before_the_program as fn() as usize as u64;
        if ReferencedBits::here().is_err() {
            eprintln!("LEFT OUT: this system does not list its mappings");
            return;
        }
        assert!(!first.0.is_empty() && all[0] < code, "{:x} behind {code:x}", all[0]);
        let taken = first.0.clone();
        drop(first);
        let mut bits = ReferencedBits::here().expect("mappings");
        assert!(bits.look(u64::MAX).expect("all").iter().all(|(at, _)| !taken.contains(at)), "given back");
    }
}
