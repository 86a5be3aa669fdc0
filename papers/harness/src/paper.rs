//! A paper, and what its experiments in the model give.

use std::error::Error;

use lookaside_probe::{Halt, LevelReport, Metal};
use thiserror::Error as ThisError;

use crate::metal::{self, MetalExperiments, Setting};
use crate::reproduction::{PaperCurve, Reproduction};
use crate::row::RowFinding;
use crate::values::rows;

/// A paper: its reference, its published values and the experiments that give ours.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Short name, as `lookaside lab reproduce` takes it.
    pub name: &'static str,
    /// Its reference.
    pub cite: &'static str,
    /// Its experiments in the model.
    pub model: ModelExperiments,
    /// Its experiments on the metal, where it has any.
    pub metal: Option<MetalExperiments>,
}

/// A paper's experiments in the model.
#[derive(Clone, Copy, Debug)]
pub struct ModelExperiments {
    /// Its published values, as TOML.
    pub values: &'static str,
    /// Runs them.
    pub run: RunModel,
}

/// What an experiment in the model gives, or why it cannot be run.
pub type ModelResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Runs the experiments; tells what comes next.
pub type RunModel = fn(Effort, &mut dyn FnMut(&str)) -> ModelResult<ModelFindings>;

/// What the experiments in the model gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFindings {
    /// Machine that the model ran.
    pub machine: String,
    /// What the model was told beside the machine, and why.
    pub assumptions: Vec<String>,
    /// By the id of a row.
    pub findings: Vec<(&'static str, RowFinding)>,
    /// Curves behind the rows.
    pub series: Vec<PaperCurve>,
}

/// How much of the model is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// What the rows are for: some minutes.
    Usual,
    /// The same on programs and caches as small as they can be, in seconds: to see that it runs. The values mean
    /// little.
    Quick,
}

/// The model could not be run.
#[derive(Debug, ThisError)]
#[error("{paper}: {source}")]
pub struct ModelFailed {
    /// Which paper.
    pub paper: &'static str,
    /// Why.
    pub source: Box<dyn Error + Send + Sync>,
}

impl Paper {
    /// Runs the experiments in the model and sets the paper's rows side by side. `progress` is told what comes next.
    ///
    /// # Errors
    /// The model cannot be run.
    pub fn reproduce(&self, effort: Effort, progress: &mut dyn FnMut(&str)) -> Result<Reproduction, ModelFailed> {
        let found = (self.model.run)(effort, progress);
        let found = found.map_err(|source| ModelFailed { paper: self.name, source })?;
        let rows = rows(self.model.values)
            .into_iter()
            .map(|value| {
                let finding = found.findings.iter().find(|(id, _)| *id == value.id);
                value.beside(self.name, finding.map(|(_, finding)| finding.clone()))
            })
            .collect();
        Ok(Reproduction {
            paper: self.name.into(),
            cite: self.cite.into(),
            machine: found.machine,
            measured: false,
            assumptions: found.assumptions,
            rows,
            series: found.series,
            halted: None,
        })
    }

    /// Runs its microbenchmarks on a machine and sets their rows side by side. `halt` is asked before all samples: what
    /// is known by then is given, and with it the levels of the TLB as the probe found them for it, the first level
    /// first; none where they are given. `progress` is told what comes next.
    pub fn measure(
        &self,
        experiments: &MetalExperiments,
        machine: &mut dyn Metal,
        setting: &Setting,
        halt: &dyn Fn() -> Option<Halt>,
        progress: &mut dyn FnMut(&str),
    ) -> (Reproduction, Vec<LevelReport>) {
        let (findings, halted) = metal::measure(experiments.run, machine, setting, halt, progress);
        let not_reached = halted.as_deref().map_or("not measured".to_string(), |halt| format!("not reached: {halt}"));
        let rows = findings.rows(experiments.values, self.name, &not_reached);
        let found = Reproduction {
            paper: self.name.into(),
            cite: self.cite.into(),
            machine: setting.machine.clone(),
            measured: true,
            assumptions: findings.assumptions,
            rows,
            series: findings.series,
            halted,
        };
        (found, findings.levels)
    }
}
