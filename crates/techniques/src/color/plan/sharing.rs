//! Who shares with whom, where not all can be isolated: pages for which the bounds of all misses, jobs counted, come to
//! least.
//!
//! Up to four beginnings are made: where a level has sets for each task alone ([`apart`]), those; pages laid round the
//! sets as if there were room; and each page, those of the costliest tasks first, where it adds least. From each,
//! single pages and runs are moved, and single pages exchanged, as long as that makes the sum smaller. What comes out
//! is the best of them, of equals the one in which fewest sets are several tasks'; that nothing is better is not
//! proved.

use std::cmp::Reverse;

use super::super::bound::{in_set, InSet, Level, Sum, Tenants};
use super::super::response::Responses;
use super::apart::apart;
use super::grid::{FreePages, Need, PageGrid, PagesBySet, TaskPages};

/// Most work (pairs of tasks in a set that is looked at, and tasks) to make a beginning, and again to improve on it: a
/// few seconds in all at most.
const MAX_WORK: u64 = 100_000_000;

/// Most places of a run that are weighed at a time.
const MAX_STARTS: usize = 1024;

/// What is to be shared, by positions of tasks.
pub(super) struct SharingProblem<'a> {
    /// Pages and their sets.
    pub grid: &'a PageGrid,
    /// The levels as bounds see them.
    pub levels: &'a [Level],
    /// Who interrupts whom.
    pub responses: &'a Responses,
    /// What each task asks for.
    pub needs: &'a [Need],
    /// Jobs of each task in the time that misses are summed up over.
    pub jobs: &'a [u64],
    /// Most accesses of a job.
    pub accesses: &'a [Option<u64>],
}

/// What is made small, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SharingCost {
    /// Jobs without a bound, each counted for each level.
    unbounded: u128,
    /// Most misses of all other jobs.
    misses: u128,
    /// Pages in sets that are asked for more than they hold, times jobs. This and the next show the way where the
    /// bounds do not change.
    crowded: u128,
    /// The squares of what sets are asked for beyond what they hold, the larger the better: few sets that are asked for
    /// much, rather than many for a little.
    gathered: Reverse<u64>,
}

/// A page, or a run, that can be moved by itself.
#[derive(Clone, Copy, Debug)]
struct Unit {
    task: usize,
    start: usize,
    pages: usize,
}

/// The least sharing that was found, and how many places were weighed.
pub(super) fn least(problem: &SharingProblem<'_>) -> (TaskPages, u64) {
    let mut weighed = 0;
    let found = beginnings(problem).map(|mut state| {
        state.improve();
        weighed += state.weighed;
        ((state.cost(), state.mixed()), state.placement())
    });
    let best = found.min_by_key(|(cost, _)| *cost).map(|(_, placement)| placement);
    (best.unwrap_or_default(), weighed)
}

fn beginnings<'a>(problem: &'a SharingProblem<'a>) -> impl Iterator<Item = SharingState<'a>> {
    let several = (0..problem.levels.len()).filter(|&level| problem.levels[level].room.len() > 1);
    let apart = several.filter_map(|level| {
        // The other levels' room cannot be kept to: not all of it at least.
        let mut room: PagesBySet = problem.levels.iter().map(|level| vec![u32::MAX; level.room.len()]).collect();
        room[level].clone_from(&problem.levels[level].room);
        apart(problem.grid, &room, problem.needs, level)
    });
    let apart = apart.map(|pages| SharingState::at_pages(problem, &pages));
    let laid =
        [SharingState::round as fn(&mut SharingState<'a>), SharingState::costliest_first].into_iter().map(|lay| {
            let mut state = SharingState::new(problem);
            lay(&mut state);
            state
        });
    apart.chain(laid)
}

struct SharingState<'a> {
    problem: &'a SharingProblem<'a>,
    units: Vec<Unit>,
    /// By level.
    sets: Vec<Vec<SetTenants>>,
    /// Level and set of those whose tenants are not in the sums yet.
    changed: Vec<(usize, usize)>,
    /// By level and task.
    sums: Vec<Vec<Sum>>,
    /// By level and task: it has more pages than all sets hold. Its bound is the same wherever they lie.
    hopeless: Vec<Vec<bool>>,
    /// See [`SharingCost::gathered`].
    gathered: u64,
    weighed: u64,
    work: u64,
    /// When to give up.
    limit: u64,
}

/// A set, and what of it is in the sums.
#[derive(Clone, Debug, Default)]
struct SetTenants {
    tenants: Tenants,
    counted: Vec<(usize, u32, InSet)>,
    /// Square of the pages beyond its room.
    beyond: u64,
    is_changed: bool,
}

impl<'a> SharingState<'a> {
    fn new(problem: &'a SharingProblem<'a>) -> Self {
        let sets = problem.levels.iter().map(|level| vec![SetTenants::default(); level.room.len()]).collect();
        let sums = vec![vec![Sum::default(); problem.needs.len()]; problem.levels.len()];
        let hopeless = |level: &Level| {
            let room: u64 = level.room.iter().map(|room| u64::from(*room)).sum();
            problem.needs.iter().map(|need| need.pages as u64 > room).collect()
        };
        let hopeless = problem.levels.iter().map(hopeless).collect();
        let (units, changed) = (Vec::new(), Vec::new());
        Self { problem, units, sets, changed, sums, hopeless, gathered: 0, weighed: 0, work: 0, limit: MAX_WORK }
    }

