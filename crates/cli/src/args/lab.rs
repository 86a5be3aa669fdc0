//! The arguments of `lab`.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::workload::WorkloadArgs;

#[derive(Subcommand)]
pub enum LabArgs {
    /// Reproduce a paper's results: its published values beside ours (by lookaside-lab)
    #[command(disable_help_flag = true)]
    Reproduce(PassedOnArgs),
    /// Run the papers' experiments on this machine, beside the model (by lookaside-lab)
    #[command(disable_help_flag = true)]
    Experiment(PassedOnArgs),
    /// Run and time one of the papers' benchmark programs
    #[command(after_help = "Examples: lookaside lab workload list\n          \
        lookaside lab workload gups --size 8G --bake prefetch:t0,stride=8\n          \
        lookaside lab workload gups --size 64M --record gups.lkt")]
    Workload(WorkloadArgs),
}

/// Arguments for lookaside-lab.
#[derive(Args)]
pub struct PassedOnArgs {
    /// Arguments, --help among them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}
