//! Plans that are said to isolate do; proofs that nothing does are true; heaps find their pages.

use std::collections::BTreeSet;

use lookaside_machine::{
    preset, ColorLevel, Disturbance, IndexFn, Machine, PageSize, Partition, Partitions, Replacement, Ways, BOOKKEEPING,
};
use lookaside_techniques::color::bound::{bounds, Level, RestsOn, Tenants};
use lookaside_techniques::color::plan::{plan, Certificate, ColorPlan, Verdict};
use lookaside_techniques::color::response::Responses;
use lookaside_techniques::color::tasks::{Task, TaskSet, Time};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::brute::{any_placement, sets_of};

/// One level as drawn: log2 of its sets, ways, for each mask the bits above those of the linear index, replacement.
type Drawn = (u32, u32, Option<Vec<u64>>, Replacement);

fn level(log2_sets: std::ops::Range<u32>, ways: std::ops::Range<u32>, high_bits: u32) -> impl Strategy<Value = Drawn> {
    let policy =
        prop::sample::select(vec![Replacement::Lru, Replacement::Fifo, Replacement::TreePlru, Replacement::Random]);
    let masks = prop::option::of(vec(0..1u64 << high_bits, 12));
    (log2_sets, ways, masks, policy)
}

/// A machine with two levels, and ways that the system takes in sets (by set number, modulo their number) of the first.
fn machine(first: Drawn, second: Drawn, noise: &[(u32, f64, bool)]) -> Machine {
    let mut machine = preset("xeon-e5-2650").expect("a preset");
    for (name, (log2_sets, ways, high, replacement)) in [("l1d-4k", first), ("stlb", second)] {
        let tlb = machine.tlbs.iter_mut().find(|tlb| tlb.name == name).expect("a level");
        (tlb.ways, tlb.entries, tlb.replacement) = (Ways::Count(ways), ways << log2_sets, replacement);
        // The low bits make the masks independent.
        let mask = |bit: u32, high: &[u64]| 1 << bit | high[bit as usize] << log2_sets;
        tlb.index =
            high.map_or(IndexFn::Linear, |high| IndexFn::Masks((0..log2_sets).map(|bit| mask(bit, &high)).collect()));
    }
    let sets = machine.tlbs.iter().find(|tlb| tlb.name == "l1d-4k").expect("a level").sets();
    let mut disturbance = Disturbance { tlb: "l1d-4k".into(), ..Disturbance::default() };
    disturbance.evictions_per_second = vec![0.0; sets as usize];
    disturbance.evictions_per_context_switch = vec![0.0; sets as usize];
    for &(set, figure, by_the_second) in noise {
        let list = match by_the_second {
            true => &mut disturbance.evictions_per_second,
            false => &mut disturbance.evictions_per_context_switch,
        };
        list[(set % sets) as usize] = figure;
    }
    machine.disturbances.push(disturbance);
    machine
}

/// Entries of each set that are not the system's, by the rule of docs/explanation/coloring.md.
fn room(machine: &Machine, levels: &[ColorLevel]) -> Vec<Vec<u32>> {
    let of = |level: &ColorLevel| -> Vec<u32> {
        let Some(noise) = machine.disturbances.iter().find(|noise| noise.tlb == level.name) else {
            return vec![level.ways; level.sets as usize];
        };
        let of_set = |set: usize| match noise.evictions_per_second[set] > 0.0 {
            true => 0,
            false => level.ways.saturating_sub(noise.evictions_per_context_switch[set].ceil() as u32),
        };
        (0..level.sets as usize).map(of_set).collect()
    };
    levels.iter().map(of).collect()
}

/// Period and execution in ticks, pages, contiguous pages (cut to the pages), accesses.
type DrawnTask = (u64, u64, usize, usize, Option<u64>);

fn task(pages: std::ops::Range<usize>, run: std::ops::Range<usize>) -> impl Strategy<Value = DrawnTask> {
    (prop::sample::select(vec![20u64, 40, 60, 120]), 1..6u64, pages, run, prop::option::of(1..60u64))
}

