//! The most TLB misses that a job of a task can suffer, by how the pages of all tasks lie in the sets.
//!
//! Tasks run on one core by fixed priorities, preemptively, and touch no pages but those counted here. Set by set, a
//! job of a task with `k` pages in it, in a set with `n` entries:
//!
//! - **All tasks' pages are at most `n`**: nothing is ever replaced, whatever the policy. The first job misses on its
//!   `k` pages, later ones on none.
//! - **Else** each of its pages may miss once, since others ran after its last job, and once more each time that tasks
//!   above interrupt it with enough pages in the set: `k (1 + harmful)` misses, where `harmful` counts those times.
//!   That holds for as many pages as the policy [`kept`] promises to keep.
//! - **More pages of its own than that**: it may miss on every access; only the number of its accesses bounds that.
//!
//! *Why there must be pages of others between two misses of a page `x` in one job*: at least `m - k + 1` different ones, where `k <= m` and
//! the policy keeps `m` pages.
//!
//! - LRU, `m = n`: `x` goes only after `n` others were used since its last use; `k - 1` of them are the job's own.
//! - FIFO, `m = n`: use does not count, so that the above says nothing. Since `x` came in by its first miss, it went,
//!   for which `n` others had to come in, some of them maybe repeatedly. Of all pages that come in twice from the one
//!   miss of `x` to the other, itself among them, let `z` be the one with the shortest time between. All that came in
//!   meanwhile are different, and there are `n`, as `z` had to go: with `z` these are `n + 1` pages, of which `k` at
//!   most are the job's own.
//! - Tree-PLRU, `m = d + 1`, where the way with the fewest nodes above it has `d` (`log2(n)` of a power of two; its
//!   minimal life span: Reineke et al., "Timing predictability of cache replacement policies", 2007): let only `m`
//!   different pages be used from a use of `x` on, and `y` be the first of them to go after its use. All bits on its
//!   path, `d` or more, point to it, though its use turned them away; each was turned back by the use of a page on the
//!   other side of its node, and these are still there and different, as they lie in different subtrees. With `y` and
//!   the page that replaces it, which is none of them, these are `m + 1`. So none goes, and between two misses of `x`
//!   there are `m - k + 1` pages of others.
//! - Random: no such promise; `m = 0`.
//!
//! The same holds for the second level, which is asked only after misses of the first: nothing above says how often
//! pages are used. A page's first request in a job may miss because of anything that ran before; those that follow in
//! the same job only because of tasks above.

use lookaside_machine::{tree_least_depth, Partitions, Replacement};
use serde::Serialize;

use super::response::Responses;
use super::tasks::TaskSet;

/// A TLB array as bounds see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// Ways of each set.
    pub ways: u32,
    /// Which entry goes.
    pub replacement: Replacement,
    /// Entries of each set that the tasks may count on: the ways less those that the system takes.
    pub room: Vec<u32>,
}

/// Pages in one set: task (by position in its [`TaskSet`]) and number, each task at most once.
pub type Tenants = Vec<(usize, u32)>;

/// The most misses of jobs of one task at one level. Where two arrays of a level stand side by side, the level misses
/// at most as often as both together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Bound {
    /// Of its first job, which finds nothing; of any other that touches pages for the first time, too. `None`: no bound
    /// is known.
    pub first_job: Option<u64>,
    /// Of each later job, all of whose pages were touched before (by the first job, or in a warm-up).
    pub later_jobs: Option<u64>,
    /// Why it holds, or why there is none.
    pub rests_on: RestsOn,
}

/// What a bound rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RestsOn {
    /// No set that the task uses is asked for more than it holds: any policy, any schedule.
    Room,
    /// The replacement policy, and that all deadlines are kept.
    Policy(Replacement),
    /// The number of accesses in a job.
    Accesses,
    /// There is none: in a set that is asked for more than it holds, the policy promises nothing for so many pages, and
    /// the number of accesses is not given.
    UnknownAccesses,
    /// There is none: sets are shared, a task is not shown to keep its deadline, and the number of accesses is not
    /// given.
    UnknownDeadlines,
}

