//! The `lookaside` command: argument parsing, progress, exit codes.

// The docs of arguments are the help texts, in which brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod analyze;
mod args;
mod bake;
mod bake_status;
mod clock_sampler;
mod compare;
mod hugepages;
mod lab;
mod machine;
mod plan;
mod preload;
mod probe;
mod record;
mod recording;
mod run;
mod setups;
mod simulate;
mod symbol_names;
mod top;
mod trace;
mod validate;
mod workload;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use lookaside_cli::exit::Failure;
use lookaside_cli::output;

use args::{Cli, Command};

fn main() -> ExitCode {
    // A usage error exits with 2 and help with 0, by clap itself.
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Analyze(args) => analyze::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Machine(command) => machine::run(command),
        Command::Trace(command) => trace::run(command),
        Command::Probe(args) => probe::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Workload(args) => workload::run(&args),
        Command::Plan(command) => plan::run(&command),
        Command::Lab { args } => lab::run(&args),
        Command::Bake(args) => bake::run(&args),
        Command::Hugepages(args) => hugepages::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "lookaside", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
            Ok(0)
        }
        Command::Man { folder } => {
            let fail = |e| Failure::bad(format_args!("{}: {e}; name a folder that exists", folder.display()));
            clap_mangen::generate_to(Cli::command(), &folder).map_err(fail)?;
            Ok(0)
        }
    }
}
