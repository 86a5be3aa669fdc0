//! Pages of nobody's, to make passes over a task's pages whose misses are known.

use std::ptr::NonNull;

use lookaside_machine::ColorLevel;
use lookaside_probe::counter::{PassMeter, TimedChain};
use lookaside_techniques::color::work::PAGE_BYTES;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::error::TaskRunError;

/// Foreign pages for each way of a set that put all others out of it whatever the policy, but for 2 in 100 of a random
/// one's.
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

/// No interrupt takes less: on the development machine a tick of the kernel takes 2 to 5 us, and a group whose tables
/// are all in memory, two walks of 402 cycles, a quarter of one.
pub(super) const INTERRUPT_NS: f64 = 1000.0;

/// Address space with pages of every set of a level.
pub(super) struct ForeignPages<'a> {
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
    /// As many touches that put none of the task's pages out: of pages in other sets, or of the residents.
    alike: Vec<usize>,
    /// Likewise, to empty the levels before.
    flood: Vec<usize>,
    /// Pages that fit into the task's sets beside its own, where there are too few other sets. They have to be there
    /// before they can be touched without putting anything out.
    residents: Vec<usize>,
}

/// Entries of a set that pages may be put into of which none is to put another out: one way in three is left to the
/// system, and to what else a set holds.
pub(super) fn held(level: &ColorLevel) -> u32 {
    2 * level.ways / 3
}

