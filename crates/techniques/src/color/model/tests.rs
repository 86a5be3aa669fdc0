use lookaside_engine::{PagePolicy, ProcessRange, WalkModel};
use lookaside_machine::preset;
use lookaside_workloads::{PatternStream, Strided};
use proptest::prelude::*;

use super::super::schedule::schedule;
use super::super::tasks::{Task, TaskSet, Time};
use super::super::work::{on_own_lines, Touch, PAGE_BYTES};
use super::*;

/// Sets of pages in the order of their use, the last used last.
struct NaiveTlb {
    sets: Vec<Vec<u64>>,
    ways: usize,
}

impl NaiveTlb {
    fn new(sets: usize, ways: usize) -> Self {
        Self { sets: vec![Vec::new(); sets], ways }
    }

    /// Whether the page is there; from now on it is.
    fn access(&mut self, page: u64) -> bool {
        let sets = self.sets.len() as u64;
        let set = &mut self.sets[(page % sets) as usize];
        let place = set.iter().position(|p| *p == page);
        if let Some(place) = place {
            set.remove(place);
        } else if set.len() == self.ways {
            set.remove(0);
        }
        set.push(page);
        place.is_some()
    }
}

/// The Xeon's two data TLBs, one access at a time: task, job, misses of the first, of both, accesses.
fn naive(schedule: &Schedule, rounds: &[Vec<u64>], per_ms: u64, noise: &[u64]) -> Vec<(usize, u64, u64, u64, u64)> {
    let (mut first, mut second) = (NaiveTlb::new(16, 4), NaiveTlb::new(128, 4));
    let mut touch = |addr: u64| {
        let page = addr / PAGE_BYTES;
        let in_first = first.access(page);
        (u64::from(!in_first), u64::from(!in_first && !second.access(page)))
    };
    let mut jobs: Vec<(usize, u64, u64, u64, u64)> = Vec::new();
    for slice in &schedule.slices {
        noise.iter().for_each(|addr| {
            touch(*addr);
        });
        if slice.first {
            jobs.push((slice.task, slice.job, 0, 0, 0));
        }
        let job = jobs.iter_mut().find(|job| (job.0, job.1) == (slice.task, slice.job)).expect("begun");
        let round = &rounds[slice.task];
        let before: u64 = schedule
            .slices
            .iter()
            .filter(|s| (s.task, s.job) == (slice.task, slice.job) && s.start_ns < slice.start_ns)
            .map(|s| s.length_ns)
            .sum();
        let at = |ns: u64| ns * per_ms / 1_000_000;
        let mut addrs: Vec<u64> =
            (at(before)..at(before + slice.length_ns)).map(|i| round[(i % round.len() as u64) as usize]).collect();
        if slice.job == 0 {
            addrs.clear();
            round.iter().for_each(|addr| {
                if !addrs.contains(addr) {
                    addrs.push(*addr);
                }
            });
        }
        for addr in addrs {
            let (missed, walked) = touch(addr);
            job.2 += missed;
            job.3 += walked;
            job.4 += 1;
        }
    }
    jobs.sort_unstable();
    jobs
}

/// Without data caches, and walks for nothing: what is left is what the twin knows.
fn bare() -> Setup {
    let mut machine = preset("xeon-e5-2650").expect("a preset");
    machine.caches.clear();
    Setup { walks: WalkModel::CountOnly, ..Setup::new(machine) }
}

fn set(tasks: &[(u64, u64, u64)]) -> TaskSet {
    let time = |us: u64| Time { nanos: us * 1000 };
    let task = |(i, (phase, period, execution)): (usize, &(u64, u64, u64))| Task {
        name: format!("T{i}"),
        priority: None,
        phase: time(*phase),
        period: time(*period),
        execution: time(*execution),
        pages: Some(1),
        contiguous_pages: 1,
        accesses: None,
        trace: None,
        program: None,
        data_pages: None,
    };
    TaskSet { tasks: tasks.iter().enumerate().map(task).collect() }
}

