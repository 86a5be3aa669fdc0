//! The library that bakes inside the programs that are compared.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::watch::HelperTotals;
use crate::hugepages::{CodeBudget, CodeTotals};

/// The library that bakes from inside, or makes huge pages there, and what it tells of baking and of code.
pub struct PreloadedBaker {
    /// Its file.
    pub file: PathBuf,
    /// A file for its report (`LOOKASIDE_BAKE_STATS`, `LOOKASIDE_CODE_REPORT`); emptied before each run.
    pub report: PathBuf,
    /// Reads a report; `None` if no process wrote one.
    pub read: fn(&str) -> Option<HelperTotals>,
    /// Reads a report of code on huge pages; `None` if no process wrote one.
    pub read_code: fn(&str) -> Option<CodeTotals>,
    /// Plans of code that variants name: how many windows at most, and a file of weights for the library.
    pub code_plans: BTreeMap<PathBuf, (CodeBudget, PathBuf)>,
}

impl PreloadedBaker {
    /// What the library did since the last call.
    pub(super) fn take(&self) -> Option<HelperTotals> {
        (self.read)(&self.take_text())
    }

    /// What it did with code since the last call.
    pub(super) fn take_code(&self) -> Option<CodeTotals> {
        (self.read_code)(&self.take_text())
    }

    /// The report since the last call.
    pub(super) fn take_text(&self) -> String {
        let text = std::fs::read_to_string(&self.report).unwrap_or_default();
        let _ = std::fs::write(&self.report, "");
        text
    }
}
