//! The pages of an area of address space, by the sets that they lie in.

use std::collections::HashSet;

use lookaside_machine::{ColorLevel, Share, MAX_COLOR_LEVELS};

/// Pages of the area that a heap takes pages from, aligned to its size: 4 GiB of 4K pages. Set numbers repeat in it
/// many times for every index that is known (Skylake's second level reads 14 bits of the page number).
pub(super) const AREA_PAGES: usize = 1 << 20;

/// What a task asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// Pages in all.
    pub pages: usize,
    /// Of these, those that must be contiguous; 1 = none.
    pub run: usize,
}

/// Pages of each task, by their numbers in the area. Two tasks may have the same: in the sets it is as if one had a
/// later page of the same sets.
pub(super) type TaskPages = Vec<Vec<usize>>;

/// Numbers of pages in each set of each level.
pub(super) type PagesBySet = Vec<Vec<u32>>;

/// The pages of an area, by their sets.
#[derive(Clone, Debug)]
pub(super) struct PageGrid {
    /// The levels.
    pub levels: Vec<ColorLevel>,
    /// Pages after which all set numbers repeat: a power of two.
    pub period: usize,
    /// The first page of each combination of sets that there is, ascending.
    pub classes: Vec<usize>,
    sets: Vec<[u16; MAX_COLOR_LEVELS]>,
}

impl PageGrid {
    /// The area as these levels see it; at most [`MAX_COLOR_LEVELS`] of at most `MAX_COLOR_SETS` sets each. `Err`: the
    /// name of one whose index reads page-number bits beyond the area's, so that the sets of its pages depend on where
    /// it lies.
    pub fn new(levels: &[ColorLevel]) -> Result<Self, String> {
        let mut bits = 0;
        for level in levels {
            let read = level.index.masks(level.sets).iter().fold(0, |all, mask| all | mask);
            bits = bits.max(u64::BITS - read.leading_zeros());
            if bits > AREA_PAGES.ilog2() {
                return Err(level.name.clone());
            }
        }
        let period = 1 << bits;
        // Set numbers are linear over GF(2): a page's are those of the page without its lowest bit, plus those of the
        // bit.
        let mut sets = vec![[0; MAX_COLOR_LEVELS]; period];
        for page in 1..period {
            sets[page] = sets[page & (page - 1)];
            let bit = (page & page.wrapping_neg()) as u64;
            for (set, level) in sets[page].iter_mut().zip(levels) {
                *set ^= level.set_of(bit) as u16;
            }
        }
        let mut seen = HashSet::new();
        let classes = (0..period).filter(|&page| seen.insert(sets[page])).collect();
        Ok(Self { levels: levels.to_vec(), period, classes, sets })
    }

    /// The sets of a page, level by level.
    pub fn sets_of(&self, page: usize) -> &[u16] {
        &self.sets[page & (self.period - 1)][..self.levels.len()]
    }

    /// Where runs of so many pages may begin, but for repetitions: from 0 to this.
    pub fn starts(&self, run: usize) -> usize {
        self.period.min((AREA_PAGES + 1).saturating_sub(run))
    }

    /// How many of these pages each set has.
    pub fn counts(&self, pages: &[usize]) -> PagesBySet {
        let mut counts: PagesBySet = self.levels.iter().map(|level| vec![0; level.sets as usize]).collect();
        for &page in pages {
            for (counts, &set) in counts.iter_mut().zip(self.sets_of(page)) {
                counts[set as usize] += 1;
            }
        }
        counts
    }

    /// Shares that promise these numbers of pages, one for each number; more than a set has ways: as many as wanted.
    pub fn shares(&self, counts: &PagesBySet) -> Vec<Share> {
        let mut shares: Vec<Share> = Vec::new();
        for (level, counts) in self.levels.iter().zip(counts) {
            let first = shares.len();
            for (set, &count) in (0..).zip(counts).filter(|(_, count)| **count > 0) {
                let ways = (count <= level.ways).then_some(count);
                match shares[first..].iter_mut().find(|share| share.ways == ways) {
                    Some(share) => share.sets.push(set),
                    None => shares.push(Share { level: level.name.clone(), sets: vec![set], ways }),
                }
            }
        }
        shares
    }

    /// The pages that a heap takes for a task within these shares: ascending, the run first, then each page whose sets
    /// have room, but for those `taken` by others; they are taken then. `None`: it does not find them all, and takes
    /// none.
    pub fn pick(&self, shares: &[Share], need: Need, taken: &mut HashSet<usize>) -> Option<Vec<usize>> {
        let mut room = FreePages::of_shares(self, shares);
        let mut pages = Vec::with_capacity(need.pages);
        // Sets come again after a period, but what others took may be free only later.
        let starts = if taken.is_empty() { self.starts(need.run) } else { (AREA_PAGES + 1).saturating_sub(need.run) };
        let is_free = |start: usize| (start..start + need.run).all(|page| !taken.contains(&page));
        let start = (0..starts).find(|&start| is_free(start) && room.take_run(self, start, need.run))?;
        pages.extend(start..start + need.run);
        let run = start..start + need.run;
        let mut fitted = 0;
        for page in 0..AREA_PAGES {
            // A period since the last page that fitted: no more will.
            if pages.len() == need.pages || page - fitted > self.period {
                break;
            }
            if !room.fits(self.sets_of(page)) {
                continue;
            }
            fitted = page;
            if !run.contains(&page) && !taken.contains(&page) {
                room.take(self.sets_of(page));
                pages.push(page);
            }
        }
        let all = pages.len() == need.pages;
        all.then(|| {
            taken.extend(&pages);
            pages
        })
    }
}

