//! The `plan` command: what to do about translation, before anything runs.

pub mod color;
pub mod file;
pub mod finder;
pub mod hugepages;
pub mod input;
pub mod lock;
pub mod native_run;
pub mod output;
pub mod program;

use crate::args::plan::PlanCommand;
use lookaside_cli::exit::Failure;

/// Runs the command.
pub fn run(command: &PlanCommand) -> Result<u8, Failure> {
    match command {
        PlanCommand::Color(args) => color::run(args),
        PlanCommand::Lock(args) => lock::run(args),
        PlanCommand::Hugepages(args) => hugepages::run(args),
    }
}
