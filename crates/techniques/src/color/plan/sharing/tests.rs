use lookaside_machine::{ColorLevel, IndexFn, Replacement};
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::super::bound::bounds;
use super::super::super::tasks::{Task, TaskSet, Time};
use super::*;

/// What a [`SharingProblem`] borrows.
#[derive(Debug)]
struct Case {
    set: TaskSet,
    grid: PageGrid,
    levels: Vec<Level>,
    responses: Responses,
    needs: Vec<Need>,
    jobs: Vec<u64>,
    accesses: Vec<Option<u64>>,
}

/// Period and execution in nanoseconds, pages, contiguous pages.
type Row = (u64, u64, usize, usize);

/// Costs less, and more, than any placement.
const NOTHING: SharingCost = SharingCost { unbounded: 0, misses: 0, crowded: 0, gathered: Reverse(u64::MAX) };
const ANYTHING: SharingCost = SharingCost { unbounded: u128::MAX, ..NOTHING };

impl Case {
    /// Levels by the room of their sets, which are the low bits of the page number; tasks, highest priority first.
    fn new(rooms: &[&[u32]], rows: &[Row]) -> Self {
        let levels = rooms.iter().map(|room| (room.to_vec(), IndexFn::Linear)).collect();
        let accesses = vec![None; rows.len()];
        Self::with(levels, Replacement::Lru, rows, accesses)
    }

    fn with(
        levels: Vec<(Vec<u32>, IndexFn)>,
        replacement: Replacement,
        rows: &[Row],
        accesses: Vec<Option<u64>>,
    ) -> Self {
        let task = |(rank, (&(period, execution, pages, run), &accesses)): (u32, (&Row, &Option<u64>))| Task {
            name: format!("T{rank}"),
            priority: Some(rank),
            phase: Time::default(),
            period: Time { nanos: period },
            execution: Time { nanos: execution },
            pages: Some(pages as u64),
            contiguous_pages: run as u64,
            accesses,
            trace: None,
            program: None,
            data_pages: None,
        };
        let set = TaskSet { tasks: (0..).zip(rows.iter().zip(&accesses)).map(task).collect() };
        let (mut color_levels, mut bounded) = (Vec::new(), Vec::new());
        for (i, (room, index)) in levels.into_iter().enumerate() {
            let (name, ways) = (format!("l{i}"), room.iter().copied().max().unwrap_or(0).max(1));
            color_levels.push(ColorLevel { name: name.clone(), sets: room.len() as u32, ways, index });
            bounded.push(Level { name, ways, replacement, room });
        }
        Self {
            grid: PageGrid::new(&color_levels).expect("an area"),
            levels: bounded,
            responses: Responses::of(&set),
            needs: rows.iter().map(|&(_, _, pages, run)| Need { pages, run }).collect(),
            jobs: vec![1; rows.len()],
            accesses,
            set,
        }
    }

    fn problem(&self) -> SharingProblem<'_> {
        let Self { grid, levels, responses, needs, jobs, accesses, .. } = self;
        SharingProblem { grid, levels, responses, needs, jobs, accesses }
    }

    fn tenants(&self, units: &[Unit]) -> Vec<Vec<Tenants>> {
        let empty = |level: &Level| vec![Tenants::new(); level.room.len()];
        let mut all: Vec<Vec<Tenants>> = self.levels.iter().map(empty).collect();
        for unit in units {
            for page in unit.start..unit.start + unit.pages {
                for (sets, &set) in all.iter_mut().zip(self.grid.sets_of(page)) {
                    let tenants = &mut sets[usize::from(set)];
                    match tenants.iter_mut().find(|tenant| tenant.0 == unit.task) {
                        Some(tenant) => tenant.1 += 1,
                        None => tenants.push((unit.task, 1)),
                    }
                }
            }
        }
        all
    }

    /// What units cost, and how many sets are several tasks', counted from the beginning.
    fn cost(&self, units: &[Unit]) -> (SharingCost, usize) {
        let tenants = self.tenants(units);
        let all = bounds(&self.set, &self.responses, &self.levels, &tenants);
        let mut cost = SharingCost { gathered: Reverse(0), ..NOTHING };
        for (i, (level, sets)) in self.levels.iter().zip(&tenants).enumerate() {
            let entries: u32 = level.room.iter().sum();
            for (task, &jobs) in self.jobs.iter().enumerate() {
                match all[task][i].later_jobs {
                    _ if self.needs[task].pages > entries as usize => (),
                    Some(misses) => cost.misses += u128::from(jobs * misses),
                    None => cost.unbounded += u128::from(jobs),
                }
            }
            for (tenants, &room) in sets.iter().zip(&level.room) {
                let pages: u32 = tenants.iter().map(|tenant| tenant.1).sum();
                if pages > room {
                    let jobs = tenants.iter().map(|&(task, pages)| self.jobs[task] * u64::from(pages));
                    cost.crowded += u128::from(jobs.sum::<u64>());
                    cost.gathered.0 += u64::from(pages - room).pow(2);
                }
            }
        }
        (cost, tenants.iter().flatten().filter(|tenants| tenants.len() > 1).count())
    }

    fn is_crowded(&self, units: &[Unit], unit: Unit) -> bool {
        let tenants = self.tenants(units);
        (unit.start..unit.start + unit.pages).any(|page| {
            self.grid.sets_of(page).iter().enumerate().any(|(level, &set)| {
                let pages: u32 = tenants[level][usize::from(set)].iter().map(|tenant| tenant.1).sum();
                pages > self.levels[level].room[usize::from(set)]
            })
        })
    }
}

