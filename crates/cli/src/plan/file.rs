//! A plan of huge pages, read for a program that `lookaside` starts.

use std::collections::BTreeSet;
use std::path::Path;

use lookaside_techniques::hugepages::plan::HugePlan;

use super::finder::{RecordedWindow, WindowFinder};
use lookaside_cli::exit::Failure;

/// Reads a plan. Windows of processes that the program started, and those without a region, can't be found again.
pub fn load(path: &Path) -> Result<WindowFinder, Failure> {
    let plan = HugePlan::load(path).map_err(Failure::bad)?;
    let windows = || plan.windows.iter().chain(&plan.later);
    let why = |text: &str| Failure::bad(format_args!("{}: {text}", path.display()));
    if windows().map(|window| window.process).collect::<BTreeSet<u32>>().len() > 1 {
        return Err(why("has windows of several processes, but --plan makes huge pages in the program's own process \
            only; --budget follows the processes that it starts, too"));
    }
    let mut finder = WindowFinder::default();
    for window in windows() {
        let Some(region) = &window.region else {
            return Err(why(
                "its windows name no memory regions (the trace has no memory map), so no other run can find them",
            ));
        };
        let (address, bytes, cycles) = (window.address, window.bytes, window.saved_cycles);
        finder.push(region, RecordedWindow { address, bytes, cycles, wanted: true });
    }
    if finder.is_empty() {
        return Err(why("names no window"));
    }
    Ok(finder)
}
