//! `lookaside plan lock`: pages for the lockable entries of a TLB.

use lookaside_engine::Setup;
use lookaside_techniques::lock::planner::LockPlanner;
use lookaside_techniques::lock::select::SearchLimits;
use lookaside_techniques::lock::target::LockTarget;
use lookaside_views::lock::{view, view_counts};

use crate::args::plan::lock::PlanLockArgs;
use crate::plan::output::PlanOutput;
use crate::plan::program::{self, PlanViews, PlannedProgram};
use lookaside_cli::exit::Failure;
use lookaside_cli::machines;

/// Runs the command.
pub fn run(args: &PlanLockArgs) -> Result<u8, Failure> {
    let setup = Setup::new(machines::find(&args.machine)?);
    let target = LockTarget::find(&setup.machine, args.tlb.as_deref(), args.entries)?;
    let planner = LockPlanner { setup, target, selector: args.select.into(), search: SearchLimits::default() };
    let program = PlannedProgram { trace: args.trace.as_deref(), command: &args.command, native: args.native };
    let output = PlanOutput { file: args.output.as_deref(), report: &args.report };
    let views = PlanViews::<LockPlanner> {
        plan: view,
        counts: |profile| view_counts(&profile.counts),
        stopped: "no pages were chosen; these have most misses of what was seen",
    };
    program::run(&planner, &program, &output, &views)
}