/// How the pages of tasks may lie, by what their partitions (of the tasks' names) promise: `[level][set]`, levels in
/// the order of the file. A share without a number of ways may have all pages of its task; so may each set of a level
/// that no share names. Tasks without a partition have no pages.
pub fn promised(set: &TaskSet, partitions: &Partitions) -> Vec<Vec<Tenants>> {
    let of_level = |level: &lookaside_machine::ColorLevel| {
        let mut sets: Vec<Tenants> = vec![Vec::new(); level.sets as usize];
        for (i, task) in set.tasks.iter().enumerate() {
            let Some(partition) = partitions.partition(&task.name) else { continue };
            let all = u32::try_from(task.pages.unwrap_or(u64::MAX)).unwrap_or(u32::MAX);
            let mut shares = partition.shares.iter().filter(|share| share.level == level.name).peekable();
            if shares.peek().is_none() {
                sets.iter_mut().for_each(|tenants| tenants.push((i, all)));
            }
            for share in shares {
                for &set in &share.sets {
                    sets[set as usize].push((i, share.ways.map_or(all, |ways| ways.min(all))));
                }
            }
        }
        sets
    };
    partitions.levels.iter().map(of_level).collect()
}

/// Pages that a set of `ways` ways, of which the system leaves `room`, promises to keep while no others are used. See
/// the head of this file.
pub fn kept(replacement: Replacement, ways: u32, room: u32) -> u32 {
    match replacement {
        Replacement::Lru | Replacement::Fifo => room,
        Replacement::TreePlru => room.min(tree_least_depth(ways) + 1),
        Replacement::Random => 0,
        // Of data caches alone.
        Replacement::Srrip => 0,
    }
}

/// Bounds for each task (by position) at each level, for pages that lie as `tenants[level][set]` say.
pub fn bounds(set: &TaskSet, responses: &Responses, levels: &[Level], tenants: &[Vec<Tenants>]) -> Vec<Vec<Bound>> {
    let mut all = vec![Vec::with_capacity(levels.len()); set.tasks.len()];
    for (level, sets) in levels.iter().zip(tenants) {
        let mut sums = vec![Sum::default(); set.tasks.len()];
        for (tenants, &room) in sets.iter().zip(&level.room) {
            for &(task, pages) in tenants {
                sums[task].add(pages, in_set(level, room, tenants, task, responses));
            }
        }
        for ((task, sum), bounds) in set.tasks.iter().zip(sums).zip(&mut all) {
            bounds.push(sum.bound(task.accesses, task.pages, level.replacement));
        }
    }
    all
}

/// Bounds of one set beyond this say nothing; below it those of all sets have a sum.
const MOST_MISSES: u64 = 1 << 48;

/// What one set does to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InSet {
    /// It keeps all pages for ever.
    Kept,
    /// So many misses in each job, the first too.
    Misses(u64),
    /// As many as accesses.
    Accesses,
    /// As many as accesses, as the interruptions cannot be counted.
    Deadlines,
}

/// What a set with these tenants does to a job of one of them.
pub(super) fn in_set(level: &Level, room: u32, tenants: &[(usize, u32)], task: usize, responses: &Responses) -> InSet {
    let own = tenants.iter().find(|tenant| tenant.0 == task).map_or(0, |tenant| tenant.1);
    let all: u64 = tenants.iter().map(|tenant| u64::from(tenant.1)).sum();
    if own == 0 || all <= u64::from(room) {
        return InSet::Kept;
    }
    let kept = kept(level.replacement, level.ways, room);
    if own > kept {
        return InSet::Accesses;
    }
    let Some(releases) = responses.releases(task) else { return InSet::Deadlines };
    let misses =
        harmful(kept - own + 1, tenants, releases).and_then(|times| times.checked_add(1)?.checked_mul(u64::from(own)));
    misses.filter(|misses| *misses < MOST_MISSES).map_or(InSet::Accesses, InSet::Misses)
}

