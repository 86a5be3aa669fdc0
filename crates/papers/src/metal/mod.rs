//! The papers' microbenchmarks on this machine, without a PMU: one module a paper, and what they share.
//!
//! What a figure of the paper's own machine is worth here is nothing; what its text concludes from the figure can hold
//! or not. So figures are shown beside ours and not judged, and the conclusions are rows of their own.

mod conflict;
mod estimate;
mod known;
mod penalty;
mod prefetch;
mod pt_baker;
mod setting;
mod sharing;
pub mod sweeps;
pub mod task_sets;
mod thrash;
mod tlb_coloring;
pub mod versus;

pub use setting::Setting;

use std::cell::Cell;
use std::time::Instant;

use known::Known;
use lookaside_machine::PageSize;
use lookaside_probe::{Bench, Halt, LevelReport, Metal};

use crate::values::{papers as all_papers, rows, Value};
use crate::{Finding, Ours, PaperError, Reproduction, Row, Series};

/// A paper's experiments on the metal.
struct Experiment {
    paper: &'static str,
    /// Its published values.
    values: &'static str,
    run: Run,
}

/// Measures, where the levels are known or why not; tells what comes next; puts what it finds into the last.
type Run = fn(&mut Bench<'_>, &Setting, &Known, &mut dyn FnMut(&str), &mut Ran) -> Result<(), Halt>;

const EXPERIMENTS: &[Experiment] = &[
    Experiment { paper: "pt-baker", values: include_str!("../../values/pt-baker-metal.toml"), run: pt_baker::run },
    Experiment {
        paper: "tlb-coloring",
        values: include_str!("../../values/tlb-coloring-metal.toml"),
        run: tlb_coloring::run,
    },
];

/// What the experiments of a paper gave so far.
#[derive(Default)]
struct Ran {
    assumptions: Vec<String>,
    /// By the id of a row: a finding, or why there is none.
    findings: Vec<(&'static str, Result<Finding, String>)>,
    series: Vec<Series>,
    /// What they took as given: the levels as the probe found them.
    levels: Vec<LevelReport>,
}

impl Ran {
    fn value(&mut self, id: &'static str, value: f64, note: impl Into<String>) {
        self.findings.push((id, Ok(Finding { ours: Ours::Value(value), note: note.into() })));
    }

    fn claim(&mut self, id: &'static str, holds: bool, found: impl Into<String>, note: impl Into<String>) {
        let ours = Ours::Claim { found: found.into(), holds };
        self.findings.push((id, Ok(Finding { ours, note: note.into() })));
    }

    /// What was measured; nothing where the machine refuses, and then that is why the rows have no value.
    fn possible<T>(&mut self, ids: &[&'static str], measured: Result<T, Halt>) -> Result<Option<T>, Halt> {
        match measured {
            Ok(found) => Ok(Some(found)),
            Err(Halt::Metal(reason)) => {
                self.nothing(ids, &reason.to_string());
                Ok(None)
            }
            Err(halt) => Err(halt),
        }
    }

    fn nothing(&mut self, ids: &[&'static str], reason: &str) {
        self.findings.extend(ids.iter().map(|id| (*id, Err(reason.to_string()))));
    }

    /// Published values beside what was found; `otherwise` is why where neither a finding nor a reason is there.
    fn rows(&self, values: &str, paper: &str, otherwise: &str) -> Vec<Row> {
        let beside = |value: Value| match self.findings.iter().find(|(id, _)| *id == value.id) {
            Some((_, Ok(finding))) => value.beside(paper, Some(finding.clone())),
            Some((_, Err(reason))) => value.without(paper, reason),
            None => value.without(paper, otherwise),
        };
        rows(values).into_iter().map(beside).collect()
    }
}

/// Why an experiment cannot be done in the memory that is allowed.
fn too_few(needed: usize, bench: &Bench<'_>) -> String {
    format!("needs {needed} pages in memory, {} are allowed (--memory)", bench.max_pages())
}

/// Runs a paper's microbenchmarks on a machine and sets its rows side by side. `halt` is asked before all samples: what
/// is known by then is given, and with it the levels of the TLB as the probe found them for it, the first level first; none where they are given. `progress` is told
/// what comes next.
///
/// # Errors
/// The name is none of the papers', or it has no experiments on the metal: the error lists those that have.
pub fn reproduce_metal(
    name: &str,
    metal: &mut dyn Metal,
    setting: &Setting,
    halt: &dyn Fn() -> Option<Halt>,
    progress: &mut dyn FnMut(&str),
) -> Result<(Reproduction, Vec<LevelReport>), PaperError> {
    let (paper, experiment) = find(name)?;
    let emulator = metal.emulator();
    let began = Instant::now();
    let searching = Cell::new(setting.given.is_none());
    let too_long = || searching.get() && began.elapsed() > setting.search;
    let halt = || {
        let halt = emulator.clone().map(Halt::Emulated).or_else(halt);
        halt.or_else(|| too_long().then_some(Halt::ShareUp(setting.search)))
    };
    let mut ran = Ran { assumptions: metal.remarks(), ..Ran::default() };
    let mut bench = Bench::new(metal, PageSize::K4, setting.seed, &halt);
    ran.assumptions.push(format!(
        "{:.3} core cycles a tick of the timer, by a chain of dependent additions; seed {}",
        bench.cycles_per_tick(),
        setting.seed
    ));
    let known = match &setting.given {
        Some(machine) => {
            ran.assumptions.push(format!(
                "its TLBs are as the description \"{}\" has them; they were not looked for",
                machine.name
            ));
            known::given(&mut bench, machine, progress)
        }
        None => known::find(&mut bench, progress, &mut ran.levels),
    };
    searching.set(false);
    let ended = known.and_then(|known| (experiment.run)(&mut bench, setting, &known, progress, &mut ran));
    let halted = ended.err().map(|halt| halt.to_string());
    let not_reached = halted.as_deref().map_or("not measured".to_string(), |halt| format!("not reached: {halt}"));
    let rows = ran.rows(experiment.values, name, &not_reached);
    let found = Reproduction {
        paper: name.into(),
        cite: paper.cite.clone(),
        machine: setting.machine.clone(),
        measured: true,
        assumptions: ran.assumptions,
        rows,
        series: ran.series,
        halted,
    };
    Ok((found, ran.levels))
}

/// Checks that a paper has experiments on the metal, before a machine is measured.
///
/// # Errors
/// As for [`reproduce_metal`].
pub fn check_metal(name: &str) -> Result<(), PaperError> {
    find(name).map(|_| ())
}

fn find(name: &str) -> Result<(&'static crate::Paper, &'static Experiment), PaperError> {
    let not_available = |reason| PaperError::NotAvailable { name: name.into(), reason };
    let paper = all_papers().iter().find(|p| p.name == name);
    let paper = paper.ok_or_else(|| not_available("no paper has this name"))?;
    let experiment = EXPERIMENTS.iter().find(|e| e.paper == name);
    let experiment = experiment.ok_or_else(|| {
        not_available("has no experiments for this machine (--metal), only pt-baker and tlb-coloring have")
    })?;
    Ok((paper, experiment))
}

#[cfg(test)]
mod tests {
    #[test]
    fn values_are_read_and_no_id_is_there_twice() {
        let others = [super::sweeps::VALUES, super::task_sets::VALUES, super::versus::VALUES];
        for values in super::EXPERIMENTS.iter().map(|experiment| experiment.values).chain(others) {
            let ids: Vec<String> = crate::values::rows(values).into_iter().map(|row| row.id).collect();
            let different: std::collections::BTreeSet<&String> = ids.iter().collect();
            assert_eq!(ids.len(), different.len(), "{ids:?}");
        }
    }
}
