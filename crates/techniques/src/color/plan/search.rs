//! The search for pages that isolate: no set holds more than it has room for.
//!
//! Sets that are one task's are looked for first, of the first level that has several, then of the next ([`apart`]).
//! Where there are none tasks share sets by ways. Runs of contiguous pages are laid end to end, the longest first, each
//! where it fits, beginning where the one before ended: with a linear index that goes round the sets and fills them
//! evenly. Single pages go on from there. Where that fails the last run is laid elsewhere, and so on back to the first.

use std::collections::HashSet;

use super::apart::apart;
use super::grid::{FreePages, Need, PageGrid, PagesBySet, TaskPages};

/// Most places of runs that are tried. Without noisy sets the first ones isolate wherever the pages' number allows it
/// (linear indexes).
const MAX_TRIED: u64 = 2_000;

/// Pages that isolate, if they were found; and how many places of runs were tried.
pub(super) fn isolate(grid: &PageGrid, room: &PagesBySet, needs: &[Need]) -> (Option<TaskPages>, u64) {
    let several = (0..room.len()).filter(|&level| room[level].len() > 1);
    let mut apart = several.filter_map(|level| apart(grid, room, needs, level));
    if let Some(pages) = apart.find(|pages| found_again(grid, pages, needs)) {
        return (Some(pages), 0);
    }
    let mut runs: Vec<usize> = (0..needs.len()).filter(|&task| needs[task].run > 1).collect();
    // Stable: equal ones stay in the tasks' order.
    runs.sort_by_key(|&task| std::cmp::Reverse(needs[task].run));
    let room = FreePages::new(room.clone());
    let mut search = PlanSearch { grid, needs, runs, room, pages: vec![Vec::new(); needs.len()], tried: 0 };
    let found = search.runs(0, 0);
    (found.then_some(search.pages), search.tried)
}

struct PlanSearch<'a> {
    grid: &'a PageGrid,
    needs: &'a [Need],
    /// Tasks that need a run, longest first.
    runs: Vec<usize>,
    room: FreePages,
    pages: TaskPages,
    tried: u64,
}

impl PlanSearch<'_> {
    /// Lays the runs from the `i`-th on, then the single pages.
    fn runs(&mut self, i: usize, cursor: usize) -> bool {
        let Some(&task) = self.runs.get(i) else {
            self.tried += u64::from(i == 0);
            return self.singles(cursor);
        };
        let (run, starts) = (self.needs[task].run, self.grid.starts(self.needs[task].run));
        for step in 0..starts {
            if self.tried >= MAX_TRIED {
                return false;
            }
            let start = (cursor + step) % starts;
            if !self.room.take_run(self.grid, start, run) {
                continue;
            }
            self.tried += 1;
            self.pages[task] = (start..start + run).collect();
            if self.runs(i + 1, start + run) {
                return true;
            }
            self.pages[task].clear();
            self.room.give_run(self.grid, start, run);
        }
        false
    }

    /// Lays the single pages round the area, task by task; takes them back where not all fit, or where a heap would not
    /// find what fits.
    fn singles(&mut self, mut cursor: usize) -> bool {
        let laid: Vec<usize> = self.pages.iter().map(Vec::len).collect();
        let mut all = true;
        for (pages, need) in self.pages.iter_mut().zip(self.needs) {
            let end = cursor + self.grid.period;
            let mut last = end;
            while pages.len() < need.pages && cursor < last {
                if self.room.take(self.grid.sets_of(cursor)) {
                    pages.push(cursor);
                    last = cursor + 1 + self.grid.period;
                }
                cursor += 1;
            }
            cursor %= self.grid.period;
            all &= pages.len() == need.pages;
        }
        if all && found_again(self.grid, &self.pages, self.needs) {
            return true;
        }
        for (pages, laid) in self.pages.iter_mut().zip(laid) {
            pages.drain(laid..).for_each(|page| self.room.give(self.grid.sets_of(page)));
        }
        false
    }
}