/// How often at most a page misses again in one job, where between two misses `harm` different pages of tasks above are
/// used.
///
/// Jobs of these run to their ends before the interrupted one goes on: each falls between two misses, or not. Between
/// two, jobs of different tasks ran whose pages sum up to `harm` or more. So all the tasks above must have as many
/// together; and the weights `min(pages, harm)` of all interrupting jobs, of which each further miss takes `harm` or
/// more, bound how many there are. `None`: more than can be counted.
fn harmful(harm: u32, tenants: &[(usize, u32)], releases: &[u64]) -> Option<u64> {
    let above = tenants.iter().map(|&(task, pages)| (releases[task], pages)).filter(|(jobs, _)| *jobs > 0);
    let together: u64 = above.clone().map(|(_, pages)| u64::from(pages)).sum();
    if together < u64::from(harm) {
        return Some(0);
    }
    let weight: u128 = above.map(|(jobs, pages)| u128::from(jobs) * u128::from(pages.min(harm))).sum();
    u64::try_from(weight / u128::from(harm)).ok()
}

/// All sets of a level, for one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    kept_pages: u64,
    misses: u64,
    accesses_sets: u32,
    deadlines_sets: u32,
    /// Pages in sets that do not keep them.
    pub(super) crowded_pages: u64,
}

impl Sum {
    pub(super) fn add(&mut self, pages: u32, found: InSet) {
        match found {
            InSet::Kept => {
                self.kept_pages += u64::from(pages);
                return;
            }
            InSet::Misses(misses) => self.misses += misses,
            InSet::Accesses => self.accesses_sets += 1,
            InSet::Deadlines => self.deadlines_sets += 1,
        }
        self.crowded_pages += u64::from(pages);
    }

    pub(super) fn remove(&mut self, pages: u32, found: InSet) {
        match found {
            InSet::Kept => {
                self.kept_pages -= u64::from(pages);
                return;
            }
            InSet::Misses(misses) => self.misses -= misses,
            InSet::Accesses => self.accesses_sets -= 1,
            InSet::Deadlines => self.deadlines_sets -= 1,
        }
        self.crowded_pages -= u64::from(pages);
    }

    /// Of later jobs.
    pub(super) fn later_jobs(&self, accesses: Option<u64>) -> Option<u64> {
        if self.accesses_sets + self.deadlines_sets > 0 {
            return accesses;
        }
        Some(accesses.map_or(self.misses, |accesses| accesses.min(self.misses)))
    }

    fn bound(&self, accesses: Option<u64>, pages: Option<u64>, replacement: Replacement) -> Bound {
        let later_jobs = self.later_jobs(accesses);
        // A share without a number of ways may promise a page to several sets; the task has only so many.
        let cold = pages.map_or(self.kept_pages, |pages| pages.min(self.kept_pages));
        let first_job = match self.accesses_sets + self.deadlines_sets {
            0 => {
                let misses = self.misses + cold;
                Some(accesses.map_or(misses, |accesses| accesses.min(misses)))
            }
            _ => accesses,
        };
        let rests_on = match (self.accesses_sets, self.deadlines_sets, accesses) {
            (0, 0, Some(accesses)) if accesses < self.misses => RestsOn::Accesses,
            (0, 0, _) if self.crowded_pages == 0 => RestsOn::Room,
            (0, 0, _) => RestsOn::Policy(replacement),
            (_, _, Some(_)) => RestsOn::Accesses,
            (1.., _, None) => RestsOn::UnknownAccesses,
            (0, _, None) => RestsOn::UnknownDeadlines,
        };
        Bound { first_job, later_jobs, rests_on }
    }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{ColorLevel, IndexFn, PageSize, Partition, Share};

    use super::super::tasks::{Task, Time};
    use super::RestsOn::{Policy, Room, UnknownAccesses, UnknownDeadlines};
    use super::*;

