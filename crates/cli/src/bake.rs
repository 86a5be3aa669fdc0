//! The `bake` command.

pub mod metrics_server;
mod outside;
mod publish;
mod run;

use crate::args::bake::BakeCommand;
use lookaside_cli::exit::Failure;
use lookaside_runtime::bake::ProcessSelection;

/// Runs the command.
pub fn run(command: &BakeCommand) -> Result<u8, Failure> {
    match command {
        BakeCommand::Run(args) => run::run(args),
        BakeCommand::Pid(args) => {
            let selection = ProcessSelection { pids: args.pid.clone(), ..ProcessSelection::default() };
            outside::run(&args.outside, selection)
        }
        BakeCommand::System(args) => {
            let (comms, groups) = (args.comm.clone(), args.cgroup.clone());
            let system = comms.is_empty() && groups.is_empty();
            outside::run(&args.outside, ProcessSelection { comms, groups, system, ..ProcessSelection::default() })
        }
    }
}
