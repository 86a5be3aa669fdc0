//! The memory that visits are replayed in: once with small pages, once with huge ones where the program could have them.

use std::collections::HashMap;
use std::ffi::c_void;

use lookaside_host::Mapping;
use lookaside_timing::{VisitLine, VisitWindow};
use rustix::mm::{MapFlags, ProtFlags};

use super::error::ReplayError;
use crate::metal::huge_bytes_at;

/// Bytes of a huge and of a small page.
pub const HUGE: u64 = 2 << 20;
pub const SMALL: u64 = 4096;
/// Pages that are touched before it is looked whether to stop.
const AT_ONCE: usize = 1 << 14;
/// Huge pages of those asked for that have to be there.
const ENOUGH: f64 = 0.9;

/// Where each 2 MiB window of the program lies in the replay's memory: those that may be huge first.
pub struct ReplaySlots {
    of: HashMap<u64, u32>,
    huge: u32,
    small_pages: u64,
    small_pages_of_small: u64,
}

impl ReplaySlots {
    /// Of all lines of these windows.
    pub fn new(windows: &[&VisitWindow]) -> Self {
        let mut of = HashMap::new();
        let mut pages = std::collections::HashSet::new();
        let mut huge = 0;
        for wanted in [true, false] {
            for line in lines(windows).filter(|line| line.huge() == wanted) {
                let next = of.len() as u32;
                of.entry(line.window()).or_insert(next);
                pages.insert((line.window(), line.offset() >> 6));
            }
            if wanted {
                huge = of.len() as u32;
            }
        }
        let is_small = |(window, _): &&(u64, u32)| of[window] >= huge;
        let small_pages_of_small = pages.iter().filter(is_small).count() as u64;
        Self { huge, small_pages: pages.len() as u64, small_pages_of_small, of }
    }

    /// Bytes that both copies take.
    pub fn bytes(&self) -> u64 {
        let copies = self.small_pages + self.small_pages_of_small;
        // A table of leaf entries is a page, too.
        copies * SMALL + u64::from(self.huge) * HUGE + 2 * self.of.len() as u64 * SMALL
    }

    /// The line's number in the replay's memory.
    pub fn line(&self, line: VisitLine) -> u32 {
        self.of[&line.window()] << 15 | line.offset()
    }

    fn reserved(&self) -> u64 {
        self.of.len() as u64 * HUGE
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
    /// Maps both and touches each page that the windows touch, in their order.
    pub fn new(slots: &ReplaySlots, windows: &[&VisitWindow], stop: &dyn Fn() -> bool) -> Result<Self, ReplayError> {
        let (small, huge) = (PageCopy::new(slots.reserved())?, PageCopy::new(slots.reserved())?);
        let huge_wanted = u64::from(slots.huge) * HUGE;
        small.advise(0, slots.reserved(), libc::MADV_NOHUGEPAGE);
        huge.advise(0, huge_wanted, libc::MADV_HUGEPAGE);
        huge.advise(huge_wanted, slots.reserved() - huge_wanted, libc::MADV_NOHUGEPAGE);
        let mut pages: Vec<u32> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for line in lines(windows) {
            let page = slots.line(line) >> 6;
            if seen.insert(page) {
                pages.push(page << 6);
            }
        }
        for some in pages.chunks(AT_ONCE) {
            if stop() {
                return Err(ReplayError::Stopped);
            }
            some.iter().for_each(|&line| {
                small.touch(line);
                huge.touch(line);
            });
        }
        let got = huge_bytes_at(huge.base).unwrap_or(0);
        if (got as f64) < ENOUGH * huge_wanted as f64 {
            return Err(ReplayError::NoHugePages { got: got >> 20, wanted: huge_wanted >> 20 });
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
