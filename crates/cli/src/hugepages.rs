//! The `hugepages` command.

mod apply;
mod code;
mod perf_map;
mod plan;
mod run;

pub use code::load_weights;

use crate::args::hugepages::HugepagesCommand;
use lookaside_cli::exit::Failure;

/// Runs the command.
pub fn run(command: &HugepagesCommand) -> Result<u8, Failure> {
    match command {
        HugepagesCommand::Plan(args) => plan::run(args),
        HugepagesCommand::Run(args) => run::run(args),
        HugepagesCommand::Apply(args) => apply::run(args),
    }
}