    /// Periods and executions in nanoseconds, highest priority first.
    fn set(rows: &[(u64, u64)]) -> TaskSet {
        let task = |(rank, &(period, execution)): (u32, &(u64, u64))| Task {
            name: format!("T{rank}"),
            priority: Some(rank),
            phase: Time::default(),
            period: Time { nanos: period },
            execution: Time { nanos: execution },
            pages: Some(6),
            contiguous_pages: 1,
            accesses: None,
            trace: None,
            program: None,
            data_pages: None,
        };
        TaskSet { tasks: (0..).zip(rows).map(task).collect() }
    }

    #[test]
    fn tree_plru_keeps_as_many_as_its_shortest_path_has_nodes_and_one_more() {
        let of = |ways: u32| kept(Replacement::TreePlru, ways, ways);
        assert_eq!([1, 2, 4, 6, 8, 12].map(of), [1, 2, 3, 3, 4, 4]);
        assert_eq!([1, 3, 8].map(|room| kept(Replacement::TreePlru, 8, room)), [1, 3, 4]);
        assert_eq!([Replacement::Lru, Replacement::Fifo, Replacement::Random].map(|of| kept(of, 8, 5)), [5, 5, 0]);
    }

    #[test]
    fn a_page_is_lost_again_only_by_enough_pages_of_tasks_above() {
        // Jobs of 5 times 2 pages and of 7 times 3; none of the third task's.
        let times = |harm: u32, releases: &[u64]| harmful(harm, &[(0, 2), (1, 3), (2, 4)], releases);
        assert_eq!([1, 2, 3, 5, 6].map(|harm| times(harm, &[5, 7, 0])), [12, 12, 10, 6, 0].map(Some));
        assert_eq!([2, 3].map(|harm| times(harm, &[5, 0, 0])), [5, 0].map(Some));
        assert_eq!([times(1, &[u64::MAX, 0, 0]), times(1, &[u64::MAX, 1, 0])], [Some(u64::MAX), None]);
    }

    #[test]
    fn a_set_keeps_its_pages_or_loses_them_once_and_at_each_harmful_interruption() {
        let level = Level { name: "l1".into(), ways: 4, replacement: Replacement::Lru, room: vec![4] };
        // Two jobs of the first come before one of the second ends.
        let responses = Responses::of(&set(&[(4, 1), (16, 6)]));
        let both = |tenants: [u32; 2], room: u32| {
            let tenants = [(0, tenants[0]), (1, tenants[1])];
            [0, 1].map(|task| in_set(&level, room, &tenants, task, &responses))
        };
        assert_eq!(both([2, 2], 4), [InSet::Kept; 2]);
        assert_eq!(both([2, 2], 3), [InSet::Misses(2), InSet::Misses(2 * (1 + 2))]);
        assert_eq!(both([3, 2], 4), [InSet::Misses(3), InSet::Misses(2 * (1 + 2))]);
        assert_eq!(both([4, 1], 4), [InSet::Misses(4), InSet::Misses(1 + 2)]);
        assert_eq!(both([3, 4], 4), [InSet::Misses(3), InSet::Misses(4 * (1 + 2))]);
        assert_eq!(both([5, 1], 4), [InSet::Accesses, InSet::Misses(1 + 2)]);
        assert_eq!(in_set(&level, 4, &[(0, 5)], 1, &responses), InSet::Kept);
        let late = Responses::of(&set(&[(4, 2), (6, 4)]));
        assert_eq!(in_set(&level, 4, &[(0, 3), (1, 2)], 1, &late), InSet::Deadlines);
    }

    /// A task with no time of its own comes each nanosecond.
    #[test]
    fn bounds_of_2_to_the_48_say_nothing() {
        let level = Level { name: "l1".into(), ways: 1, replacement: Replacement::Lru, room: vec![1] };
        let of = |nanos: u64| {
            let responses = Responses::of(&set(&[(1, 0), (1 << 61, nanos)]));
            in_set(&level, 1, &[(0, 1), (1, 1)], 1, &responses)
        };
        assert_eq!(of((1 << 48) - 2), InSet::Misses((1 << 48) - 1));
        assert_eq!(of((1 << 48) - 1), InSet::Accesses);
    }