    /// These pages of each task, its run first.
    fn at_pages(problem: &'a SharingProblem<'a>, pages: &TaskPages) -> Self {
        let mut state = Self::new(problem);
        for (task, (pages, need)) in pages.iter().zip(problem.needs).enumerate() {
            state.units.push(Unit { task, start: pages[0], pages: need.run });
            state.units.extend(pages[need.run..].iter().map(|&start| Unit { task, start, pages: 1 }));
        }
        for unit in state.units.clone() {
            state.put(unit);
        }
        state
    }

    /// Pages laid round the sets, those of the tasks with the longest runs first: where there is room, else right
    /// behind those before.
    fn round(&mut self) {
        let grid = self.problem.grid;
        let mut room =
            FreePages::new(self.problem.levels.iter().map(|level| level.room.clone()).collect::<PagesBySet>());
        let (mut cursor, mut full) = (0, false);
        for want in self.wanted(|task| Reverse(self.problem.needs[task].run)) {
            let starts = grid.starts(want.pages);
            let at = |step: usize| (cursor + step) % starts;
            let looked_at = if full { 0..0 } else { 0..starts };
            let free = looked_at.map(at).find(|&start| room.take_run(grid, start, want.pages));
            // No room for one page: nor for any later.
            full |= free.is_none() && want.pages == 1;
            let unit = Unit { start: free.unwrap_or(at(0)), ..want };
            self.put(unit);
            self.units.push(unit);
            cursor = unit.start + unit.pages;
        }
    }

    /// Each page, or run, where it adds least, those of the costliest tasks first.
    fn costliest_first(&mut self) {
        let problem = self.problem;
        let a_page = |task: usize| {
            let interruptions = problem.responses.releases(task).map(|jobs| jobs.iter().map(|&n| u128::from(n)).sum());
            Reverse(interruptions.unwrap_or(u128::MAX >> 64).saturating_add(1) * u128::from(problem.jobs[task]))
        };
        let mut cursor = 0;
        for want in self.wanted(a_page) {
            let places = self.places(want);
            let best = if self.spent() { None } else { self.best(want, cursor..cursor + places) };
            let unit = best.map_or(self.at(want, cursor % places), |(_, unit)| unit);
            self.put(unit);
            self.units.push(unit);
            cursor = unit.start + unit.pages;
        }
    }

    /// All units, by the key of their tasks, each task's run before its single pages.
    fn wanted<K: Ord>(&self, key: impl Fn(usize) -> K) -> Vec<Unit> {
        let needs = self.problem.needs;
        let mut tasks: Vec<usize> = (0..needs.len()).collect();
        tasks.sort_by_key(|&task| key(task));
        let of = |&task: &usize| {
            let run = needs[task].run;
            let singles = needs[task].pages - run;
            std::iter::once(Unit { task, start: 0, pages: run })
                .chain(std::iter::repeat_n(Unit { task, start: 0, pages: 1 }, singles))
        };
        tasks.iter().flat_map(of).collect()
    }

    /// Moves and exchanges units that lie in crowded sets, as long as that makes the cost smaller.
    fn improve(&mut self) {
        self.limit = self.work + MAX_WORK;
        let mut cost = self.cost();
        loop {
            let before = cost;
            for i in 0..self.units.len() {
                if self.spent() {
                    return;
                }
                if !self.is_crowded(self.units[i]) {
                    continue;
                }
                let unit = self.units[i];
                self.lift(unit);
                let places = unit.start..unit.start + self.places(unit);
                let best = self.best(unit, places).filter(|(moved, _)| *moved < cost);
                if let Some((moved, to)) = best {
                    (cost, self.units[i]) = (moved, to);
                }
                self.put(self.units[i]);
                if unit.pages == 1 {
                    cost = self.exchange(i, cost);
                }
            }
            if cost == before {
                return;
            }
        }
    }

    /// Exchanges a single page with the first one of another task with which the cost becomes smaller.
    fn exchange(&mut self, i: usize, cost: SharingCost) -> SharingCost {
        for k in 0..self.units.len() {
            let (a, b) = (self.units[i], self.units[k]);
            if b.pages != 1 || a.task == b.task || a.start == b.start || self.spent() {
                continue;
            }
            let (to_b, to_a) = (Unit { start: b.start, ..a }, Unit { start: a.start, ..b });
            self.replace([a, b], [to_b, to_a]);
            let exchanged = self.weigh();
            if exchanged < cost {
                (self.units[i], self.units[k]) = (to_b, to_a);
                return exchanged;
            }
            self.replace([to_b, to_a], [a, b]);
        }
        cost
    }

    fn replace(&mut self, old: [Unit; 2], new: [Unit; 2]) {
        old.into_iter().for_each(|unit| self.lift(unit));
        new.into_iter().for_each(|unit| self.put(unit));
    }

