//! The memory that visits are replayed in: small pages for all of it, and beside these, where the program could have
//! huge pages, other small ones and huge ones.

use std::collections::{HashMap, HashSet};

use lookaside_host::FrameScatter;
use lookaside_timing::{VisitLine, VisitWindow};

use super::error::ReplayError;
use super::held_frames::HeldFrames;
use super::replay_area::{ReplayArea, HUGE, SMALL};
use crate::metal::huge_bytes_at;

/// Pages that are touched before it is looked whether to stop.
const AT_ONCE: usize = 1 << 14;
/// Huge pages of those asked for that have to be there.
const ENOUGH: f64 = 0.9;
/// log2 of the lines in a 2 MiB window.
const WINDOW_SHIFT: u32 = 15;
/// Windows at the most, each with three places: lines have numbers of 32 bits.
const MOST_WINDOWS: usize = (1 << (32 - WINDOW_SHIFT)) / ReplayPages::ALL.len();

/// What the memory of a window that may be huge consists of. All else is in held frames, whatever it is replayed
/// beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayPages {
    /// Small pages in frames like the program's ([`HeldFrames`]).
    SmallHeld,
    /// Small pages in frames like those that the kernel gave out before the program was recorded; where that may not be
    /// seen in frames that come now, rather side by side.
    SmallOther,
    /// Huge pages.
    Huge,
}

impl ReplayPages {
    /// In the order of their places.
    pub const ALL: [Self; 3] = [Self::SmallHeld, Self::SmallOther, Self::Huge];
}

/// Where each 2 MiB window of the program lies in the replay's memory: those that may be huge first. These have two
/// more places behind all windows.
pub struct ReplaySlots {
    of: HashMap<u64, u32>,
    /// So many windows may be huge.
    huge: u32,
    /// A line of each small page, in the order in which they are touched.
    pages: Vec<u32>,
}

impl ReplaySlots {
    /// Of all lines of these windows; of those and of all others that the run touched, where `all_pages` says so.
    pub fn new(windows: &[&VisitWindow], touched: &[VisitLine], all_pages: bool) -> Self {
        let mut of = HashMap::new();
        for line in lines(windows).filter(|line| line.huge()) {
            let next = of.len() as u32;
            of.entry(line.window()).or_insert(next);
        }
        let huge = of.len() as u32;
        let mut missing: HashSet<u64> = lines(windows).map(VisitLine::page).collect();
        let mut pages = Vec::new();
        let mut place = |line: VisitLine| {
            let next = of.len() as u32;
            pages.push(number(*of.entry(line.window()).or_insert(next), line));
        };
        touched.iter().filter(|line| missing.remove(&line.page()) || all_pages).for_each(|&line| place(line));
        // A page that was not seen to be touched comes last.
        lines(windows).filter(|line| missing.remove(&line.page())).for_each(&mut place);
        Self { of, huge, pages }
    }

    /// Whether its memory is no more than these bytes.
    pub fn fits(&self, bytes: u64) -> bool {
        self.of.len() <= MOST_WINDOWS && self.bytes() <= bytes
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        let others = self.others().count();
        // A table of leaf entries is a page, too.
        let tables = self.of.len() + self.huge as usize;
        (self.pages.len() + others + tables) as u64 * SMALL + u64::from(self.huge) * HUGE
    }

    /// A line of each small page, in the order in which they are touched.
    pub fn pages(&self) -> &[u32] {
        &self.pages
    }

