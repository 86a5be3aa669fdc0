//! Places in a process's code as a trial asks for them: found by clock samples and the debug registers.

use std::time::Duration;

use lookaside_capture::{find_progress_mark, mark_of_function, ProgressMark};
use lookaside_runtime::trial::{CodeMark, MarkFinder};

/// Finds them.
pub struct DebugRegisters;

impl MarkFinder for DebugRegisters {
    fn find(&self, pid: u32, time: Duration, stop: &dyn Fn() -> bool) -> Result<Option<CodeMark>, String> {
        find_progress_mark(pid, time, stop).map(|found| found.map(mark)).map_err(|e| e.to_string())
    }

    fn of_function(&self, pid: u32, function: &str, stop: &dyn Fn() -> bool) -> Result<CodeMark, String> {
        mark_of_function(pid, function, stop).map(mark).map_err(|e| e.to_string())
    }
}

fn mark(found: ProgressMark) -> CodeMark {
    let ProgressMark { address, name, per_cpu_second } = found;
    CodeMark { address, name, per_cpu_second }
}
