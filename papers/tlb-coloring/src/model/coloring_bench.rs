//! What the experiments share: machine, task sets, where pages lie, the system's pages, runs and their averages.

use std::ops::RangeInclusive;

use lookaside_engine::{Setup, WalkModel};
use lookaside_harness::{in_parallel, ModelResult, Ours, RowFinding};
use lookaside_machine::{preset, ColorLevel, PageSize};
use lookaside_stats::SplitMix64;
use lookaside_techniques::color::model::{model, JobOutcome};
use lookaside_techniques::color::schedule::schedule;
use lookaside_techniques::color::tasks::{Task, TaskSet, Time};
use lookaside_techniques::color::work::{Work, PAGE_BYTES};

/// Stores of a synthetic task in a millisecond. The paper's are more; misses are the same from a few rounds a slice on,
/// and the shortest slice has some twenty of 16 pages.
pub(super) const STORES_PER_MS: u64 = 1000;

/// Pages that the system touches at each switch where `malloc` is compared: fitted on Appendix A.1, jobs 1 to 6 of T1.
pub(super) const SYSTEM_PAGES: usize = 28;

/// Pages that each task allocates in sections 6.0.5 and 6.0.8.
pub(super) const POOL: usize = 32;

/// Where coloured pages, `malloc`'s and the system's are: apart from each other.
const COLORED: u64 = 1 << 32;
const ARENAS: u64 = 1 << 36;
const SYSTEM: u64 = 1 << 40;

/// Bytes of a thread's arena in glibc (`HEAP_MAX_SIZE` on 64 bits).
const ARENA_BYTES: u64 = 64 << 20;
/// glibc's chunks lie on multiples of this, and have a header of so many bytes.
const CHUNK_ALIGN: u64 = 16;
/// A chunk of a page: 4096 bytes, its size's 8, rounded up to 16.
const CHUNK_BYTES: u64 = PAGE_BYTES + CHUNK_ALIGN;

/// The machine, and what is there of the system in each run.
pub(super) struct ColoringBench {
    setup: Setup,
    /// The same without data caches and what a walk costs: misses are the same, in a quarter of the time.
    misses_only: Setup,
    pub(super) level: ColorLevel,
    /// One a run.
    layouts: Vec<SystemPages>,
}

/// The system's pages in a run.
pub(super) struct SystemPages {
    /// Their addresses.
    pub(super) noise: Vec<u64>,
    /// Ways that are free beside them, by set, as section 6.0.6 finds them.
    pub(super) free: Vec<u32>,
}

impl ColoringBench {
    /// For so many runs.
    pub(super) fn new(runs: u64) -> ModelResult<Self> {
        let machine = preset("xeon-e5-2650")?;
        let level = machine.color_levels(PageSize::K4).into_iter().next().ok_or("the preset has lost its L1 DTLB")?;
        let mut bare = machine.clone();
        bare.caches.clear();
        let misses_only = Setup { walks: WalkModel::CountOnly, ..Setup::new(bare) };
        let mut lab = Self { setup: Setup::new(machine), misses_only, level, layouts: Vec::new() };
        let layouts = in_parallel(&(0..runs).collect::<Vec<_>>(), |run| -> ModelResult<_> {
            let noise = system_pages(&mut SplitMix64::new(*run), SYSTEM_PAGES);
            let free = free_ways(&lab, &noise)?;
            Ok(SystemPages { noise, free })
        });
        lab.layouts = layouts.into_iter().collect::<ModelResult<_>>()?;
        Ok(lab)
    }

    pub(super) fn machine(&self) -> &str {
        &self.setup.machine.name
    }

    /// The system's pages of the first so many runs.
    pub(super) fn layouts(&self, runs: usize) -> &[SystemPages] {
        &self.layouts[..runs.min(self.layouts.len())]
    }

    /// Cycles of an L1 DTLB miss that the second level serves.
    pub(super) fn l1_penalty(&self) -> f64 {
        let second = self.setup.machine.tlbs.iter().find(|tlb| tlb.level > 1);
        second.map_or(0.0, |tlb| tlb.hit_cycles)
    }

    /// Runs a task set.
    pub(super) fn run(
        &self,
        set: &TaskSet,
        hyperperiods: u64,
        works: &[Work],
        noise: &[u64],
    ) -> ModelResult<Vec<JobOutcome>> {
        on(&self.setup, set, hyperperiods, works, noise)
    }

    /// The same, where only misses are asked for.
    pub(super) fn misses(
        &self,
        set: &TaskSet,
        hyperperiods: u64,
        works: &[Work],
        noise: &[u64],
    ) -> ModelResult<Vec<JobOutcome>> {
        on(&self.misses_only, set, hyperperiods, works, noise)
    }