/// Pages that each set of each level still has room for.
#[derive(Clone, Debug)]
pub(super) struct FreePages {
    left: PagesBySet,
}

impl FreePages {
    /// So many in each set.
    pub fn new(left: PagesBySet) -> Self {
        Self { left }
    }

    /// What shares promise.
    fn of_shares(grid: &PageGrid, shares: &[Share]) -> Self {
        let of = |level: &ColorLevel| {
            let mut left = vec![0; level.sets as usize];
            for share in shares.iter().filter(|share| share.level == level.name) {
                share.sets.iter().for_each(|&set| left[set as usize] = share.ways.unwrap_or(u32::MAX));
            }
            left
        };
        Self { left: grid.levels.iter().map(of).collect() }
    }

    /// There is room for a page in each of these sets (one a level).
    fn fits(&self, sets: &[u16]) -> bool {
        sets.iter().zip(&self.left).all(|(&set, left)| left[set as usize] > 0)
    }

    /// Takes room for a page in each of these sets (one a level), or in none.
    pub fn take(&mut self, sets: &[u16]) -> bool {
        let fits = self.fits(sets);
        if fits {
            sets.iter().zip(&mut self.left).for_each(|(&set, left)| left[set as usize] -= 1);
        }
        fits
    }

    /// Gives back what was taken.
    pub fn give(&mut self, sets: &[u16]) {
        sets.iter().zip(&mut self.left).for_each(|(&set, left)| left[set as usize] += 1);
    }

    /// Takes room for contiguous pages, or for none.
    pub fn take_run(&mut self, grid: &PageGrid, start: usize, pages: usize) -> bool {
        for page in start..start + pages {
            if !self.take(grid.sets_of(page)) {
                self.give_run(grid, start, page - start);
                return false;
            }
        }
        true
    }

    /// Gives back what was taken.
    pub fn give_run(&mut self, grid: &PageGrid, start: usize, pages: usize) {
        (start..start + pages).for_each(|page| self.give(grid.sets_of(page)));
    }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{ColorLevel, IndexFn, Share};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use std::collections::HashSet;

    use super::{FreePages, Need, PageGrid, AREA_PAGES};

    fn level(name: &str, sets: u32, ways: u32, index: IndexFn) -> ColorLevel {
        ColorLevel { name: name.into(), sets, ways, index }
    }

    fn grid() -> PageGrid {
        let folded = IndexFn::Masks((0..3).map(|bit| 0b1001 << bit).collect());
        PageGrid::new(&[level("l1", 4, 2, IndexFn::Linear), level("l2", 8, 2, folded)]).expect("an area")
    }

    #[test]
    fn sets_are_those_of_the_index() {
        let grid = grid();
        assert_eq!((grid.period, grid.classes.len()), (64, 32));
        for page in 0..4 * grid.period {
            let expected: Vec<u16> = grid.levels.iter().map(|level| level.set_of(page as u64) as u16).collect();
            assert_eq!(grid.sets_of(page), expected);
        }
        let far = level("far", 2, 1, IndexFn::Masks(vec![1 << 20]));
        assert_eq!(PageGrid::new(&[far]).err().as_deref(), Some("far"));
        assert_eq!(PageGrid::new(&[level("one", 1, 64, IndexFn::Linear)]).expect("an area").period, 1);
    }

    #[test]
    fn what_pages_need_is_what_is_picked() {
        let grid = grid();
        for (pages, run) in [(vec![5, 6, 7, 40, 41], 3), (vec![0, 16, 32, 33], 1), (vec![62, 63, 64, 65, 1], 4)] {
            let shares = grid.shares(&grid.counts(&pages));
            let need = Need { pages: pages.len(), run };
            let mut taken = HashSet::new();
            let picked = grid.pick(&shares, need, &mut taken).expect("pages");
            let more = grid.pick(&shares, need, &mut taken).expect("others");
            assert!(more.iter().all(|page| !picked.contains(page)));
            assert_eq!(grid.counts(&more), grid.counts(&pages));
            assert_eq!(picked.len(), pages.len());
            assert!(picked.windows(2).take(run - 1).all(|two| two[1] == two[0] + 1), "{picked:?}");
            assert_eq!(grid.counts(&picked), grid.counts(&pages));
        }
    }

