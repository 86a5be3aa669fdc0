//! Pages by which each task has sets of a level to itself. That tasks share sets by ways isolates them from each other
//! as well, as long as nobody else brings anything in; what the system or a neighbour brings into a task's own sets,
//! whatever the policy, costs that task alone.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;

use super::grid::{Need, PageGrid, PagesBySet, TaskPages};

/// Pages that leave each set of this level to one task, within the room of all levels; as few in each of a task's sets
/// as there are sets for. `None`: none were found.
pub(super) fn apart(grid: &PageGrid, room: &PagesBySet, needs: &[Need], level: usize) -> Option<TaskPages> {
    let most = room[level].iter().copied().max()?;
    let least = (1..=most).find(|&cap| windows(&room[level], needs, cap).is_some())?;
    // The narrowest, should the widest not go with the other levels.
    [least, most].into_iter().find_map(|cap| lay(grid, room, needs, level, cap))
}

/// Neighbouring sets for each task, the longest runs' first, that hold its pages with so many in each; `None`: there
/// are not so many sets.
fn windows(room: &[u32], needs: &[Need], cap: u32) -> Option<Vec<Range<usize>>> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|&task| Reverse(needs[task].run));
    let mut windows = vec![0..0; needs.len()];
    let mut next = 0;
    for task in order {
        let (need, start, mut held) = (needs[task], next, 0);
        while held < need.pages || next - start < need.run.min(room.len()) {
            held += (*room.get(next)?).min(cap) as usize;
            next += 1;
        }
        windows[task] = start..next;
    }
    Some(windows)
}

fn lay(grid: &PageGrid, room: &PagesBySet, needs: &[Need], level: usize, cap: u32) -> Option<TaskPages> {
    let windows = windows(&room[level], needs, cap)?;
    let mut left = room.clone();
    let mut all = Vec::with_capacity(needs.len());
    for (need, window) in needs.iter().zip(windows) {
        let mut here = left.clone();
        (0..)
            .zip(&mut here[level])
            .for_each(|(set, room)| *room = if window.contains(&set) { cap.min(*room) } else { 0 });
        let pages = grid.pick(&grid.shares(&here), *need, &mut HashSet::new())?;
        for (left, taken) in left.iter_mut().zip(grid.counts(&pages)) {
            left.iter_mut().zip(taken).for_each(|(left, taken)| *left = left.saturating_sub(taken));
        }
        all.push(pages);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{ColorLevel, IndexFn};
    use proptest::prelude::*;

    use super::*;

    fn level(name: &str, sets: u32, ways: u32) -> ColorLevel {
        ColorLevel { name: name.into(), sets, ways, index: IndexFn::Linear }
    }

    /// Sets of a level that pages lie in.
    fn sets(grid: &PageGrid, pages: &[usize], level: usize) -> HashSet<usize> {
        let counts = &grid.counts(pages)[level];
        (0..counts.len()).filter(|&set| counts[set] > 0).collect()
    }

    #[test]
    fn as_few_pages_share_a_set_as_there_are_sets_for() {
        let grid = PageGrid::new(&[level("l1", 16, 4), level("l2", 128, 4)]).expect("an area");
        let room = vec![vec![4; 16], vec![4; 128]];
        let need = |pages, run| Need { pages, run };
        for (needs, fullest) in [
            ([need(4, 1), need(4, 4), need(8, 1)], 1),
            ([need(12, 1), need(10, 1), need(10, 1)], 2),
            ([need(12, 1), need(20, 1), need(28, 1)], 4),
        ] {
            let pages = apart(&grid, &room, &needs, 0).expect("sets for each");
            let counts: Vec<u32> = grid.counts(&pages.concat())[0].clone();
            assert_eq!(counts.iter().max(), Some(&fullest), "{needs:?}");
        }
        // 13, 20 and 28 pages want 4, 5 and 7 sets of 4; 15 pages in a row want 15 sets.
        for needs in [[need(13, 1), need(20, 1), need(29, 1)], [need(15, 15), need(4, 1), need(4, 1)]] {
            assert_eq!(apart(&grid, &room, &needs, 0), None, "{needs:?}");
        }
        // The second level has sets for these.
        let needs = [need(13, 1), need(20, 1), need(29, 1)];
        let pages = apart(&grid, &vec![vec![u32::MAX; 16], vec![4; 128]], &needs, 1).expect("sets for each");
        assert_eq!(grid.counts(&pages.concat())[1].iter().max(), Some(&1));
    }

    #[test]
    fn each_run_has_as_many_sets_as_pages() {
        let grid = PageGrid::new(&[level("l1", 8, 4)]).expect("an area");
        // Two pages a set: three sets would hold the six pages of each, but no run of four.
        let found = apart(&grid, &vec![vec![4; 8]], &[Need { pages: 6, run: 4 }; 2], 0);
        assert_eq!(found.expect("four sets each"), [[0, 1, 2, 3, 8, 9], [4, 5, 6, 7, 12, 13]]);
    }

    proptest! {
        /// No set has two tasks' pages, or more than it has room for; and with one level, and single pages, what can be
        /// had is found.
        #[test]
        fn sets_are_one_tasks(
            log2 in (0u32..4, 0u32..5),
            ways in (1u32..5, 1u32..5),
            wanted in proptest::collection::vec((1usize..12, 1usize..6), 1..5),
            noise in proptest::collection::vec(0u32..5, 16),
            by in 0usize..2,
        ) {
            let levels = [level("l1", 1 << log2.0, ways.0), level("l2", 1 << log2.1, ways.1)];
            let grid = PageGrid::new(&levels).expect("an area");
            let mut room: PagesBySet = levels.iter().map(|level| vec![level.ways; level.sets as usize]).collect();
            room[by].iter_mut().zip(&noise).for_each(|(room, noise)| *room -= *room.min(&mut noise.clone()));
            let needs: Vec<Need> = wanted.iter().map(|&(pages, run)| Need { pages, run: run.min(pages) }).collect();
            let found = apart(&grid, &room, &needs, by);
            if let Some(pages) = &found {
                for (pages, need) in pages.iter().zip(&needs) {
                    prop_assert_eq!(pages.len(), need.pages);
                    prop_assert!(pages[..need.run].windows(2).all(|two| two[1] == two[0] + 1));
                }
                let all: HashSet<usize> = sets(&grid, &pages.concat(), by);
                prop_assert_eq!(all.len(), pages.iter().map(|pages| sets(&grid, pages, by).len()).sum::<usize>());
                let counts = grid.counts(&pages.concat());
                prop_assert!(counts.iter().flatten().zip(room.iter().flatten()).all(|(pages, room)| pages <= room));
            }
            let alone = PageGrid::new(&levels[by..=by]).expect("an area");
            let singles: Vec<Need> = needs.iter().map(|need| Need { run: 1, ..*need }).collect();
            let quiet = vec![vec![levels[by].ways; levels[by].sets as usize]];
            let wanted: u32 = singles.iter().map(|need| (need.pages as u32).div_ceil(levels[by].ways)).sum();
            prop_assert_eq!(apart(&alone, &quiet, &singles, 0).is_some(), wanted <= levels[by].sets);
        }
    }
}
