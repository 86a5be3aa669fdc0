//! All runs.

use std::collections::BTreeMap;

use lookaside_engine::LockedPage;
use lookaside_harness::in_parallel;
use lookaside_machine::Replacement;

use super::lab::{Cores, LockdownBench, Result, TASKS};
use crate::task::cores::{Scene, TaskCounts};

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
pub(super) struct Kind {
    pub(super) cores: Cores,
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
    pub(super) runs: BTreeMap<(usize, Kind), Vec<TaskCounts>>,
}

/// Does all runs.
pub(super) fn run(lab: &LockdownBench, runs: u64, progress: &mut dyn FnMut(&str)) -> Result<LockdownRuns> {
    let busy_cycles = lab.tasks.iter().map(|task| task.cycles()).collect();
    let mut study = LockdownRuns { main_hit_cycles: lab.main_hit_cycles(), busy_cycles, ..LockdownRuns::default() };
    let round_robin = lab.one_core_with(Replacement::Fifo);
    for (task, name) in TASKS.iter().enumerate() {
        progress(&format!("{name}: choosing pages"));
        let pages = [Vec::new(), lab.most_accessed(task), lab.most_gaining(task)?];
        for cores in [Cores::One, Cores::Four, Cores::FourApart] {
            let what = match cores {
                Cores::One => "one core",
                Cores::Four => "four cores",
                Cores::FourApart => "four cores, without TLB maintenance",
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
    round_robin: &Scene,
    task: usize,
    cores: Cores,
    pages: &[Vec<LockedPage>; 3],
    seed: u64,
) -> Result<Vec<(Kind, TaskCounts)>> {
    let (items, begins) = (lab.stream(task, cores, seed)?, lab.begins(cores, seed));
    let mut all = Vec::new();
    for (locked, pages) in Locked::ALL.into_iter().zip(pages) {
        // What the other cores' lines do by themselves is asked of runs without locks alone.
        if cores == Cores::FourApart && locked != Locked::Nothing {
            continue;
        }
        let came = lab.scene(cores).run(&items, pages, seed, &begins)?;
        all.push((Kind { cores, locked, round_robin: false }, came));
        if cores == Cores::One && locked != Locked::MostGaining {
            let came = round_robin.run(&items, pages, seed, &begins)?;
            all.push((Kind { cores, locked, round_robin: true }, came));
        }
    }
    Ok(all)
}
