//! The command line.

pub mod experiment;
pub mod migrate;
pub mod reproduce;

use clap::{Parser, Subcommand};

/// The papers: their published values beside ours, and their experiments on this machine
#[derive(Parser)]
#[command(name = "lookaside-lab", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct LabCommandLine {
    #[command(subcommand)]
    pub command: LabCommand,
}

const EXIT_CODES: &str =
    "Exit codes: 0 done; 1 done, but not clean (a published row not reproduced); 2 bad input, one \
    line says what and where; 128 + signal interrupted.";

#[derive(Subcommand)]
pub enum LabCommand {
    /// Run a paper's experiments and put our values beside the published ones
    #[command(after_help = "Example: lookaside lab reproduce pt-baker --metal")]
    Reproduce(reproduce::ReproduceArgs),
    /// Experiments of the papers on this machine, beside the model
    #[command(subcommand, after_help = "Example: lookaside lab experiment tasks tasks.toml --machine machine.toml")]
    Experiment(experiment::ExperimentCommand),
}
