//! Frames that a program would get, held while others could take them.

use lookaside_host::{FrameScatter, Process};

use super::error::ReplayError;
use super::replay_area::{ReplayArea, HUGE, SMALL};

/// Of the memory that is to be had, this part at most.
const PART: u64 = 8;
/// Bytes at the most: they are touched in half a second.
const MOST_BYTES: u64 = 1 << 30;

/// The frames that a program asking for small pages gets first, in the order in which it gets them.
///
/// The kernel gives out the smallest free pieces of memory before it breaks up larger ones. The first frames are
/// therefore scattered, and their walks are dearer: in a virtual machine eight frames side by side share a line of the
/// host's page table, and some processors keep translations of four frames in one entry. A recording takes a lot of
/// memory; what is replayed after it would get other frames than the program by itself, if these were not held until
/// then.
pub struct HeldFrames {
    held: Option<ReplayArea>,
    pages: u64,
    /// The next to be given.
    next: u64,
    /// How scattered those that are given shall be, if that is known.
    wanted: Option<FrameScatter>,
}

impl HeldFrames {
    /// Holds the free memory that is in pieces smaller than a huge page: at most 1 GiB, and an eighth of what is to be
    /// had.
    pub fn hold() -> Self {
        let available = lookaside_host::available_bytes().unwrap_or(0);
        let bytes = lookaside_host::fragmented_free_bytes().min(available / PART).min(MOST_BYTES);
        Self::of_pages(bytes / SMALL)
    }

    /// So many frames; none where they can't be had.
    fn of_pages(pages: u64) -> Self {
        hold(pages).map_or(Self::none(), |held| Self { held: Some(held), pages, ..Self::none() })
    }

    /// None are held.
    pub fn none() -> Self {
        Self { held: None, pages: 0, next: 0, wanted: None }
    }

    /// Of the frames that are held, those shall be given that are as scattered as these. Without it, the first.
    #[must_use]
    pub fn as_scattered_as(self, wanted: Option<FrameScatter>) -> Self {
        Self { wanted, ..self }
    }

    /// How scattered they shall be.
    pub(super) fn wanted(&self) -> Option<FrameScatter> {
        self.wanted
    }

    /// Before so many are given: goes to the place in the order from which on they are as scattered as was wanted. How
    /// scattered they are then; `None` where that may not be seen.
    pub(super) fn begin(&mut self, count: u64) -> Option<FrameScatter> {
        let held = self.held.as_ref()?;
        let frames =
            Process::own().frames(held.base(), self.pages).filter(|frames| frames.len() as u64 == self.pages)?;
        let count = (count as usize).min(frames.len());
        let last = frames.len() - count;
        let first = self.wanted.map_or(0, |wanted| nearest(&frames, count, last, wanted.times_fewest()));
        self.next = first as u64;
        FrameScatter::of(&frames[first..first + count])
    }

    /// Gives the next frame back to the kernel, which hands out first what was given back last on the same CPU: whoever
    /// touches a page now gets it. Whether there was one.
    pub fn give(&mut self) -> bool {
        let Some(held) = self.held.as_ref().filter(|_| self.next < self.pages) else { return false };
        held.advise(self.next * SMALL, SMALL, libc::MADV_DONTNEED);
        self.next += 1;
        true
    }
}

/// Where, up to `last`, `count` frames begin whose scatter is nearest to the one wanted; of equal places the first.
fn nearest(frames: &[u64], count: usize, last: usize, wanted: f64) -> usize {
    /// Places are tried so far from each other: 4 MiB of frames.
    const STEP: usize = 1024;
    let off = |first: usize| {
        let of = FrameScatter::of(&frames[first..first + count]);
        of.map_or(f64::INFINITY, |scatter| (scatter.times_fewest() - wanted).abs())
    };
    (0..=last)
        .step_by(STEP)
        .map(|first| (off(first), first))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(0, |best| best.1)
}

fn hold(pages: u64) -> Result<ReplayArea, ReplayError> {
    let bytes = (pages * SMALL).next_multiple_of(HUGE);
    let area = ReplayArea::new(bytes)?;
    area.advise(0, bytes, libc::MADV_NOHUGEPAGE);
    (0..pages).for_each(|page| area.touch((page << 6) as u32));
    Ok(area)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use lookaside_host::Pinned;

    use super::*;

    const PAGES: u64 = 512;
    /// Bits of an entry (Documentation/admin-guide/mm/pagemap.rst): the frame, 0 for those who may not know; it is there.
    const FRAME: u64 = (1 << 55) - 1;
    const PRESENT: u64 = 1 << 63;

    fn entries(area: &ReplayArea) -> Vec<u64> {
        let pagemap = Process::own().open("pagemap").expect("our own");
        let mut bytes = [0; PAGES as usize * 8];
        pagemap.read_exact_at(&mut bytes, area.base() / SMALL * 8).expect("entries");
        bytes.chunks(8).map(|entry| u64::from_ne_bytes(entry.try_into().expect("eight bytes"))).collect()
    }

    #[test]
    fn a_page_lies_in_the_frame_that_is_given_for_it() {
        // On one CPU: what is given back there is handed out there.
        let _pinned = Pinned::here().expect("a CPU");
        let mut held = HeldFrames::of_pages(PAGES);
        let before = entries(held.held.as_ref().expect("memory"));
        let area = ReplayArea::new(PAGES * SMALL).expect("memory");
        area.advise(0, PAGES * SMALL, libc::MADV_NOHUGEPAGE);
        for page in 0..PAGES as u32 {
            assert!(held.give());
            area.touch(page << 6);
        }
        assert!(!held.give() && !HeldFrames::none().give());
        let left = entries(held.held.as_ref().expect("memory")).iter().filter(|entry| *entry & PRESENT != 0).count();
        assert_eq!((left, before.iter().filter(|entry| *entry & PRESENT != 0).count()), (0, PAGES as usize));
        // Others may take a frame between, and the kernel lets go of the pages touched last a little later. Who may not see
        // frames sees 0 for all.
        let same = entries(&area).iter().zip(&before).filter(|(new, old)| *new & FRAME == *old & FRAME).count();
        assert!(same as u64 > PAGES * 9 / 10, "{same} of {PAGES}");
    }

    #[test]
    fn a_place_is_found_by_its_scatter() {
        // Scattered, then in pairs, then side by side; 4096 frames each.
        let kinds = [8, 4, 1].map(|step| {
            (0..4096u64).map(move |at| step * (1 << 20) + if step == 4 { at / 2 * 8 + at % 2 } else { at * step })
        });
        let frames: Vec<u64> = kinds.into_iter().flatten().collect();
        let from = |wanted| nearest(&frames, 4096, frames.len() - 4096, wanted);
        assert_eq!((from(8.0), from(4.0), from(1.0)), (0, 4096, 8192));
        // Half of these and half of those.
        assert_eq!((from(6.0), from(2.5)), (2048, 6144));
        assert_eq!(nearest(&frames, frames.len(), 0, 1.0), 0);
    }
}
