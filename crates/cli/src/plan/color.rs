//! `lookaside plan color`: TLB sets for real-time tasks.

use lookaside_techniques::color::plan::plan;
use lookaside_techniques::color::tasks::TaskSet;

use crate::args::plan::color::PlanColorArgs;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::machines;
use lookaside_cli::output::{check_writable, print, print_json, style, write_file};

/// Runs the command. Exit code 1 where not all tasks are isolated.
pub fn run(args: &PlanColorArgs) -> Result<u8, Failure> {
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
        print(&lookaside_views::color::render(&plan, &style(None)))?;
    }
    Ok(if plan.is_isolated() { 0 } else { NOT_CLEAN })
}