impl<'a> ForeignPages<'a> {
    /// For a level behind others that have so many entries together.
    pub(super) fn new(level: &'a ColorLevel, entries_before: usize) -> Result<Self, TaskRunError> {
        let before = 2 * entries_before;
        // Twice what conflicts need: an index spreads pages over the sets evenly, but not in every range.
        let pages = (2 * PAGES_A_WAY * level.ways as usize * level.sets as usize + 2 * before).next_power_of_two();
        let bytes = pages * PAGE_BYTES as usize;
        let (flags, access) = (MapFlags::PRIVATE | MapFlags::NORESERVE, ProtFlags::READ);
        // SAFETY: a new mapping, wherever the system likes.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, access, flags) };
        let start = start.map_err(|error| TaskRunError(format!("no address space for {pages} pages: {error}")))?;
        // SAFETY: the mapping is ours. Where huge pages do not exist there is nothing to refuse.
        let _ = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxNoHugepage) };
        let start = NonNull::new(start.cast()).ok_or_else(|| TaskRunError("the system maps at 0".into()))?;
        Ok(Self { level, before, start, pages })
    }

    /// A meter for a chain over these words.
    pub(super) fn calibrate(
        &self,
        chain: &TimedChain,
        words: &[[*mut u64; 2]],
        switch: &mut dyn FnMut(),
    ) -> Result<PassMeter, TaskRunError> {
        let Chosen { conflicts, alike, flood, residents } = self.choose(words)?;
        let pages: Vec<usize> = chain.groups().collect();
        let interrupt_ticks = INTERRUPT_NS / chain.timer().ns(1);
        let mut last = Err(TaskRunError(String::new()));
        for _ in 0..ATTEMPTS {
            let mut kept = Vec::new();
            let mut missed = Vec::new();
            for _ in 0..PASSES {
                // What is touched between differs by what it puts out only.
                for (passes, between) in [(&mut kept, &alike), (&mut missed, &conflicts)] {
                    for _ in 0..WARM {
                        chain.pass();
                        self.touch(&residents);
                    }
                    self.touch(between);
                    self.touch(&flood);
                    switch();
                    passes.push(chain.pass());
                }
            }
            last = PassMeter::calibrate(&pages, &kept, &missed, interrupt_ticks)
                .map_err(|error| TaskRunError(error.to_string()));
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// What is touched between passes over these words.
    fn choose(&self, words: &[[*mut u64; 2]]) -> Result<Chosen, TaskRunError> {
        let sets = self.level.sets as usize;
        let mut own = vec![0; sets];
        words.iter().for_each(|word| own[self.set_of(word[0] as usize)] += 1);
        let page = |i: usize| self.start.as_ptr() as usize + i * PAGE_BYTES as usize + i % LINES * LINE_BYTES;
        let most = PAGES_A_WAY * self.level.ways as usize;
        let mut taken = vec![0; sets];
        let (mut conflicts, mut others, mut more) = (Vec::new(), Vec::new(), Vec::new());
        for at in (0..self.pages).map(page) {
            let set = self.set_of(at);
            if own[set] == 0 {
                others.push(at);
            } else if taken[set] < most {
                taken[set] += 1;
                conflicts.push(at);
            } else {
                more.push(at);
            }
        }
        if others.len() >= self.before + conflicts.len() {
            let alike = others.split_off(others.len() - conflicts.len());
            others.truncate(self.before);
            return Ok(Chosen { conflicts, alike, flood: others, residents: Vec::new() });
        }
        let mut room: Vec<u32> = own.iter().map(|own| held(self.level).saturating_sub(*own)).collect();
        let fits = |at: &usize| {
            let room = &mut room[self.set_of(*at)];
            let fits = *room > 0;
            *room = room.saturating_sub(1);
            fits
        };
        let most = self.before + conflicts.len();
        let residents: Vec<usize> = others.into_iter().chain(more).filter(fits).take(most).collect();
        let (flood, rest) = residents.split_at(self.before.min(residents.len()));
        if rest.is_empty() {
            return Err(TaskRunError(format!(
                "the task leaves too little of {} to know which passes miss: {} more pages fit into its {sets} sets beside its own, and {} are needed",
                self.level.name,
                residents.len(),
                self.before + 1
            )));
        }
        let alike = rest.iter().copied().cycle().take(conflicts.len()).collect();
        Ok(Chosen { conflicts, alike, flood: flood.to_vec(), residents })
    }

    fn touch(&self, words: &[usize]) {
        for at in words {
            // SAFETY: within the mapping, which can be read.
            unsafe { std::hint::black_box((*at as *const u64).read_volatile()) };
        }
    }

    fn set_of(&self, address: usize) -> usize {
        self.level.set_of(address as u64 / PAGE_BYTES) as usize
    }
}

impl Drop for ForeignPages<'_> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no word of it is kept.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.pages * PAGE_BYTES as usize) };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

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
            let foreign = ForeignPages::new(level, before).expect("memory");
            // As if a task had pages of sets 0 and 1, and no others.
            let chosen = foreign.choose(&[pages(level, 0, 1), pages(level, 1, 1)].concat()).expect("enough sets");
            let each = PAGES_A_WAY * level.ways as usize;
            assert_eq!(by_set(&foreign, &chosen.conflicts), [(0, each), (1, each)].into(), "{name} {}", level.name);
            let rest = [by_set(&foreign, &chosen.alike), by_set(&foreign, &chosen.flood)];
            assert!(rest.iter().flat_map(BTreeMap::keys).all(|set| *set > 1));
            assert_eq!((chosen.alike.len(), chosen.flood.len()), (2 * each, 2 * before));
            let all = [&chosen.conflicts[..], &chosen.alike, &chosen.flood].concat();
            assert_eq!(different(&all), all.len(), "a page twice");
            assert!(chosen.residents.is_empty());
            // A task that fills all sets leaves none to compare with.
            let every: Vec<[*mut u64; 2]> = (0..level.sets).flat_map(|set| pages(level, set, level.ways)).collect();
            let error = foreign.choose(&every).err().expect("too many").to_string();
            assert!(error.contains("0 more pages fit into its"), "{error}");
        }
    }

    /// A task with a page in each set: what is touched between kept passes fits beside its pages, what is touched
    /// between missed ones does not.
    #[test]
    fn beside_a_task_of_all_sets_pages_are_touched_that_fit() {
        let machine = preset("ryzen-5900x").expect("a preset");
        let levels = machine.color_levels(PageSize::K4);
        let (level, before) = (&levels[1], (levels[0].sets * levels[0].ways) as usize);
        assert!(level.sets > 1 && level.ways > 4, "{level:?}");
        let foreign = ForeignPages::new(level, before).expect("memory");
        let words: Vec<[*mut u64; 2]> = (0..level.sets).flat_map(|set| pages(level, set, 1 + set % 2)).collect();
        let chosen = foreign.choose(&words).expect("room");
        let each = PAGES_A_WAY * level.ways as usize;
        assert_eq!(by_set(&foreign, &chosen.conflicts), (0..level.sets as usize).map(|set| (set, each)).collect());
        assert_eq!((chosen.alike.len(), chosen.flood.len()), (chosen.conflicts.len(), 2 * before));
        assert_eq!(different(&chosen.residents), chosen.residents.len(), "a page twice");
        for (set, residents) in by_set(&foreign, &chosen.residents) {
            assert!(residents + 1 + set % 2 <= held(level) as usize, "{residents} in set {set}");
        }
        let resident: BTreeSet<&usize> = chosen.residents.iter().collect();
        assert!(chosen.alike.iter().chain(&chosen.flood).all(|at| resident.contains(at)));
        assert!(chosen.flood.iter().all(|at| !chosen.alike.contains(at)));
        assert_eq!(different(&chosen.flood), chosen.flood.len());
    }

    /// So many pages of a set, two words each.
    fn pages(level: &ColorLevel, set: u32, pages: u32) -> Vec<[*mut u64; 2]> {
        let of_set = (0..1 << 20).filter(|page| level.set_of(*page) == set).take(pages as usize);
        let pages: Vec<[*mut u64; 2]> = of_set.map(|page| [(page * PAGE_BYTES) as *mut u64; 2]).collect();
        assert!(!pages.is_empty());
        pages
    }

    fn by_set(foreign: &ForeignPages<'_>, words: &[usize]) -> BTreeMap<usize, usize> {
        words.iter().fold(BTreeMap::new(), |mut all, at| {
            *all.entry(foreign.set_of(*at)).or_default() += 1;
            all
        })
    }

    fn different(words: &[usize]) -> usize {
        words.iter().map(|at| at / PAGE_BYTES as usize).collect::<BTreeSet<usize>>().len()
    }
}
