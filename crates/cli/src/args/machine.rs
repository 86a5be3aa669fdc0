//! The arguments of `machine`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum MachineCommand {
    /// The presets, a line each
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// One machine in full
    Show {
        /// Preset name or description file
        machine: String,
        /// Change one value, as tlb.stlb.ways=24 (repeatable)
        #[arg(long, value_name = "PATH=VALUE")]
        set: Vec<String>,
        /// Print the description file
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