    /// So many pages of a colour, that is of an L1 DTLB set, after the first `skip` (chapter 3).
    pub(super) fn pages_of(&self, color: u32, skip: usize, pages: usize) -> Vec<u64> {
        let all = (COLORED / PAGE_BYTES..).filter(|vpn| self.level.set_of(*vpn) == color);
        all.map(|vpn| vpn * PAGE_BYTES).skip(skip).take(pages).collect()
    }

    /// Pages for tasks that need so many each, in ways that are free: colour after colour, task after task.
    pub(super) fn isolated(&self, layout: &SystemPages, needs: &[usize]) -> ModelResult<Vec<Vec<u64>>> {
        let free = (0..).zip(&layout.free).flat_map(|(color, ways)| self.pages_of(color, 0, *ways as usize));
        let mut free: Vec<u64> = free.collect();
        if needs.iter().sum::<usize>() > free.len() {
            return Err(format!("{} ways are free, the tasks need {}", free.len(), needs.iter().sum::<usize>()).into());
        }
        Ok(needs.iter().map(|pages| free.drain(..pages).collect()).collect())
    }

    /// What the model was told.
    pub(super) fn assumptions(&self) -> Vec<String> {
        [
            "tasks are threads of one process on one core; time is the schedule's, and misses do not lengthen it. Stores come at a pace of \
             1 in a µs (programs: 1 access in 10 ns), the paper's is not published; misses do not depend on it once a slice goes round its pages"
                .to_string(),
            "malloc: glibc 2.12, as of the paper's Linux 2.6.32: each thread has an arena, and each page is a chunk of 4096 + 16 bytes behind the \
             one before. Where in its arena a task's first chunk lies depends on what was allocated before it, which is not published: random"
                .into(),
            format!(
                "the system (OS noise): {SYSTEM_PAGES} pages, random in each run, are touched at the begin of each slice, but for sections 6.0.7 and \
                 6.0.8's first part, whose pages lie in clean sets. Their number is fitted on Appendix A.1 (jobs 1 to 6 of T1); what they are is not modelled"
            ),
            "tlb_malloc: page k of colour c is page c + 16 k of a region; with the system beside it, pages are put where section 6.0.6's method finds ways free"
                .into(),
            "averages are over as many runs as in the paper, seeds 1 to 10 or 1 to 5; warm-ups (jobs 0) are left out".into(),
        ]
        .into()
    }
}

fn on(setup: &Setup, set: &TaskSet, hyperperiods: u64, works: &[Work], noise: &[u64]) -> ModelResult<Vec<JobOutcome>> {
    let schedule = schedule(set, hyperperiods)?;
    if let Some(late) = schedule.overruns.first() {
        return Err(format!("{}: job {} is late", set.tasks[late.task].name, late.job).into());
    }
    Ok(model(setup.clone(), &schedule, works, noise)?)
}

/// Section 6.0.6: ways of each set that two tasks can have without a miss beyond the warm-up. The first task gets a
/// page more where their number is odd.
pub(super) fn free_ways(lab: &ColoringBench, noise: &[u64]) -> ModelResult<Vec<u32>> {
    let set = task_set(&[("1ms", "2ms", "0.392ms", 2), ("0ms", "16ms", "7.88ms", 2)])?;
    let misses = |color: u32, pages: u32| -> ModelResult<u64> {
        let pages = lab.pages_of(color, 0, pages as usize);
        let (first, second) = pages.split_at(pages.len().div_ceil(2));
        let works = [first, second].map(|pages| Work::stores(pages, STORES_PER_MS));
        let run = lab.misses(&set, 1, &works, noise)?;
        Ok(run.iter().filter(|job| job.job > 0).map(|job| job.l1_misses).sum())
    };
    let ways = |color: u32| -> ModelResult<u32> {
        for pages in 1..=lab.level.ways {
            if misses(color, pages)? > 0 {
                return Ok(pages - 1);
            }
        }
        Ok(lab.level.ways)
    };
    (0..lab.level.sets).map(ways).collect()
}

/// Phase, period and execution time of each task, T1 first, rate monotonic; and the pages of each.
pub(crate) fn task_set(tasks: &[(&str, &str, &str, usize)]) -> ModelResult<TaskSet> {
    let mut set = TaskSet::default();
    for (number, (phase, period, execution, pages)) in (1..).zip(tasks) {
        let time = |text: &str| text.parse::<Time>();
        set.tasks.push(Task {
            name: format!("T{number}"),
            priority: None,
            phase: time(phase)?,
            period: time(period)?,
            execution: time(execution)?,
            pages: Some(*pages as u64),
            contiguous_pages: 1,
            accesses: None,
            trace: None,
            program: None,
            data_pages: None,
        });
    }
    Ok(set)
}

