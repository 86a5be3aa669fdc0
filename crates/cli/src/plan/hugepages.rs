//! `lookaside plan hugepages`: windows of memory to make huge pages of.

use lookaside_engine::Setup;
use lookaside_techniques::hugepages::planner::HugePlanner;
use lookaside_views::hugepages::{view, view_counts};

use crate::args::plan::hugepages::PlanHugepagesArgs;
use crate::plan::output::PlanOutput;
use crate::plan::program::{self, PlanViews, PlannedProgram};
use lookaside_cli::exit::Failure;
use lookaside_cli::machines::ChosenMachine;

/// Runs the command.
pub fn run(args: &PlanHugepagesArgs) -> Result<u8, Failure> {
    let setup = Setup::new(ChosenMachine::find_aloud(args.machine.as_deref(), !args.no_probe)?);
    let planner = HugePlanner::new(setup, args.budget)?;
    let program = PlannedProgram { trace: args.trace.as_deref(), command: &args.command, native: args.native };
    let output = PlanOutput { file: args.output.as_deref(), report: &args.report };
    let views = PlanViews::<HugePlanner> {
        plan: view,
        counts: |profile| view_counts(&profile.windows),
        stopped: "no windows were chosen; these have most walks of what was seen",
    };
    program::run(&planner, &program, &output, &views)
}
