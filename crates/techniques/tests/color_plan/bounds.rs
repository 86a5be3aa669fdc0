//! No job misses more often than its bound says, whatever the policy, the phases and the order of accesses.

use lookaside_machine::Replacement::{self, Fifo, Lru, Random, TreePlru};
use lookaside_stats::SplitMix64;
use lookaside_techniques::color::bound::{bounds, Bound, Level, RestsOn, Tenants};
use lookaside_techniques::color::response::Responses;
use lookaside_techniques::color::tasks::{Task, TaskSet, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::twin::{simulate, Array, Job, Order, Running};

/// Some tasks, levels, and where pages lie.
#[derive(Clone, Debug)]
struct Case {
    set: TaskSet,
    levels: Vec<Level>,
    running: Vec<Running>,
    system: Vec<(u64, Vec<usize>)>,
    seed: u64,
}

const TICKS: u64 = 480;

impl Case {
    fn tenants(&self) -> Vec<Vec<Tenants>> {
        let of_level = |(i, level): (usize, &Level)| {
            let of_set = |set: usize| {
                let of_task = |(task, running): (usize, &Running)| {
                    (task, running.pages.iter().filter(|(_, sets)| sets[i] == set).count() as u32)
                };
                self.running.iter().enumerate().map(of_task).filter(|tenant| tenant.1 > 0).collect()
            };
            (0..level.room.len()).map(of_set).collect()
        };
        self.levels.iter().enumerate().map(of_level).collect()
    }

    fn bounds(&self) -> Vec<Vec<Bound>> {
        bounds(&self.set, &Responses::of(&self.set), &self.levels, &self.tenants())
    }

    fn jobs(&self) -> Vec<Job> {
        let array = |level: &Level| Array::new(level.room.len(), level.ways as usize, level.replacement);
        let mut arrays: Vec<Array> = self.levels.iter().map(array).collect();
        simulate(&self.running, &mut arrays, TICKS, &self.system, &mut SplitMix64::new(self.seed))
    }
}

fn ticks(nanos: u64) -> Time {
    Time { nanos }
}

/// One task of a case, as drawn: phase, period, execution, priority, order, touches a tick, whether jobs may be
/// shorter, whether accesses are told, and for each page a number that says its sets.
type Drawn = ((u64, u64, u64, u32), (u8, u64, bool, bool), Vec<u32>);

fn drawn() -> impl Strategy<Value = Drawn> {
    let period = prop::sample::select(vec![8u64, 10, 12, 16, 24, 30, 48, 60]);
    let times = (0..40u64, period, 1..6u64, 0..4u32);
    (times, (0..3u8, 1..4u64, any::<bool>(), any::<bool>()), vec(any::<u32>(), 1..7))
}

fn shape(sets: Vec<usize>) -> impl Strategy<Value = (usize, u32)> {
    (prop::sample::select(sets), prop::sample::select(vec![1u32, 2, 3, 4, 6, 8, 9, 12]))
}

fn case() -> impl Strategy<Value = Case> {
    let policy = prop::sample::select(vec![Lru, Fifo, TreePlru, Random]);
    let levels = (shape(vec![1, 2, 3]), shape(vec![2, 4, 7]), policy.clone(), policy, any::<bool>());
    (levels, vec(drawn(), 1..5), any::<bool>(), any::<u64>()).prop_map(|(levels, tasks, monotonic, seed)| {
        let ((s1, w1), (s2, w2), p1, p2, noisy) = levels;
        let level = |name: &str, sets: usize, ways: u32, replacement: Replacement| {
            // One way of each even set is the system's, where it is noisy.
            let room = (0..sets).map(|set| ways - u32::from(noisy && set % 2 == 0)).collect();
            Level { name: name.into(), ways, replacement, room }
        };
        let levels = vec![level("l1", s1, w1, p1), level("l2", s2, w2, p2)];
        let system = (0..s1.min(s2)).step_by(2).map(|set| (u64::MAX - set as u64, vec![set, set]));
        let system = if noisy { system.collect() } else { Vec::new() };
        build(levels, system, &tasks, monotonic, seed)
    })
}

fn build(levels: Vec<Level>, system: Vec<(u64, Vec<usize>)>, drawn: &[Drawn], monotonic: bool, seed: u64) -> Case {
    let tasks = drawn.iter().enumerate().map(|(i, ((phase, period, execution, priority), how, pages))| Task {
        name: format!("T{i}"),
        priority: (!monotonic).then_some(*priority),
        phase: ticks(*phase),
        period: ticks(*period),
        execution: ticks(*execution),
        pages: Some(pages.len() as u64),
        contiguous_pages: 1,
        accesses: how.3.then_some(execution * how.1),
        trace: None,
        program: None,
        data_pages: None,
    });
    let set = TaskSet { tasks: tasks.collect() };
    let order = set.by_priority();
    let running = drawn.iter().enumerate().map(|(i, ((phase, period, execution, _), how, pages))| Running {
        rank: order.iter().position(|&task| task == i).expect("ranked"),
        phase: *phase,
        period: *period,
        execution: *execution,
        touches_a_tick: how.1,
        shorter_jobs: how.2,
        order: [Order::FromTheFirst, Order::GoingOn, Order::Random][usize::from(how.0)],
        pages: pages
            .iter()
            .enumerate()
            .map(|(page, sets)| {
                let of = |(level, shift): (&Level, u32)| (sets >> shift) as usize % level.room.len();
                ((i * 100 + page) as u64, levels.iter().zip([0, 8]).map(of).collect())
            })
            .collect(),
    });
    let running = running.collect();
    Case { set, levels, running, system, seed }
}

/// The most misses that jobs of each task had at each level: of those that touched new pages, of the others.
fn observed(case: &Case) -> Vec<Vec<[u64; 2]>> {
    let mut most = vec![vec![[0; 2]; case.levels.len()]; case.set.tasks.len()];
    for job in case.jobs() {
        for (most, misses) in most[job.task].iter_mut().zip(job.misses) {
            let later = usize::from(!job.cold);
            most[later] = most[later].max(misses);
        }
    }
    most
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8000, ..ProptestConfig::default() })]
    #[test]
    fn no_job_misses_more_than_its_bound(case in case()) {
        let all = case.bounds();
        for (task, (bounds, observed)) in all.iter().zip(observed(&case)).enumerate() {
            for (level, (bound, observed)) in bounds.iter().zip(observed).enumerate() {
                // What the system evicts from sets that are shared comes on top.
                if !case.system.is_empty() && bound.rests_on != RestsOn::Room && bound.rests_on != RestsOn::Accesses {
                    continue;
                }
                for (seen, bound) in observed.into_iter().zip([bound.first_job, bound.later_jobs]) {
                    prop_assert!(bound.is_none_or(|bound| seen <= bound), "task {task}, level {level}: {seen} > {bound:?}");
                }
            }
        }
    }
}

