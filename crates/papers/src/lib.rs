//! Published values as data, experiments as code, and the side-by-side.
//!
//! What a paper publishes is a row in `values/*.toml`, with the rule that says when ours holds. An experiment runs
//! the model, or measures this machine, and gives a finding a row. [`reproduce`] and [`reproduce_metal`] set them side
//! by side; a row that does not hold, that was fitted or that nobody has reproduced stays in the table and says so.
//!
//! ```
//! use lookaside_papers::Effort;
//! let papers = lookaside_papers::papers();
//! assert_eq!(papers.len(), 5);
//! assert!(lookaside_papers::reproduce("no such paper", Effort::Quick, &mut |_| {}).is_err());
//! ```

mod experiments;
mod metal;
mod row;
mod samples;
mod values;

use serde::Serialize;
use thiserror::Error;

pub use metal::{check_metal, reproduce_metal, sweeps, task_sets, versus, Setting};
pub use row::{Finding, Ours, Published, Row, Rule, Verdict};
pub use samples::{Sample, BACKGROUND};
pub use values::{papers, Paper};

/// A paper's rows side by side, with what is needed to judge them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reproduction {
    /// Short name of the paper.
    pub paper: String,
    /// Its reference.
    pub cite: String,
    /// Machine that the model ran, or that was measured.
    pub machine: String,
    /// It was measured; else modelled.
    pub measured: bool,
    /// What the model was told beside the machine, and why; or how it was measured.
    pub assumptions: Vec<String>,
    /// Every published value, in the paper's order.
    pub rows: Vec<Row>,
    /// Curves behind the rows, for plots.
    pub series: Vec<Series>,
    /// Why measuring ended before its end; `None` = it did not.
    pub halted: Option<String>,
}

impl Reproduction {
    /// Rows that count: neither fitted, nor another machine's figure, nor beyond the paper, nor not reproduced.
    pub fn counted(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| matches!(row.verdict, Verdict::Holds | Verdict::Differs))
    }

    /// Of those, the ones that hold.
    pub fn holding(&self) -> usize {
        self.counted().filter(|row| row.verdict == Verdict::Holds).count()
    }
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// What x is, with its unit.
    pub x: String,
    /// What y is, with its denominator.
    pub y: String,
    /// Points in ascending x.
    pub points: Vec<(f64, f64)>,
    /// Interval of each point's y, where it is a median of measurements; none for a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<(f64, f64)>,
    /// What each point is, where x only numbers them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// Why there is no side-by-side.
#[derive(Debug, Error)]
pub enum PaperError {
    /// No such paper, or none of its experiments is written yet.
    #[error("{name}: {reason}; the papers are {}", list())]
    NotAvailable {
        /// As asked.
        name: String,
        /// Which of the two.
        reason: &'static str,
    },
    /// The model could not be run.
    #[error("{paper}: {source}")]
    Model {
        /// Which paper.
        paper: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// How much of the model is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// What the rows are for: some minutes.
    Usual,
    /// The same on programs and caches as small as they can be, in seconds: to see that it runs. The values mean little.
    Quick,
}

/// Runs a paper's experiments and sets its rows side by side. `progress` is told what comes next.
///
/// # Errors
/// The name is none of the papers', or its experiments are not written yet: the error lists them all.
pub fn reproduce(name: &str, effort: Effort, progress: &mut dyn FnMut(&str)) -> Result<Reproduction, PaperError> {
    let not_available = |reason| PaperError::NotAvailable { name: name.into(), reason };
    let Some(paper) = papers().iter().find(|p| p.name == name) else {
        return Err(not_available("no paper has this name"));
    };
    let Some(experiment) = experiments::of(&paper.name) else {
        return Err(not_available("is not reproduced yet"));
    };
    let ran =
        (experiment.run)(effort, progress).map_err(|source| PaperError::Model { paper: experiment.paper, source })?;
    let rows = values::rows(experiment.values)
        .into_iter()
        .map(|value| {
            let finding = ran.findings.iter().find(|(id, _)| *id == value.id);
            value.beside(&paper.name, finding.map(|(_, finding)| finding.clone()))
        })
        .collect();
    Ok(Reproduction {
        paper: paper.name.clone(),
        cite: paper.cite.clone(),
        machine: ran.machine,
        assumptions: ran.assumptions,
        rows,
        series: ran.series,
        measured: false,
        halted: None,
    })
}

/// All papers, with what is there of each.
fn list() -> String {
    let entry = |p: &Paper| format!("{} ({})", p.name, if p.available() { "available" } else { "not yet" });
    papers().iter().map(entry).collect::<Vec<_>>().join(", ")
}
