//! The `plan` command: what to do about translation, before anything runs.

use lookaside_techniques::color::plan::plan;
use lookaside_techniques::color::tasks::TaskSet;

use crate::args::plan::{Color, PlanCommand};
use crate::exit::{Failure, NOT_CLEAN};
use crate::machines;
use crate::output::{check_writable, print, print_json, style, write_file};

/// Runs the command.
pub fn run(command: &PlanCommand) -> Result<u8, Failure> {
    match command {
        PlanCommand::Color(args) => color(args),
        PlanCommand::Lock(args) => crate::plan_lock::run(args),
        PlanCommand::Hugepages(args) => crate::plan_huge::run(args),
    }
}

/// Exit code 1 where not all tasks are isolated.
fn color(args: &Color) -> Result<u8, Failure> {
    let machine = machines::find_or_nearest(args.machine.as_deref())?;
    if let Some(path) = &args.output {
        check_writable(path)?;
    }
    let tasks = TaskSet::load(&args.tasks)?.with_traces(args.page_size)?;
    let plan = plan(&tasks, &machine, args.page_size)?;
    if let Some(path) = &args.output {
        write_file(path, &plan.partitions.to_toml())?;
    }
    if args.json {
        print_json(&plan)?;
    } else {
        print(&lookaside_report::color::render(&plan, &style(None)))?;
    }
    Ok(if plan.is_isolated() { 0 } else { NOT_CLEAN })
}