fn tasks(drawn: &[DrawnTask]) -> TaskSet {
    let task = |(i, &(period, execution, pages, run, accesses)): (usize, &DrawnTask)| Task {
        name: format!("T{i}"),
        priority: None,
        phase: Time::default(),
        period: Time { nanos: period },
        execution: Time { nanos: execution },
        pages: Some(pages as u64),
        contiguous_pages: run.min(pages) as u64,
        accesses,
        trace: None,
        program: None,
        data_pages: None,
    };
    TaskSet { tasks: drawn.iter().enumerate().map(task).collect() }
}

/// Pages of an area of 2^20 as the plainest heap takes them: the run first, then single ones, ascending, where all sets
/// of a page have room and nobody has `taken` it.
fn picked(partition: &Partition, levels: &[ColorLevel], taken: &mut BTreeSet<usize>) -> Option<Vec<usize>> {
    const AREA: usize = 1 << 20;
    let mut left: Vec<Vec<Option<u32>>> = levels.iter().map(|level| vec![Some(0); level.sets as usize]).collect();
    for share in &partition.shares {
        let level = levels.iter().position(|level| level.name == share.level).expect("a level");
        share.sets.iter().for_each(|&set| left[level][set as usize] = share.ways);
    }
    let mut take = |pages: std::ops::Range<usize>, taken: &mut BTreeSet<usize>| {
        let mut after = left.clone();
        for page in pages.clone() {
            for (left, set) in after.iter_mut().zip(sets_of(levels, page)) {
                match &mut left[set as usize] {
                    Some(0) => return false,
                    Some(pages) => *pages -= 1,
                    None => (),
                }
            }
        }
        if pages.clone().any(|page| taken.contains(&page)) {
            return false;
        }
        left = after;
        taken.extend(pages);
        true
    };
    let wanted = partition.pages.expect("a number of pages") as usize;
    let run = partition.contiguous_pages as usize;
    // No index here reads more than 11 bits, and all tasks together take fewer than 128 pages; what is not in so many
    // is nowhere.
    const ENOUGH: usize = 1 << 18;
    let start = (0..ENOUGH).find(|&start| take(start..start + run, taken))?;
    let mut found: Vec<usize> = (start..start + run).collect();
    for page in 0..AREA {
        if found.len() == wanted {
            return Some(found);
        }
        if page > found[found.len() - 1] + ENOUGH {
            return None;
        }
        if take(page..page + 1, taken) {
            found.push(page);
        }
    }
    None
}