/// How near jobs come to their bounds, over fixed random cases; some reach them.
#[test]
fn bounds_of_lru_are_reached() {
    let mut numbers = SplitMix64::new(1);
    let mut ratios: Vec<f64> = Vec::new();
    while ratios.len() < 1000 {
        let mut pick = |from: &[u64]| from[numbers.below(from.len() as u64) as usize];
        let ways = pick(&[2, 4, 8]) as u32;
        let levels = vec![Level { name: "l1".into(), ways, replacement: Lru, room: vec![ways; 2] }];
        let tasks: Vec<Drawn> = (0..pick(&[2, 3, 4]))
            .map(|_| {
                let times = (pick(&[0, 1, 5, 9]), pick(&[8, 12, 16, 24, 48]), pick(&[1, 2, 3, 4]), 0);
                let pages = (0..pick(&[1, 2, 3, 5])).map(|_| pick(&[0, 1]) as u32).collect();
                (times, (pick(&[0, 1, 2]) as u8, pick(&[1, 3, 6]), false, false), pages)
            })
            .collect();
        let case = build(levels, Vec::new(), &tasks, true, pick(&[1, 2, 3]));
        for (bounds, observed) in case.bounds().iter().zip(observed(&case)) {
            let Some(bound) = bounds[0].later_jobs.filter(|bound| *bound > 0) else { continue };
            assert!(observed[0][1] <= bound);
            ratios.push(observed[0][1] as f64 / bound as f64);
        }
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let reached = ratios.iter().filter(|ratio| **ratio == 1.0).count();
    println!("LRU: most misses seen / bound: mean {mean:.2}; {reached} of {} bounds are reached", ratios.len());
    assert!(reached > ratios.len() / 10 && mean > 0.4, "mean {mean:.2}, {reached} of {}", ratios.len());
}

/// Section 6.0.8: "T1 (1ms, 2ms, 0.392ms), T2 (0ms, 16ms, 7.88ms)", four pages each in one set of four ways, or in two.
#[test]
fn the_papers_tasks_in_the_same_set_and_in_different_ones() {
    let text = "[[task]]\nname = \"T1\"\nphase = \"1ms\"\nperiod = \"2ms\"\nexecution = \"0.392ms\"\npages = 4\n\
                [[task]]\nname = \"T2\"\nperiod = \"16ms\"\nexecution = \"7.88ms\"\npages = 4\n";
    let set = TaskSet::parse(text, "t").expect("tasks");
    let level = |replacement| Level { name: "l1d-4k".into(), ways: 4, replacement, room: vec![4; 2] };
    let of = |replacement, set_of_t2: usize| {
        let mut tenants = vec![Tenants::new(); 2];
        tenants[0].push((0, 4));
        tenants[set_of_t2].push((1, 4));
        let all = bounds(&set, &Responses::of(&set), &[level(replacement)], &[tenants]);
        [&all[0][0], &all[1][0]].map(|bound| (bound.first_job, bound.later_jobs, bound.rests_on))
    };
    for policy in [Lru, Fifo] {
        // Figure 6.2: T1 4 misses in jobs 1 to 6, T2 20 in the first hyperperiod (its pages were warm) and 24 after.
        let on = RestsOn::Policy(policy);
        assert_eq!(of(policy, 0), [(Some(4), Some(4), on), (Some(24), Some(24), on)]);
    }
    for policy in [TreePlru, Random] {
        assert_eq!(of(policy, 0), [(None, None, RestsOn::UnknownAccesses); 2]);
    }
    for policy in [Lru, Fifo, TreePlru, Random] {
        assert_eq!(of(policy, 1), [(Some(4), Some(0), RestsOn::Room); 2]);
    }
}