fn case() -> impl Strategy<Value = Case> {
    let policy = prop::sample::select(vec![Replacement::Lru, Replacement::TreePlru, Replacement::Random]);
    let row = (prop::sample::select(vec![8u64, 12, 24]), 1..6u64, 1usize..5, 1usize..4);
    let tasks = vec((row, prop::option::of(1..30u64)), 2..4);
    (0u32..3, 1u32..3, vec(0u32..4, 4), vec(0u32..4, 4), policy, tasks).prop_map(
        |(log2, folded, mut first, mut second, policy, tasks)| {
            first.truncate(1 << log2);
            second.truncate(1 << folded);
            let masks = (0..folded).map(|bit| (1 << bit) | (1 << (bit + folded))).collect();
            let levels = vec![(first, IndexFn::Linear), (second, IndexFn::Masks(masks))];
            let cut = |&((period, execution, pages, run), _): &(Row, _)| (period, execution, pages, run.min(pages));
            let rows: Vec<Row> = tasks.iter().map(cut).collect();
            let accesses = tasks.iter().map(|(_, accesses)| *accesses).collect();
            let jobs = rows.iter().map(|row| 24 / row.0).collect();
            Case { jobs, ..Case::with(levels, policy, &rows, accesses) }
        },
    )
}

fn laid<'a>(problem: &'a SharingProblem<'a>, units: &[(usize, usize, usize)]) -> SharingState<'a> {
    let mut state = SharingState::new(problem);
    for &(task, start, pages) in units {
        state.units.push(Unit { task, start, pages });
        state.put(Unit { task, start, pages });
    }
    state
}

