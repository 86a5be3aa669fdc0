//! Frames that a program would get, held while others could take them.

use super::error::ReplayError;
use super::page_copy::{PageCopy, HUGE, SMALL};

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
    held: Option<PageCopy>,
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
    pub(super) fn of_pages(pages: u64) -> Self {
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

fn hold(pages: u64) -> Result<PageCopy, ReplayError> {
    let bytes = (pages * SMALL).next_multiple_of(HUGE);
    let copy = PageCopy::new(bytes)?;
    copy.advise(0, bytes, libc::MADV_NOHUGEPAGE);
    (0..pages).for_each(|page| copy.touch((page << 6) as u32));
    Ok(copy)
}
