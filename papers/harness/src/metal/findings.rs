//! What the experiments on the metal gave.

use lookaside_probe::{Halt, LevelReport};

use crate::values::{rows, PublishedValue};
use crate::{Ours, PaperCurve, PaperRow, RowFinding};

/// What the experiments of a paper gave so far.
#[derive(Debug, Default)]
pub struct MetalFindings {
    /// How it was measured.
    pub assumptions: Vec<String>,
    /// By the id of a row: a finding, or why there is none.
    pub findings: Vec<(&'static str, Result<RowFinding, String>)>,
    /// Curves behind the rows.
    pub series: Vec<PaperCurve>,
    /// What they took as given: the levels as the probe found them.
    pub levels: Vec<LevelReport>,
}

impl MetalFindings {
    /// A number for a row.
    pub fn value(&mut self, id: &'static str, value: f64, note: impl Into<String>) {
        self.findings.push((id, Ok(RowFinding { ours: Ours::Value(value), note: note.into() })));
    }

    /// For a claim: what was found, and whether it bears the claim out.
    pub fn claim(&mut self, id: &'static str, holds: bool, found: impl Into<String>, note: impl Into<String>) {
        let ours = Ours::Claim { found: found.into(), holds };
        self.findings.push((id, Ok(RowFinding { ours, note: note.into() })));
    }

    /// What was measured; nothing where the machine refuses, and then that is why the rows have no value.
    ///
    /// # Errors
    /// Measuring ends.
    pub fn possible<T>(&mut self, ids: &[&'static str], measured: Result<T, Halt>) -> Result<Option<T>, Halt> {
        match measured {
            Ok(found) => Ok(Some(found)),
            Err(Halt::Metal(reason)) => {
                self.nothing(ids, &reason.to_string());
                Ok(None)
            }
            Err(halt) => Err(halt),
        }
    }

    /// Why these rows have no value.
    pub fn nothing(&mut self, ids: &[&'static str], reason: &str) {
        self.findings.extend(ids.iter().map(|id| (*id, Err(reason.to_string()))));
    }

    /// Published values beside what was found; `otherwise` is why where neither a finding nor a reason is there.
    pub fn rows(&self, values: &str, paper: &str, otherwise: &str) -> Vec<PaperRow> {
        let beside = |value: PublishedValue| match self.findings.iter().find(|(id, _)| *id == value.id) {
            Some((_, Ok(finding))) => value.beside(paper, Some(finding.clone())),
            Some((_, Err(reason))) => value.without(paper, reason),
            None => value.without(paper, otherwise),
        };
        rows(values).into_iter().map(beside).collect()
    }
}
