//! What a run of a set gives: its tasks, their jobs, and jobs summed up by what hit them.

use lookaside_probe::counter::MeterAccuracy;
use schemars::JsonSchema;
use serde::Serialize;

use super::page_placement::PagePlacement;
use super::program::ProgramRun;

/// A run of the set.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TaskSetRun {
    /// Where pages lay.
    pub placement: PagePlacement,
    /// Which of the times that pages were placed, from 1.
    pub repeat: u64,
    /// The tasks, in the order of the set.
    pub tasks: Vec<TaskRun>,
}

/// A task of a run.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TaskRun {
    /// Its name.
    pub name: String,
    /// 1 runs before 2.
    pub rank: usize,
    /// Its pages.
    pub pages: usize,
    /// Pages of its fullest set of the level.
    pub most_in_a_set: usize,
    /// Rounds over them in a job; of a task that runs a program none.
    pub rounds: u64,
    /// What it runs, if that is a program, and what came of it.
    pub program: Option<ProgramRun>,
    /// Core cycles that a miss adds, the median of the turns' meters.
    pub miss_cycles: f64,
    /// How well known passes were counted, in all turns.
    pub known: MeterAccuracy,
    /// Times that something else ran which there was no room to write down: then jobs that were hit are taken for
    /// others.
    pub gaps_lost: u64,
    /// Its jobs, by what hit them.
    pub summaries: Vec<JobSummary>,
    /// Jobs in a hyperperiod.
    pub jobs_a_hyperperiod: u64,
    /// Its jobs.
    pub jobs: Vec<JobRun>,
}

/// A job, measured and modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct JobRun {
    /// The job, from 1, over all turns.
    pub job: u64,
    /// It is the first of its task in a turn: more is cold then than its pages.
    pub begins_turn: bool,
    /// From its begin to its end, in core cycles, without the time that others ran, and that counting took.
    pub cycles: f64,
    /// Misses counted, of the level that is counted: in the first round and in those after others ran, and after these
    /// until few are found.
    pub misses: u64,
    /// Pages loaded while others ran: what missed there is not known.
    pub unseen_pages: u64,
    /// Misses in rounds that nothing came before, where there were two or more in a group.
    pub stray_misses: u64,
    /// Of a task that runs a program: pages that it touched since it began, and each time since it went on, added up.
    /// One that loads pages touches all of them each time.
    pub touched_pages: Option<u64>,
    /// Times that another task ran within.
    pub preemptions: u64,
    /// Interrupts from its begin to its end.
    pub interrupts: u64,
    /// Times within that something else ran for longer: another program, the host.
    pub others: u64,
    /// Times that it began or went on, and more than an eighth of its witness's pages were lost: pages in sets that no
    /// task uses.
    pub outside: u64,
    /// Pages of its own, of those that it touched, that no task took, if as large a share of them as of its witness's
    /// was lost each time that it began or went on.
    pub taken_pages: f64,
    /// It ended after its deadline.
    pub late: bool,
    /// Misses by the model, with the tasks' slices as they were and nothing else. A program is modelled as if it
    /// touched all of its pages each time.
    pub modelled_misses: u64,
}

impl JobRun {
    /// It missed no more than one page in eight (or one) each time that it began or went on, whoever took them.
    pub fn is_spared(&self, pages: usize) -> bool {
        self.misses as f64 <= self.off(pages)
    }

    /// What single passes of known misses are counted wrongly by: an eighth of the pages touched, or one, each time.
    fn off(&self, pages: usize) -> f64 {
        let times = 1 + self.preemptions as usize;
        let each = self.touched_pages.map_or(pages, |touched| touched as usize / times);
        ((each / 8).max(1) * times) as f64
    }

    /// Pages that it did not touch, which cannot miss, added up over the times that it began or went on.
    fn untouched(&self, pages: usize) -> f64 {
        let all = pages as u64 * (1 + self.preemptions);
        self.touched_pages.map_or(0, |touched| all.saturating_sub(touched)) as f64
    }

    /// Counted and modelled are the same but for the pages that nobody saw, those that were not touched, those that no
    /// task took, and, for each time that it begins or goes on, an eighth of the task's pages or one.
    pub fn agrees(&self, pages: usize) -> bool {
        let off = self.off(pages);
        let [counted, modelled, unseen] = [self.misses, self.modelled_misses, self.unseen_pages].map(|n| n as f64);
        counted <= modelled + self.taken_pages + off && modelled <= counted + unseen + self.untouched(pages) + off
    }

    /// What hit it.
    pub fn hit_by(&self) -> HitBy {
        match (self.outside, self.interrupts, self.others) {
            (0, 0, 0) => HitBy::Nothing,
            (_, 0, 0) => HitBy::Unseen,
            (_, _, 0) => HitBy::Interrupts,
            _ => HitBy::Others,
        }
    }
}

/// What hit a job, from its begin to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HitBy {
    /// Nothing but the tasks ran, and pages in sets that no task uses were kept.
    Nothing,
    /// Nothing that was seen; but more than an eighth of the pages in sets that no task uses was lost.
    Unseen,
    /// Interrupts, of up to 20 us each.
    Interrupts,
    /// Another program or the host, for longer.
    Others,
}

impl HitBy {
    /// All, the least first.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Unseen, Self::Interrupts, Self::Others];
}

/// Jobs of a task that the same hit.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct JobSummary {
    /// What hit them.
    pub hit_by: HitBy,
    /// How many.
    pub jobs: usize,
    /// Of these, the ones whose misses are as modelled: [`JobRun::agrees`].
    pub agree: usize,
    /// Of these, the ones that missed next to nothing, whoever took it: [`JobRun::is_spared`].
    pub spared: usize,
    /// Of these, the ones that ended late.
    pub late: usize,
    /// Misses counted in a job: the mean, the least, the most.
    pub misses: [f64; 3],
    /// Modelled, the mean.
    pub modelled_misses: f64,
    /// Pages that a job touched, each time added up, the mean; `None`: it loads pages, all of them each time.
    pub touched_pages: Option<f64>,
    /// Pages of a job that no task took, by its witness, the mean.
    pub taken_pages: f64,
    /// Pages of a job loaded while others ran, the mean.
    pub unseen_pages: f64,
    /// Core cycles of a job, the median.
    pub cycles: f64,
}