    #[test]
    fn what_is_taken_out_of_a_sum_leaves_it_as_it_was() {
        for found in [InSet::Kept, InSet::Misses(5), InSet::Accesses, InSet::Deadlines] {
            let mut sum = Sum::default();
            sum.add(2, found);
            let one = sum;
            sum.add(3, found);
            assert_ne!(sum, one);
            sum.remove(3, found);
            assert_eq!(sum, one);
            sum.remove(2, found);
            assert_eq!(sum, Sum::default());
        }
    }

    #[test]
    fn a_bound_is_the_misses_of_all_sets_or_the_accesses_if_these_are_fewer() {
        let bound = |sets: &[(u32, InSet)], accesses: Option<u64>, pages: Option<u64>| {
            let mut sum = Sum::default();
            sets.iter().for_each(|&(pages, found)| sum.add(pages, found));
            let bound = sum.bound(accesses, pages, Replacement::Fifo);
            (bound.first_job, bound.later_jobs, bound.rests_on)
        };
        let fifo = Policy(Replacement::Fifo);
        let sets = [(2, InSet::Kept), (3, InSet::Misses(7))];
        assert_eq!(bound(&sets, None, Some(9)), (Some(9), Some(7), fifo));
        assert_eq!(bound(&sets, Some(8), Some(9)), (Some(8), Some(7), fifo));
        assert_eq!(bound(&sets, Some(7), Some(9)), (Some(7), Some(7), fifo));
        assert_eq!(bound(&sets, Some(6), Some(9)), (Some(6), Some(6), RestsOn::Accesses));
        // A page that may lie in several sets comes in once.
        assert_eq!(bound(&[(5, InSet::Kept)], None, Some(3)), (Some(3), Some(0), Room));
        assert_eq!(bound(&[(5, InSet::Kept)], Some(4), None), (Some(4), Some(0), Room));
        let (accesses, deadlines) = ((1, InSet::Accesses), (1, InSet::Deadlines));
        assert_eq!(bound(&[accesses], None, None), (None, None, UnknownAccesses));
        assert_eq!(bound(&[deadlines], None, None), (None, None, UnknownDeadlines));
        assert_eq!(bound(&[accesses, deadlines], None, None), (None, None, UnknownAccesses));
        for sets in [&[accesses][..], &[deadlines], &[accesses, deadlines, (3, InSet::Misses(7))]] {
            assert_eq!(bound(sets, Some(4), None), (Some(4), Some(4), RestsOn::Accesses));
        }
    }

    #[test]
    fn shares_promise_their_ways_and_all_pages_where_they_say_none() {
        let share = |level: &str, sets: &[u32], ways| Share { level: level.into(), sets: sets.into(), ways };
        let level = |name: &str, sets| ColorLevel { name: name.into(), sets, ways: 8, index: IndexFn::Linear };
        let partition = |name: &str, shares| Partition { name: name.into(), shares, ..Partition::default() };
        let partitions = Partitions {
            machine: "m".into(),
            page_size: PageSize::K4,
            levels: vec![level("l1", 2), level("l2", 4)],
            partitions: vec![
                partition("T2", vec![share("l1", &[1], None), share("l2", &[0], Some(2)), share("l2", &[3], Some(8))]),
                partition("T0", vec![share("l2", &[2, 3], Some(1))]),
            ],
        };
        // T1 has no partition, and T0 no share of the first level.
        assert_eq!(
            promised(&set(&[(8, 1), (8, 1), (8, 1)]), &partitions),
            [vec![vec![(0, 6)], vec![(0, 6), (2, 6)]], vec![vec![(2, 2)], vec![], vec![(0, 1)], vec![(0, 1), (2, 6)]]]
        );
    }
}
