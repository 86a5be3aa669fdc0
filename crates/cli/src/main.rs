//! The `lookaside` command: argument parsing, progress, exit codes.

// The docs of arguments are the help texts, in which brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod analyze;
mod args;
mod autopilot;
mod bake;
mod bake_status;
mod cc;
mod clock_sampler;
mod color;
mod compare;
mod hugepages;
mod lab;
mod launch;
mod lock;
mod machine;
mod plan;
mod preload;
mod probe;
mod record;
mod recording;
mod setups;
mod simulate;
mod symbol_names;
mod top;
mod trace;
mod trial;
mod undo;
mod validate;
mod workload;

use std::process::ExitCode;

use lookaside_cli::exit::Failure;
use lookaside_cli::output;

use args::{Command, CommandLine};

fn main() -> ExitCode {
    match run(CommandLine::read().command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Analyze(args) => analyze::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Hugepages(command) => hugepages::run(&command),
        Command::Bake(command) => bake::run(&command),
        Command::Color(command) => color::run(&command),
        Command::Lock(command) => lock::run(&command),
        Command::Trial(args) => trial::run(&args),
        Command::Undo(args) => undo::run(&args),
        Command::Autopilot(args) => autopilot::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Cc(args) => cc::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Trace(command) => trace::run(command),
        Command::Machine(command) => machine::run(command),
        Command::Lab(args) => lab::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut CommandLine::grouped(), "lookaside", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
            Ok(0)
        }
        Command::Man { folder } => {
            let fail = |e| Failure::bad(format_args!("{}: {e}; name a folder that exists", folder.display()));
            clap_mangen::generate_to(CommandLine::grouped(), &folder).map_err(fail)?;
            Ok(0)
        }
    }
}
