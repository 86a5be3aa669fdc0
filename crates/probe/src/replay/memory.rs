//! The memory that visits are replayed in: once with small pages, once with huge ones where the program could have them.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;

use lookaside_host::Mapping;
use lookaside_timing::{VisitLine, VisitWindow};
use rustix::mm::{MapFlags, ProtFlags};

use super::error::ReplayError;
use super::held_frames::HeldFrames;
use crate::metal::huge_bytes_at;

/// Bytes of a huge and of a small page.
pub const HUGE: u64 = 2 << 20;
pub const SMALL: u64 = 4096;
/// Pages that are touched before it is looked whether to stop.
const AT_ONCE: usize = 1 << 14;
/// Huge pages of those asked for that have to be there.
const ENOUGH: f64 = 0.9;

/// Where each 2 MiB window of the program lies in the replay's memory: those that may be huge first, those that nothing is
/// replayed in last.
pub struct ReplaySlots {
    of: HashMap<u64, u32>,
    /// Of these windows so many are huge in the huge copy.
    huge: u32,
    /// Of these windows so many are in the huge copy.
    replayed: u32,
    pages: Vec<u32>,
}

impl ReplaySlots {
    /// Of all lines of these windows; of those and of all others that the run touched, where `all_pages` says so.
    pub fn new(windows: &[&VisitWindow], touched: &[VisitLine], all_pages: bool) -> Self {
        let mut of = HashMap::new();
        let mut huge = 0;
        for wanted in [true, false] {
            for line in lines(windows).filter(|line| line.huge() == wanted) {
                let next = of.len() as u32;
                of.entry(line.window()).or_insert(next);
            }
            if wanted {
                huge = of.len() as u32;
            }
        }
        let replayed = of.len() as u32;
        let mut missing: HashSet<u64> = lines(windows).map(VisitLine::page).collect();
        let mut pages = Vec::new();
        let mut place = |line: VisitLine| {
            let next = of.len() as u32;
            let slot = *of.entry(line.window()).or_insert(next);
            pages.push(slot << 15 | line.offset());
        };
        touched.iter().filter(|line| missing.remove(&line.page()) || all_pages).for_each(|&line| place(line));
        // What the kernel left out of the order comes last.
        lines(windows).filter(|line| missing.remove(&line.page())).for_each(&mut place);
        Self { of, huge, replayed, pages }
    }

    /// Bytes that both copies take.
    pub fn bytes(&self) -> u64 {
        let small_in_huge_copy = self.pages.iter().filter(|&&line| self.is_small_in_huge_copy(line)).count();
        let small_pages = (self.pages.len() + small_in_huge_copy) as u64;
        // A table of leaf entries is a page, too.
        let tables = (self.of.len() + self.replayed as usize) as u64;
        (small_pages + tables) * SMALL + u64::from(self.huge) * HUGE
    }

    /// The line's number in the replay's memory.
    pub fn line(&self, line: VisitLine) -> u32 {
        self.of[&line.window()] << 15 | line.offset()
    }

    /// A line of each page of the small copy, in the order in which they are touched.
    pub fn pages(&self) -> &[u32] {
        &self.pages
    }

    fn is_small_in_huge_copy(&self, line: u32) -> bool {
        (self.huge..self.replayed).contains(&(line >> 15))
    }
}

fn lines<'a>(windows: &'a [&'a VisitWindow]) -> impl Iterator<Item = VisitLine> + 'a {
    windows.iter().flat_map(|window| window.visits.iter().map(|visit| visit.0).chain(window.others.iter().copied()))
}

/// Both copies, touched.
pub struct ReplayMemory {
    small: PageCopy,
    huge: PageCopy,
    huge_bytes: u64,
}

/// One copy: its first byte is at a multiple of 2 MiB.
pub struct PageCopy {
    _mapping: Mapping,
    base: u64,
}

impl PageCopy {
    /// Maps so many bytes, none of them touched.
    pub fn new(bytes: u64) -> Result<Self, ReplayError> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let mapping = Mapping::anonymous((bytes + HUGE) as usize, rights, MapFlags::PRIVATE | MapFlags::NORESERVE)
            .map_err(|e| ReplayError::Mapping(e.to_string()))?;
        let base = mapping.address().next_multiple_of(HUGE);
        Ok(Self { _mapping: mapping, base })
    }

    /// Advice, which a system without huge pages refuses: what came of it is looked at later.
    pub fn advise(&self, from: u64, bytes: u64, advice: i32) {
        // SAFETY: a part of our own mapping, to which there are no references.
        unsafe { libc::madvise((self.base + from) as *mut c_void, bytes as usize, advice) };
    }

    /// Writes to the page of this line, all of whose other words stay zero. Each page has contents of its own, lest a
    /// host merge equal ones; the last word of a page is never read as a link.
    pub fn touch(&self, line: u32) {
        let page = self.base + (u64::from(line) << 6) / SMALL * SMALL;
        // SAFETY: an aligned word within our own mapping.
        unsafe { ((page + SMALL - 8) as *mut u64).write_volatile(page) };
    }
}

impl ReplayMemory {
    /// Maps both and touches their pages, those of the small copy in the held frames as far as they last.
    pub fn new(slots: &ReplaySlots, mut held: HeldFrames, stop: &dyn Fn() -> bool) -> Result<Self, ReplayError> {
        let small_bytes = slots.of.len() as u64 * HUGE;
        let small = PageCopy::new(small_bytes)?;
        small.advise(0, small_bytes, libc::MADV_NOHUGEPAGE);
        touch(&small, slots.pages().iter().copied(), &mut held, stop)?;
        drop(held);
        let (huge_bytes, bytes) = (u64::from(slots.huge) * HUGE, u64::from(slots.replayed) * HUGE);
        let huge = PageCopy::new(bytes)?;
        huge.advise(0, huge_bytes, libc::MADV_HUGEPAGE);
        huge.advise(huge_bytes, bytes - huge_bytes, libc::MADV_NOHUGEPAGE);
        let replayed = slots.pages().iter().copied().filter(|line| line >> 15 < slots.replayed);
        touch(&huge, replayed, &mut HeldFrames::none(), stop)?;
        let got = huge_bytes_at(huge.base).unwrap_or(0);
        if (got as f64) < ENOUGH * huge_bytes as f64 {
            return Err(ReplayError::NoHugePages { got: got >> 20, wanted: huge_bytes >> 20 });
        }
        Ok(Self { small, huge, huge_bytes: got })
    }

    /// First byte of a copy.
    pub fn base(&self, huge: bool) -> u64 {
        if huge {
            self.huge.base
        } else {
            self.small.base
        }
    }

    /// Bytes that huge pages back.
    pub fn huge_bytes(&self) -> u64 {
        self.huge_bytes
    }
}

/// Touches the pages of these lines, one after another, each in the next of the frames that are held.
fn touch(
    copy: &PageCopy,
    lines: impl Iterator<Item = u32>,
    frames: &mut HeldFrames,
    stop: &dyn Fn() -> bool,
) -> Result<(), ReplayError> {
    for (at, line) in lines.enumerate() {
        if at % AT_ONCE == 0 && stop() {
            return Err(ReplayError::Stopped);
        }
        frames.give();
        copy.touch(line);
    }
    Ok(())
}