/// Task, first page, pages.
fn units(state: &SharingState<'_>) -> Vec<(usize, usize, usize)> {
    state.units.iter().map(|unit| (unit.task, unit.start, unit.pages)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn costs_are_the_naive_twins(
        case in case(),
        moves in vec((any::<prop::sample::Index>(), 0usize..40, any::<bool>()), 1..20),
    ) {
        let problem = case.problem();
        let mut state = SharingState::new(&problem);
        state.round();
        for (unit, start, looks) in moves {
            let i = unit.index(state.units.len());
            state.lift(state.units[i]);
            state.units[i].start = start;
            state.put(state.units[i]);
            if looks {
                prop_assert_eq!((state.cost(), state.mixed()), case.cost(&state.units));
            }
            for unit in state.units.clone() {
                prop_assert_eq!(state.is_crowded(unit), case.is_crowded(&state.units, unit));
            }
        }
        prop_assert_eq!((state.cost(), state.mixed()), case.cost(&state.units));
    }

    #[test]
    fn what_is_improved_gets_no_better_by_a_move_or_an_exchange(case in case()) {
        let problem = case.problem();
        for mut state in beginnings(&problem) {
            let before = state.cost();
            prop_assert_eq!(before, case.cost(&state.units).0);
            let work = state.work;
            state.improve();
            prop_assert_eq!(state.limit, work + MAX_WORK);
            let cost = state.cost();
            prop_assert_eq!(cost, case.cost(&state.units).0);
            prop_assert!(cost <= before);
            let mut units = state.units.clone();
            for (i, unit) in state.units.iter().enumerate() {
                if !case.is_crowded(&state.units, *unit) {
                    continue;
                }
                for start in 0..case.grid.period {
                    units[i].start = start;
                    prop_assert!(case.cost(&units).0 >= cost, "{:?} at {}", unit, start);
                }
                units[i] = *unit;
                for (k, other) in state.units.iter().enumerate().filter(|(_, other)| unit.pages * other.pages == 1) {
                    (units[i].start, units[k].start) = (other.start, unit.start);
                    prop_assert!(case.cost(&units).0 >= cost, "{:?} and {:?}", unit, other);
                    (units[i], units[k]) = (*unit, *other);
                }
            }
        }
    }

    #[test]
    fn the_least_of_what_all_beginnings_come_to_is_taken(case in case()) {
        let problem = case.problem();
        let (mut all, mut weighed) = (Vec::new(), 0);
        for mut state in beginnings(&problem) {
            state.improve();
            weighed += state.weighed;
            all.push((case.cost(&state.units), state.placement()));
        }
        let (_, expected) = all.into_iter().min_by_key(|(cost, _)| *cost).expect("two at least");
        for (pages, need) in expected.iter().zip(&case.needs) {
            prop_assert_eq!(pages.len(), need.pages);
            prop_assert!(pages[..need.run].windows(2).all(|two| two[1] == two[0] + 1));
        }
        prop_assert_eq!(least(&problem), (expected, weighed));
    }
}

#[test]
fn pages_go_round_to_where_there_is_room_and_else_right_behind() {
    let round = |room: &[u32], needs: &[(usize, usize)]| {
        let rows: Vec<Row> = needs.iter().map(|&(pages, run)| (8, 1, pages, run)).collect();
        let case = Case::new(&[room], &rows);
        let problem = case.problem();
        let mut state = SharingState::new(&problem);
        state.round();
        (units(&state), state.placement())
    };
    // The longest run first.
    assert_eq!(
        round(&[2; 4], &[(3, 1), (4, 2)]),
        (vec![(1, 0, 2), (1, 2, 1), (1, 3, 1), (0, 0, 1), (0, 1, 1), (0, 2, 1)], vec![vec![0, 1, 2], vec![0, 1, 2, 3]])
    );
    let room = [1, 0, 1, 1];
    assert_eq!(round(&room, &[(3, 1)]).0, [(0, 0, 1), (0, 2, 1), (0, 3, 1)]);
    assert_eq!(round(&room, &[(2, 2), (3, 1)]).0, [(0, 2, 2), (1, 0, 1), (1, 1, 1), (1, 2, 1)]);
    // That a run has no room says nothing of single pages.
    assert_eq!(round(&[1, 0, 1, 0], &[(2, 2), (2, 1)]).0, [(0, 0, 2), (1, 2, 1), (1, 0, 1)]);
}

#[test]
fn pages_of_tasks_that_come_and_are_interrupted_most_are_laid_first() {
    let laid = |times: [(u64, u64); 2], jobs: [u64; 2]| {
        let rows = [(times[0].0, times[0].1, 1, 1), (times[1].0, times[1].1, 2, 1)];
        let case = Case { jobs: jobs.into(), ..Case::new(&[&[1; 4]], &rows) };
        let problem = case.problem();
        let mut state = SharingState::new(&problem);
        state.costliest_first();
        // Each page at each of four places.
        assert_eq!(state.weighed, 12);
        units(&state)
    };
    let second_first = [(1, 0, 1), (1, 1, 1), (0, 2, 1)];
    // The second is interrupted twice: 1 times 4 and 3 times 2, or 3 times 1.
    assert_eq!(laid([(4, 1), (16, 6)], [4, 2]), second_first);
    assert_eq!(laid([(4, 1), (16, 6)], [4, 1]), [(0, 0, 1), (1, 1, 1), (1, 2, 1)]);
    // That of a task that is late counts as no end of interruptions.
    assert_eq!(laid([(4, 2), (6, 4)], [1000, 2]), second_first);
}

#[test]
fn where_there_is_no_time_to_weigh_pages_lie_one_after_the_other() {
    let case = Case::new(&[&[1; 4]], &[(4, 1, 5, 1)]);
    let problem = case.problem();
    let mut state = SharingState::new(&problem);
    state.limit = 0;
    state.costliest_first();
    assert_eq!(units(&state), [0, 1, 2, 3, 0].map(|start| (0, start, 1)));
    assert_eq!(state.weighed, 0);
}

#[test]
fn a_beginning_is_made_for_each_level_with_sets_for_each_task() {
    let count = |rooms: &[&[u32]]| beginnings(&Case::new(rooms, &[(4, 1, 5, 1)]).problem()).count();
    // One set is nobody's own.
    assert_eq!(count(&[&[8], &[1; 4]]), 2);
    assert_eq!(count(&[&[8], &[2; 4]]), 3);
    assert_eq!(count(&[&[4; 2], &[1; 4]]), 3);
    assert_eq!(count(&[&[4; 2], &[2; 4]]), 4);
    let case = Case::new(&[&[1; 4]], &[(4, 1, 3, 2), (4, 1, 1, 1)]);
    let (problem, pages) = (case.problem(), vec![vec![0, 1, 5], vec![2]]);
    let mut state = SharingState::at_pages(&problem, &pages);
    assert_eq!((units(&state), state.placement()), (vec![(0, 0, 2), (0, 5, 1), (1, 2, 1)], pages));
    assert_eq!(state.cost(), case.cost(&state.units).0);
}

#[test]
fn a_page_is_exchanged_with_the_first_single_one_of_another_task_elsewhere() {
    let case = Case::new(&[&[1; 4]], &[(8, 1, 2, 1), (8, 1, 3, 2), (8, 1, 1, 1)]);
    let problem = case.problem();
    let all = [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 2), (2, 3, 1)];
    let mut state = laid(&problem, &all);
    let before = state.cost();
    assert_eq!((state.exchange(0, NOTHING), state.weighed), (NOTHING, 1));
    assert_eq!((units(&state), state.cost()), (all.to_vec(), before));
    let cost = state.exchange(0, ANYTHING);
    assert_eq!(units(&state), [(0, 3, 1), (0, 1, 1), (1, 0, 1), (1, 1, 2), (2, 0, 1)]);
    assert_eq!([cost, state.cost()], [case.cost(&state.units).0; 2]);
    state.limit = 0;
    assert_eq!((state.exchange(0, ANYTHING), state.weighed), (ANYTHING, 2));
    // What is as good is left alone.
    let case = Case::new(&[&[1; 2]], &[(8, 1, 1, 1); 2]);
    let problem = case.problem();
    let mut state = laid(&problem, &[(0, 0, 1), (1, 1, 1)]);
    let cost = state.cost();
    assert_eq!((state.exchange(0, cost), units(&state)), (cost, vec![(0, 0, 1), (1, 1, 1)]));
}

