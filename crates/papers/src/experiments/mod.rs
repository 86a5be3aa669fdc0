//! Experiments as code: one module a paper.

mod fast_switching;
mod pt_baker;
mod tlb_coloring;
mod tlb_lockdown;
mod tlb_migration;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use crate::{Effort, Finding, Series};
pub(crate) use tlb_coloring::{figures_6_13_and_14, table_6_1, task_set, Program, FOURTEEN_PAGES};

/// The experiments of a paper.
pub(crate) struct Experiment {
    pub(crate) paper: &'static str,
    /// Its published values.
    pub(crate) values: &'static str,
    pub(crate) run: Run,
}

/// Runs them; tells what comes next.
pub(crate) type Run = fn(Effort, &mut dyn FnMut(&str)) -> Result<Ran, Box<dyn std::error::Error + Send + Sync>>;

/// What they gave.
pub(crate) struct Ran {
    pub(crate) machine: String,
    pub(crate) assumptions: Vec<String>,
    /// By the id of a row.
    pub(crate) findings: Vec<(&'static str, Finding)>,
    pub(crate) series: Vec<Series>,
}

const EXPERIMENTS: &[Experiment] = &[
    Experiment { paper: "pt-baker", values: include_str!("../../values/pt-baker.toml"), run: pt_baker::RUN },
    Experiment {
        paper: "tlb-coloring",
        values: include_str!("../../values/tlb-coloring.toml"),
        run: tlb_coloring::RUN,
    },
    Experiment {
        paper: "fast-address-space-switching",
        values: include_str!("../../values/fast-address-space-switching.toml"),
        run: fast_switching::RUN,
    },
    Experiment {
        paper: "tlb-lockdown",
        values: include_str!("../../values/tlb-lockdown.toml"),
        run: tlb_lockdown::RUN,
    },
    Experiment { paper: "tlb-migration", values: tlb_migration::VALUES, run: tlb_migration::RUN },
];

pub(crate) fn of(paper: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|e| e.paper == paper)
}

/// Does all of a list on all CPUs; the results in the list's order.
fn in_parallel<T: Sync, R: Send>(list: &[T], job: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(list.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((at, item)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    list.get(at).map(|item| (at, item))
                } {
                    let result = job(item);
                    done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_row_has_a_finding_or_an_excuse_and_each_finding_a_row() {
        for experiment in EXPERIMENTS {
            let rows = crate::values::rows(experiment.values);
            let ran = (experiment.run)(Effort::Quick, &mut |_| {}).unwrap();
            let found: BTreeSet<&str> = ran.findings.iter().map(|f| f.0).collect();
            assert_eq!(found.len(), ran.findings.len(), "{}: a finding twice", experiment.paper);
            let wanted: BTreeSet<&str> = rows.iter().filter(|r| !r.is_excused()).map(|r| r.id.as_str()).collect();
            assert_eq!(found, wanted, "{}", experiment.paper);
        }
    }
}
