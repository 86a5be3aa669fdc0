//! The helper's status file: a line of JSON in a memory file among the helper's own files, written while the program
//! runs. `lookaside top` reads it through `/proc`, where the kernel says who may.

use lookaside_runtime::bake::freestanding::{HelperCounters, HELPER, STATUS_NANOS};

use crate::helper_memory::BakerPlan;
use crate::sys;

/// The file; none if the system refuses such a file, or to write to it.
pub(crate) struct PublishedStatus {
    file: Option<i32>,
    next: u64,
}

impl PublishedStatus {
    pub(crate) fn new() -> Self {
        Self { file: sys::memory_file(HELPER).ok(), next: 0 }
    }

    /// Writes the line of now: at once, or if it is time to. What an earlier, longer line left behind the end of this
    /// one is no part of it.
    pub(crate) fn write(&mut self, at_once: bool, plan: &BakerPlan, counters: &HelperCounters, now: u64) {
        let (Some(file), true) = (self.file, at_once || now >= self.next) else { return };
        self.next = now.saturating_add(STATUS_NANOS);
        let Some(line) = plan.line(counters, now) else { return };
        if sys::write_at_begin(file, line.bytes()) != Ok(line.bytes().len()) {
            sys::close(file);
            self.file = None;
        }
    }
}
