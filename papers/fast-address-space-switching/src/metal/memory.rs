//! What participants read: an area each, the same for processes and threads.

use std::ptr::NonNull;

use lookaside_host::Process;
use lookaside_stats::SplitMix64;
use rustix::mm::{madvise, mmap_anonymous, mprotect, munmap, Advice, MapFlags, MprotectFlags, ProtFlags};

use super::plan::{AreaLayout, PageKind, HUGE_PAGE, PAGE};

/// Lines of a page.
const LINES: u64 = 64;
const LINE: u64 = 64;

/// Areas of one benchmark, of one kind of pages. Written once; then they can be read only, so that processes forked
/// after that have the same frames for ever.
#[derive(Debug)]
pub(super) struct Areas {
    mapping: NonNull<u8>,
    mapped: usize,
    /// Address of the first.
    pub start: usize,
    /// Bytes from one to the next; 0: there are none.
    pub stride: u64,
    bytes: usize,
}

impl Areas {
    /// Every page of them is touched. With `counts`, each area has circular chains through so many of its first pages.
    pub(super) fn new(
        layout: AreaLayout,
        pages: PageKind,
        counts: &[u64],
        random: &mut SplitMix64,
    ) -> Result<Self, String> {
        let stride = layout.bytes_each;
        let bytes = usize::try_from(layout.bytes()).map_err(|_| "more memory than there are addresses")?;
        // What is mapped need not begin on a huge page. Never empty.
        let mapped = bytes + HUGE_PAGE as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // Or the kernel would set aside as much again for each process.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, wherever the system likes.
        let mapping = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, access, flags) };
        let mapping = mapping.map_err(|error| format!("{} MiB of memory: {error}", bytes >> 20))?;
        let mapping = NonNull::new(mapping.cast::<u8>()).ok_or("the system maps at 0")?;
        let start = (mapping.as_ptr() as usize).next_multiple_of(HUGE_PAGE as usize);
        let areas = Self { mapping, mapped, start, stride, bytes };
        let advice = match pages {
            PageKind::Base => Advice::LinuxNoHugepage,
            PageKind::Huge => Advice::LinuxHugepage,
        };
        // SAFETY: the mapping is ours. A kernel without huge pages refuses: then there are none, which `huge_bytes`
        // tells.
        let _ = unsafe { madvise(mapping.as_ptr().cast(), mapped, advice) };
        for area in 0..layout.areas as u64 {
            fill(stride, counts, random, &mut |at, word| areas.write(area, at, word));
        }
        // The rest stays as it is, so that the kernel lists areas of different pages apart.
        // SAFETY: within the mapping; nobody writes to it from here on.
        unsafe { mprotect(start as *mut _, bytes, MprotectFlags::READ) }
            .map_err(|error| format!("protecting memory: {error}"))?;
        Ok(areas)
    }

    fn write(&self, area: u64, at: u64, word: u32) {
        let at = area * self.stride + at;
        debug_assert!(at + 4 <= self.bytes as u64);
        // SAFETY: within the mapping, of which nobody else knows yet.
        unsafe { ((self.start as u64 + at) as *mut u32).write_volatile(word) };
    }

    /// Bytes that lie in huge pages.
    pub(super) fn huge_bytes(&self) -> u64 {
        let own = self.start as u64..self.start as u64 + self.bytes as u64;
        let smaps = Process::own().smaps().unwrap_or_default();
        smaps.iter().filter(|vma| vma.overlaps(&own)).map(|vma| vma.anonymous_huge_bytes).sum()
    }

    /// Bytes of all areas.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

impl Drop for Areas {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; the ring's threads that read it have ended, and processes have their own.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}

/// Touches every page of an area of so many bytes, and writes its chains: words at distances from its begin.
pub(super) fn fill(bytes: u64, counts: &[u64], random: &mut SplitMix64, write: &mut impl FnMut(u64, u32)) {
    for page in 0..bytes / PAGE {
        write(page * PAGE, 0);
    }
    let most = counts.iter().copied().max().unwrap_or_default();
    // Words of a chain lie on lines all over: in one place of all pages they would share few sets of the data caches.
    // The chain begins in the first.
    let lines: Vec<u64> = (0..most).map(|page| if page == 0 { 0 } else { random.below(LINES) }).collect();
    for (column, count) in counts.iter().enumerate() {
        let place = |page: u64| page * PAGE + lines[page as usize] * LINE;
        for (page, next) in circle(*count, random) {
            write(place(page) + 4 * column as u64, place(next) as u32);
        }
    }
}

/// So many pages in a circle of random order that begins with page 0: each with the next.
fn circle(count: u64, random: &mut SplitMix64) -> Vec<(u64, u64)> {
    let mut order: Vec<u64> = (0..count).collect();
    if let Some((_, rest)) = order.split_first_mut() {
        random.shuffle(rest);
    }
    let nexts = order.iter().cycle().skip(1);
    order.iter().copied().zip(nexts.copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circle of a column, as a participant walks it: offsets of the pages' words.
    fn walked(areas: &Areas, area: u64, column: usize) -> Vec<u64> {
        let mut seen = Vec::new();
        let mut at = 0;
        loop {
            seen.push(at);
            let word = areas.start as u64 + area * areas.stride + at + 4 * column as u64;
            // SAFETY: chains lead through their area only; the test would else end in a fault, which is what it is for.
            at = u64::from(unsafe { (word as *const u32).read_volatile() });
            if at == 0 || seen.len() > 10_000 {
                return seen;
            }
        }
    }

    #[test]
    fn a_chain_leads_through_each_of_its_pages_once() {
        let counts = [1, 2, 7, 300];
        for pages in [PageKind::Base, PageKind::Huge] {
            let layout = AreaLayout { areas: 3, bytes_each: HUGE_PAGE };
            let areas = Areas::new(layout, pages, &counts, &mut SplitMix64::new(5)).expect("memory");
            assert!(areas.huge_bytes() <= areas.bytes());
            if pages == PageKind::Base {
                assert_eq!(areas.huge_bytes(), 0);
            }
            for area in 0..3 {
                for (column, count) in counts.iter().enumerate() {
                    let walk = walked(&areas, area, column);
                    let mut seen: Vec<u64> = walk.iter().map(|at| at / PAGE).collect();
                    seen.sort_unstable();
                    assert_eq!(seen, (0..*count).collect::<Vec<_>>(), "{area} {column}");
                    // No two words of a chain are the same, nor do they all lie at the same place of their page.
                    assert!(*count < 100 || walk.iter().any(|at| at % PAGE != 0));
                }
            }
            assert_ne!(walked(&areas, 0, 3), walked(&areas, 1, 3));
        }
    }

    #[test]
    fn nothing_to_read_is_no_memory() {
        let layout = AreaLayout { areas: 64, bytes_each: 0 };
        let areas = Areas::new(layout, PageKind::Base, &[], &mut SplitMix64::new(1)).expect("memory");
        assert_eq!((areas.bytes(), areas.huge_bytes()), (0, 0));
    }
}
