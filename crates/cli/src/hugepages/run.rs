//! `lookaside hugepages run`: memory that is chosen while the program runs, or by a plan, made huge by a thread of this
//! process; and code, by the preloaded library.

use std::path::Path;
use std::sync::Arc;

use lookaside_runtime::hugepages::{self, remote_collapse, CollapseSide};
use lookaside_techniques::hugepages::code_plan::CodePlan;
use lookaside_views::hugepages_live;

use super::code::{CodeRequest, CodeRun};
use crate::args::hugepages::HugepagesRunArgs;
use crate::clock_sampler::ClockSampler;
use crate::launch::Launch;
use crate::plan::file;
use crate::plan::finder::WindowFinder;
use crate::preload::library::{self, check_loadable, BAKER, CODE_INSTEAD, HUGEPAGES_INSTEAD};
use lookaside_cli::exit::Failure;

/// Runs the program, and says at the end what was made.
pub fn run(args: &HugepagesRunArgs) -> Result<u8, Failure> {
    let settings = settings(args)?;
    let code = code(args)?;
    // What stands in their way is found before the program starts.
    let side = settings.as_ref().map(|_| hugepages::collapse_side()).transpose().map_err(Failure::bad)?;
    let mut launch = Launch::of(&args.command);
    if code.is_some() || side == Some(CollapseSide::Inside) {
        check_loadable(&args.command, if code.is_some() { CODE_INSTEAD } else { HUGEPAGES_INSTEAD })?;
        launch.preload(&library::find(&BAKER)?);
    }
    if side == Some(CollapseSide::Inside) {
        launch.command.env(remote_collapse::VARIABLE, remote_collapse::VALUE);
    }
    if let Some(code) = &code {
        code.tell(&mut launch.command);
    }
    launch.beside(|pid| {
        let worker = settings.map(|settings| settings.start(pid)).transpose()?;
        let code = code.map(CodeRequest::begin).transpose()?;
        Ok(move || {
            let parts = [worker.map(HugeWorker::end), code.map(CodeRun::end)];
            parts.into_iter().flatten().for_each(|text| eprint!("{text}"));
        })
    })
}

/// The plan, if it is one of code.
fn code_plan(args: &HugepagesRunArgs) -> Option<&Path> {
    args.plan.as_deref().filter(|plan| CodePlan::is_in(plan))
}

/// What code is to be on huge pages, if any is.
fn code(args: &HugepagesRunArgs) -> Result<Option<CodeRequest>, Failure> {
    match (code_plan(args), args.text) {
        (Some(plan), budget) => CodeRequest::of_plan(plan, budget, !args.no_perf_map).map(Some),
        (None, Some(budget)) => CodeRequest::new(budget, !args.no_perf_map).map(Some),
        (None, None) => Ok(None),
    }
}

/// How huge pages of memory are to be made, if they are.
fn settings(args: &HugepagesRunArgs) -> Result<Option<HugeSettings>, Failure> {
    Ok(match (&args.plan, args.budget) {
        _ if code_plan(args).is_some() => None,
        (Some(plan), _) => Some(HugeSettings::Plan(file::load(plan)?)),
        (None, Some(budget)) => Some(HugeSettings::Auto(hugepages::HugePageSettings { budget: budget as usize })),
        (None, None) => None,
    })
}

/// How huge pages are to be made.
enum HugeSettings {
    Auto(hugepages::HugePageSettings),
    Plan(WindowFinder),
}

impl HugeSettings {
    /// Starts it for the program with this number.
    fn start(self, pid: u32) -> std::io::Result<HugeWorker> {
        Ok(match self {
            Self::Auto(settings) => {
                HugeWorker::Auto(hugepages::HugePageWatch::start(pid, settings, Arc::new(ClockSampler))?)
            }
            Self::Plan(plan) => HugeWorker::Plan(hugepages::PlanApplier::start(pid, Arc::new(plan))?),
        })
    }
}

/// The thread that makes them.
enum HugeWorker {
    Auto(hugepages::HugePageWatch),
    Plan(hugepages::PlanApplier),
}

impl HugeWorker {
    /// Ends it; what was done, in lines.
    fn end(self) -> String {
        match self {
            Self::Auto(watch) => hugepages_live::summary(&watch.end()),
            Self::Plan(apply) => hugepages_live::planned(&apply.end()),
        }
    }
}
