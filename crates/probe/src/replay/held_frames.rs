//! Frames that a program would get, held while others could take them.

use std::collections::HashSet;

use lookaside_host::{FrameScatter, Process, BLOCK_FRAMES, REGION_FRAMES};

use super::error::ReplayError;
use super::frame_choice::choose;
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
    /// Of these pages those that are given now, in this order, and the next of these.
    order: Vec<u32>,
    next: usize,
    /// How scattered the program's were.
    program: Option<FrameScatter>,
    /// All frames in the order in which the kernel gave them out; none where they may not be seen.
    given_out: Vec<u64>,
}

/// The frames that a replay's small pages get.
#[derive(Clone, Debug, Default)]
pub(super) struct ChosenFrames {
    /// Like the program's, and how scattered they are, where that may be seen.
    pub like_program: Vec<u32>,
    pub like_program_scatter: Option<FrameScatter>,
    /// Like those that the kernel gave out before the recording. None where that may not be seen.
    pub like_before: Vec<u32>,
    pub like_before_scatter: Option<FrameScatter>,
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
        let Ok(held) = hold(pages) else { return Self::none() };
        let seen = Process::own().frames(held.base(), pages).filter(|frames| frames.len() as u64 == pages);
        Self { held: Some(held), pages, given_out: seen.unwrap_or_default(), ..Self::none() }
    }

    /// None are held.
    pub fn none() -> Self {
        Self { held: None, pages: 0, order: Vec::new(), next: 0, program: None, given_out: Vec::new() }
    }

    /// Gives all back for a while, so that a program gets those that it would get by itself, and what `run` says of the
    /// program's; then holds what there is.
    #[must_use]
    pub fn released_for<T>(self, run: impl FnOnce() -> (T, Option<FrameScatter>)) -> (T, Self) {
        let given_out = self.given_out;
        drop(self.held);
        let (result, program) = run();
        (result, Self { program, given_out, ..Self::hold() })
    }

    /// How scattered the program's were.
    pub(super) fn program(&self) -> Option<FrameScatter> {
        self.program
    }

    /// Chooses those for so many pages like the program's, and for so many like those before it.
    pub(super) fn choose(&self, like_program: u64, like_before: u64) -> ChosenFrames {
        let Some(held) = &self.held else { return ChosenFrames::default() };
        let seen = Process::own().frames(held.base(), self.pages).filter(|seen| seen.len() as u64 == self.pages);
        let before = |pages| first_scatter(&self.given_out, pages);
        let (Some(frames), Some(wanted)) = (seen, self.program.or(before(like_program))) else {
            // As the kernel gave them out.
            let first = (0..self.pages.min(like_program) as u32).collect();
            return ChosenFrames { like_program: first, ..ChosenFrames::default() };
        };
        let scatter = |chosen: &[u32]| {
            FrameScatter::of(&chosen.iter().map(|&place| frames[place as usize]).collect::<Vec<u64>>())
        };
        let all: Vec<u32> = (0..frames.len() as u32).collect();
        let like_program = choose(&frames, &all, like_program as usize, wanted);
        let taken: HashSet<u32> = like_program.iter().copied().collect();
        let left: Vec<u32> = all.into_iter().filter(|place| !taken.contains(place)).collect();
        let like_before =
            before(like_before).map_or_else(Vec::new, |wanted| choose(&frames, &left, like_before as usize, wanted));
        ChosenFrames {
            like_program_scatter: scatter(&like_program),
            like_before_scatter: scatter(&like_before),
            like_program,
            like_before,
        }
    }

    /// From now on gives these.
    pub(super) fn begin(&mut self, order: Vec<u32>) {
        (self.order, self.next) = (order, 0);
    }

    /// Gives the next frame back to the kernel, which hands out first what was given back last on the same CPU: whoever
    /// touches a page now gets it. Whether there was one.
    pub fn give(&mut self) -> bool {
        let (Some(held), Some(&place)) = (&self.held, self.order.get(self.next)) else { return false };
        held.advise(u64::from(place) * SMALL, SMALL, libc::MADV_DONTNEED);
        self.next += 1;
        true
    }
}

/// How scattered the frames of so many pages are that get these frames first, and then others side by side. `None` of
/// none.
fn first_scatter(given_out: &[u64], pages: u64) -> Option<FrameScatter> {
    let scattered = FrameScatter::of(&given_out[..given_out.len().min(pages as usize)])?;
    let beyond = pages - scattered.pages;
    Some(FrameScatter {
        pages,
        blocks: scattered.blocks + beyond.div_ceil(BLOCK_FRAMES),
        regions: scattered.regions + beyond.div_ceil(REGION_FRAMES),
    })
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
    /// Bits of an entry (Documentation/admin-guide/mm/pagemap.rst): the frame, 0 for those who may not know; it is
    /// there.
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
        held.begin((0..PAGES as u32).collect());
        let area = ReplayArea::new(PAGES * SMALL).expect("memory");
        area.advise(0, PAGES * SMALL, libc::MADV_NOHUGEPAGE);
        for page in 0..PAGES as u32 {
            assert!(held.give());
            area.touch(page << 6);
        }
        assert!(!held.give() && !HeldFrames::none().give());
        let left = entries(held.held.as_ref().expect("memory")).iter().filter(|entry| *entry & PRESENT != 0).count();
        assert_eq!((left, before.iter().filter(|entry| *entry & PRESENT != 0).count()), (0, PAGES as usize));
        // Others may take a frame between, and the kernel lets go of the pages touched last a little later. Who may not
        // see frames sees 0 for all.
        let same = entries(&area).iter().zip(&before).filter(|(new, old)| *new & FRAME == *old & FRAME).count();
        assert!(same as u64 > PAGES * 9 / 10, "{same} of {PAGES}");
    }

    #[test]
    fn the_first_frames_are_followed_by_others_side_by_side() {
        let given_out: Vec<u64> = (0..100).map(|frame| frame * 512).collect();
        let wanted = |pages| first_scatter(&given_out, pages).map(|of| (of.pages, of.blocks, of.regions));
        assert_eq!(wanted(50), Some((50, 50, 50)));
        assert_eq!(wanted(100 + 1024), Some((1124, 100 + 128, 102)));
        assert_eq!(first_scatter(&[], 7), None);
    }

    #[test]
    fn no_frame_is_chosen_for_both() {
        let held = HeldFrames::of_pages(4096);
        let chosen = held.choose(1000, 500);
        assert_eq!(chosen.like_program.len(), 1000);
        let all: HashSet<u32> = chosen.like_program.iter().chain(&chosen.like_before).copied().collect();
        assert_eq!(all.len(), 1000 + chosen.like_before.len());
        // Who may not see frames has none for the others.
        assert_eq!(chosen.like_before.len(), if chosen.like_before_scatter.is_some() { 500 } else { 0 });
        assert!(HeldFrames::none().choose(10, 10).like_program.is_empty());
    }
}