#[test]
fn the_first_of_the_cheapest_places_is_the_best() {
    let case = Case::new(&[&[1; 4]], &[(8, 1, 1, 1); 2]);
    let problem = case.problem();
    let mut state = laid(&problem, &[(0, 1, 1)]);
    let before = state.cost();
    let unit = Unit { task: 1, start: 0, pages: 1 };
    let best = |state: &mut SharingState<'_>, range| {
        let found = state.best(unit, range).map(|(cost, unit)| (cost, unit.start));
        (found, std::mem::take(&mut state.weighed))
    };
    let with = |start: usize| case.cost(&[Unit { task: 0, start: 1, pages: 1 }, Unit { start, ..unit }]).0;
    assert_eq!(best(&mut state, 1..5), (Some((with(2), 2)), 4));
    assert_eq!(best(&mut state, 1..2), (Some((with(1), 1)), 1));
    assert_eq!(best(&mut state, 1..1), (None, 0));
    assert_eq!(state.cost(), before);
    state.limit = 0;
    assert_eq!(best(&mut state, 1..5), (Some((with(1), 1)), 1));
}

#[test]
fn a_page_has_a_place_for_each_class_and_a_run_for_each_start() {
    let single = Unit { task: 0, start: 1, pages: 1 };
    let run = Unit { pages: 2, ..single };
    // The sets of pages 0 and 1, 2 and 3.
    let levels = vec![(vec![1; 2], IndexFn::Masks(vec![0b10]))];
    let case = Case::with(levels, Replacement::Lru, &[(8, 1, 3, 2)], vec![None]);
    let problem = case.problem();
    let state = SharingState::new(&problem);
    assert_eq!([single, run].map(|unit| state.places(unit)), [2, 4]);
    assert_eq!([(single, 1), (run, 3)].map(|(unit, place)| state.at(unit, place).start), [2, 3]);
    let case = Case::new(&[&[1; 4096]], &[(8, 1, 3, 2)]);
    let problem = case.problem();
    let state = SharingState::new(&problem);
    assert_eq!([single, run].map(|unit| state.places(unit)), [4096, 1024]);
}

#[test]
fn work_is_the_pairs_that_are_looked_at() {
    let case = Case::new(&[&[1; 2], &[1; 4]], &[(8, 1, 1, 1); 3]);
    let problem = case.problem();
    // One tenant of each of two sets, then two.
    let mut state = laid(&problem, &[(0, 0, 1), (1, 0, 1)]);
    assert_eq!(state.work, 2 + 4);
    // Two pairs of two, and three tasks at two levels.
    state.cost();
    assert_eq!(state.work, 6 + 8 + 6);
    state.cost();
    assert_eq!(state.work, 20 + 6);
    state.lift(state.units[1]);
    assert_eq!(state.work, 26 + 2);
    state.cost();
    assert_eq!(state.work, 28 + 2 + 6);
    state.limit = 36;
    assert!(state.spent());
    state.limit = 37;
    assert!(!state.spent());
}
