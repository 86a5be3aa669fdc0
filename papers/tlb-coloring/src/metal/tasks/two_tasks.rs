//! The coloring paper's two tasks (Panchamukhi 2014, section 6.0.8), fitted to a level of a machine.

use lookaside_machine::ColorLevel;
use lookaside_techniques::color::tasks::{Task, TaskSet, Time};

use super::page_placement::shared_ways;
use super::CountedBy;

/// Phase, period and execution time of T1 and T2, in microseconds, where misses are timed. The paper's (1, 2 and 0.392
/// ms; 0, 16 and 7.88 ms) a twentieth, rounded: the shorter the time between jobs, the less of what they left is taken
/// by others than the tasks.
const TIMED_US: [(&str, [u64; 3]); 2] = [("T1", [50, 100, 10]), ("T2", [0, 800, 300])];
/// The same where walks are counted, which takes 0.2 to 0.3 ms at each job's end (the development machine): phases and
/// periods are a fourth of the paper's, and execution times leave room for that.
const COUNTED_US: [(&str, [u64; 3]); 2] = [("T1", [250, 500, 50]), ("T2", [0, 4000, 700])];
/// Pages of a task where a level behind the first is coloured: nearly as many as a first level holds, so that the two
/// tasks' together are far more.
const PAGES_BEHIND: u64 = 64;

/// Two tasks with so many pages each that they fit a few sets of the level, and not the same few together. `is_first`:
/// no level is before it.
///
/// One way in three is left to the system and to what else a set holds: with all of them, the paper's case, it takes an
/// entry each time.
pub fn two_tasks(level: &ColorLevel, is_first: bool, by: CountedBy) -> TaskSet {
    let ways = u64::from(level.ways);
    let left = u64::from(shared_ways(level));
    let pages = if is_first { ways } else { PAGES_BEHIND.div_ceil(left) * left };
    let us = |us: u64| Time { nanos: us * 1000 };
    let task = |(name, [phase, period, execution]): (&str, [u64; 3])| Task {
        name: name.into(),
        priority: None,
        phase: us(phase),
        period: us(period),
        execution: us(execution),
        pages: Some(pages),
        contiguous_pages: 1,
        accesses: None,
        trace: None,
        program: None,
        data_pages: None,
    };
    let times = match by {
        CountedBy::Walks => COUNTED_US,
        CountedBy::Timing => TIMED_US,
    };
    TaskSet { tasks: times.into_iter().map(task).collect() }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{preset, PageSize};
    use lookaside_techniques::color::plan::plan;

    use super::*;

    #[test]
    fn they_can_be_isolated_where_there_are_sets() {
        for (name, first) in [("xeon-e5-2650", true), ("xeon-e5-2650", false), ("ryzen-5900x", false)] {
            let machine = preset(name).expect("a preset");
            let levels = machine.color_levels(PageSize::K4);
            let level = if first { &levels[0] } else { &levels[1] };
            let by = if first { CountedBy::Timing } else { CountedBy::Walks };
            let set = two_tasks(level, first, by);
            let hyperperiod_us = if first { 800 } else { 4000 };
            assert_eq!(set.hyperperiod().map(|time| time.nanos), Some(1000 * hyperperiod_us));
            let plan = plan(&set, &machine, PageSize::K4).expect("a plan");
            let found = plan.levels.iter().find(|found| found.name == level.name).expect("the level");
            assert!(found.isolated, "{name} {}", level.name);
            let pages = set.tasks[0].pages.expect("pages");
            assert!(if first { pages == 4 } else { pages >= 64 }, "{pages}");
        }
    }
}
