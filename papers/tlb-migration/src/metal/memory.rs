//! The experiment's memory: the pages, small and huge, what empties TLBs, and what thrashes caches.

use std::ptr::NonNull;

use lookaside_host::Process;
use lookaside_stats::SplitMix64;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

use super::error::MigrateError;
use super::plan::{used, HUGE_BYTES, LINE_BYTES, PAGE_BYTES};

/// Memory of ours, at a multiple of [`HUGE_BYTES`].
#[derive(Debug)]
pub(super) struct PageArea {
    start: NonNull<u8>,
    bytes: usize,
    /// What was mapped, with what is before and after.
    mapped: (NonNull<u8>, usize),
}

impl PageArea {
    /// Address space; what is touched has memory, of small pages or, where the system has some, of huge ones.
    fn new(bytes: usize, huge: bool) -> Result<Self, MigrateError> {
        let failed = |why: String| MigrateError(format!("no address space of {} MiB: {why}", bytes >> 20));
        let whole = bytes.checked_add(HUGE_BYTES as usize).ok_or_else(|| failed("too much".into()))?;
        let (flags, access) = (MapFlags::PRIVATE | MapFlags::NORESERVE, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping, wherever the system likes.
        let at = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), whole, access, flags) };
        let at = NonNull::new(at.map_err(|error| failed(error.to_string()))?.cast::<u8>());
        let at = at.ok_or_else(|| failed("the system maps at 0".into()))?;
        let skipped = at.as_ptr() as usize;
        let skipped = skipped.next_multiple_of(HUGE_BYTES as usize) - skipped;
        // SAFETY: less than a huge page further, and the mapping is longer than that.
        let start = unsafe { at.add(skipped) };
        let advice = if huge { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // Refused where there are no huge pages, which then are not had; looked at where it matters.
        // SAFETY: our own mapping, which nobody uses yet.
        let _ = unsafe { rustix::mm::madvise(at.as_ptr().cast(), whole, advice) };
        Ok(Self { start, bytes, mapped: (at, whole) })
    }

    /// Small pages, those that up to `most` pages need, touched in an order by the seed: neighbours don't get
    /// neighbouring frames, which some processors keep in one TLB entry.
    pub(super) fn small(bytes: usize, most: u64, seed: u64) -> Result<Self, MigrateError> {
        let area = Self::new(bytes, false)?;
        let mut pages = used(most);
        SplitMix64::new(seed).shuffle(&mut pages);
        pages.iter().for_each(|page| area.touch(page * PAGE_BYTES));
        Ok(area)
    }

    /// All of it touched; and whether the system gave huge pages for all.
    pub(super) fn huge(bytes: usize) -> Result<(Self, bool), MigrateError> {
        let area = Self::new(bytes, true)?;
        // The system may have put it into one mapping with another area.
        let before = area.huge_bytes().unwrap_or_default();
        (0..bytes as u64).step_by(PAGE_BYTES as usize).for_each(|at| area.touch(at));
        let all = area.huge_bytes().is_some_and(|huge| huge.saturating_sub(before) >= area.bytes as u64);
        Ok((area, all))
    }

    /// A word within it: an address and the right to use it as long as the area lives.
    pub(super) fn word(&self, at: u64) -> *mut u64 {
        assert!(at <= (self.bytes - size_of::<u64>()) as u64 && at.is_multiple_of(8), "beyond the area");
        // SAFETY: within the area by the line above.
        unsafe { self.start.add(at as usize) }.cast().as_ptr()
    }

    fn touch(&self, at: u64) {
        // SAFETY: a word of ours.
        unsafe { self.word(at).write_volatile(0) };
    }

    /// Reads each line of it.
    pub(super) fn read(&self) {
        for at in (0..self.bytes as u64).step_by(LINE_BYTES as usize) {
            // SAFETY: a word of ours.
            unsafe { self.word(at).read_volatile() };
        }
    }

    /// Bytes of huge pages in the mapping, as the system says.
    fn huge_bytes(&self) -> Option<u64> {
        let start = self.start.as_ptr() as u64;
        let smaps = Process::own().smaps().ok()?;
        smaps.iter().find(|vma| vma.overlaps(&(start..start + 1))).map(|vma| vma.anonymous_huge_bytes)
    }
}

impl Drop for PageArea {
    fn drop(&mut self) {
        let (at, bytes) = self.mapped;
        // SAFETY: the mapping is ours, and whoever has words of it is gone.
        let _ = unsafe { rustix::mm::munmap(at.as_ptr().cast(), bytes) };
    }
}

/// Makes all CPUs drop this process's translations, and leaves its page tables in their caches: rights are taken from
/// two pages that nobody uses, so far apart that the kernel drops everything and not page by page.
#[derive(Debug)]
pub(super) struct Flush {
    area: PageArea,
}

/// Bytes between the two, the first that can be had. Beyond [`PAGE_BYTES`] times 2^21 AArch64 with ranges drops
/// everything (`MAX_TLBI_RANGE_PAGES`), without them beyond 512 pages (`MAX_DVM_OPS`), x86-64 beyond 33
/// (`tlb_single_page_flush_ceiling`).
const FLUSH_BYTES: [usize; 2] = [16 << 30, 4 << 20];

impl Flush {
    /// Has the two pages.
    pub(super) fn new() -> Result<Self, MigrateError> {
        let mut areas = FLUSH_BYTES.iter().map(|bytes| PageArea::new(*bytes, false));
        let area = areas.find(Result::is_ok).unwrap_or_else(|| PageArea::new(FLUSH_BYTES[1], false))?;
        area.touch(0);
        area.touch(area.bytes as u64 - PAGE_BYTES);
        Ok(Self { area })
    }

    /// Does it: CPUs where the process does not run do it when it comes there.
    pub(super) fn all(&self) -> Result<(), MigrateError> {
        for rights in [MprotectFlags::empty(), MprotectFlags::READ | MprotectFlags::WRITE] {
            let at = self.area.start.as_ptr().cast();
            // SAFETY: our own memory, which nobody reads or writes.
            let done = unsafe { rustix::mm::mprotect(at, self.area.bytes, rights) };
            done.map_err(|error| MigrateError(format!("the TLBs cannot be emptied: mprotect: {error}")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_aligned_and_keeps_what_is_written() {
        let area = PageArea::small(4 << 20, 40, 3).expect("memory");
        assert_eq!(area.start.as_ptr() as u64 % HUGE_BYTES, 0);
        for at in [0, 8, (4 << 20) - 8] {
            // SAFETY: words of ours.
            let read = unsafe {
                area.word(at).write(at + 1);
                area.word(at).read()
            };
            assert_eq!(read, at + 1);
        }
        area.read();
        assert_eq!(area.huge_bytes(), Some(0));
    }

    #[test]
    #[should_panic(expected = "beyond the area")]
    fn no_word_is_beyond() {
        PageArea::small(2 << 20, 1, 3).expect("memory").word(2 << 20);
    }

    #[test]
    fn the_two_pages_stay_ours() {
        let flush = Flush::new().expect("memory");
        for _ in 0..3 {
            flush.all().expect("rights change");
        }
        flush.area.touch(0);
    }
}