    /// Number of places that a unit may have.
    fn places(&self, unit: Unit) -> usize {
        match unit.pages {
            1 => self.problem.grid.classes.len(),
            run => self.problem.grid.starts(run).min(MAX_STARTS),
        }
    }

    /// A unit at the place of this number.
    fn at(&self, unit: Unit, place: usize) -> Unit {
        Unit { start: if unit.pages == 1 { self.problem.grid.classes[place] } else { place }, ..unit }
    }

    /// The first of the cheapest places in a range of their numbers, which go round.
    fn best(&mut self, unit: Unit, range: std::ops::Range<usize>) -> Option<(SharingCost, Unit)> {
        let places = self.places(unit);
        let mut best: Option<(SharingCost, Unit)> = None;
        for place in range.map(|number| number % places) {
            if best.is_some() && self.spent() {
                break;
            }
            let here = self.at(unit, place);
            self.put(here);
            let cost = self.weigh();
            self.lift(here);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, here));
            }
        }
        best
    }

    fn weigh(&mut self) -> SharingCost {
        self.weighed += 1;
        self.cost()
    }

    fn spent(&self) -> bool {
        self.work >= self.limit
    }

    /// Whether a page of it lies in a set that is asked for more than it holds.
    fn is_crowded(&mut self, unit: Unit) -> bool {
        self.settle();
        (unit.start..unit.start + unit.pages).any(|page| {
            let sets = self.problem.grid.sets_of(page).iter().zip(&self.sets);
            sets.into_iter().any(|(&set, sets)| sets[set as usize].beyond > 0)
        })
    }

    fn cost(&mut self) -> SharingCost {
        self.settle();
        self.work += (self.sums.len() * self.problem.needs.len()) as u64;
        let mut cost = SharingCost { unbounded: 0, misses: 0, crowded: 0, gathered: Reverse(self.gathered) };
        for (sums, hopeless) in self.sums.iter().zip(&self.hopeless) {
            for (task, (sum, hopeless)) in sums.iter().zip(hopeless).enumerate() {
                let jobs = u128::from(self.problem.jobs[task]);
                cost.crowded += jobs * u128::from(sum.crowded_pages);
                match sum.later_jobs(self.problem.accesses[task]) {
                    _ if *hopeless => (),
                    Some(misses) => cost.misses += jobs * u128::from(misses),
                    None => cost.unbounded += jobs,
                }
            }
        }
        cost
    }

    /// Sets that hold pages of more than one task.
    fn mixed(&self) -> usize {
        self.sets.iter().flatten().filter(|set| set.tenants.len() > 1).count()
    }

    /// Brings the sums up to date.
    fn settle(&mut self) {
        for (level, set) in std::mem::take(&mut self.changed) {
            self.count(level, set);
        }
    }

    /// Puts the tenants of a set into the sums, in place of those that were counted before.
    fn count(&mut self, level: usize, set: usize) {
        let (sums, room) = (&mut self.sums[level], self.problem.levels[level].room[set]);
        let here = &mut self.sets[level][set];
        for &(task, pages, found) in &here.counted {
            sums[task].remove(pages, found);
        }
        here.counted.clear();
        for &(task, pages) in &here.tenants {
            let found = in_set(&self.problem.levels[level], room, &here.tenants, task, self.problem.responses);
            sums[task].add(pages, found);
            here.counted.push((task, pages, found));
        }
        let all: u64 = here.tenants.iter().map(|tenant| u64::from(tenant.1)).sum();
        let beyond = all.saturating_sub(u64::from(room)).pow(2);
        self.gathered = self.gathered + beyond - here.beyond;
        (here.beyond, here.is_changed) = (beyond, false);
        self.work += (here.tenants.len() * here.tenants.len()) as u64;
    }

    fn put(&mut self, unit: Unit) {
        self.change(unit, |tenants| match tenants.iter_mut().find(|tenant| tenant.0 == unit.task) {
            Some(tenant) => tenant.1 += 1,
            None => tenants.push((unit.task, 1)),
        });
    }

    fn lift(&mut self, unit: Unit) {
        self.change(unit, |tenants| {
            tenants.iter_mut().filter(|tenant| tenant.0 == unit.task).for_each(|tenant| tenant.1 -= 1);
            tenants.retain(|tenant| tenant.1 > 0);
        });
    }

    /// Changes the tenants of the sets of each of the unit's pages.
    fn change(&mut self, unit: Unit, by: impl Fn(&mut Tenants)) {
        for page in unit.start..unit.start + unit.pages {
            for (level, &set) in self.problem.grid.sets_of(page).iter().enumerate() {
                let here = &mut self.sets[level][set as usize];
                by(&mut here.tenants);
                if !here.is_changed {
                    here.is_changed = true;
                    self.changed.push((level, set as usize));
                }
                self.work += here.tenants.len() as u64;
            }
        }
    }

    /// The pages of each task.
    fn placement(&self) -> TaskPages {
        let mut pages = vec![Vec::new(); self.problem.needs.len()];
        for unit in &self.units {
            pages[unit.task].extend(unit.start..unit.start + unit.pages);
        }
        pages
    }
}

#[cfg(test)]
mod tests;
