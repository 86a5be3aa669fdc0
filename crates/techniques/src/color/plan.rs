//! The planner: which sets, and how many entries of each, the pages of each task may use (Panchamukhi 2014, chapter 3,
//! for any index, all levels at once, and ways as well as sets).
//!
//! Isolation needs no more than that no set of any level is promised to more pages than it has entries that the system
//! leaves: then nothing is ever replaced. Pages are chosen by number in a made-up area (`plan/grid.rs`); a partition
//! says how many of them lie in each set, and a heap that looks for pages within its partition finds as many, which is
//! checked before a plan is given.
//!
//! ```
//! use lookaside_machine::{preset, PageSize};
//! use lookaside_techniques::color::{plan::plan, tasks::TaskSet};
//!
//! let tasks = TaskSet::parse("
//!     [[task]]
//!     name = 'T1'
//!     period = '2ms'
//!     execution = '0.39ms'
//!     pages = 16
//!     contiguous_pages = 4
//!     [[task]]
//!     name = 'T2'
//!     period = '16ms'
//!     execution = '7.8ms'
//!     pages = 48
//! ", "tasks.toml")?;
//! let found = plan(&tasks, &preset("xeon-e5-2650")?, PageSize::K4)?;
//! assert!(found.is_isolated());
//! assert!(found.tasks.iter().flat_map(|task| &task.bounds).all(|bound| bound.later_jobs == Some(0)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apart;
mod certificate;
mod grid;
mod remarks;
mod search;
mod sharing;

use std::collections::{BTreeMap, HashSet};

use lookaside_machine::{
    Machine, PageSize, Partition, Partitions, Replacement, Share, BOOKKEEPING, MAX_COLOR_LEVELS, MAX_COLOR_SETS,
};
use serde::Serialize;

use super::bound::{bounds, promised, Bound, Level, Tenants};
use super::noise::set_aside;
use super::response::Responses;
use super::tasks::{TaskSet, Time};
pub use certificate::Certificate;
use grid::{Need, PageGrid, PagesBySet, TaskPages, AREA_PAGES};

/// Most pages of all tasks together: four times the entries of the largest TLB that is known (Zen 5, 4096).
pub const MAX_PAGES: u64 = 1 << 14;

/// What misses are summed up over where the hyperperiod is beyond 2^63 ns: an hour.
const HOUR: Time = Time { nanos: 3_600_000_000_000 };

/// Partitions for a set of tasks, and what they are worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ColorPlan {
    /// Name of the machine.
    pub machine: String,
    /// Size of the pages.
    pub page_size: PageSize,
    /// Whether all tasks are isolated; if not, whether they could be.
    pub verdict: Verdict,
    /// The TLB arrays, first level first.
    pub levels: Vec<LevelPlan>,
    /// The tasks, highest priority first.
    pub tasks: Vec<TaskPlan>,
    /// Sets that are promised to more pages than they hold.
    pub shared: Vec<SharedSet>,
    /// What misses are summed up over: the hyperperiod, or an hour where that is beyond 2^63 ns.
    pub span: Time,
    /// What the reader should know before relying on it, a line each.
    pub remarks: Vec<String>,
    /// What the heap reads.
    pub partitions: Partitions,
}

/// Whether tasks are isolated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Verdict {
    /// No set of any level is promised to more pages than it has entries that are not set aside.
    Isolated,
    /// They cannot be, by these counts.
    Impossible {
        /// The proofs, each enough by itself.
        certificates: Vec<Certificate>,
    },
    /// No way was found; that there is none is not proved.
    NotFound {
        /// Places of runs that were tried until the search ended.
        tried: u64,
    },
}

/// A TLB array in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LevelPlan {
    /// Its name.
    pub name: String,
    /// Its sets.
    pub sets: u32,
    /// Ways of each.
    pub ways: u32,
    /// Which entry goes.
    pub replacement: Replacement,
    /// Entries that are set aside for the system, over all sets.
    pub set_aside: u64,
    /// Entries that are neither set aside nor promised: the heap's own pages lie there.
    pub left: u64,
    /// Whether no set is promised to more pages than it holds.
    pub isolated: bool,
    /// Most misses of all tasks' later jobs in [`ColorPlan::span`]; absent: no bound is known, or it is beyond 2^64.
    pub later_misses_per_span: Option<u64>,
}

