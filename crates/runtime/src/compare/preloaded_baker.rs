//! The library that bakes inside the programs that are compared.

use std::path::PathBuf;

use super::watch::HelperTotals;

/// The library that bakes from inside, or makes huge pages there, and what it tells of baking.
pub struct PreloadedBaker {
    /// Its file.
    pub file: PathBuf,
    /// A file for its report (`LOOKASIDE_BAKE_STATS`); emptied before each run.
    pub report: PathBuf,
    /// Reads a report; `None` if no process wrote one.
    pub read: fn(&str) -> Option<HelperTotals>,
}

impl PreloadedBaker {
    /// What the library did since the last call.
    pub(super) fn take(&self) -> Option<HelperTotals> {
        let text = std::fs::read_to_string(&self.report).unwrap_or_default();
        let _ = std::fs::write(&self.report, "");
        (self.read)(&text)
    }
}
