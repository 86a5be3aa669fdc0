//! The arguments of `machine`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum MachineCommand {
    /// List the presets
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one machine in full
    Show {
        /// Preset name or description file
        machine: String,
        /// Override a value, for example tlb.stlb.ways=24 (repeatable)
        #[arg(long, value_name = "PATH=VALUE")]
        set: Vec<String>,
        /// Print the machine as a description file
        #[arg(long, conflicts_with = "json")]
        toml: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check description files
    Check {
        /// Description files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}