fn task_sets() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let periods = prop::sample::select(vec![200u64, 400, 600, 800]);
    let one = (0..5u64, periods, 1..=40u64);
    prop::collection::vec(one, 1..4).prop_map(|tasks| {
        tasks.into_iter().map(|(phase, period, part)| (phase * 100, period, period * part / 100)).collect()
    })
}

proptest! {
    /// Pages are few, so that sets overflow; slices are often shorter than a round.
    #[test]
    fn misses_are_the_naive_twins(
        tasks in task_sets(),
        pages in prop::collection::vec(prop::collection::vec(0..200u64, 1..24), 3),
        noise in prop::collection::vec(0..200u64, 0..20),
        per_ms in prop::sample::select(vec![7u64, 50, 100, 1000]),
    ) {
        let schedule = schedule(&set(&tasks), 2).expect("few jobs");
        let addrs = |pages: &Vec<u64>| pages.iter().map(|page| page * PAGE_BYTES).collect::<Vec<_>>();
        let rounds: Vec<Vec<u64>> = pages[..tasks.len()].iter().map(addrs).collect();
        let works: Vec<Work> = rounds.iter().map(|round| Work::stores(round, per_ms)).collect();
        let noise = addrs(&noise);
        let jobs = model(bare(), &schedule, &works, &noise).expect("a model");
        let found: Vec<_> = jobs.iter().map(|job| (job.task, job.job, job.l1_misses, job.walks, job.accesses)).collect();
        prop_assert_eq!(found, naive(&schedule, &rounds, per_ms, &noise));
        for job in jobs {
            let ends = |s: &Slice| (s.task, s.job, s.end) == (job.task, job.job, End::Completed);
            prop_assert_eq!(job.is_complete, schedule.slices.iter().any(ends));
            let hits = (job.l1_misses - job.walks) as f64;
            prop_assert_eq!(job.translation_cycles, 7.5 * hits);
            prop_assert_eq!(job.cycles, job.accesses as f64 + 7.5 * hits);
        }
    }
}

/// Repeats of a line, which a recording joins, are accesses like others: caches, cycles and all; slices end between
/// them, too.
#[test]
fn joined_accesses_are_as_good_as_single_ones() {
    let schedule = schedule(&set(&[(0, 100, 20), (0, 400, 300)]), 2).expect("few jobs");
    let walk = || PatternStream::new(Strided::new(40 * 1024, 8), 5000);
    let joined = Work::record(&mut walk(), u64::MAX, 7013).expect("a stream");
    let singly = |touch: &Touch| std::iter::repeat_n(Touch { times: 1, ..*touch }, touch.times as usize);
    let single = Work { round: joined.round.iter().flat_map(singly).collect(), ..joined.clone() };
    assert_eq!((joined.round.len(), single.round.len()), (625, 5000));
    let other = Work::stores(&[1 << 20, 17 << 20], 1000);
    let machine = preset("xeon-e5-2650").expect("a preset");
    let run = |work: &Work| {
        let works = [other.clone(), work.clone()];
        model(Setup::new(machine.clone()), &schedule, &works, &[3 << 20]).expect("a model")
    };
    let jobs = run(&joined);
    assert!(jobs.iter().any(|job| (job.short_slices, job.accesses) == (4, 2103)));
    assert_eq!(jobs, run(&single));
}

