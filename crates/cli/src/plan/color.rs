//! `lookaside plan color`: TLB sets for real-time tasks.

use lookaside_techniques::color::plan::plan;
use lookaside_techniques::color::tasks::TaskSet;
use lookaside_views::color::view;

use crate::args::plan::color::PlanColorArgs;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::machines;
use lookaside_cli::output::{check_writable, style, to_json, write_file};

/// Runs the command. Exit code 1 where not all tasks are isolated.
pub fn run(args: &PlanColorArgs) -> Result<u8, Failure> {
    let machine = machines::find_or_nearest(args.machine.as_deref())?;
    args.output.iter().try_for_each(|path| check_writable(path))?;
    args.report.check()?;
    let tasks = TaskSet::load(&args.tasks)?.with_traces(args.page_size)?;
    let plan = plan(&tasks, &machine, args.page_size)?;
    if let Some(path) = &args.output {
        write_file(path, &plan.partitions.to_toml())?;
    }
    args.report.write(&view(&plan), &to_json(&plan)?, &style(None))?;
    Ok(if plan.is_isolated() { 0 } else { NOT_CLEAN })
}