    #[test]
    fn what_is_not_there_is_not_picked() {
        let grid = grid();
        let share = |level: &str, set, ways| Share { level: level.into(), sets: vec![set], ways };
        let narrow = [share("l1", 1, Some(2)), share("l2", 1, Some(1))];
        let pick = |shares: &[Share], pages, run| grid.pick(shares, Need { pages, run }, &mut HashSet::new());
        assert_eq!(pick(&narrow, 1, 1), Some(vec![1]));
        assert_eq!(pick(&narrow, 2, 1), None);
        assert_eq!(pick(&narrow, 2, 2), None);
        let mut taken = HashSet::new();
        assert_eq!(grid.pick(&narrow, Need { pages: 2, run: 1 }, &mut taken), None);
        assert!(taken.is_empty());
        // Page 8 is of set 1 of the second level and of set 0 of the first.
        assert_eq!(pick(&[share("l1", 0, None), share("l2", 1, None)], 2, 1), Some(vec![8, 44]));
    }

    #[test]
    fn a_run_that_does_not_fit_takes_nothing() {
        let grid = grid();
        let mut room = FreePages::new(grid.levels.iter().map(|level| vec![1; level.sets as usize]).collect());
        assert!(room.take_run(&grid, 0, 3));
        let before = format!("{room:?}");
        assert!(!room.take_run(&grid, 3, 2));
        assert_eq!(format!("{room:?}"), before);
        room.give_run(&grid, 0, 3);
        assert!(room.take_run(&grid, 1, 4));
    }

    #[test]
    fn runs_begin_within_a_period_and_end_in_the_area() {
        let starts = [1, AREA_PAGES - 63, AREA_PAGES - 62, AREA_PAGES, AREA_PAGES + 1, AREA_PAGES + 9];
        assert_eq!(starts.map(|run| grid().starts(run)), [64, 64, 63, 1, 0, 0]);
    }

    #[test]
    fn there_is_a_share_for_each_number_of_pages() {
        let share = |level: &str, sets: &[u32], ways| Share { level: level.into(), sets: sets.into(), ways };
        assert_eq!(
            grid().shares(&vec![vec![0, 1, 2, 3], vec![0, 0, 1, 0, 2, 1, 5, 0]]),
            [
                share("l1", &[1], Some(1)),
                share("l1", &[2], Some(2)),
                share("l1", &[3], None),
                share("l2", &[2, 5], Some(1)),
                share("l2", &[4], Some(2)),
                share("l2", &[6], None),
            ]
        );
    }

    /// The sets of 4096 have 256 pages each in the area.
    #[test]
    fn all_pages_of_the_area_can_be_had() {
        let grid = PageGrid::new(&[level("l1", 4096, 1, IndexFn::Linear)]).expect("an area");
        let shares = [Share { level: "l1".into(), sets: vec![4095], ways: None }];
        let all: Vec<usize> = (4095..AREA_PAGES).step_by(4096).collect();
        let pick = |pages: usize, taken: &[usize]| {
            grid.pick(&shares, Need { pages, run: 1 }, &mut taken.iter().copied().collect())
        };
        assert_eq!((pick(256, &[]), pick(257, &[])), (Some(all.clone()), None));
        assert_eq!((pick(1, &all[..255]), pick(1, &all)), (Some(vec![AREA_PAGES - 1]), None));
        assert_eq!(pick(2, &all[1..255]), Some(vec![4095, AREA_PAGES - 1]));
    }

    /// The same, the shares looked up anew for each page, in an area of a few periods.
    fn naive_pick(grid: &PageGrid, shares: &[Share], need: Need, taken: &HashSet<usize>) -> Option<Vec<usize>> {
        let fits = |pages: &[usize]| {
            grid.levels.iter().zip(grid.counts(pages)).all(|(level, counts)| {
                (0..).zip(counts).filter(|(_, count)| *count > 0).all(|(set, count)| {
                    let mut of_level = shares.iter().filter(|share| share.level == level.name);
                    of_level.any(|share| share.sets.contains(&set) && share.ways.is_none_or(|ways| count <= ways))
                })
            })
        };
        let is_free = |pages: &[usize]| pages.iter().all(|page| !taken.contains(page));
        let area = 0..20 * grid.period;
        let mut runs = area.clone().map(|start| (start..start + need.run).collect::<Vec<_>>());
        let mut found = runs.find(|run| is_free(run) && fits(run))?;
        for page in area {
            let more = [&found[..], &[page]].concat();
            if found.len() < need.pages && !found.contains(&page) && is_free(&[page]) && fits(&more) {
                found = more;
            }
        }
        (found.len() == need.pages).then_some(found)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn a_heap_takes_what_its_naive_twin_takes(
            counts in (vec(0u32..4, 4), vec(0u32..4, 8)),
            tasks in vec((1usize..7, 1usize..4), 1..4),
        ) {
            let grid = grid();
            let shares = grid.shares(&vec![counts.0, counts.1]);
            let mut taken = HashSet::new();
            for (pages, run) in tasks {
                let need = Need { pages, run: run.min(pages) };
                let expected = naive_pick(&grid, &shares, need, &taken);
                let mut after = taken.clone();
                after.extend(expected.iter().flatten());
                prop_assert_eq!(grid.pick(&shares, need, &mut taken), expected);
                prop_assert_eq!(&taken, &after);
            }
        }
    }
}
