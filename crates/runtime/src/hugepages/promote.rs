//! One choice for one running process.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::choose::{choose, HotWindow, ProcessView, SampleCounts};
use super::collapse::{CollapseHandle, CollapseResult, CollapseSide};
use super::error::HugePageError;
use super::pages::ProcessMemory;
use super::sampler::see;
use super::sampler::{AddressSampler, ObservedBy};
use super::windows::FitWindow;

/// What to do.
pub struct PromotionRequest<'a> {
    /// For which process.
    pub pid: u32,
    /// Huge pages at most.
    pub budget: usize,
    /// How long to look.
    pub time: Duration,
    /// How; `None` = by samples, and by referenced bits where samples are refused.
    pub by: Option<ObservedBy>,
    /// Choose only, change nothing.
    pub dry: bool,
    /// The sampler.
    pub look: &'a dyn AddressSampler,
    /// Whether to stop. What was seen until then is chosen from, and nothing more is collapsed.
    pub stop: &'a dyn Fn() -> bool,
    /// Takes note of the windows that are about to be made huge, so that they can be taken back; gives the number under
    /// which.
    pub note: &'a dyn Fn(&[u64]) -> Result<u64, HugePageError>,
}

/// A window that was chosen, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WindowRow {
    /// The window.
    #[serde(flatten)]
    pub chosen: HotWindow,
    /// What became of it; absent where nothing was tried.
    pub tried: Option<CollapseResult>,
    /// Whether a huge page maps it when all is done; absent where that can't be told.
    pub huge_at_end: Option<bool>,
}

/// What was seen, chosen and done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PromotionReport {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// How it was seen.
    pub by: ObservedBy,
    /// Why not by samples.
    pub no_samples: Option<String>,
    /// For how many seconds.
    pub seconds: f64,
    /// Huge pages at most.
    pub budget: usize,
    /// Nothing was changed.
    pub dry_run: bool,
    /// Who makes the huge pages.
    pub way: CollapseSide,
    /// Where the samples fell; by samples only.
    pub fell: Option<SampleCounts>,
    /// Longest clearing of referenced bits, during which page faults of the program wait, in nanoseconds; by these
    /// only.
    pub longest_clearing_nanos: Option<u64>,
    /// Intervals of a second or more; by referenced bits only.
    pub intervals: Option<u32>,
    /// Windows that could have been chosen.
    pub candidates: usize,
    /// Windows that huge pages mapped before.
    pub huge_before: usize,
    /// Weight of these.
    pub candidates_weight: u64,
    /// Weight of all: samples, or bytes referenced.
    pub weight: u64,
    /// Weight of the chosen.
    pub chosen_weight: u64,
    /// See [`WindowChoice::held_out`](super::WindowChoice::held_out); by samples only.
    pub held_out: Option<f64>,
    /// The chosen windows, most seen first.
    pub rows: Vec<WindowRow>,
    /// It was stopped before all were tried.
    pub stopped: bool,
    /// For `lookaside undo`; absent where nothing was tried.
    pub undo: Option<u64>,
}

impl PromotionReport {
    /// Windows that were chosen and are not one huge page.
    pub fn failed(&self) -> usize {
        self.rows.iter().filter(|row| !row.tried.as_ref().is_some_and(CollapseResult::is_collapsed)).count()
    }

    /// The longest call, during which page faults of the program may have waited, in nanoseconds.
    pub fn longest_call_nanos(&self) -> u64 {
        self.rows.iter().filter_map(|row| row.tried.as_ref()).map(CollapseResult::nanos).max().unwrap_or(0)
    }
}

/// Looks at a process, chooses, collapses.
///
/// # Errors
/// In a line: no such process, no permission, a kernel that can't, huge pages switched off for it; samples that were
/// asked for and are refused; no note can be taken of what is about to be done.
pub fn promote(order: &PromotionRequest<'_>) -> Result<PromotionReport, HugePageError> {
    let handle = CollapseHandle::open(order.pid)?;
    ProcessMemory::of(order.pid)?; // what is missing is said before it takes time
    let began = Instant::now();
    let seen = see(order.pid, order.time, order.by, order.look, order.stop)?;
    let seconds = began.elapsed().as_secs_f64();
    if !handle.is_same() {
        return Err(HugePageError::Bad(format!(
            "process {}: it ended, or became another program, meanwhile",
            order.pid
        )));
    }
    let (areas, windows) = (&seen.memory.areas, &seen.memory.windows);
    let view = ProcessView { pid: order.pid, areas, windows, weights: &seen.weights };
    let choice = choose(&[view], order.budget);
    let rows = choice.chosen.into_iter().map(|chosen| WindowRow { chosen, tried: None, huge_at_end: None });
    let mut applied = PromotionReport {
        pid: order.pid,
        comm: handle.comm().to_string(),
        by: seen.by,
        weight: seen.weight(),
        no_samples: seen.no_samples,
        seconds,
        budget: order.budget,
        dry_run: order.dry,
        way: handle.way(),
        fell: seen.fell,
        longest_clearing_nanos: seen.referenced.as_ref().map(|seen| seen.longest_nanos),
        intervals: seen.referenced.as_ref().map(|seen| seen.intervals),
        candidates: choice.candidates,
        candidates_weight: choice.candidates_weight,
        huge_before: choice.huge,
        chosen_weight: choice.chosen_weight,
        held_out: choice.held_out.filter(|_| seen.by == ObservedBy::Sample),
        rows: rows.collect(),
        stopped: false,
        undo: None,
    };
    if !order.dry && !applied.rows.is_empty() {
        let windows: Vec<u64> = applied.rows.iter().map(|row| row.chosen.window.start).collect();
        applied.undo = Some((order.note)(&windows)?);
        for row in &mut applied.rows {
            if (order.stop)() {
                applied.stopped = true;
                break;
            }
            row.tried = Some(handle.collapse(row.chosen.window.start));
        }
        if let Ok(after) = ProcessMemory::of(order.pid) {
            for row in &mut applied.rows {
                let window = after.window(row.chosen.window.start);
                row.huge_at_end = Some(window.is_some_and(FitWindow::is_huge));
            }
        }
    }
    Ok(applied)
}
