//! Frames that a program would get, held while others could take them.

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
    given: u64,
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
        hold(pages).map_or(Self::none(), |held| Self { held: Some(held), pages, given: 0 })
    }

    /// None are held.
    pub fn none() -> Self {
        Self { held: None, pages: 0, given: 0 }
    }

    /// Gives the next frame back to the kernel, which hands out first what was given back last on the same CPU: whoever
    /// touches a page now gets it. Whether there was one.
    pub fn give(&mut self) -> bool {
        let Some(held) = self.held.as_ref().filter(|_| self.given < self.pages) else { return false };
        held.advise(self.given * SMALL, SMALL, libc::MADV_DONTNEED);
        self.given += 1;
        true
    }
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

    use lookaside_host::{Pinned, Process};

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
}
