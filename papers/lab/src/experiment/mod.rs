//! The `experiment` command: what the papers tried, on this machine, beside the model.

mod migrate;
mod switch;

use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::machines;
use lookaside_cli::output::{spinner, style};
use lookaside_cli::probing::probed;
use lookaside_report::json;
use lookaside_techniques::color::tasks::TaskSet;
use lookaside_tlb_coloring::tasks::{run as run_tasks, PagePlacement, TaskSetOptions, TURNS};
use lookaside_tlb_coloring::{view, TASKS_SCHEMA};

use crate::args::experiment::{ExperimentCommand, PagesArg, Tasks};

/// Runs the command.
pub fn run(command: &ExperimentCommand) -> Result<u8, Failure> {
    match command {
        ExperimentCommand::Tasks(args) => tasks(args),
        ExperimentCommand::Switch(args) => switch::run(args),
        ExperimentCommand::Migrate(args) => migrate::run(args),
    }
}

/// Exit code 1 where the jobs' misses are not as modelled.
fn tasks(args: &Tasks) -> Result<u8, Failure> {
    // Bad input is found before anything takes time.
    args.output.check()?;
    let set = TaskSet::load(&args.tasks)?;
    let described = args.machine.as_deref().map(machines::find).transpose()?;
    let interrupt = Interrupt::install()?;
    let machine = match described {
        Some(machine) => machine,
        None => probed(args.seed, &interrupt)?,
    };
    let options = TaskSetOptions {
        hyperperiods: args.hyperperiods,
        cpu: args.cpu,
        level: args.level.clone(),
        placements: args.pages.iter().map(|pages| placement(*pages)).collect(),
        repeats: 1,
        turns: TURNS,
        pool: None,
        seed: args.seed,
    };
    let bar = spinner("tasks");
    let mut progress = |step: &str| bar.set_message(step.to_string());
    let report = run_tasks(&set, &machine, &options, &|| interrupt.asked(), &mut progress);
    bar.finish_and_clear();
    let report = report.map_err(Failure::bad)?;
    args.output.write(&view(&report), &json::document(TASKS_SCHEMA, &report), &style(None))?;
    if interrupt.asked() {
        return Ok(interrupt.code());
    }
    Ok(if report.holds() { 0 } else { NOT_CLEAN })
}

fn placement(pages: PagesArg) -> PagePlacement {
    match pages {
        PagesArg::Alone => PagePlacement::Alone,
        PagesArg::Planned => PagePlacement::Planned,
        PagesArg::SameSets => PagePlacement::SameSets,
        PagesArg::Malloc => PagePlacement::Malloc,
    }
}
