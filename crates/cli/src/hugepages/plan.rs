//! `lookaside hugepages plan`: windows of memory, or of code, to make huge pages of.

use lookaside_engine::Setup;
use lookaside_techniques::hugepages::code_planner::CodePlanner;
use lookaside_techniques::hugepages::planner::HugePlanner;
use lookaside_views::hugepages::{view, view_counts};
use lookaside_views::hugepages_code_plan;

use crate::args::hugepages::HugepagesPlanArgs;
use crate::plan::output::PlanOutput;
use crate::plan::program::{self, PlanViews};
use lookaside_cli::exit::Failure;
use lookaside_cli::machines::ChosenMachine;

/// Runs the command.
pub fn run(args: &HugepagesPlanArgs) -> Result<u8, Failure> {
    let setup = Setup::new(ChosenMachine::find_aloud(args.machine.as_deref(), !args.no_probe)?);
    let output = PlanOutput { file: args.output.as_deref(), report: &args.report };
    if args.text {
        let views = PlanViews::<CodePlanner> {
            plan: hugepages_code_plan::view,
            counts: |profile| view_counts(&profile.windows),
            stopped: "no window was chosen; these have the most walks",
        };
        return program::run(&CodePlanner::new(setup, args.budget)?, &args.program, &output, &views);
    }
    let planner = HugePlanner::new(setup, args.budget)?;
    let views = PlanViews::<HugePlanner> {
        plan: view,
        counts: |profile| view_counts(&profile.windows),
        stopped: "no window was chosen; these have the most walks",
    };
    program::run(&planner, &args.program, &output, &views)
}
