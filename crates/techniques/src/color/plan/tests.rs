use lookaside_machine::{preset, ColorLevel, Disturbance, IndexFn, Tlb, Ways};

use super::*;
use crate::plan::Plan;

/// Tasks of so many pages, of these so many contiguous.
fn tasks(needs: &[(u64, u64)]) -> TaskSet {
    let task = |(i, (pages, run)): (usize, &(u64, u64))| {
        format!(
            "[[task]]\nname = \"T{i}\"\nperiod = \"{}ms\"\nexecution = \"1ms\"\npages = {pages}\n\
             contiguous_pages = {run}\n",
            10 * (i + 1)
        )
    };
    TaskSet::parse(&needs.iter().enumerate().map(task).collect::<String>(), "t").expect("tasks")
}

fn xeon() -> Machine {
    preset("xeon-e5-2650").expect("a preset")
}

fn tlb<'a>(machine: &'a mut Machine, name: &str) -> &'a mut Tlb {
    machine.tlbs.iter_mut().find(|tlb| tlb.name == name).expect("a level")
}

fn planned(set: &TaskSet, machine: &Machine) -> ColorPlan {
    plan(set, machine, PageSize::K4).expect("a plan")
}

fn share(level: &str, sets: &[u32], ways: Option<u32>) -> Share {
    Share { level: level.into(), sets: sets.into(), ways }
}

#[test]
fn the_heaps_own_pages_get_what_is_neither_promised_nor_set_aside() {
    let mut machine = xeon();
    let quiet = planned(&tasks(&[(8, 1)]), &machine);
    assert_eq!((quiet.is_isolated(), quiet.partitions.partition(BOOKKEEPING)), (true, None));
    // Two ways of set 3, and set 9 whole.
    let figures = |at: usize, figure: f64| {
        let mut all = vec![0.0; 16];
        all[at] = figure;
        all
    };
    machine.disturbances.push(Disturbance {
        tlb: "l1d-4k".into(),
        evictions_per_second: figures(9, 0.1),
        evictions_per_system_call: vec![],
        evictions_per_context_switch: figures(3, 1.5),
    });
    let noisy = planned(&tasks(&[(8, 1)]), &machine);
    let counts = |plan: &ColorPlan| plan.levels.iter().map(|l| (l.set_aside, l.left, l.isolated)).collect::<Vec<_>>();
    assert_eq!(counts(&quiet), [(0, 56, true), (0, 504, true)]);
    assert_eq!(counts(&noisy), [(6, 50, true), (0, 504, true)]);
    let first_eight: Vec<u32> = (0..8).collect();
    let shares = ["l1d-4k", "stlb"].map(|level| share(level, &first_eight, Some(1)));
    assert_eq!(noisy.partitions.partition("T0").expect("a task's").shares, shares);
    let own = noisy.partitions.partition(BOOKKEEPING).expect("the heap's");
    assert_eq!(
        own.shares,
        [
            share("l1d-4k", &[3], Some(1)),
            share("l1d-4k", &[0, 1, 2, 4, 5, 6, 7], Some(3)),
            share("l1d-4k", &[8, 10, 11, 12, 13, 14, 15], Some(4)),
            share("stlb", &first_eight, Some(3)),
            share("stlb", &(8..128).collect::<Vec<_>>(), Some(4)),
        ]
    );
    assert_eq!((own.pages, own.contiguous_pages), (None, 1));
}

#[test]
fn nobody_has_a_place_apart_in_one_set_that_is_shared() {
    let level = |name: &str, room: &[u32]| {
        let (name, room) = (name.to_string(), room.to_vec());
        Level { name, ways: 4, replacement: Replacement::Lru, room }
    };
    let own = |all: &[u32], tenants: [u32; 3]| {
        let levels = [level("l1", &[4]), level("l2", all)];
        let [one, first, second] = tenants;
        let tenants = [vec![vec![(0, one)]], vec![vec![(0, first)], vec![(0, second)]]];
        own_pages(&levels, &tenants).map(|partition| partition.shares)
    };
    let l2 = [share("l2", &[1], Some(1)), share("l2", &[0], Some(2))];
    assert_eq!(own(&[3, 2], [3, 1, 1]), Some([&[share("l1", &[0], Some(1))], &l2[..]].concat()));
    assert_eq!(own(&[3, 2], [5, 1, 1]), Some(l2.to_vec()));
    assert_eq!(own(&[3, 2], [4, 1, 1]), None);
    // Of several sets one is left, also where the others are shared.
    assert_eq!(own(&[3, 2], [5, 4, 1]), Some(vec![share("l2", &[1], Some(1))]));
    assert_eq!(own(&[3, 2], [5, 4, 3]), None);
}

