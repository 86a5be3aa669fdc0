//! The engine's jobs keep the bounds too.

use lookaside_engine::Setup;
use lookaside_machine::{preset, PageSize, Replacement, Ways};
use lookaside_techniques::color::bound::{bounds, Level, Tenants};
use lookaside_techniques::color::model::model;
use lookaside_techniques::color::response::Responses;
use lookaside_techniques::color::schedule::schedule;
use lookaside_techniques::color::tasks::{Task, TaskSet, Time};
use lookaside_techniques::color::work::Work;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

/// Accesses in a millisecond: a few rounds over the pages.
const ACCESSES_PER_MS: u64 = 40;

/// Phase, period (both in ms), execution in hundredths of the period, pages of 64.
type Drawn = (u64, u64, u64, std::collections::BTreeSet<u64>);

fn drawn() -> impl Strategy<Value = Drawn> {
    (0..8u64, prop::sample::select(vec![2u64, 4, 5, 8, 10, 16]), 10..40u64, btree_set(0..64u64, 1..10))
}

fn set(drawn: &[Drawn]) -> TaskSet {
    let task = |(i, (phase, period, percent, pages)): (usize, &Drawn)| Task {
        name: format!("T{i}"),
        priority: None,
        phase: Time { nanos: phase * 1_000_000 },
        period: Time { nanos: period * 1_000_000 },
        execution: Time { nanos: period * percent * 10_000 },
        pages: Some(pages.len() as u64),
        contiguous_pages: 1,
        accesses: None,
        trace: None,
        program: None,
        data_pages: None,
    };
    TaskSet { tasks: drawn.iter().enumerate().map(task).collect() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn jobs_of_the_engine_keep_the_bounds(
        tasks in vec(drawn(), 1..4),
        first in (0..3u32, prop::sample::select(vec![2u32, 3, 4, 6, 8])),
        second in (1..4u32, prop::sample::select(vec![2u32, 4, 5])),
        policies in vec(prop::sample::select(vec![Replacement::Lru, Replacement::Fifo, Replacement::TreePlru]), 2),
    ) {
        let mut machine = preset("xeon-e5-2650").expect("a preset");
        for ((name, (log2_sets, ways)), policy) in [("l1d-4k", first), ("stlb", second)].into_iter().zip(&policies) {
            let tlb = machine.tlbs.iter_mut().find(|tlb| tlb.name == name).expect("a level");
            (tlb.ways, tlb.entries, tlb.replacement) = (Ways::Count(ways), ways << log2_sets, *policy);
        }
        let set = set(&tasks);
        // A task's pages are its own, whatever the sets.
        let vpn = |task: usize, page: u64| ((task as u64 + 1) << 20) + page;
        let levels: Vec<_> = machine.color_levels(PageSize::K4);
        let of_level = |level: &lookaside_machine::ColorLevel| {
            let mut sets = vec![Tenants::new(); level.sets as usize];
            for (task, (.., pages)) in tasks.iter().enumerate() {
                for &page in pages {
                    let tenants = &mut sets[level.set_of(vpn(task, page)) as usize];
                    match tenants.last_mut().filter(|tenant| tenant.0 == task) {
                        Some(tenant) => tenant.1 += 1,
                        None => tenants.push((task, 1)),
                    }
                }
            }
            sets
        };
        let tenants: Vec<Vec<Tenants>> = levels.iter().map(of_level).collect();
        let bounded: Vec<Level> = (levels.iter().zip(&policies))
            .map(|(level, &replacement)| {
                let room = vec![level.ways; level.sets as usize];
                Level { name: level.name.clone(), ways: level.ways, replacement, room }
            })
            .collect();
        let all = bounds(&set, &Responses::of(&set), &bounded, &tenants);
        let works: Vec<Work> = (tasks.iter().enumerate())
            .map(|(task, (.., pages))| {
                let addresses: Vec<u64> = pages.iter().map(|&page| vpn(task, page) << 12).collect();
                Work::stores(&addresses, ACCESSES_PER_MS)
            })
            .collect();
        let Ok(schedule) = schedule(&set, 2) else { return Ok(()) };
        // Job 0 is the warm-up, which touches all pages.
        for job in model(Setup::new(machine), &schedule, &works, &[]).expect("a model").iter().filter(|job| job.job > 0) {
            for (misses, bound) in [job.l1_misses, job.walks].into_iter().zip(&all[job.task]) {
                prop_assert!(bound.later_jobs.is_none_or(|bound| misses <= bound), "{job:?}: {bound:?}");
            }
        }
    }
}