/// A task in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TaskPlan {
    /// Its name, and its partition's.
    pub name: String,
    /// 1 runs before 2.
    pub rank: usize,
    /// From release to release.
    pub period: Time,
    /// Pages that a job touches.
    pub pages: u64,
    /// Of these, contiguous.
    pub contiguous_pages: u64,
    /// Most accesses in a job, if known.
    pub accesses: Option<u64>,
    /// Longest time from release to end; absent where deadlines are not shown to be kept.
    pub response_time: Option<Time>,
    /// Most jobs of tasks above that interrupt one of its jobs; absent as above.
    pub interruptions: Option<u64>,
    /// Most misses of its jobs, for each of [`ColorPlan::levels`].
    pub bounds: Vec<Bound>,
}

/// A set that is promised to more pages than it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SharedSet {
    /// The level's name.
    pub level: String,
    /// The set.
    pub set: u32,
    /// Its entries that are not set aside.
    pub room: u32,
    /// Names of tasks, and how many pages each may have there.
    pub tenants: Vec<(String, u32)>,
}

/// Why there is no plan; one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ColorError(String);

impl ColorPlan {
    /// No task's page ever takes another's entry.
    pub fn is_isolated(&self) -> bool {
        self.verdict == Verdict::Isolated
    }
}

impl crate::plan::Plan for ColorPlan {
    /// The partitions, which a coloured heap reads.
    fn to_toml(&self) -> String {
        self.partitions.to_toml()
    }

    /// Whether all tasks are isolated.
    fn is_complete(&self) -> bool {
        self.is_isolated()
    }
}

/// Plans for a set of tasks whose pages are known ([`TaskSet::with_traces`]), on one core of a machine. Same input,
/// same plan.
///
/// # Errors
/// The machine has no data TLB for such pages, or one that cannot be coloured by; the tasks have too many pages.
pub fn plan(set: &TaskSet, machine: &Machine, page_size: PageSize) -> Result<ColorPlan, ColorError> {
    let needs = needs(set)?;
    let (levels, grid) = levels(machine, page_size)?;
    let room: PagesBySet = levels.iter().map(|level| level.room.clone()).collect();
    let names: Vec<&str> = set.tasks.iter().map(|task| task.name.as_str()).collect();
    let responses = Responses::of(set);
    let span = set.hyperperiod().unwrap_or(HOUR);
    let jobs: Vec<u64> = set.tasks.iter().map(|task| span.nanos.div_ceil(task.period.nanos.max(1))).collect();

    let certificates = certificate::certificates(&grid, &room, &needs, &names);
    let (found, tried) = match certificates.is_empty() {
        true => search::isolate(&grid, &room, &needs),
        false => (None, 0),
    };
    let mut remarks = remarks::remarks(machine, page_size, &levels, set, &responses);
    let mut weighed = 0;
    let placement = found.unwrap_or_else(|| {
        let accesses: Vec<Option<u64>> = set.tasks.iter().map(|task| task.accesses).collect();
        let (grid, levels, responses, needs) = (&grid, &levels, &responses, &needs);
        let problem = sharing::SharingProblem { grid, levels, responses, needs, jobs: &jobs, accesses: &accesses };
        let (placement, places) = sharing::least(&problem);
        weighed = places;
        placement
    });
    let (mut partitions, widened) = partitions(set, machine, page_size, &grid, &needs, &placement);
    remarks.extend(widened);

    let tenants = promised(set, &partitions);
    let by_task = bounds(set, &responses, &levels, &tenants);
    let shared = shared_sets(&levels, &tenants, &names);
    let verdict = match (certificates.is_empty(), shared.is_empty()) {
        (false, _) => Verdict::Impossible { certificates },
        (true, true) => Verdict::Isolated,
        (true, false) => Verdict::NotFound { tried },
    };
    if verdict != Verdict::Isolated {
        remarks
            .push(format!("of {weighed} placements weighed, this one shares least; that none is better is not proved"));
    }
    // A heap knows what others leave, and not which of that is set aside.
    if levels.iter().any(|level| level.room.iter().any(|room| *room < level.ways)) {
        partitions.partitions.extend(own_pages(&levels, &tenants));
    }
    let levels: Vec<LevelPlan> = (levels.iter().zip(&tenants).enumerate())
        .map(|(i, (level, tenants))| level_plan(i, level, tenants, &by_task, &jobs))
        .collect();
    let full = levels.iter().filter(|level| level.left == 0);
    remarks.extend(full.map(|level| format!("{}: nothing is left for the heap's own pages", level.name)));
    let tasks =
        set.by_priority().iter().zip(1..).map(|(&i, rank)| task_plan(set, i, rank, &responses, &by_task)).collect();
    Ok(ColorPlan {
        machine: machine.name.clone(),
        page_size,
        verdict,
        levels,
        tasks,
        shared,
        span,
        remarks,
        partitions,
    })
}

