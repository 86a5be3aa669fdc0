//! The arguments of `machine`.

use clap::Subcommand;
use lookaside_cli::output::OutputArgs;

use super::probe::ProbeArgs;
use super::validate::ValidateArgs;

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
        /// Description files, or preset names
        #[arg(required = true, value_name = "NAME|FILE")]
        machines: Vec<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Measure this machine's TLBs by timing (no PMU needed)
    #[command(after_help = "Example: lookaside machine probe -o machine.toml")]
    Probe(ProbeArgs),
    /// Check a machine description: run the same access patterns on this CPU and in the model
    #[command(after_help = "Example: lookaside machine validate --machine machine.toml --html report.html\n\n\
        Exit codes: 0 median error up to 5 % and worst up to 20 %; 1 larger errors; 2 bad input")]
    Validate(ValidateArgs),
}