/// Everything that a plan says of itself.
fn check(set: &TaskSet, machine: &Machine, plan: &ColorPlan) -> Result<(), TestCaseError> {
    let levels = machine.color_levels(PageSize::K4);
    let room = room(machine, &levels);
    prop_assert_eq!(&Partitions::parse(&plan.partitions.to_toml(), "plan").expect("read back"), &plan.partitions);
    let mut counts: Vec<Vec<u32>> = room.iter().map(|room| vec![0; room.len()]).collect();
    let mut taken = BTreeSet::new();
    for (task, partition) in set.tasks.iter().zip(&plan.partitions.partitions) {
        prop_assert_eq!((&task.name, task.pages), (&partition.name, partition.pages));
        // In a heap of its own, and in one for all tasks.
        prop_assert!(picked(partition, &levels, &mut BTreeSet::new()).is_some());
        let pages = picked(partition, &levels, &mut taken);
        prop_assert!(pages.is_some(), "{:?} has no {:?} pages", partition, task.pages);
        for page in pages.unwrap_or_default() {
            sets_of(&levels, page).iter().zip(&mut counts).for_each(|(&set, counts)| counts[set as usize] += 1);
        }
    }
    // The heap's own pages take nothing that is promised or set aside.
    if let Some(own) = plan.partitions.partition(BOOKKEEPING) {
        for share in &own.shares {
            let (i, _) = levels.iter().enumerate().find(|(_, level)| level.name == share.level).expect("a level");
            for &set in &share.sets {
                let promised: u32 = plan
                    .partitions
                    .partitions
                    .iter()
                    .flat_map(|p| &p.shares)
                    .filter(|other| other.level == share.level && other.sets.contains(&set))
                    .map(|other| other.ways.unwrap_or(0))
                    .sum();
                prop_assert!(promised <= room[i][set as usize], "set {} of {}", set, share.level);
            }
        }
    }
    let over = counts.iter().flatten().zip(room.iter().flatten()).any(|(pages, room)| pages > room);
    prop_assert_eq!(plan.is_isolated(), !over);
    prop_assert_eq!(plan.is_isolated(), plan.shared.is_empty());
    prop_assert_eq!(plan.is_isolated(), plan.levels.iter().all(|level| level.isolated));
    for task in &plan.tasks {
        for bound in &task.bounds {
            prop_assert!(!plan.is_isolated() || bound.rests_on == RestsOn::Room);
            if bound.rests_on == RestsOn::Room {
                let first = task.accesses.map_or(task.pages, |accesses| accesses.min(task.pages));
                prop_assert_eq!((bound.first_job, bound.later_jobs), (Some(first), Some(0)));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn plans_keep_what_they_say(
        first in level(0..5, 2..9, 5),
        second in level(4..8, 3..9, 4),
        drawn in vec(task(1..24, 1..12), 1..6),
        noise in vec((0..16u32, prop::sample::select(vec![0.5, 1.0, 1.2, 3.0]), prop::bool::weighted(0.2)), 0..3),
    ) {
        let (set, machine) = (tasks(&drawn), machine(first, second, &noise));
        let found = plan(&set, &machine, PageSize::K4).expect("a plan");
        check(&set, &machine, &found)?;
    }
}

/// What is made small: jobs without a bound, then misses, over all jobs of a hyperperiod.
fn cost(set: &TaskSet, by_task: &[Vec<Option<u64>>]) -> Cost {
    let span = set.hyperperiod().expect("short periods").nanos;
    let mut cost = (0, 0);
    for (task, levels) in set.tasks.iter().zip(by_task) {
        for later in levels {
            let jobs = span / task.period.nanos;
            match later {
                Some(misses) => cost.1 += jobs * misses,
                None => cost.0 += jobs,
            }
        }
    }
    cost
}

/// What is made small: see [`cost`].
type Cost = (u64, u64);

/// Verdict, and the planner's cost and the least that there is; `None` where it isolates, which is then asserted to be
/// possible, and else not to be.
fn against_everything(set: &TaskSet, machine: &Machine) -> Result<Option<(Verdict, [Cost; 2])>, TestCaseError> {
    let found = plan(set, machine, PageSize::K4).expect("a plan");
    check(set, machine, &found)?;
    let levels = machine.color_levels(PageSize::K4);
    let room = room(machine, &levels);
    let needs: Vec<(usize, usize)> =
        set.tasks.iter().map(|task| (task.pages.expect("pages") as usize, task.contiguous_pages as usize)).collect();
    let bits = levels.iter().flat_map(|level| level.index.masks(level.sets)).fold(0, |all, mask| all | mask);
    let period = 1 << (u64::BITS - bits.leading_zeros());
    let fits = |laid: &[Vec<usize>]| {
        levels.iter().zip(&room).all(|(level, room)| {
            let mut counts = vec![0; room.len()];
            laid.iter().flatten().for_each(|&page| counts[level.set_of(page as u64) as usize] += 1);
            counts.iter().zip(room).all(|(pages, room)| pages <= room)
        })
    };
    let possible = any_placement(&levels, period, &needs, &mut |laid| fits(laid));
    prop_assert_eq!(found.is_isolated(), possible, "{:?}", found.verdict);
    if possible {
        return Ok(None);
    }
    if let Verdict::Impossible { certificates } = &found.verdict {
        prop_assert!(!certificates.is_empty());
    }
    let responses = Responses::of(set);
    let policy = |name: &str| machine.tlbs.iter().find(|tlb| tlb.name == name).expect("a level").replacement;
    let bounded: Vec<Level> = (levels.iter().zip(&room))
        .map(|(level, room)| Level {
            name: level.name.clone(),
            ways: level.ways,
            replacement: policy(&level.name),
            room: room.clone(),
        })
        .collect();
    let mut least = (u64::MAX, u64::MAX);
    any_placement(&levels, period, &needs, &mut |laid| {
        let of_level = |level: &ColorLevel| {
            let mut sets = vec![Tenants::new(); level.sets as usize];
            for (task, pages) in laid.iter().enumerate() {
                for &page in pages {
                    let tenants = &mut sets[level.set_of(page as u64) as usize];
                    match tenants.last_mut().filter(|tenant| tenant.0 == task) {
                        Some(tenant) => tenant.1 += 1,
                        None => tenants.push((task, 1)),
                    }
                }
            }
            sets
        };
        let tenants: Vec<Vec<Tenants>> = levels.iter().map(of_level).collect();
        let all = bounds(set, &responses, &bounded, &tenants);
        let later: Vec<Vec<Option<u64>>> =
            all.iter().map(|bounds| bounds.iter().map(|bound| bound.later_jobs).collect()).collect();
        least = least.min(cost(set, &later));
        false
    });
    let mut planned = vec![Vec::new(); set.tasks.len()];
    for task in &found.tasks {
        let at = set.tasks.iter().position(|other| other.name == task.name).expect("a task");
        planned[at] = task.bounds.iter().map(|bound| bound.later_jobs).collect();
    }
    Ok(Some((found.verdict, [cost(set, &planned), least])))
}

fn tiny() -> impl Strategy<Value = (TaskSet, Machine)> {
    let noise = vec((0..4u32, prop::sample::select(vec![1.0, 2.0]), prop::bool::weighted(0.3)), 0..2);
    let needs = prop_oneof![vec(task(1..3, 1..3), 3..4), vec(task(1..4, 1..4), 1..3)];
    (level(0..2, 1..5, 1), level(1..3, 1..4, 1), needs, noise)
        .prop_map(|(first, second, drawn, noise)| (tasks(&drawn), machine(first, second, &noise)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]
    #[test]
    fn on_tiny_machines_isolation_is_found_where_there_is_any((set, machine) in tiny()) {
        if let Some((_, [planned, least])) = against_everything(&set, &machine)? {
            prop_assert!(planned >= least, "{planned:?} is less than the least, {least:?}");
        }
    }
}

/// How often the sharing is the least that there is, over fixed random cases.
#[test]
fn sharing_is_mostly_the_least_that_there_is() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut all, mut least_of_all, mut kinds) = (0, 0, std::collections::BTreeMap::new());
    while all < 300 {
        let (set, machine) = tiny().new_tree(&mut runner).expect("a case").current();
        let found = against_everything(&set, &machine).expect("a plan that keeps what it says");
        if let Some((verdict, [planned, least])) = found {
            all += 1;
            match verdict {
                Verdict::Impossible { certificates } => certificates.iter().for_each(|proof| {
                    let kind = match proof {
                        Certificate::Entries { .. } => "entries",
                        Certificate::Run { .. } => "run",
                        Certificate::Set { .. } => "set",
                    };
                    *kinds.entry(kind).or_insert(0) += 1;
                }),
                _ => *kinds.entry("not found").or_insert(0) += 1,
            }
            least_of_all += usize::from(planned == least);
        }
    }
    println!("{least_of_all} of {all} sharings are the least that there is; why they share: {kinds:?}");
    assert_eq!(kinds.len(), 3, "{kinds:?}");
    assert!(least_of_all * 100 >= all * 97, "{least_of_all} of {all}");
}

#[test]
fn the_papers_task_sets_are_isolated() {
    // Section 6.0.8 and table 6.1: phase, period, execution in ms, pages.
    let xeon = preset("xeon-e5-2650").expect("a preset");
    for rows in [
        &[(1, 2, "0.385ms", 14), (0, 16, "7.38ms", 14)][..],
        &[(1, 2, "0.4ms", 16), (0, 54, "27ms", 16)],
        &[(3, 2, "0.4ms", 4), (2, 3, "0.9ms", 7), (0, 15, "3.2ms", 2)],
        &[(3, 2, "0.2ms", 2), (2, 3, "0.6ms", 2), (1, 5, "1.1ms", 1), (0, 15, "3.2ms", 2)],
    ] {
        let text: String = rows
            .iter()
            .enumerate()
            .map(|(i, (phase, period, execution, pages))| {
                format!(
                    "[[task]]\nname = \"T{}\"\nphase = \"{phase}ms\"\nperiod = \"{period}ms\"\nexecution = \"{execution}\"\npages = {pages}\n",
                    i + 1
                )
            })
            .collect();
        let set = TaskSet::parse(&text, "t").expect("tasks");
        let found = plan(&set, &xeon, PageSize::K4).expect("a plan");
        assert_eq!(found.verdict, Verdict::Isolated);
        check(&set, &xeon, &found).expect("a plan that keeps what it says");
        assert_eq!(found, plan(&set, &xeon, PageSize::K4).expect("the same"));
    }
}

/// Where tasks share sets, the pages of a set that are still free may begin after many that others have.
#[test]
fn pages_are_found_behind_those_of_others() {
    let second = (7, 5, Some(vec![4, 11, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0]), Replacement::Lru);
    let drawn = [(40, 1, 6, 1, None), (60, 1, 17, 2, Some(4)), (40, 1, 15, 8, None), (40, 1, 13, 8, Some(1))];
    let (set, machine) = (tasks(&drawn), machine((4, 2, None, Replacement::Lru), second, &[]));
    check(&set, &machine, &plan(&set, &machine, PageSize::K4).expect("a plan")).expect("what the plan says");
}

#[test]
fn a_plan_says_where_directory_entries_lie_beside_pages() {
    let set = tasks(&[(20, 1, 4, 1, None)]);
    let mut machine = preset("xeon-e5-2650").expect("a preset");
    let says = |machine: &Machine| {
        let plan = plan(&set, machine, PageSize::K4).expect("a plan");
        plan.remarks.iter().any(|remark| remark.starts_with("stlb: a walk leaves a page directory's entry there too"))
    };
    assert!(!says(&machine));
    machine.tlbs.iter_mut().filter(|tlb| tlb.level == 2).for_each(|tlb| tlb.directory_entries = true);
    assert!(says(&machine));
}

/// Where a level has sets for each task alone they get them: of the first level if it can be, of a later one else, also
/// where another level is asked for more than it holds.
#[test]
fn tasks_get_sets_of_their_own() {
    let apart = |machine: &str, pages: &[usize], run: usize| {
        let drawn: Vec<DrawnTask> = pages.iter().map(|&pages| (60, 1, pages, run, None)).collect();
        let found = plan(&tasks(&drawn), &preset(machine).expect("a preset"), PageSize::K4).expect("a plan");
        let is_apart = |level: &ColorLevel| {
            let shares = found.partitions.partitions.iter().flat_map(|partition| &partition.shares);
            let mut seen = BTreeSet::new();
            let sets = shares.filter(|share| share.level == level.name).flat_map(|share| &share.sets);
            sets.into_iter().all(|set| seen.insert(*set))
        };
        (found.is_isolated(), found.partitions.levels.iter().map(is_apart).collect::<Vec<_>>())
    };
    assert_eq!(apart("xeon-e5-2650", &[12, 20, 28], 1), (true, vec![true, true]));
    // Four, five and eight of the sixteen sets are one too many; of 128 each has its own.
    assert_eq!(apart("xeon-e5-2650", &[13, 20, 29], 1), (true, vec![false, true]));
    assert_eq!(apart("xeon-e5-2650", &[12, 20, 28], 12), (true, vec![false, true]));
    // The first level has one set, of 64 ways; the second 2048 entries.
    assert_eq!(apart("ryzen-5900x", &[400, 500], 1), (false, vec![false, true]));
}