fn needs(set: &TaskSet) -> Result<Vec<Need>, ColorError> {
    let mut all = 0u64;
    let mut needs = Vec::new();
    for task in &set.tasks {
        let pages = task.pages.ok_or_else(|| ColorError(format!("task {}: its trace has not been read", task.name)))?;
        all = all.saturating_add(pages);
        // What is cut here is too much for all together.
        needs.push(Need { pages: pages.min(MAX_PAGES) as usize, run: task.contiguous_pages.min(MAX_PAGES) as usize });
    }
    if all > MAX_PAGES {
        return Err(ColorError(format!(
            "the tasks have {all} pages in all; plans are for {MAX_PAGES} at most, more than any TLB holds: take \
             larger pages"
        )));
    }
    Ok(needs)
}

fn levels(machine: &Machine, page_size: PageSize) -> Result<(Vec<Level>, PageGrid), ColorError> {
    let name = &machine.name;
    let found = machine.color_levels(page_size);
    if found.is_empty() {
        return Err(ColorError(format!("{name}: no TLB for loads holds {page_size} pages")));
    }
    if found.len() > MAX_COLOR_LEVELS {
        let many = found.len();
        return Err(ColorError(format!(
            "{name}: {many} TLBs hold {page_size} pages, more than the {MAX_COLOR_LEVELS} of a plan"
        )));
    }
    if let Some(level) = found.iter().find(|level| level.sets > MAX_COLOR_SETS) {
        let (tlb, sets) = (&level.name, level.sets);
        return Err(ColorError(format!("{name}: {tlb} has {sets} sets, more than the {MAX_COLOR_SETS} of a plan")));
    }
    let grid = PageGrid::new(&found).map_err(|tlb| {
        let bits = AREA_PAGES.ilog2();
        ColorError(format!(
            "{name}: the index of {tlb} reads more than the {bits} page-number bits that a heap's area has"
        ))
    })?;
    let levels = found.iter().map(|level| {
        let aside = set_aside(machine, level).unwrap_or_else(|| vec![0; level.sets as usize]);
        let room = aside.iter().map(|aside| level.ways - aside).collect();
        let replacement = machine.tlbs.iter().find(|tlb| tlb.name == level.name).map(|tlb| tlb.replacement);
        // Each level is one of the machine's; the one policy that promises nothing is never wrong.
        let replacement = replacement.unwrap_or(Replacement::Random);
        Level { name: level.name.clone(), ways: level.ways, replacement, room }
    });
    Ok((levels.collect(), grid))
}

/// The partitions, and a remark on each task whose shares had to be widened for a heap to find its pages in them.
fn partitions(
    set: &TaskSet,
    machine: &Machine,
    page_size: PageSize,
    grid: &PageGrid,
    needs: &[Need],
    placement: &TaskPages,
) -> (Partitions, Vec<String>) {
    let (mut remarks, mut taken) = (Vec::new(), HashSet::new());
    let of_task = |((task, need), pages): ((&super::tasks::Task, &Need), &Vec<usize>)| {
        let mut shares = grid.shares(&grid.counts(pages));
        let alone = grid.pick(&shares, *need, &mut HashSet::new());
        if alone.and(grid.pick(&shares, *need, &mut taken)).is_none() {
            shares.iter_mut().for_each(|share| share.ways = None);
            shares = merged(shares);
            // The heaps of the tasks after it find these taken.
            grid.pick(&shares, *need, &mut taken);
            remarks.push(format!("task {}: a heap finds all its pages only if its sets have no limits", task.name));
        }
        let contiguous_pages = task.contiguous_pages;
        Partition { name: task.name.clone(), pages: task.pages, contiguous_pages, shares }
    };
    let partitions = set.tasks.iter().zip(needs).zip(placement).map(of_task).collect();
    let all = Partitions { machine: machine.name.clone(), page_size, levels: grid.levels.clone(), partitions };
    (all, remarks)
}

