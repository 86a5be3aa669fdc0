//! `lookaside color plan`: TLB sets for real-time tasks.

use lookaside_techniques::color::plan::plan;
use lookaside_techniques::color::tasks::TaskSet;
use lookaside_views::color::view;

use crate::args::color::ColorPlanArgs;
use crate::plan::output::PlanOutput;
use lookaside_cli::exit::Failure;
use lookaside_cli::machines::ChosenMachine;

/// Runs the command. Exit code 1 where not all tasks are isolated.
pub fn run(args: &ColorPlanArgs) -> Result<u8, Failure> {
    let machine = ChosenMachine::find_aloud(args.machine.as_deref(), !args.no_probe)?;
    let output = PlanOutput { file: args.output.as_deref(), report: &args.report };
    output.check()?;
    let tasks = TaskSet::load(&args.tasks)?.with_traces(args.page_size)?;
    output.write(&plan(&tasks, &machine, args.page_size)?, view)
}
