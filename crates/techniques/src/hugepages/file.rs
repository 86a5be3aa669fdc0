//! Plans of huge pages as TOML files.

use std::collections::HashSet;
use std::path::Path;

use super::plan::{HugePlan, PlannedWindow};
use super::WINDOW_BYTES;
use crate::lock::file::{from_toml, read};
use crate::plan::Plan;

pub use crate::lock::file::PlanFileError;

impl Plan for HugePlan {}

impl HugePlan {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or holds what cannot be.
    pub fn load(path: &Path) -> Result<Self, PlanFileError> {
        Self::parse(&read(path, "plan of huge pages")?, &path.display().to_string())
    }

    /// Reads and checks what [`Plan::to_toml`] writes; `file_name` is what errors call it.
    ///
    /// # Errors
    /// As [`HugePlan::load`].
    pub fn parse(text: &str, file_name: &str) -> Result<Self, PlanFileError> {
        let plan: Self = from_toml(text, file_name, AGAIN)?;
        plan.check().map_err(|why| PlanFileError(format!("{file_name}: {why}; {AGAIN}")))?;
        Ok(plan)
    }

    /// Key and reason of what cannot be.
    fn check(&self) -> Result<(), String> {
        if self.page_bytes != WINDOW_BYTES {
            return Err(format!("page_bytes: {}: plans are for pages of {WINDOW_BYTES} bytes", self.page_bytes));
        }
        let windows = self.windows.len() + self.later.len();
        if windows > self.budget as usize {
            return Err(format!("window: {windows} windows for a budget of {}", self.budget));
        }
        let mut seen = HashSet::new();
        for (list, name) in [(&self.windows, "window"), (&self.later, "later")] {
            for (i, window) in list.iter().enumerate() {
                check_window(window).map_err(|(key, why)| format!("{name}[{i}].{key}: {why}"))?;
                if !seen.insert((window.process, window.address)) {
                    return Err(format!("{name}[{i}].address: {:#x} stands twice", window.address));
                }
            }
        }
        Ok(())
    }
}

/// Key and reason of what cannot be in one window.
fn check_window(window: &PlannedWindow) -> Result<(), (&'static str, String)> {
    let (address, bytes) = (window.address, window.bytes);
    if bytes != WINDOW_BYTES {
        return Err(("bytes", format!("{bytes} is not the size of a huge page, {WINDOW_BYTES}")));
    }
    if address % bytes != 0 || address.checked_add(bytes).is_none() {
        return Err(("address", format!("{address:#x} is no multiple of {bytes:#x} below the end of all addresses")));
    }
    for (key, cycles) in [("saved_cycles", window.saved_cycles), ("collapse_cycles", window.collapse_cycles)] {
        if !cycles.is_finite() || cycles < 0.0 {
            return Err((key, format!("{cycles} is no number of cycles")));
        }
    }
    for (key, part) in [("touched_bytes", window.touched_bytes), ("bloat_bytes", window.bloat_bytes)] {
        if part > bytes {
            return Err((key, format!("{part} is more than the window has, {bytes}")));
        }
    }
    let Some(region) = &window.region else { return Ok(()) };
    let mapping = &region.mapping;
    if address < mapping.start || address + bytes > mapping.end {
        let (start, end) = (mapping.start, mapping.end);
        return Err(("region.mapping", format!("{start:#x} to {end:#x} does not hold the window at {address:#x}")));
    }
    if region.offset_bytes != address - mapping.start {
        let offset = address - mapping.start;
        return Err(("region.offset_bytes", format!("{} is not where the window lies, {offset}", region.offset_bytes)));
    }
    if region.nth >= region.equals {
        return Err(("region.nth", format!("{} of {} regions, counted from 0", region.nth, region.equals)));
    }
    Ok(())
}

/// What helps against a file that was changed to what it cannot be.
const AGAIN: &str = "mend it, or make it again with lookaside hugepages plan";