#[test]
fn a_plan_is_complete_if_it_isolates_and_says_so_if_nothing_is_left() {
    let weighed = |plan: &ColorPlan| {
        let line = plan.remarks.iter().find(|line| line.contains("placements weighed"))?;
        let rest = line.strip_prefix("of ")?;
        rest.strip_suffix(" placements weighed, this one shares least; that none is better is not proved")?
            .parse::<u64>()
            .ok()
    };
    let full = |plan: &ColorPlan| {
        let lines =
            plan.remarks.iter().filter_map(|line| line.strip_suffix(": nothing is left for the heap's own pages"));
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    let whole = planned(&tasks(&[(40, 1), (24, 1)]), &xeon());
    assert_eq!((whole.is_complete(), weighed(&whole), full(&whole)), (true, None, vec!["l1d-4k".to_string()]));
    assert_eq!(whole.to_toml(), whole.partitions.to_toml());
    let half = planned(&tasks(&[(20, 1), (12, 1)]), &xeon());
    assert_eq!((half.is_complete(), full(&half)), (true, vec![]));
    let short = planned(&tasks(&[(60, 1), (10, 1)]), &xeon());
    assert!(!short.is_complete() && weighed(&short).is_some_and(|places| places > 0), "{:?}", short.remarks);
    assert!(short.shared.iter().all(|set| set.level == "l1d-4k" && set.room == 4) && !short.shared.is_empty());
    for (i, level) in short.levels.iter().enumerate() {
        // Ten milliseconds and twenty, in a hyperperiod of twenty.
        let misses =
            short.tasks.iter().map(|task| Some(20 / (task.period.nanos / 1_000_000) * task.bounds[i].later_jobs?));
        assert_eq!(level.later_misses_per_span, misses.sum::<Option<u64>>());
    }
}

#[test]
fn tasks_have_as_many_pages_as_can_be_planned_for_at_most() {
    let both = |first: u64| needs(&tasks(&[(first, 5), (1, 1)])).map_err(|why| why.to_string());
    let need = |pages, run| Need { pages, run };
    assert_eq!(both((1 << 14) - 1), Ok(vec![need((1 << 14) - 1, 5), need(1, 1)]));
    let said =
        "the tasks have 16385 pages in all; plans are for 16384 at most, more than any TLB holds: take larger pages";
    assert_eq!(both(1 << 14), Err(said.into()));
    let mut set = tasks(&[(1, 1)]);
    set.tasks[0].pages = None;
    assert_eq!(needs(&set), Err(ColorError("task T0: its trace has not been read".into())));
}

#[test]
fn levels_that_cannot_be_coloured_by_are_named() {
    let said = |machine: &Machine, page_size| levels(machine, page_size).map(drop).map_err(|why| why.to_string());
    let refused = |why: &str| Err(format!("xeon-e5-2650: {why}"));
    assert_eq!(said(&xeon(), PageSize::M16), refused("no TLB for loads holds 16M pages"));
    let mut machine = xeon();
    let more = ["a", "b", "c"].map(|name| Tlb { name: name.into(), ..tlb(&mut machine, "stlb").clone() });
    let [a, b, c] = more;
    machine.tlbs.extend([a, b]);
    assert_eq!(said(&machine, PageSize::K4), Ok(()));
    machine.tlbs.push(c);
    assert_eq!(said(&machine, PageSize::K4), refused("5 TLBs hold 4K pages, more than the 4 of a plan"));
    let mut machine = xeon();
    let sets = |machine: &mut Machine, sets: u32| {
        let stlb = tlb(machine, "stlb");
        (stlb.entries, stlb.ways) = (sets, Ways::Count(1));
        said(machine, PageSize::K4)
    };
    assert_eq!(sets(&mut machine, 4096), Ok(()));
    assert_eq!(sets(&mut machine, 8192), refused("stlb has 8192 sets, more than the 4096 of a plan"));
    let mut machine = xeon();
    tlb(&mut machine, "l1d-4k").index = IndexFn::Masks(vec![1, 2, 4, 1 << 20]);
    let far = "the index of l1d-4k reads more than the 20 page-number bits that a heap's area has";
    assert_eq!(said(&machine, PageSize::K4), refused(far));
    let mut machine = xeon();
    tlb(&mut machine, "l1d-4k").replacement = Replacement::Fifo;
    tlb(&mut machine, "stlb").replacement = Replacement::Random;
    let (found, _) = levels(&machine, PageSize::K4).expect("levels");
    let policies: Vec<Replacement> = found.iter().map(|level| level.replacement).collect();
    assert_eq!(policies, [Replacement::Fifo, Replacement::Random]);
}

#[test]
fn shares_in_which_a_heap_does_not_find_its_pages_have_no_limits() {
    // Of pages 1, 2 and 3 each two share a set; a heap begins with page 0.
    let masks = [("l1", 0b01), ("l2", 0b10), ("l3", 0b11)];
    let levels =
        masks.map(|(name, mask)| ColorLevel { name: name.into(), sets: 2, ways: 2, index: IndexFn::Masks(vec![mask]) });
    let grid = PageGrid::new(&levels).expect("an area");
    let set = tasks(&[(1, 1), (3, 1)]);
    let needs = needs(&set).expect("few pages");
    let (all, remarks) = partitions(&set, &xeon(), PageSize::K4, &grid, &needs, &vec![vec![0], vec![1, 2, 3]]);
    assert_eq!((all.levels.len(), all.partitions.len(), all.page_size), (3, 2, PageSize::K4));
    assert_eq!(all.partitions[0].shares, ["l1", "l2", "l3"].map(|level| share(level, &[0], Some(1))));
    assert_eq!(all.partitions[1].shares, ["l1", "l2", "l3"].map(|level| share(level, &[0, 1], None)));
    assert_eq!(remarks, ["task T1: a heap finds all its pages only if its sets have no limits"]);
}