/// Panchamukhi 2014, Figure 6.2, at any pace that goes round in each slice.
#[test]
fn figure_6_2() {
    let set = set(&[(1000, 2000, 392), (0, 16_000, 7880)]);
    let schedule = schedule(&set, 3).expect("few jobs");
    for per_ms in [100, 1000, 20_000] {
        for (other, expected) in [(0, [4, 0, 20, 24]), (1, [0; 4])] {
            let pages = |task: u64, color: u64| [0, 1, 2, 3].map(|k| (16 * (4 * task + k) + color) * PAGE_BYTES);
            let works = [Work::stores(&pages(0, 0), per_ms), Work::stores(&pages(1, other), per_ms)];
            let machine = preset("xeon-e5-2650").expect("a preset");
            let jobs = model(Setup::new(machine), &schedule, &works, &[]).expect("a model");
            for job in jobs.iter().filter(|job| job.job > 0) {
                let among = (job.job - 1) % 8 + 1;
                let expected = match job.task {
                    0 => expected[usize::from(among > 6)],
                    _ => expected[if job.job == 1 { 2 } else { 3 }],
                };
                assert_eq!((job.l1_misses, job.walks, job.short_slices), (expected, 0, 0), "{job:?}");
                assert_eq!(job.translation_cycles, 7.5 * expected as f64);
            }
        }
    }
}

/// The system's pages take their room and are no job's.
#[test]
fn noise_evicts_and_is_not_counted() {
    let schedule = schedule(&set(&[(0, 100, 50)]), 2).expect("few jobs");
    let works = [Work::stores(&[0, 16 * PAGE_BYTES], 1000)];
    let misses = |noise: u64| {
        let noise: Vec<u64> = (0..noise).map(|k| (16 * (100 + k)) * PAGE_BYTES).collect();
        let jobs = model(bare(), &schedule, &works, &noise).expect("a model");
        jobs.iter().map(|job| (job.accesses, job.l1_misses)).collect::<Vec<_>>()
    };
    assert_eq!(misses(0), [(2, 2), (50, 0), (50, 0)]);
    assert_eq!(misses(2), misses(0));
    assert_eq!(misses(3), [(2, 2), (50, 2), (50, 2)]);
}

#[test]
fn slices_too_short_for_a_round_are_told() {
    let schedule = schedule(&set(&[(0, 100, 20), (0, 400, 200)]), 1).expect("few jobs");
    let pages: Vec<u64> = (0..30).map(|page| page * PAGE_BYTES).collect();
    let works = [Work::stores(&pages[..20], 1000), Work::stores(&on_own_lines(&pages, 0), 250)];
    let jobs = model(bare(), &schedule, &works, &[]).expect("a model");
    let of =
        |task| jobs.iter().filter(move |j| j.task == task && j.job > 0).map(|j| (j.slices, j.short_slices, j.accesses));
    assert_eq!(of(0).collect::<Vec<_>>(), [(1, 0, 20); 4]);
    // 80 + 80 + 40 us at four us an access: 20, 20, 10.
    assert_eq!(of(1).collect::<Vec<_>>(), [(3, 3, 50)]);
}

#[test]
fn a_task_without_work_is_named() {
    let schedule = schedule(&set(&[(0, 100, 50), (0, 100, 50)]), 1).expect("few jobs");
    let error = model(bare(), &schedule, &[Work::stores(&[0], 1)], &[]).expect_err("one work").to_string();
    assert!(error.starts_with("the schedule has a task 1, and there are works for 1"), "{error}");
    // A task without pages has nothing to do.
    let jobs = model(bare(), &schedule, &[Work::stores(&[], 1000), Work::stores(&[0], 1000)], &[]).expect("works");
    assert_eq!(jobs.iter().map(|job| job.accesses).collect::<Vec<_>>(), [0, 0, 1, 50]);
}

/// What a setup says of process 1 is said of the tasks.
#[test]
fn tasks_are_threads_of_process_1() {
    let schedule = schedule(&set(&[(0, 100, 50)]), 1).expect("few jobs");
    let pages: Vec<u64> = (0..100).map(|page| page * PAGE_BYTES).collect();
    let misses = |process: u32| {
        let mut setup = bare();
        let huge = ProcessRange { process: Some(process), start: 0, end: 4 << 20 };
        setup.os.pages = PagePolicy::Selective(vec![huge]);
        model(setup, &schedule, &[Work::stores(&pages, 1000)], &[]).expect("a model")[0].l1_misses
    };
    assert_eq!([1, 2].map(misses), [1, 100]);
}
