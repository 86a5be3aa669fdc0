//! `lookaside run --hugepages`: chosen while the program runs, or by a plan; made by a thread of this process.

use std::path::Path;
use std::sync::Arc;

use lookaside_runtime::hugepages::{self, CollapseSide};
use lookaside_views::hugepages_live;

use crate::clock_sampler::ClockSampler;
use crate::plan::file;
use crate::plan::finder::WindowFinder;
use lookaside_cli::exit::Failure;

/// How huge pages are to be made, and from where; what stands in their way is found before the program starts.
pub fn settings(text: &str) -> Result<(HugeSettings, CollapseSide), Failure> {
    let bad = |e: hugepages::HugePageError| Failure::bad(format_args!("--hugepages: {e}"));
    let settings = match hugepages::names_plan(text) {
        true => HugeSettings::Plan(file::load(Path::new(text))?),
        false => HugeSettings::Auto(text.parse().map_err(bad)?),
    };
    Ok((settings, hugepages::collapse_side().map_err(bad)?))
}

/// How huge pages are to be made.
pub enum HugeSettings {
    Auto(hugepages::HugePageSettings),
    Plan(WindowFinder),
}

impl HugeSettings {
    /// Starts it for the program with this number.
    pub fn start(self, pid: u32) -> std::io::Result<HugeWorker> {
        Ok(match self {
            Self::Auto(settings) => {
                HugeWorker::Auto(hugepages::HugePageWatch::start(pid, settings, Arc::new(ClockSampler))?)
            }
            Self::Plan(plan) => HugeWorker::Plan(hugepages::PlanApplier::start(pid, Arc::new(plan))?),
        })
    }
}

/// The thread that makes them.
pub enum HugeWorker {
    Auto(hugepages::HugePageWatch),
    Plan(hugepages::PlanApplier),
}

impl HugeWorker {
    /// Ends it; what was done, in lines.
    pub fn end(self) -> String {
        match self {
            Self::Auto(watch) => hugepages_live::summary(&watch.end()),
            Self::Plan(apply) => hugepages_live::planned(&apply.end()),
        }
    }
}
