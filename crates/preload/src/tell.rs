//! What is told while the program runs: the line of JSON, in a memory file among the helper's own files. `lookaside top` reads it through
//! `/proc`, where the kernel says who may.

use lookaside_runtime::bake::raw::{Counters, HELPER, TELL_NANOS};

use crate::area::Plan;
use crate::sys;

/// Where it is told; nowhere if the system refuses such a file, or to write to it.
pub(crate) struct Teller {
    file: Option<i32>,
    next: u64,
}

impl Teller {
    pub(crate) fn new() -> Self {
        Self { file: sys::memory_file(HELPER).ok(), next: 0 }
    }

    /// Tells if it is time to. What an earlier, longer line left behind the end of this one is no part of it.
    pub(crate) fn tell(&mut self, plan: &Plan, counters: &Counters, now: u64) {
        let (Some(file), true) = (self.file, now >= self.next) else { return };
        self.next = now.saturating_add(TELL_NANOS);
        let Some(line) = plan.line(counters, now) else { return };
        if sys::write_at_begin(file, line.bytes()) != Ok(line.bytes().len()) {
            sys::close(file);
            self.file = None;
        }
    }
}
