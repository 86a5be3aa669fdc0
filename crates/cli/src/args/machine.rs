//! The arguments of `machine`.

use std::path::PathBuf;

use clap::Subcommand;
use lookaside_cli::output::OutputArgs;

#[derive(Subcommand)]
pub enum MachineCommand {
    /// List the presets
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show one machine in full
    Show {
        /// Preset name or description file
        machine: String,
        /// Override a value, for example tlb.stlb.ways=24 (repeatable)
        #[arg(long, value_name = "PATH=VALUE")]
        set: Vec<String>,
        /// Print the machine as a description file
        #[arg(long, conflicts_with_all = ["json", "html"])]
        toml: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Check description files
    Check {
        /// Description files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        output: OutputArgs,
    },
}
