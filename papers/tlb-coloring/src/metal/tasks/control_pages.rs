//! Witnesses: pages of each task in sets that no task's pages lie in, or, where too few sets are left, in sets that
//! hold them beside all of the tasks' pages. What is lost of these while a task does not run was taken by the system,
//! the host, or another user of the core; and as much of the task's own pages is gone with it.

use std::ptr::NonNull;

use lookaside_machine::ColorLevel;
use lookaside_stats::SplitMix64;
use lookaside_techniques::color::work::PAGE_BYTES;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::error::TaskRunError;
use super::foreign_pages::held;

/// Pages of a witness: enough for an eighth of them to be told from none.
const PAGES: usize = 32;
const PAGE: usize = PAGE_BYTES as usize;
const LINE_BYTES: usize = 64;
/// Lines that the words lie on: those of the first-level data cache that few of a task's words do.
const LINES: usize = 60;

/// Memory of the witnesses.
#[derive(Debug)]
pub(super) struct ControlPages {
    start: NonNull<u8>,
    bytes: usize,
    /// Two words a page, for each task; none where too little room is left.
    pub words: Option<Vec<Vec<[*mut u64; 2]>>>,
}

impl ControlPages {
    /// For so many tasks that have so many pages in each set of a level, together.
    pub(super) fn new(level: &ColorLevel, used: &[u32], tasks: usize, seed: u64) -> Result<Self, TaskRunError> {
        // Half of the ways of each: they are not to put each other out.
        let half = (level.ways / 2).max(1);
        let apart = |used: &u32| if *used == 0 { half } else { 0 };
        let beside = |used: &u32| if *used == 0 { half } else { held(level).saturating_sub(*used) };
        let pages = tasks * PAGES;
        let enough = |room: &Vec<u32>| room.iter().sum::<u32>() as usize >= pages;
        let [apart, beside] = [used.iter().map(apart).collect(), used.iter().map(beside).collect()];
        let room: Option<Vec<u32>> = [apart, beside].into_iter().find(enough);
        let each = room.iter().flatten().max().copied().unwrap_or_default() as usize;
        // An index spreads pages evenly, but not in every range.
        let bytes = if room.is_some() { 4 * (level.sets as usize * each).max(pages) * PAGE } else { PAGE };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, wherever the system likes.
        let start = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE | MapFlags::NORESERVE)
        };
        let start = start.map_err(|error| TaskRunError(format!("no address space for {bytes} bytes: {error}")))?;
        // SAFETY: the mapping is ours. Where huge pages do not exist there is nothing to refuse.
        let _ = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxNoHugepage) };
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| TaskRunError("the system maps at 0".into()))?;
        let mut witnesses = Self { start, bytes, words: None };
        if let Some(room) = room {
            let chosen = witnesses.pages(level, &room, pages);
            witnesses.words = (chosen.len() == pages).then(|| words(chosen, tasks, seed));
        }
        Ok(witnesses)
    }

    /// At most so many pages, and in each set as many as there is room for.
    fn pages(&self, level: &ColorLevel, room: &[u32], most: usize) -> Vec<usize> {
        let mut taken = vec![0; room.len()];
        // One a set, as long as there are others.
        let mut pages = Vec::new();
        for round in 1..=room.iter().max().copied().unwrap_or_default() {
            for page in (0..self.bytes / PAGE).map(|page| self.start.as_ptr() as usize + page * PAGE) {
                let set = level.set_of((page / PAGE) as u64) as usize;
                if pages.len() < most && taken[set] < round.min(room[set]) && !pages.contains(&page) {
                    taken[set] += 1;
                    pages.push(page);
                }
            }
        }
        pages
    }
}

/// Dealt out to the tasks, neighbours to one, each in an order of its own.
fn words(pages: Vec<usize>, tasks: usize, seed: u64) -> Vec<Vec<[*mut u64; 2]>> {
    let mut random = SplitMix64::new(seed);
    let mut all = vec![Vec::new(); tasks];
    for (i, page) in pages.into_iter().enumerate() {
        let word = |kind: usize| (page + (2 * (i % PAGES) + kind) % LINES * LINE_BYTES) as *mut u64;
        all[i / PAGES].push([word(0), word(1)]);
    }
    all.iter_mut().for_each(|words| random.shuffle(words));
    all
}

impl Drop for ControlPages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; who has its words has this beside them.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lookaside_machine::{preset, PageSize};

    use super::*;

    /// Pages of each set, of all tasks' witnesses; `None`: there are none. The words of a page are two on it, and no
    /// page is there twice.
    fn by_set(level: &ColorLevel, used: &[u32]) -> Option<Vec<u32>> {
        let some = ControlPages::new(level, used, 2, 3).expect("memory");
        let words = some.words.as_ref()?;
        let pages: Vec<usize> = words.iter().flatten().map(|words| words[0] as usize / PAGE).collect();
        assert_eq!((words.len(), pages.len()), (2, 2 * PAGES));
        assert_eq!(pages.iter().collect::<BTreeSet<_>>().len(), pages.len());
        let own = |words: &[*mut u64; 2]| words[0] as usize / PAGE == words[1] as usize / PAGE && words[0] != words[1];
        assert!(words.iter().flatten().all(own));
        let mut taken = vec![0; level.sets as usize];
        pages.iter().for_each(|page| taken[level.set_of(*page as u64) as usize] += 1);
        Some(taken)
    }

    #[test]
    fn witnesses_are_in_sets_that_no_task_uses() {
        for (name, at) in [("xeon-e5-2650", 0), ("xeon-e5-2650", 1), ("skylake", 1)] {
            let machine = preset(name).expect("a preset");
            let level = machine.color_levels(PageSize::K4).swap_remove(at);
            let used: Vec<u32> = (0..level.sets).map(|set| u32::from(set % 8 < 2)).collect();
            let Some(taken) = by_set(&level, &used) else {
                // Of 16 sets of 4 ways 12 are free: 24 pages; and one fits into each of the others.
                assert_eq!((name, at), ("xeon-e5-2650", 0));
                continue;
            };
            assert!(used.iter().zip(&taken).all(|(used, taken)| *used == 0 || *taken == 0));
            assert!(taken.iter().all(|taken| *taken <= level.ways / 2));
        }
    }

    #[test]
    fn where_all_sets_are_used_witnesses_fit_beside_the_tasks_pages() {
        let machine = preset("ryzen-5900x").expect("a preset");
        let level = machine.color_levels(PageSize::K4).swap_remove(1);
        let all = held(&level);
        let used: Vec<u32> = (0..level.sets).map(|set| all + 1 - set % 4).collect();
        let taken = by_set(&level, &used).expect("half of the sets have room");
        assert!(used.iter().zip(&taken).all(|(used, taken)| *taken == 0 || used + taken <= all));
        assert!(taken.contains(&1));
        assert_eq!(by_set(&level, &vec![all; level.sets as usize]), None);
    }
}
