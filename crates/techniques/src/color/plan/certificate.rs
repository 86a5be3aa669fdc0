//! Why tasks cannot be isolated: counts that a reader can check by hand.

use std::fmt;

use serde::Serialize;

use super::grid::{FreePages, Need, PageGrid, PagesBySet};

/// A proof that no choice of pages isolates the tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "short_of")]
pub enum Certificate {
    /// A level has fewer entries than the tasks have pages.
    Entries {
        /// The level's name.
        level: String,
        /// Pages of all tasks.
        needed: u64,
        /// Entries of the level.
        entries: u64,
        /// Of these, set aside for the system.
        set_aside: u64,
    },
    /// A task's contiguous pages have no place, though no other task be there.
    Run {
        /// The task's name.
        task: String,
        /// Contiguous pages that it needs.
        needed: u64,
        /// Most contiguous pages for which there is a place.
        longest: u64,
        /// The level that alone forbids it; absent: only the levels together do.
        #[serde(skip_serializing_if = "Option::is_none")]
        level: Option<String>,
    },
    /// So many contiguous pages come round to a set more often than it has room, wherever they begin.
    Set {
        /// The level's name.
        level: String,
        /// The set.
        set: u32,
        /// Least pages in it, of all tasks' runs.
        needed: u64,
        /// Its entries that are not set aside.
        room: u64,
    },
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries { level, needed, entries, set_aside } => {
                let there = entries.saturating_sub(*set_aside);
                write!(f, "{level}: {needed} pages are needed, {entries} entries")?;
                if *set_aside > 0 {
                    write!(f, " less {set_aside} set aside for the system = {there}")?;
                }
                write!(f, " are there: {} short", needed.saturating_sub(there))
            }
            Self::Run { task, needed, longest, level } => {
                let place = level.as_deref().unwrap_or("all levels together");
                write!(
                    f,
                    "{place}: task {task} needs {needed} contiguous pages, the longest run with room in each of its sets has \
                     {longest}: {} short",
                    needed.saturating_sub(*longest)
                )
            }
            Self::Set { level, set, needed, room } => write!(
                f,
                "{level}: wherever the runs of contiguous pages begin, {needed} or more of their pages lie in set {set}, which has \
                 room for {room}: {} short",
                needed.saturating_sub(*room)
            ),
        }
    }
}

/// All such proofs that counting finds; none: the tasks may or may not be isolated.
pub(super) fn certificates(grid: &PageGrid, room: &PagesBySet, needs: &[Need], names: &[&str]) -> Vec<Certificate> {
    let mut found = Vec::new();
    let needed: u64 = needs.iter().map(|need| need.pages as u64).sum();
    for (i, (level, room)) in grid.levels.iter().zip(room).enumerate() {
        let entries = u64::from(level.sets) * u64::from(level.ways);
        let there: u64 = room.iter().map(|&room| u64::from(room)).sum();
        if needed > there {
            let set_aside = entries - there;
            found.push(Certificate::Entries { level: level.name.clone(), needed, entries, set_aside });
        } else {
            found.extend(crowded_set(grid, i, room, needs));
        }
    }
    for (need, name) in needs.iter().zip(names).filter(|(need, _)| need.run > 1) {
        found.extend(no_place(grid, room, need.run, name));
    }
    found
}

/// The set whose room is exceeded most by the runs' least numbers of pages in it.
fn crowded_set(grid: &PageGrid, level: usize, room: &[u32], needs: &[Need]) -> Option<Certificate> {
    let mut pages: Vec<Vec<usize>> = vec![Vec::new(); room.len()];
    for page in 0..grid.period {
        pages[grid.sets_of(page)[level] as usize].push(page);
    }
    let (set, needed, room) = (0..room.len())
        .map(|set| {
            let needed: u64 = needs.iter().map(|need| least_in_run(&pages[set], grid.period, need.run)).sum();
            (set, needed, u64::from(room[set]))
        })
        .max_by_key(|&(set, needed, room)| (needed.saturating_sub(room), std::cmp::Reverse(set)))?;
    let name = grid.levels[level].name.clone();
    (needed > room).then_some(Certificate::Set { level: name, set: set as u32, needed, room })
}

/// Fewest of these pages (ascending, repeated by the period) in a run: in one that begins right behind one of them.
fn least_in_run(pages: &[usize], period: usize, run: usize) -> u64 {
    let in_rounds = run / period * pages.len();
    let rest = run % period;
    let mut least = usize::MAX;
    let mut end = 0; // pages up to the run's end, those of the next period behind those of this
    for (i, &before) in pages.iter().enumerate() {
        let page = |k: usize| pages[k % pages.len()] + k / pages.len() * period;
        while page(end) <= before + rest {
            end += 1;
        }
        least = least.min(end - i - 1);
    }
    (in_rounds + if pages.is_empty() { 0 } else { least }) as u64
}

/// Why a run has no place, if it has none.
fn no_place(grid: &PageGrid, room: &PagesBySet, run: usize, task: &str) -> Option<Certificate> {
    let longest = longest_run(grid, room, run);
    if longest >= run {
        return None;
    }
    let alone = (0..grid.levels.len()).find_map(|level| {
        // The other levels have room for all.
        let mut only: PagesBySet = room.iter().map(|room| vec![u32::MAX; room.len()]).collect();
        only[level].clone_from(&room[level]);
        let longest = longest_run(grid, &only, run);
        (longest < run).then(|| (longest, Some(grid.levels[level].name.clone())))
    });
    let (longest, level) = alone.unwrap_or((longest, None));
    Some(Certificate::Run { task: task.into(), needed: run as u64, longest: longest as u64, level })
}

