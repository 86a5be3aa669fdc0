//! Selective huge pages for running programs: the windows in which a program is seen most become huge pages. All is
//! seen and chosen from outside, and done from there by `process_madvise(MADV_COLLAPSE)`; where there is no right to, a
//! thread of a preloaded library does that, and no more, in the program ([`remote_collapse`]).
//!
//! [`ProcessMemory`] says what windows a process has, an [`AddressSampler`] where the program is seen, [`choose()`]
//! takes the best, [`CollapseHandle::collapse`] makes huge pages of them. [`promote()`] does it all for a process,
//! [`HugePageWatch`] again and again for a program and those that it starts, [`PlanApplier`] makes a plan's windows
//! huge.

mod choose;
mod code_filters;
mod code_pages;
mod collapse;
mod error;
mod pages;
mod planned;
mod promote;
mod referenced;
pub mod remote_collapse;
mod sampler;
mod small_memory;
mod watch;
mod windows;

use std::path::Path;

pub use choose::{
    choose, spread, tally, HotWindow, ProcessView, SampleCounts, WindowChoice, WindowWeight, WindowWeights,
};
pub use code_filters::harmless_filters;
pub use code_pages::{
    check_code, code_weights_line, CodeBudget, CodeObstacle, CodeTotals, ProcessCode, CODE_FILTERS_VARIABLE,
    CODE_REPORT_VARIABLE, CODE_VARIABLE, CODE_WEIGHTS_VARIABLE,
};
pub use collapse::{
    check_way_back, collapse_side, CollapseHandle, CollapseResult, CollapseSide, SplitResult, LEAST_PAUSE,
};
pub use error::HugePageError;
pub use pages::ProcessMemory;
pub use planned::{AppliedPlan, FoundWindow, PlanApplier, PlanFinder, PlannedRegion};
pub use promote::{promote, PromotionReport, PromotionRequest, WindowRow};
pub use referenced::{ReferencedBytes, INTERVAL};
pub(crate) use sampler::{see, MemoryObservation};
pub use sampler::{AddressSampler, ObservedBy};
pub use small_memory::{HugePageRules, MemoryPart, SmallMemory, SmallReason};
pub use watch::{when_set_up, HugePageSettings, HugePageWatch, PromotionSummary};
pub use windows::{window_of, windows, FitWindow, MappedArea, PageRange, PageState, Unfit, WINDOW_BYTES, WINDOW_PAGES};

/// Whether this is meant as a plan's file, and not as `auto:K`: it has a name like a file's, or is one.
pub fn names_plan(text: &str) -> bool {
    let path = Path::new(text);
    path.extension().is_some() || path.exists()
}