/// The partition of the heap's own pages: what is neither promised nor set aside; `None`: nothing is, at some level of
/// several sets.
fn own_pages(levels: &[Level], tenants: &[Vec<Tenants>]) -> Option<Partition> {
    let mut shares = Vec::new();
    // In a level of one set that is promised to more than it holds nobody has a place apart.
    let shared = |level: &Level, tenants: &[Tenants]| {
        level.room.len() == 1 && tenants[0].iter().map(|tenant| tenant.1).sum::<u32>() > level.room[0]
    };
    for (level, tenants) in levels.iter().zip(tenants).filter(|(level, tenants)| !shared(level, tenants)) {
        let left = tenants.iter().zip(&level.room).map(|(tenants, room)| {
            let promised: u64 = tenants.iter().map(|tenant| u64::from(tenant.1)).sum();
            u64::from(*room).saturating_sub(promised) as u32
        });
        let mut sets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        (0..).zip(left).filter(|(_, left)| *left > 0).for_each(|(set, left)| sets.entry(left).or_default().push(set));
        if sets.is_empty() {
            return None;
        }
        let share = |(ways, sets)| Share { level: level.name.clone(), sets, ways: Some(ways) };
        shares.extend(sets.into_iter().map(share));
    }
    Some(Partition { name: BOOKKEEPING.into(), pages: None, contiguous_pages: 1, shares })
}

/// One share for each level.
fn merged(shares: Vec<Share>) -> Vec<Share> {
    let mut all: Vec<Share> = Vec::new();
    for share in shares {
        match all.iter_mut().find(|other| other.level == share.level) {
            Some(other) => other.sets.extend(share.sets),
            None => all.push(share),
        }
    }
    all.iter_mut().for_each(|share| share.sets.sort_unstable());
    all
}

fn shared_sets(levels: &[Level], tenants: &[Vec<Tenants>], names: &[&str]) -> Vec<SharedSet> {
    let of_level = |(level, sets): (&Level, &Vec<Tenants>)| {
        let shared = (0..).zip(sets).zip(&level.room).filter_map(|((set, tenants), &room)| {
            let all: u64 = tenants.iter().map(|tenant| u64::from(tenant.1)).sum();
            let tenants = tenants.iter().map(|&(task, pages)| (names[task].to_string(), pages)).collect();
            (all > u64::from(room)).then_some(SharedSet { level: level.name.clone(), set, room, tenants })
        });
        shared.collect::<Vec<_>>()
    };
    levels.iter().zip(tenants).flat_map(of_level).collect()
}

fn level_plan(i: usize, level: &Level, tenants: &[Tenants], by_task: &[Vec<Bound>], jobs: &[u64]) -> LevelPlan {
    let misses = by_task.iter().zip(jobs).try_fold(0u64, |sum, (bounds, jobs)| {
        bounds[i].later_jobs.and_then(|misses| sum.checked_add(misses.checked_mul(*jobs)?))
    });
    let promised = |tenants: &Tenants| -> u64 { tenants.iter().map(|tenant| u64::from(tenant.1)).sum() };
    let sets = || tenants.iter().map(promised).zip(level.room.iter().map(|room| u64::from(*room)));
    LevelPlan {
        name: level.name.clone(),
        sets: level.room.len() as u32,
        ways: level.ways,
        replacement: level.replacement,
        set_aside: level.room.iter().map(|room| u64::from(level.ways - room)).sum(),
        left: sets().map(|(promised, room)| room.saturating_sub(promised)).sum(),
        isolated: sets().all(|(promised, room)| promised <= room),
        later_misses_per_span: misses,
    }
}

fn task_plan(set: &TaskSet, i: usize, rank: usize, responses: &Responses, by_task: &[Vec<Bound>]) -> TaskPlan {
    let task = &set.tasks[i];
    let sum = |jobs: &[u64]| jobs.iter().fold(0u64, |sum, jobs| sum.saturating_add(*jobs));
    TaskPlan {
        name: task.name.clone(),
        rank,
        period: task.period,
        pages: task.pages.unwrap_or_default(),
        contiguous_pages: task.contiguous_pages,
        accesses: task.accesses,
        response_time: responses.time(i),
        interruptions: responses.releases(i).map(sum),
        bounds: by_task[i].clone(),
    }
}

#[cfg(test)]
mod tests;