    /// A line of each page of [`ReplayPages::SmallOther`], in the order in which they are touched.
    pub fn others(&self) -> impl Iterator<Item = u32> + '_ {
        let first = self.first(ReplayPages::SmallOther);
        let huge = self.pages.iter().filter(|&&line| line >> WINDOW_SHIFT < self.huge);
        huge.map(move |line| line + (first << WINDOW_SHIFT))
    }

    /// The first slot of such pages.
    fn first(&self, kind: ReplayPages) -> u32 {
        match kind {
            ReplayPages::SmallHeld => 0,
            ReplayPages::SmallOther => self.of.len() as u32,
            ReplayPages::Huge => self.of.len() as u32 + self.huge,
        }
    }

    /// The line's number in the replay's memory.
    pub fn line(&self, line: VisitLine, kind: ReplayPages) -> u32 {
        self.in_pages(number(self.of[&line.window()], line), kind)
    }

    /// The number in such pages of a line that has this number in [`ReplayPages::SmallHeld`].
    #[inline]
    pub fn in_pages(&self, line: u32, kind: ReplayPages) -> u32 {
        let may_be_huge = line >> WINDOW_SHIFT < self.huge;
        line + if may_be_huge { self.first(kind) << WINDOW_SHIFT } else { 0 }
    }
}

fn number(slot: u32, line: VisitLine) -> u32 {
    slot << WINDOW_SHIFT | line.offset()
}

fn lines<'a>(windows: &'a [&'a VisitWindow]) -> impl Iterator<Item = VisitLine> + 'a {
    windows.iter().flat_map(|window| window.visits.iter().map(|visit| visit.line).chain(window.others.iter().copied()))
}

/// The memory itself, each page of it touched.
pub struct ReplayMemory {
    area: ReplayArea,
    huge_bytes: u64,
    scatter: [Option<FrameScatter>; 2],
}

impl ReplayMemory {
    /// Maps it and touches its pages, those of [`ReplayPages::SmallHeld`] in the held frames as far as these last.
    pub fn new(slots: &ReplaySlots, mut held: HeldFrames, stop: &dyn Fn() -> bool) -> Result<Self, ReplayError> {
        let small_bytes = u64::from(slots.first(ReplayPages::Huge)) * HUGE;
        let huge_bytes = u64::from(slots.huge) * HUGE;
        let area = ReplayArea::new(small_bytes + huge_bytes)?;
        area.advise(0, small_bytes, libc::MADV_NOHUGEPAGE);
        area.advise(small_bytes, huge_bytes, libc::MADV_HUGEPAGE);
        let frames = held.choose(slots.pages().len() as u64, slots.others().count() as u64);
        held.begin(frames.like_program);
        touch(&area, slots.pages().iter().copied(), &mut held, stop)?;
        // Beyond those that are given: while the rest is held, the kernel has to break up large pieces of memory.
        held.begin(frames.like_before);
        touch(&area, slots.others(), &mut held, stop)?;
        drop(held);
        let huge_windows = (slots.first(ReplayPages::Huge)..).take(slots.huge as usize);
        touch(&area, huge_windows.map(|slot| slot << WINDOW_SHIFT), &mut HeldFrames::none(), stop)?;
        let got = if huge_bytes > 0 { huge_bytes_at(area.base() + small_bytes).unwrap_or(0) } else { 0 };
        if (got as f64) < ENOUGH * huge_bytes as f64 {
            return Err(ReplayError::NoHugePages { got: got >> 20, wanted: huge_bytes >> 20 });
        }
        let scatter = [frames.like_program_scatter, frames.like_before_scatter];
        Ok(Self { area, huge_bytes: got, scatter })
    }

    /// Its first byte.
    pub fn base(&self) -> u64 {
        self.area.base()
    }

    /// Bytes that huge pages back.
    pub fn huge_bytes(&self) -> u64 {
        self.huge_bytes
    }

    /// How scattered the frames are of [`ReplayPages::SmallHeld`] and of [`ReplayPages::SmallOther`]; `None` = that may
    /// not be seen.
    pub fn scatter(&self) -> [Option<FrameScatter>; 2] {
        self.scatter
    }
}

/// Touches the pages of these lines, one after another, each in the next of the frames that are held.
fn touch(
    area: &ReplayArea,
    lines: impl Iterator<Item = u32>,
    frames: &mut HeldFrames,
    stop: &dyn Fn() -> bool,
) -> Result<(), ReplayError> {
    for (at, line) in lines.enumerate() {
        if at % AT_ONCE == 0 && stop() {
            return Err(ReplayError::Stopped);
        }
        frames.give();
        area.touch(line);
    }
    Ok(())
}
