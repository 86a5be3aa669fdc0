//! `lookaside hugepages run`: chosen while the program runs, or by a plan; made by a thread of this process.

use std::sync::Arc;

use lookaside_runtime::hugepages::{self, remote_collapse, CollapseSide};
use lookaside_views::hugepages_live;

use crate::args::hugepages::HugepagesRunArgs;
use crate::clock_sampler::ClockSampler;
use crate::launch::Launch;
use crate::plan::file;
use crate::plan::finder::WindowFinder;
use crate::preload::library::{self, check_loadable, BAKER, HUGEPAGES_INSTEAD};
use lookaside_cli::exit::Failure;

/// Runs the program, and says at the end what was made.
pub fn run(args: &HugepagesRunArgs) -> Result<u8, Failure> {
    let settings = settings(args)?;
    // What stands in their way is found before the program starts.
    let side = hugepages::collapse_side().map_err(Failure::bad)?;
    let mut launch = Launch::of(&args.command);
    if side == CollapseSide::Inside {
        check_loadable(&args.command, HUGEPAGES_INSTEAD)?;
        launch.preload(&library::find(&BAKER)?);
        launch.command.env(remote_collapse::VARIABLE, remote_collapse::VALUE);
    }
    launch.beside(|pid| {
        let worker = settings.start(pid)?;
        Ok(move || eprint!("{}", worker.end()))
    })
}

/// How huge pages are to be made.
fn settings(args: &HugepagesRunArgs) -> Result<HugeSettings, Failure> {
    Ok(match (&args.plan, args.budget) {
        (Some(plan), _) => HugeSettings::Plan(file::load(plan)?),
        (None, Some(budget)) => HugeSettings::Auto(hugepages::HugePageSettings { budget: budget as usize }),
        (None, None) => return Err(Failure::bad("give --budget K or --plan FILE")),
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
