//! Tasks on a core, tick by tick, each touching its pages in TLBs that are written down as plainly as can be.

use std::collections::BTreeSet;

use lookaside_machine::Replacement;
use lookaside_stats::SplitMix64;

/// One set: page in each way, ways in the order of their last use and of their filling (last = newest), the tree's
/// nodes, as first way and end, whose victim is on the right.
struct Set {
    ways: Vec<Option<u64>>,
    used: Vec<usize>,
    filled: Vec<usize>,
    tree: BTreeSet<Node>,
}

/// A TLB array.
pub struct Array {
    replacement: Replacement,
    sets: Vec<Set>,
}

impl Array {
    pub fn new(sets: usize, ways: usize, replacement: Replacement) -> Self {
        let set = || Set { ways: vec![None; ways], used: vec![], filled: vec![], tree: BTreeSet::new() };
        Self { replacement, sets: (0..sets).map(|_| set()).collect() }
    }

    /// Whether a page was there; it is now.
    pub fn touch(&mut self, set: usize, page: u64, numbers: &mut SplitMix64) -> bool {
        let set = &mut self.sets[set];
        let count = set.ways.len();
        let there = set.ways.iter().position(|way| *way == Some(page));
        let way = there.or(set.ways.iter().position(Option::is_none)).unwrap_or_else(|| match self.replacement {
            Replacement::Lru => set.used[0],
            Replacement::Fifo => set.filled[0],
            Replacement::Random => numbers.below(count as u64) as usize,
            Replacement::Srrip => panic!("of data caches alone"),
            Replacement::TreePlru => walk(count, |node, _| set.tree.contains(&node)).0,
        });
        set.used.retain(|used| *used != way);
        set.used.push(way);
        if there.is_none() {
            set.ways[way] = Some(page);
            set.filled.retain(|filled| *filled != way);
            set.filled.push(way);
        }
        for (node, is_right) in walk(count, |_, middle| way >= middle).1 {
            // Away from the way.
            if is_right {
                set.tree.remove(&node);
            } else {
                set.tree.insert(node);
            }
        }
        there.is_some()
    }
}

/// A node: the first way that it is over, and the end.
type Node = (usize, usize);

/// The nodes of a tree over so many ways from the root to a way, as the ways that they are over, and whether it is on
/// their right; `right` says where to go. Sides: halves of a power of two; else at the root halves, the odd one on the
/// left, and below as many as the greatest power of two that leaves some.
fn walk(count: usize, mut right: impl FnMut(Node, usize) -> bool) -> (usize, Vec<(Node, bool)>) {
    let (mut from, mut to) = (0, count);
    let mut path = Vec::new();
    while to - from > 1 {
        let part = to - from;
        let mut left = if part == count { part - part / 2 } else { 1 };
        while part != count && 2 * left < part {
            left *= 2;
        }
        let is_right = right((from, to), from + left);
        path.push(((from, to), is_right));
        if is_right {
            from += left;
        } else {
            to = from + left;
        }
    }
    (from, path)
}

/// In which order a job touches its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Round and round, each job from the first page.
    FromTheFirst,
    /// Round and round, each job where the one before ended.
    GoingOn,
    /// Any page each time.
    Random,
}

/// A task to be simulated; times in ticks.
#[derive(Clone, Debug)]
pub struct Running {
    pub rank: usize,
    pub phase: u64,
    pub period: u64,
    pub execution: u64,
    pub touches_a_tick: u64,
    pub shorter_jobs: bool,
    pub order: Order,
    /// Its pages: numbers that no other task has, and the set of each at each level.
    pub pages: Vec<(u64, Vec<usize>)>,
}

/// Misses of one job at each level.
#[derive(Clone, Debug)]
pub struct Job {
    pub task: usize,
    /// It touched a page that no job had touched before.
    pub cold: bool,
    pub misses: Vec<u64>,
}

struct Pending {
    job: Job,
    ticks: u64,
    next: usize,
}

/// Runs tasks for some ticks, the first of `arrays` asked first; gives the jobs that were at least begun. `system` is
/// touched before each tick: pages that the system uses.
pub fn simulate(
    tasks: &[Running],
    arrays: &mut [Array],
    ticks: u64,
    system: &[(u64, Vec<usize>)],
    numbers: &mut SplitMix64,
) -> Vec<Job> {
    let mut ranked: Vec<usize> = (0..tasks.len()).collect();
    ranked.sort_by_key(|&task| tasks[task].rank);
    let mut queues: Vec<Vec<Pending>> = tasks.iter().map(|_| Vec::new()).collect();
    let mut next_of: Vec<usize> = vec![0; tasks.len()];
    let mut known = std::collections::HashSet::new();
    let mut done = Vec::new();
    for now in 0..ticks {
        for (i, task) in tasks.iter().enumerate() {
            if now >= task.phase && (now - task.phase).is_multiple_of(task.period) {
                let next = &mut next_of[i];
                let ticks = if task.shorter_jobs { 1 + numbers.below(task.execution) } else { task.execution };
                let first = if task.order == Order::GoingOn { *next } else { 0 };
                *next = (*next + (ticks * task.touches_a_tick) as usize) % task.pages.len();
                let job = Job { task: i, cold: false, misses: vec![0; arrays.len()] };
                queues[i].push(Pending { job, ticks, next: first });
            }
        }
        if !system.is_empty() {
            let (page, sets) = &system[numbers.below(system.len() as u64) as usize];
            touch(arrays, *page, sets, &mut vec![0; sets.len()], numbers);
        }
        let Some(&running) = ranked.iter().find(|&&task| !queues[task].is_empty()) else { continue };
        let task = &tasks[running];
        let pending = &mut queues[running][0];
        for _ in 0..task.touches_a_tick {
            let page = match task.order {
                Order::Random => numbers.below(task.pages.len() as u64) as usize,
                _ => pending.next % task.pages.len(),
            };
            pending.next += 1;
            let (page, sets) = &task.pages[page];
            pending.job.cold |= known.insert(*page);
            touch(arrays, *page, sets, &mut pending.job.misses, numbers);
        }
        pending.ticks -= 1;
        if pending.ticks == 0 {
            done.push(queues[running].remove(0).job);
        }
    }
    done.extend(queues.into_iter().filter_map(|queue| queue.into_iter().next()).map(|pending| pending.job));
    done
}

/// Asks level after level until one has the page; the others have it then too.
fn touch(arrays: &mut [Array], page: u64, sets: &[usize], misses: &mut [u64], numbers: &mut SplitMix64) {
    for ((array, &set), misses) in arrays.iter_mut().zip(sets).zip(misses) {
        if array.touch(set, page, numbers) {
            break;
        }
        *misses += 1;
    }
}
