//! Pages of nobody's, to make passes over a task's pages whose misses are known.

use std::collections::BTreeSet;
use std::ptr::NonNull;

use lookaside_machine::ColorLevel;
use lookaside_probe::counter::{Meter, TimedChain};
use lookaside_techniques::color::work::PAGE_BYTES;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::{TasksError, INTERRUPT_NS};

/// Foreign pages for each way of a set that put all others out of it whatever the policy, but for 2 in 100 of a random one's.
const PAGES_A_WAY: usize = 2;
/// Known passes of each kind: half of them calibrate, the other half check.
const PASSES: usize = 256;
/// Rounds until all pages of full sets are back, also where a random one goes.
const WARM: usize = 16;
/// Attempts at a meter: a neighbour may have disturbed one.
const ATTEMPTS: usize = 20;
/// Lines of the pages that are touched: few, so that they put little out of the data caches.
const LINES: usize = 8;
const LINE_BYTES: usize = 64;

/// Address space with pages of every set of a level.
pub(super) struct Foreign<'a> {
    level: &'a ColorLevel,
    /// Pages that empty the levels before this one; 0 where there are none.
    before: usize,
    start: NonNull<u8>,
    pages: usize,
}

/// Words of foreign pages.
struct Chosen {
    /// In the sets of the task's pages: they put them out.
    conflicts: Vec<usize>,
    /// As many, in other sets.
    alike: Vec<usize>,
    /// In other sets, to empty the levels before.
    flood: Vec<usize>,
}

