//! The frames that a process's pages lie in, and how scattered they are.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;

use crate::{Process, Vma};

/// Bytes of a page, by which `/proc/PID/pagemap` counts.
const PAGE: u64 = 4096;
/// Bits of an entry (Documentation/admin-guide/mm/pagemap.rst): the frame, 0 for those who may not know it; it is
/// there.
const FRAME: u64 = (1 << 55) - 1;
const PRESENT: u64 = 1 << 63;

/// Frames of a block: side by side, their entries share a line of a page table, 64 bytes of 8 each.
pub const BLOCK_FRAMES: u64 = 8;
/// Frames of a region of 2 MiB: they share a whole table, and the entry of the table above it.
pub const REGION_FRAMES: u64 = 512;

/// Stretches of a process's memory that are looked at, at most, and pages of each: a millisecond's reading.
const STRETCHES: u64 = 128;
const STRETCH_PAGES: u64 = 512;

/// How scattered the frames of some pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameScatter {
    /// Pages that were looked at, and are in memory.
    pub pages: u64,
    /// Different blocks of eight frames side by side that these pages lie in.
    pub blocks: u64,
    /// Different regions of 2 MiB that they lie in.
    pub regions: u64,
}

impl FrameScatter {
    /// Of frames by their numbers; `None` = of none.
    pub fn of(frames: &[u64]) -> Option<Self> {
        let parts = |size: u64| frames.iter().map(|frame| frame / size).collect::<HashSet<u64>>().len() as u64;
        let (blocks, regions) = (parts(BLOCK_FRAMES), parts(REGION_FRAMES));
        (!frames.is_empty()).then_some(Self { pages: frames.len() as u64, blocks, regions })
    }

    /// Of a process's anonymous memory in mappings of 2 MiB and more: all of it, or 128 stretches of 2 MiB. `None`
    /// where there is none, or the frames may not be seen.
    pub fn of_process(process: &Process) -> Option<Self> {
        let areas = process.maps().ok()?;
        let pages = |area: &Vma| (area.end - area.start) / PAGE;
        let large: Vec<&Vma> = areas.iter().filter(|area| is_anonymous(area) && pages(area) >= STRETCH_PAGES).collect();
        let stretches: Vec<u64> = large
            .iter()
            .flat_map(|area| (0..pages(area) / STRETCH_PAGES).map(|at| area.start + at * STRETCH_PAGES * PAGE))
            .collect();
        let every = (stretches.len() as u64).div_ceil(STRETCHES).max(1) as usize;
        let looked = stretches.into_iter().step_by(every);
        let frames = looked.map(|start| process.frames(start, STRETCH_PAGES)).collect::<Option<Vec<_>>>()?.concat();
        Self::of(&frames)
    }

    /// Blocks that hold the pages ÷ the fewest that could: 1 = all side by side, 8 = none.
    pub fn times_fewest(self) -> f64 {
        self.blocks as f64 * BLOCK_FRAMES as f64 / self.pages as f64
    }

    /// Regions for each page: 1 ÷ 512 = side by side, 1 = each in another.
    pub fn regions_a_page(self) -> f64 {
        self.regions as f64 / self.pages as f64
    }
}

fn is_anonymous(area: &Vma) -> bool {
    let named = matches!(area.name.as_str(), "" | "[heap]") || area.name.starts_with("[anon:");
    named && area.is_private()
}

impl Process {
    /// The frames of those of these pages that are in memory, in order; `None` where they may not be seen
    /// (`CAP_SYS_ADMIN`), or the process has ended.
    pub fn frames(&self, start: u64, pages: u64) -> Option<Vec<u64>> {
        let mut bytes = vec![0; pages as usize * 8];
        let mut filled = 0;
        let pagemap = self.open("pagemap").ok()?;
        while filled < bytes.len() {
            match pagemap.read_at(&mut bytes[filled..], start / PAGE * 8 + filled as u64).ok()? {
                0 => return None,
                read => filled += read,
            }
        }
        let (entries, _) = bytes.as_chunks::<8>();
        let entries = entries.iter().map(|entry| u64::from_ne_bytes(*entry)).filter(|entry| entry & PRESENT != 0);
        entries.map(|entry| Some(entry & FRAME).filter(|frame| *frame != 0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scatter_is_blocks_of_the_fewest() {
        let of = |frames: &[u64]| FrameScatter::of(frames).map(FrameScatter::times_fewest);
        assert_eq!(of(&(160..224).collect::<Vec<_>>()), Some(1.0));
        assert_eq!(of(&(0..64).map(|frame| frame * 8).collect::<Vec<_>>()), Some(8.0));
        // Neighbours, but half a block off: nine blocks for eight.
        assert_eq!(of(&(4..68).collect::<Vec<_>>()), Some(9.0 / 8.0));
        assert_eq!(of(&[]), None);
        let regions = FrameScatter::of(&[511, 512, 513, 1023, 1024, 5000]).map(FrameScatter::regions_a_page);
        assert_eq!(regions, Some(4.0 / 6.0));
    }

    #[test]
    fn who_may_not_see_frames_gets_none() {
        let memory = vec![1u8; 8 << 20];
        let start = (memory.as_ptr() as u64).next_multiple_of(PAGE);
        match Process::own().frames(start, 1024) {
            Some(frames) => {
                let scatter = FrameScatter::of(&frames).expect("it is in memory");
                assert!((1.0..=8.0).contains(&scatter.times_fewest()) && scatter.pages == 1024, "{scatter:?}");
                assert!(FrameScatter::of_process(&Process::own()).is_some_and(|all| all.pages >= 1024));
            }
            None => assert_eq!(FrameScatter::of_process(&Process::own()), None),
        }
        assert_eq!(Process::of(u32::MAX).frames(start, 1), None);
        drop(memory);
    }
}
