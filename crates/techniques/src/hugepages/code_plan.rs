//! A plan of code on huge pages: which windows of which files, what each saves, and what larger budgets would do.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::file::PlanFileError;
use super::plan::Effect;
use super::WINDOW_BYTES;
use crate::lock::file::{from_toml, read};
use crate::lock::regions::RegionMatching;
use crate::plan::{Plan, ProgramPlan};

/// A plan. Cycles are of the model, over the whole recorded run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CodePlan {
    /// What is planned: `code`.
    pub plan: PlannedKind,
    /// Name of the machine.
    pub machine: String,
    /// Its clock, which turns the measured time of a copy into cycles.
    pub clock_mhz: f64,
    /// Bytes of a huge page: [`super::WINDOW_BYTES`].
    pub page_bytes: u64,
    /// Huge pages that were planned for, in each process.
    pub budget: u32,
    /// The program and its arguments, or the trace.
    pub command: Vec<String>,
    /// Fetches of instructions, left-out repeats included.
    pub fetches: u64,
    /// Of the recorded accesses, the share that huge pages were tried on; 1 = all.
    pub tried_share: f64,
    /// Seed of the model runs.
    pub seed: u64,
    /// Windows that were tried: those whose accesses cost most.
    pub candidates: u32,
    /// Model runs that choosing took.
    pub model_runs: u64,
    /// Cycles of the whole run in all, as the model counts them.
    pub modelled_cycles: f64,
    /// Of these, translation with base pages alone.
    pub base_cycles: f64,
    /// Of these, the part of code in whole windows.
    pub window_cycles: f64,
    /// The part of code outside whole windows, which stays in small pages.
    pub edge_cycles: f64,
    /// What a reader must know to believe the numbers.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// The plan's windows huge: those of [`Self::windows`].
    pub planned: Effect,
    /// The windows to put on huge pages, in the order of choice: each saves more than its copy costs.
    #[serde(default, rename = "window")]
    pub windows: Vec<PlannedCodeWindow>,
    /// What is left of the budget, for windows that save something, but in a run as short as the recorded one less than
    /// their copy costs.
    #[serde(default)]
    pub later: Vec<PlannedCodeWindow>,
    /// What 0, 1, 2, 4, … huge pages do; the last: one for each whole window of code that was executed.
    #[serde(default)]
    pub curve: Vec<Effect>,
}

/// What a plan file is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PlannedKind {
    /// Code.
    Code,
}

/// A window of code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlannedCodeWindow {
    /// Whose, in the recorded run.
    pub process: u32,
    /// The file.
    pub path: String,
    /// Where in the file the window begins.
    pub offset: u64,
    /// First byte in the recorded run.
    pub address: u64,
    /// Accesses of the whole run, left-out repeats included.
    pub accesses: u64,
    /// Walks for them with base pages.
    pub walks: u64,
    /// Translation cycles that it saves once those before it are huge.
    pub saved_cycles: f64,
    /// What its copy costs, once a process.
    pub copy_cycles: f64,
    /// How many runs like the recorded one it takes until that is paid; more than 1 if the process should live longer.
    pub break_even_runs: f64,
    /// The parts of it that cost most: in another run, where windows begin elsewhere in the file, those are chosen that
    /// have most of these.
    #[serde(default)]
    pub hot: Vec<HotCode>,
}

/// A part of a file's code that costs translation cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HotCode {
    /// Where in the file.
    pub offset: u64,
    /// How much of it.
    pub bytes: u64,
    /// Translation cycles with base pages.
    pub cycles: f64,
}

/// What helps against a file that was changed to what it cannot be.
const AGAIN: &str = "mend it, or make it again with lookaside hugepages plan --text";

impl Plan for CodePlan {}

impl ProgramPlan for CodePlan {
    fn remarks_mut(&mut self) -> &mut Vec<String> {
        &mut self.remarks
    }

    /// Code is found again by its file.
    fn find_natively(&mut self, _: u32, _: &RegionMatching) {}
}

impl CodePlan {
    /// Whether a file holds a plan of code; one that can't be read does not.
    pub fn is_in(path: &Path) -> bool {
        std::fs::read_to_string(path).is_ok_and(|text| text.lines().any(|line| line.trim() == "plan = \"code\""))
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or holds what cannot be.
    pub fn load(path: &Path) -> Result<Self, PlanFileError> {
        Self::parse(&read(path, "plan of code on huge pages")?, &path.display().to_string())
    }

    /// Reads and checks what [`Plan::to_toml`] writes; `file_name` is what errors call it.
    ///
    /// # Errors
    /// As [`CodePlan::load`].
    pub fn parse(text: &str, file_name: &str) -> Result<Self, PlanFileError> {
        let plan: Self = from_toml(text, file_name, AGAIN)?;
        plan.check().map_err(|why| PlanFileError(format!("{file_name}: {why}; {AGAIN}")))?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        if self.page_bytes != WINDOW_BYTES {
            return Err(format!("page_bytes: {}: plans are for pages of {WINDOW_BYTES} bytes", self.page_bytes));
        }
        for (list, name) in [(&self.windows, "window"), (&self.later, "later")] {
            for (at, window) in list.iter().enumerate() {
                if !window.path.starts_with('/') || window.path.contains('\n') {
                    return Err(format!("{name}[{at}].path: {:?} is no file's path", window.path));
                }
                let good = |hot: &HotCode| hot.cycles >= 0.0 && hot.cycles.is_finite() && hot.bytes > 0;
                if let Some(part) = window.hot.iter().position(|hot| !good(hot)) {
                    return Err(format!("{name}[{at}].hot[{part}]: cycles and bytes must be numbers above 0"));
                }
            }
        }
        Ok(())
    }

    /// All windows, those that pay first.
    pub fn all(&self) -> impl Iterator<Item = &PlannedCodeWindow> {
        self.windows.iter().chain(&self.later)
    }

    /// Windows at most in a process: as many as the one with most has in the plan.
    pub fn most_in_a_process(&self) -> u32 {
        let mut processes = BTreeMap::new();
        self.all().for_each(|window| *processes.entry(window.process).or_insert(0u32) += 1);
        processes.into_values().max().unwrap_or(0)
    }

    /// What parts of files weigh: path, offset, bytes, weight above 0. Of several processes with one file, the sum.
    pub fn weights(&self) -> Vec<(String, u64, u64, u64)> {
        let mut weights: BTreeMap<(&str, u64, u64), f64> = BTreeMap::new();
        for window in self.all() {
            for hot in &window.hot {
                *weights.entry((&window.path, hot.offset, hot.bytes)).or_default() += hot.cycles;
            }
        }
        let weighed = weights
            .into_iter()
            .map(|((path, offset, bytes), cycles)| (path.to_string(), offset, bytes, (cycles.round() as u64).max(1)));
        weighed.collect()
    }
}
