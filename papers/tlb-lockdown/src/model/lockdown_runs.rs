//! All runs.

use std::collections::BTreeMap;

use lookaside_engine::LockedPage;
use lookaside_harness::{in_parallel, ModelResult};
use lookaside_machine::Replacement;

use super::lockdown_bench::{CoreSetting, LockdownBench, TASKS};
use crate::task::cores::{TaskCounts, TaskScene};

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Locked {
    Nothing,
    /// The paper's choice.
    MostAccessed,
    MostGaining,
}

impl Locked {
    pub(super) const ALL: [Self; 3] = [Self::Nothing, Self::MostAccessed, Self::MostGaining];
}

/// Runs of one kind: cores, what is locked; or on one core with round robin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunKind {
    pub(super) cores: CoreSetting,
    pub(super) locked: Locked,
    pub(super) round_robin: bool,
}

/// Everything that rows are made of.
#[derive(Clone, Debug, Default)]
pub(super) struct LockdownRuns {
    /// Cycles of a hit in the main TLB.
    pub(super) main_hit_cycles: f64,
    /// By task: its cycles without translation.
    pub(super) busy_cycles: Vec<f64>,
    /// By task and kind: a run each seed.
    pub(super) runs: BTreeMap<(usize, RunKind), Vec<TaskCounts>>,
}

/// Does all runs.
pub(super) fn run(lab: &LockdownBench, runs: u64, progress: &mut dyn FnMut(&str)) -> ModelResult<LockdownRuns> {
    let busy_cycles = lab.tasks.iter().map(|task| task.cycles()).collect();
    let mut study = LockdownRuns { main_hit_cycles: lab.main_hit_cycles(), busy_cycles, ..LockdownRuns::default() };
    let round_robin = lab.one_core_with(Replacement::Fifo);
    for (task, name) in TASKS.iter().enumerate() {
        progress(&format!("{name}: choosing pages"));
        let pages = [Vec::new(), lab.most_accessed(task), lab.most_gaining(task)?];
        for cores in [CoreSetting::One, CoreSetting::Four, CoreSetting::FourApart] {
            let what = match cores {
                CoreSetting::One => "one core",
                CoreSetting::Four => "four cores",
                CoreSetting::FourApart => "four cores, without TLB maintenance",
            };
            progress(&format!("{name}, {what}: {runs} runs"));
            let seeds: Vec<u64> = (1..=runs).collect();
            let all = in_parallel(&seeds, |seed| of_seed(lab, &round_robin, task, cores, &pages, *seed));
            for came in all {
                for (kind, came) in came? {
                    study.runs.entry((task, kind)).or_default().push(came);
                }
            }
        }
    }
    Ok(study)
}

/// The runs of one seed, whose other circumstances are the same.
fn of_seed(
    lab: &LockdownBench,
    round_robin: &TaskScene,
    task: usize,
    cores: CoreSetting,
    pages: &[Vec<LockedPage>; 3],
    seed: u64,
) -> ModelResult<Vec<(RunKind, TaskCounts)>> {
    let (items, begins) = (lab.stream(task, cores, seed)?, lab.begins(cores, seed));
    let mut all = Vec::new();
    for (locked, pages) in Locked::ALL.into_iter().zip(pages) {
        // What the other cores' lines do by themselves is asked of runs without locks alone.
        if cores == CoreSetting::FourApart && locked != Locked::Nothing {
            continue;
        }
        let came = lab.scene(cores).run(&items, pages, seed, &begins)?;
        all.push((RunKind { cores, locked, round_robin: false }, came));
        if cores == CoreSetting::One && locked != Locked::MostGaining {
            let came = round_robin.run(&items, pages, seed, &begins)?;
            all.push((RunKind { cores, locked, round_robin: true }, came));
        }
    }
    Ok(all)
}
