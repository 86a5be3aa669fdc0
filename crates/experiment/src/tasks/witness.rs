//! Witnesses: pages of each task in sets that no task's pages lie in. What is lost of these while a task does not run was taken by the system, the host, or
//! another user of the core; and as much of the task's own pages is gone with it.

use std::collections::BTreeSet;
use std::ptr::NonNull;

use lookaside_machine::ColorLevel;
use lookaside_techniques::color::work::PAGE_BYTES;
use lookaside_workloads::Random;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::TasksError;

/// Pages of a witness: enough for an eighth of them to be told from none.
const PAGES: usize = 32;
const PAGE: usize = PAGE_BYTES as usize;
const LINE_BYTES: usize = 64;
/// Lines that the words lie on: those of the first-level data cache that few of a task's words do.
const LINES: usize = 60;

/// Memory of the witnesses.
#[derive(Debug)]
pub(super) struct Witnesses {
    start: NonNull<u8>,
    bytes: usize,
    /// Two words a page, for each task; none where too few sets are left.
    pub words: Option<Vec<Vec<[*mut u64; 2]>>>,
}

impl Witnesses {
    /// For so many tasks whose pages lie in these sets of a level.
    pub(super) fn new(level: &ColorLevel, used: &BTreeSet<u32>, tasks: usize, seed: u64) -> Result<Self, TasksError> {
        let free: BTreeSet<u32> = (0..level.sets).filter(|set| !used.contains(set)).collect();
        // Half of the ways of each: they are not to put each other out.
        let each = (level.ways as usize / 2).max(1);
        let enough = free.len() * each >= tasks * PAGES;
        // An index spreads pages evenly, but not in every range.
        let bytes = if enough { 4 * (level.sets as usize * each).max(tasks * PAGES) * PAGE } else { PAGE };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, wherever the system likes.
        let start = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE | MapFlags::NORESERVE)
        };
        let start = start.map_err(|error| TasksError(format!("no address space for {bytes} bytes: {error}")))?;
        // SAFETY: the mapping is ours. Where huge pages do not exist there is nothing to refuse.
        let _ = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxNoHugepage) };
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| TasksError("the system maps at 0".into()))?;
        let mut witnesses = Self { start, bytes, words: None };
        if enough {
            let pages = witnesses.pages(level, &free, each, tasks * PAGES);
            witnesses.words = (pages.len() == tasks * PAGES).then(|| words(pages, tasks, seed));
        }
        Ok(witnesses)
    }

    /// Pages in these sets, at most so many in each.
    fn pages(&self, level: &ColorLevel, free: &BTreeSet<u32>, each: usize, most: usize) -> Vec<usize> {
        let mut taken = vec![0; level.sets as usize];
        // One a set, as long as there are others.
        let mut pages = Vec::new();
        for round in 1..=each {
            for page in (0..self.bytes / PAGE).map(|page| self.start.as_ptr() as usize + page * PAGE) {
                let set = level.set_of((page / PAGE) as u64);
                if pages.len() < most && free.contains(&set) && taken[set as usize] < round && !pages.contains(&page) {
                    taken[set as usize] += 1;
                    pages.push(page);
                }
            }
        }
        pages
    }
}

/// Dealt out to the tasks, each in an order of its own.
fn words(pages: Vec<usize>, tasks: usize, seed: u64) -> Vec<Vec<[*mut u64; 2]>> {
    let mut random = Random::new(seed);
    let mut all = vec![Vec::new(); tasks];
    for (i, page) in pages.into_iter().enumerate() {
        let word = |kind: usize| (page + (2 * (i / tasks) + kind) % LINES * LINE_BYTES) as *mut u64;
        all[i % tasks].push([word(0), word(1)]);
    }
    all.iter_mut().for_each(|words| random.shuffle(words));
    all
}

impl Drop for Witnesses {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; who has its words has this beside them.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{preset, PageSize};

    use super::*;

    #[test]
    fn witnesses_are_in_sets_that_no_task_uses() {
        for (name, at) in [("xeon-e5-2650", 0), ("xeon-e5-2650", 1), ("skylake", 1)] {
            let machine = preset(name).expect("a preset");
            let level = machine.color_levels(PageSize::K4).swap_remove(at);
            let used: BTreeSet<u32> = (0..level.sets).filter(|set| set % 8 < 2).collect();
            let some = Witnesses::new(&level, &used, 2, 3).expect("memory");
            let Some(words) = &some.words else {
                // Of 16 sets of 4 ways 12 are free: 24 pages.
                assert_eq!((name, at), ("xeon-e5-2650", 0));
                continue;
            };
            let pages: Vec<usize> = words.iter().flatten().map(|words| words[0] as usize / PAGE).collect();
            assert_eq!((words.len(), pages.len()), (2, 2 * PAGES));
            assert_eq!(pages.iter().collect::<BTreeSet<_>>().len(), pages.len());
            let mut taken = vec![0; level.sets as usize];
            pages.iter().for_each(|page| taken[level.set_of(*page as u64) as usize] += 1);
            assert!(used.iter().all(|set| taken[*set as usize] == 0));
            assert!(taken.iter().all(|taken| *taken <= level.ways / 2));
            assert!(words
                .iter()
                .flatten()
                .all(|words| words[0] as usize / PAGE == words[1] as usize / PAGE && words[0] != words[1]));
        }
    }
}
