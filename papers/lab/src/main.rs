//! The `lookaside-lab` command: the papers' published values beside ours, and their experiments on this machine.

// The docs of arguments are the help texts, in which brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod args;
mod experiment;
mod papers;
mod reproduce;

use std::process::ExitCode;

use clap::Parser;
use lookaside_cli::exit::Failure;

use args::{LabCommand, LabCommandLine};

fn main() -> ExitCode {
    // A usage error exits with 2 and help with 0, by clap itself.
    let cli = LabCommandLine::parse();
    match run(&cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

fn run(command: &LabCommand) -> Result<u8, Failure> {
    match command {
        LabCommand::Reproduce(args) => reproduce::run(args),
        LabCommand::Experiment(command) => experiment::run(command),
    }
}
