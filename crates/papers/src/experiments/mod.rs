//! Experiments as code: one module a paper.

mod pt_baker;

use crate::{Effort, Finding, Series};

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

const EXPERIMENTS: &[Experiment] =
    &[Experiment { paper: "pt-baker", values: include_str!("../../values/pt-baker.toml"), run: pt_baker::RUN }];

pub(crate) fn of(paper: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|e| e.paper == paper)
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