/// Whether heaps that know the shares alone find all pages in them: one for each task, and one for all, task after
/// task.
fn found_again(grid: &PageGrid, pages: &TaskPages, needs: &[Need]) -> bool {
    let mut taken = HashSet::new();
    pages.iter().zip(needs).all(|(pages, &need)| {
        let shares = grid.shares(&grid.counts(pages));
        grid.pick(&shares, need, &mut HashSet::new()).is_some() && grid.pick(&shares, need, &mut taken).is_some()
    })
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{ColorLevel, IndexFn};

    use super::{found_again, isolate, Need, PageGrid};

    fn level(name: &str, sets: u32, ways: u32) -> ColorLevel {
        ColorLevel { name: name.into(), sets, ways, index: IndexFn::Linear }
    }

    #[test]
    fn runs_end_to_end_fill_all_sets() {
        let levels = [level("l1", 16, 4), level("l2", 128, 4)];
        let room = [vec![4; 16], vec![4; 128]];
        let needs = [(20, 20), (7, 1), (13, 5), (24, 11)].map(|(pages, run)| Need { pages, run });
        // Of the second level each has sets of its own.
        for (count, all_tried) in [(1, 3), (2, 0)] {
            let grid = PageGrid::new(&levels[..count]).expect("an area");
            let (found, tried) = isolate(&grid, &room[..count].to_vec(), &needs);
            let pages = found.expect("64 of 64");
            assert_eq!((grid.counts(&pages.concat())[0].clone(), tried), (vec![4; 16], all_tried));
            if count == 2 {
                let sets = |pages: &[usize]| grid.counts(pages)[1].iter().filter(|pages| **pages > 0).count();
                assert_eq!(sets(&pages.concat()), pages.iter().map(|pages| sets(pages)).sum::<usize>());
            }
        }
    }

    #[test]
    fn runs_are_laid_anew_where_the_first_places_fail() {
        // Sets 0 to 2 and 4 to 7 of 8: the run of 3 must go before the hole, for that of 4 to fit behind it.
        let grid = PageGrid::new(&[level("l1", 8, 1)]).expect("an area");
        let room = vec![vec![1, 1, 1, 0, 1, 1, 1, 1]];
        let (found, _) = isolate(&grid, &room, &[Need { pages: 3, run: 3 }, Need { pages: 4, run: 4 }]);
        assert_eq!(found.expect("both"), [vec![0, 1, 2], vec![4, 5, 6, 7]]);
        let (none, tried) = isolate(&grid, &room, &[Need { pages: 4, run: 4 }, Need { pages: 4, run: 4 }]);
        assert_eq!((none, tried > 0), (None, true));
    }

    #[test]
    fn a_run_begins_where_the_one_before_ended() {
        let grid = PageGrid::new(&[level("l1", 4, 4)]).expect("an area");
        let (found, tried) = isolate(&grid, &vec![vec![4; 4]], &[Need { pages: 3, run: 3 }; 3]);
        assert_eq!((found.expect("9 of 16"), tried), (vec![vec![0, 1, 2], vec![3, 4, 5], vec![2, 3, 4]], 3));
    }

    #[test]
    fn single_pages_go_round_until_nothing_fits() {
        let grid = PageGrid::new(&[level("l1", 2, 4)]).expect("an area");
        // Each begins within the first period, whatever the others have.
        let (found, tried) = isolate(&grid, &vec![vec![0, 4]], &[Need { pages: 2, run: 1 }; 2]);
        assert_eq!((found.expect("4 of 4"), tried), (vec![vec![1, 3]; 2], 1));
        // One set is nobody's own.
        let grid = PageGrid::new(&[level("l1", 1, 4)]).expect("an area");
        let one = |pages| isolate(&grid, &vec![vec![4]], &[Need { pages, run: 1 }]);
        assert_eq!((one(4), one(5)), ((Some(vec![vec![0, 1, 2, 3]]), 1), (None, 1)));
    }

    #[test]
    fn pages_that_a_heap_does_not_find_isolate_nothing() {
        // Of pages 1, 2 and 3 each two share a set. A heap that takes page 0 first, which has the other sets of all
        // three levels, finds no more.
        let masks = [("l1", 0b01), ("l2", 0b10), ("l3", 0b11)];
        let levels = masks.map(|(name, mask)| ColorLevel { index: IndexFn::Masks(vec![mask]), ..level(name, 2, 2) });
        let grid = PageGrid::new(&levels).expect("an area");
        let needs = [1, 3].map(|pages| Need { pages, run: 1 });
        assert!(!found_again(&grid, &vec![vec![0], vec![1, 2, 3]], &needs));
        assert!(found_again(&grid, &vec![vec![0], vec![1, 5, 9]], &needs));
        assert_eq!(isolate(&grid, &vec![vec![2, 2]; 3], &needs), (None, 1));
    }

    /// A set of 4096 has 256 pages in a heap's area.
    #[test]
    fn a_heap_for_all_tasks_must_have_pages_for_all() {
        let grid = PageGrid::new(&[level("l1", 4096, 1)]).expect("an area");
        let both = |pages: usize| {
            let needs = [pages, 1].map(|pages| Need { pages, run: 1 });
            found_again(&grid, &vec![(0..pages).map(|page| 4096 * page).collect(), vec![0]], &needs)
        };
        assert_eq!([255, 256].map(both), [true, false]);
    }
}
