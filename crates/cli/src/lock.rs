//! The `lock` command.

mod plan;

use crate::args::lock::LockCommand;
use lookaside_cli::exit::Failure;

/// Runs the command.
pub fn run(command: &LockCommand) -> Result<u8, Failure> {
    let LockCommand::Plan(args) = command;
    plan::run(args)
}