/// The longest run with room, of at most `most` pages: a window whose end goes on as long as there is room, and whose
/// start follows.
fn longest_run(grid: &PageGrid, room: &PagesBySet, most: usize) -> usize {
    let mut room = FreePages::new(room.clone());
    let (mut end, mut longest) = (0, 0);
    for start in 0..grid.starts(1) {
        end = end.max(start);
        while end - start < most && end < super::grid::AREA_PAGES && room.take(grid.sets_of(end)) {
            end += 1;
        }
        longest = longest.max(end - start);
        if longest == most {
            break;
        }
        if end > start {
            room.give(grid.sets_of(start));
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{ColorLevel, IndexFn};

    use super::{certificates, least_in_run, longest_run, Certificate, Need, PageGrid, PagesBySet};

    fn proofs(levels: &[(u32, Vec<u32>)], needs: &[(usize, usize)]) -> Vec<String> {
        let level = |(i, (ways, room)): (usize, &(u32, Vec<u32>))| ColorLevel {
            name: format!("l{}", i + 1),
            sets: room.len() as u32,
            ways: *ways,
            index: IndexFn::Linear,
        };
        let all: Vec<ColorLevel> = levels.iter().enumerate().map(level).collect();
        let grid = PageGrid::new(&all).expect("an area");
        let room: PagesBySet = levels.iter().map(|(_, room)| room.clone()).collect();
        let needs: Vec<Need> = needs.iter().map(|&(pages, run)| Need { pages, run }).collect();
        let names = ["T1", "T2", "T3"];
        certificates(&grid, &room, &needs, &names[..needs.len()]).iter().map(Certificate::to_string).collect()
    }

    #[test]
    fn what_is_short_and_by_how_much() {
        let mut room = vec![4; 16];
        (room[3], room[9]) = (2, 2);
        assert_eq!(
            proofs(&[(4, room), (4, vec![4; 128])], &[(50, 1), (20, 1)]),
            ["l1: 70 pages are needed, 64 entries less 4 set aside for the system = 60 are there: 10 short"]
        );
        assert_eq!(proofs(&[(2, vec![2; 2])], &[(5, 1)]), ["l1: 5 pages are needed, 4 entries are there: 1 short"]);
        let hole = vec![4, 4, 4, 4, 4, 0, 4, 4];
        assert_eq!(
            proofs(&[(4, hole)], &[(10, 8)]),
            [
                "l1: wherever the runs of contiguous pages begin, 1 or more of their pages lie in set 5, which has room for 0: 1 short",
                "l1: task T1 needs 8 contiguous pages, the longest run with room in each of its sets has 7: 1 short"
            ]
        );
        assert_eq!(
            proofs(&[(3, vec![3, 1, 3, 3])], &[(4, 4), (4, 4)]),
            ["l1: wherever the runs of contiguous pages begin, 2 or more of their pages lie in set 1, which has room for 1: 1 short"]
        );
        assert_eq!(proofs(&[(4, vec![4; 16]), (4, vec![4; 128])], &[(40, 40), (24, 1)]), [""; 0]);
        assert_eq!(proofs(&[(3, vec![3, 1, 3, 3])], &[(4, 4)]), [""; 0]);
        assert_eq!(
            proofs(&[(1, vec![0, 0])], &[(1, 1)]),
            ["l1: 1 pages are needed, 2 entries less 2 set aside for the system = 0 are there: 1 short"]
        );
        // Pages 0 and 1 of every four, and 1 and 2 of every eight.
        assert_eq!(
            proofs(&[(1, vec![1, 1, 0, 0]), (1, vec![0, 1, 1, 0, 0, 0, 0, 0])], &[(2, 2)]),
            ["all levels together: task T1 needs 2 contiguous pages, the longest run with room in each of its sets has \
              1: 1 short"]
        );
    }

    #[test]
    fn the_longest_run_may_go_round_the_sets_and_ends_with_the_area() {
        let level = |sets, index| ColorLevel { name: "l1".into(), sets, ways: 4, index };
        let grid = PageGrid::new(&[level(8, IndexFn::Linear)]).expect("an area");
        let longest = |room: [u32; 8], most: usize| longest_run(&grid, &vec![room.to_vec()], most);
        assert_eq!([3, 8, 9].map(|most| longest([1; 8], most)), [3, 8, 8]);
        assert_eq!([6, 7, 9].map(|most| longest([1, 1, 1, 0, 1, 1, 1, 1], most)), [6, 7, 7]);
        assert_eq!(longest([0; 8], 5), 0);
        // Set 0 and 2: the even and the odd pages of the lower half.
        let grid = PageGrid::new(&[level(4, IndexFn::Masks(vec![1 << 19, 1]))]).expect("an area");
        assert_eq!(longest_run(&grid, &vec![vec![1, u32::MAX, 0, u32::MAX]], (1 << 19) + 1), 1 << 19);
    }

    #[test]
    fn fewest_pages_of_a_run_are_those_of_the_best_start() {
        for (pages, period) in [(vec![1, 2, 7], 8), (vec![0, 3, 5, 6], 8), (vec![0], 4), (vec![], 4)] {
            for run in 1..40 {
                let count = |start: usize| (start..start + run).filter(|page| pages.contains(&(page % period))).count();
                let least = (0..period).map(count).min().expect("starts");
                assert_eq!(least_in_run(&pages, period, run), least as u64, "{pages:?} {period} {run}");
            }
        }
    }
}
