//! `lookaside lock plan`: pages for the lockable entries of a TLB.

use lookaside_engine::Setup;
use lookaside_techniques::lock::planner::LockPlanner;
use lookaside_techniques::lock::select::SearchLimits;
use lookaside_techniques::lock::target::LockTarget;
use lookaside_views::lock::{view, view_counts};

use crate::args::lock::LockPlanArgs;
use crate::plan::output::PlanOutput;
use crate::plan::program::{self, PlanViews};
use lookaside_cli::exit::Failure;
use lookaside_cli::machines;

/// Runs the command.
pub fn run(args: &LockPlanArgs) -> Result<u8, Failure> {
    let setup = Setup::new(machines::find(&args.machine)?);
    let target = LockTarget::find(&setup.machine, args.tlb.as_deref(), args.entries)?;
    let planner = LockPlanner { setup, target, selector: args.select.into(), search: SearchLimits::default() };
    let output = PlanOutput { file: args.output.as_deref(), report: &args.report };
    let views = PlanViews::<LockPlanner> {
        plan: view,
        counts: |profile| view_counts(&profile.counts),
        stopped: "no page was chosen; these have the most misses",
    };
    program::run(&planner, &args.program, &output, &views)
}
