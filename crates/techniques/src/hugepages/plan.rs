//! A plan of huge pages: the windows, what each is and saves, other ways to choose, and what larger budgets would add.

use serde::{Deserialize, Serialize};

use super::select::WindowSelector;
use crate::lock::maps::ListedMapping;
use crate::lock::reason::Confidence;

/// A plan. Cycles are of the model, over the whole recorded run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HugePlan {
    /// Name of the machine.
    pub machine: String,
    /// Its clock, which turns the measured time of a collapse into cycles.
    pub clock_mhz: f64,
    /// Bytes of a huge page: [`super::WINDOW_BYTES`].
    pub page_bytes: u64,
    /// Huge pages that were planned for.
    pub budget: u32,
    /// The program and its arguments, or the trace.
    pub command: Vec<String>,
    /// Accesses of the program, left-out repeats included.
    pub accesses: u64,
    /// Of its recorded accesses, the share that huge pages were tried on; 1 = all.
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
    /// Of these, the part of accesses to windows that can be huge.
    pub window_cycles: f64,
    /// The part of pages near a file's mapping, which are left out: the kernel makes few of them huge.
    pub file_cycles: f64,
    /// The part of all other pages: ends of regions, and those too small.
    pub other_cycles: f64,
    /// What a reader must know to believe the numbers.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// The plan's windows huge: those of [`Self::windows`].
    pub planned: Effect,
    /// The windows to make huge, in the order of choice: each saves more than its collapse costs.
    #[serde(default, rename = "window")]
    pub windows: Vec<PlannedWindow>,
    /// What is left of the budget, for windows that save something, but in a run as short as the recorded one less than
    /// their collapse costs.
    #[serde(default)]
    pub later: Vec<PlannedWindow>,
    /// Each way to choose, with the whole budget spent.
    #[serde(default, rename = "choice")]
    pub choices: Vec<HugeChoice>,
    /// What 0, 1, 2, 4, … huge pages do, and one for each touched window that can be huge.
    #[serde(default)]
    pub curve: Vec<Effect>,
}

/// What some huge windows do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// How many.
    pub windows: u32,
    /// Translation cycles that are left.
    pub translation_cycles: f64,
    /// Translation cycles that they save: the gross.
    pub saved_cycles: f64,
    /// What their collapse costs, once.
    pub collapse_cycles: f64,
    /// Bytes that become resident though nobody touched them.
    pub bloat_bytes: u64,
}

impl Effect {
    /// What is left of the saving.
    pub fn net_cycles(&self) -> f64 {
        self.saved_cycles - self.collapse_cycles
    }
}

/// A window to make huge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlannedWindow {
    /// Whose.
    pub process: u32,
    /// First byte in the recorded run.
    pub address: u64,
    /// Bytes: [`super::WINDOW_BYTES`].
    pub bytes: u64,
    /// Call site of the large allocation that has most of it; empty = not known.
    pub symbol: String,
    /// Accesses of the whole run, left-out repeats included.
    pub accesses: u64,
    /// Walks for them with base pages.
    pub walks: u64,
    /// Bytes of the base pages in it that were touched.
    pub touched_bytes: u64,
    /// Translation cycles that it saves once those before it are huge: the gross.
    pub saved_cycles: f64,
    /// What its collapse costs, once.
    pub collapse_cycles: f64,
    /// How many runs like the recorded one it takes until that is paid.
    pub break_even_runs: f64,
    /// Bytes that become resident though nobody touched them.
    pub bloat_bytes: u64,
    /// Why it is not known where it lies in a plain run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_native: Option<String>,
    /// The region that holds it; absent = the trace has no memory map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<WindowRegion>,
    /// Where it lies in a plain run; absent = nobody looked, or [`Self::not_native`] says why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeRange>,
}

/// The bytes of a window in a plain run, where they need not be aligned: [`super::apply::aligned_windows`] says which
/// windows of that run to make huge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NativeRange {
    /// First byte there.
    pub address: u64,
    /// The region that holds it there, as [`crate::lock::regions::name`] has it.
    pub region: String,
    /// Bytes from the region's start.
    pub offset_bytes: u64,
    /// How sure it is that it holds the same.
    pub confidence: Confidence,
    /// What that rests on, in words.
    pub rests_on: Vec<String>,
}

/// Where a window lies in the recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WindowRegion {
    /// The region's name, as `analyze` has it.
    pub name: String,
    /// Bytes from its start to the window.
    pub offset_bytes: u64,
    /// Which of the regions of its kind, protection and size it is, in the order of making, from 0.
    pub nth: u32,
    /// How many of these there are.
    pub equals: u32,
    /// The region, as a line of `/proc/PID/maps`: what one call mapped, or several that the kernel has as one.
    pub mapping: ListedMapping,
}

/// What one way to choose comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HugeChoice {
    /// The way.
    pub selector: WindowSelector,
    /// With its windows huge.
    pub effect: Effect,
}

impl HugePlan {
    /// The windows that are worth their collapse in a run `times` as long as the recorded one, those of [`Self::later`]
    /// too, in the plan's order.
    pub fn paying(&self, times: f64) -> impl Iterator<Item = &PlannedWindow> {
        self.windows
            .iter()
            .chain(&self.later)
            .filter(move |window| window.saved_cycles * times > window.collapse_cycles)
    }
}