/// Pages that `malloc` gives a task, one at a time: the one in which each chunk begins.
pub(super) fn malloc(random: &mut SplitMix64, task: usize, pages: usize) -> Vec<u64> {
    // In the first half of the arena, so that all chunks lie in it.
    let first = random.below(ARENA_BYTES / 2 / CHUNK_ALIGN) * CHUNK_ALIGN;
    let first = ARENAS + task as u64 * ARENA_BYTES + first;
    (0..pages as u64).map(|i| (first + i * CHUNK_BYTES) / PAGE_BYTES * PAGE_BYTES).collect()
}

/// So many of these, at random.
pub(super) fn choose(random: &mut SplitMix64, mut pages: Vec<u64>, number: usize) -> Vec<u64> {
    let number = number.min(pages.len());
    for i in 0..number {
        let other = i + random.below((pages.len() - i) as u64) as usize;
        pages.swap(i, other);
    }
    pages.truncate(number);
    pages
}

/// Random pages of the system, all different.
pub(super) fn system_pages(random: &mut SplitMix64, number: usize) -> Vec<u64> {
    // Of 4096: libraries, stacks and the kernel's tables lie far apart.
    let all = (0..4096).map(|page| SYSTEM + page * PAGE_BYTES).collect();
    choose(random, all, number)
}

/// A task's jobs, by their numbers.
pub(super) fn jobs(run: &[JobOutcome], task: usize, numbers: RangeInclusive<u64>) -> impl Iterator<Item = &JobOutcome> {
    run.iter().filter(move |job| job.task == task && job.is_complete && numbers.contains(&job.job))
}

/// Average misses of a task's jobs, run by run.
pub(super) fn misses(runs: &[Vec<JobOutcome>], task: usize, numbers: RangeInclusive<u64>) -> Vec<f64> {
    let of = |run: &Vec<JobOutcome>| {
        let misses: Vec<f64> = jobs(run, task, numbers.clone()).map(|job| job.l1_misses as f64).collect();
        mean(&misses)
    };
    runs.iter().map(of).collect()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Standard deviation of a sample.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len().max(2) - 1) as f64).sqrt()
}

/// A number, to two digits behind the point.
pub(super) fn value(value: f64, note: impl Into<String>) -> RowFinding {
    RowFinding { ours: Ours::Value(round(value)), note: note.into() }
}

/// An average over runs.
pub(super) fn average(values: &[f64], note: &str) -> RowFinding {
    let rest = if note.is_empty() { String::new() } else { format!("; {note}") };
    let words = format!("standard deviation {} over {} runs{rest}", round(deviation(values)), values.len());
    value(mean(values), words)
}

pub(super) fn claim(holds: bool, found: impl Into<String>, note: impl Into<String>) -> RowFinding {
    RowFinding { ours: Ours::Claim { found: found.into(), holds }, note: note.into() }
}

pub(super) fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_glibcs_and_choices_are_different_pages() {
        let mut skipped = 0;
        for seed in 0..2000 {
            let mut random = SplitMix64::new(seed);
            let pages = malloc(&mut random, 1, POOL);
            assert!(pages.windows(2).all(|w| [1, 2].contains(&((w[1] - w[0]) / PAGE_BYTES))));
            skipped += u32::from(pages[31] - pages[0] > 31 * PAGE_BYTES);
            let mut chosen = choose(&mut random, pages.clone(), 14);
            chosen.sort_unstable();
            chosen.dedup();
            assert!(chosen.len() == 14 && chosen.iter().all(|page| pages.contains(page)));
        }
        // 31 headers of 16 bytes cross a page's end from 31 of 256 places.
        assert!((200..285).contains(&skipped), "{skipped} of 2000");
    }

    #[test]
    fn colors_are_sets_and_isolated_pages_fit_beside_the_system() {
        let lab = ColoringBench::new(2).unwrap();
        let set = |page: &u64| lab.level.set_of(page / PAGE_BYTES);
        assert!(lab.pages_of(5, 0, 4).iter().all(|page| set(page) == 5));
        for layout in lab.layouts(2) {
            let pages = lab.isolated(layout, &[16, 16]).unwrap().concat();
            for color in 0..16 {
                let of = |pages: &[u64]| pages.iter().filter(|page| set(page) == color).count();
                assert!(of(&pages) == 0 || of(&pages) + of(&layout.noise) <= 4);
            }
            assert!(lab.isolated(layout, &[64]).is_err());
        }
    }
}