impl<'a> Foreign<'a> {
    /// For a level behind others that have so many entries together.
    pub(super) fn new(level: &'a ColorLevel, entries_before: usize) -> Result<Self, TasksError> {
        let before = 2 * entries_before;
        // Twice what conflicts need: an index spreads pages over the sets evenly, but not in every range.
        let pages = (2 * PAGES_A_WAY * level.ways as usize * level.sets as usize + 2 * before).next_power_of_two();
        let bytes = pages * PAGE_BYTES as usize;
        let (flags, access) = (MapFlags::PRIVATE | MapFlags::NORESERVE, ProtFlags::READ);
        // SAFETY: a new mapping, wherever the system likes.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, access, flags) };
        let start = start.map_err(|error| TasksError(format!("no address space for {pages} pages: {error}")))?;
        // SAFETY: the mapping is ours. Where huge pages do not exist there is nothing to refuse.
        let _ = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxNoHugepage) };
        let start = NonNull::new(start.cast()).ok_or_else(|| TasksError("the system maps at 0".into()))?;
        Ok(Self { level, before, start, pages })
    }

    /// A meter for a chain over these words.
    pub(super) fn calibrate(
        &self,
        chain: &TimedChain,
        words: &[[*mut u64; 2]],
        switch: &mut dyn FnMut(),
    ) -> Result<Meter, TasksError> {
        let Chosen { conflicts, alike, flood } = self.choose(words)?;
        let pages: Vec<usize> = chain.groups().collect();
        let interrupt_ticks = INTERRUPT_NS / chain.timer().ns(1);
        let mut last = Err(TasksError(String::new()));
        for _ in 0..ATTEMPTS {
            let mut kept = Vec::new();
            let mut missed = Vec::new();
            for _ in 0..PASSES {
                // What is touched between differs by its sets only.
                for (passes, between) in [(&mut kept, &alike), (&mut missed, &conflicts)] {
                    (0..WARM).for_each(|_| drop(chain.pass()));
                    self.touch(between);
                    self.touch(&flood);
                    switch();
                    passes.push(chain.pass());
                }
            }
            last = Meter::calibrate(&pages, &kept, &missed, interrupt_ticks)
                .map_err(|error| TasksError(error.to_string()));
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// What is touched between passes over these words.
    fn choose(&self, words: &[[*mut u64; 2]]) -> Result<Chosen, TasksError> {
        let sets: BTreeSet<u32> = words.iter().map(|word| self.set_of(word[0] as usize)).collect();
        let page = |i: usize| self.start.as_ptr() as usize + i * PAGE_BYTES as usize + i % LINES * LINE_BYTES;
        let most = PAGES_A_WAY * self.level.ways as usize;
        let mut taken = vec![0; self.level.sets as usize];
        let (mut conflicts, mut others) = (Vec::new(), Vec::new());
        for at in (0..self.pages).map(page) {
            let set = self.set_of(at);
            let taken = &mut taken[set as usize];
            if !sets.contains(&set) {
                others.push(at);
            } else if *taken < most {
                *taken += 1;
                conflicts.push(at);
            }
        }
        if others.len() < self.before + conflicts.len() {
            let (sets, all) = (sets.len(), self.level.sets);
            return Err(TasksError(format!(
                "{sets} of the {all} sets of {} are the task's: too many to know which passes miss",
                self.level.name
            )));
        }
        let alike = others.split_off(others.len() - conflicts.len());
        others.truncate(self.before);
        Ok(Chosen { conflicts, alike, flood: others })
    }

    fn touch(&self, words: &[usize]) {
        for at in words {
            // SAFETY: within the mapping, which can be read.
            unsafe { std::hint::black_box((*at as *const u64).read_volatile()) };
        }
    }

    fn set_of(&self, address: usize) -> u32 {
        self.level.set_of(address as u64 / PAGE_BYTES)
    }
}

impl Drop for Foreign<'_> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no word of it is kept.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.pages * PAGE_BYTES as usize) };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lookaside_machine::{preset, PageSize};

    use super::*;

    /// The chosen pages differ by their sets only: else a meter is calibrated on something else than misses.
    #[test]
    fn conflicts_are_in_the_tasks_sets_and_nothing_else_is() {
        for (name, at) in [("xeon-e5-2650", 0), ("xeon-e5-2650", 1), ("cortex-a7", 0)] {
            let levels = preset(name).expect("a preset").color_levels(PageSize::K4);
            let Some(at) = levels.iter().position(|level| level.sets > 1).map(|first| first + at) else {
                panic!("{name} has no sets");
            };
            let level = &levels[at];
            let before: usize = levels[..at].iter().map(|level| (level.sets * level.ways) as usize).sum();
            let foreign = Foreign::new(level, before).expect("memory");
            // As if a task had pages of sets 0 and 1, and no others.
            let mine = |set: u32| (0..1 << 20).find(|page| level.set_of(*page) == set).expect("a page") * PAGE_BYTES;
            let words = [mine(0), mine(1)].map(|at| [at as *mut u64; 2]);
            let chosen = foreign.choose(&words).expect("enough sets");
            let by_set = |words: &[usize]| {
                words.iter().fold(BTreeMap::<u32, usize>::new(), |mut all, at| {
                    *all.entry(foreign.set_of(*at)).or_default() += 1;
                    all
                })
            };
            let each = PAGES_A_WAY * level.ways as usize;
            assert_eq!(by_set(&chosen.conflicts), [(0, each), (1, each)].into(), "{name} {}", level.name);
            assert!(by_set(&chosen.alike).keys().chain(by_set(&chosen.flood).keys()).all(|set| *set > 1));
            assert_eq!((chosen.alike.len(), chosen.flood.len()), (2 * each, 2 * before));
            let all = [&chosen.conflicts[..], &chosen.alike, &chosen.flood].concat();
            let pages: BTreeSet<usize> = all.iter().map(|at| at / PAGE_BYTES as usize).collect();
            assert_eq!(pages.len(), all.len(), "a page twice");
            // A task of all sets leaves none to compare with.
            let every: Vec<[*mut u64; 2]> = (0..level.sets).map(|set| [mine(set) as *mut u64; 2]).collect();
            let error = foreign.choose(&every).err().expect("too many").to_string();
            assert!(error.contains("too many to know which passes miss"), "{error}");
        }
    }
}
