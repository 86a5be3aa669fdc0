//! The `color` command.

mod plan;
mod run;

use crate::args::color::ColorCommand;
use lookaside_cli::exit::Failure;

/// Runs the command.
pub fn run(command: &ColorCommand) -> Result<u8, Failure> {
    match command {
        ColorCommand::Plan(args) => plan::run(args),
        ColorCommand::Run(args) => run::run(args),
    }
}
