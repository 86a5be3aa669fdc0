//! The arguments of `color`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lookaside_machine::PageSize;

use lookaside_cli::output::OutputArgs;

#[derive(Subcommand)]
pub enum ColorCommand {
    /// Partition the TLB among real-time tasks and bound their jobs' misses
    #[command(after_help = "Example: lookaside color plan tasks.toml --machine xeon-e5-2650 -o partitions.toml\n\n\
        Exit codes: 0 all tasks are isolated; 1 some share sets (as few as possible); 2 bad input")]
    Plan(ColorPlanArgs),
    /// Run a program with its heap in one TLB partition
    #[command(after_help = "Example: lookaside color run --partition partitions.toml:T1 ./control\n\n\
        Exit code: the program's own; 2 bad input, 126 not executable, 127 not found")]
    Run(ColorRunArgs),
}

#[derive(Args)]
pub struct ColorPlanArgs {
    /// Task set (TOML): [[task]] tables with name, period, execution, pages (or trace), …
    pub tasks: PathBuf,
    /// Preset name or description file [default: this machine, measured at the first use]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Without --machine, take the preset closest to this CPU; measure nothing
    #[arg(long, conflicts_with = "machine")]
    pub no_probe: bool,
    /// Page size to colour
    #[arg(long, default_value_t = PageSize::K4, value_name = "SIZE")]
    pub page_size: PageSize,
    /// Write the partitions to FILE, for coloured heaps
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub report: OutputArgs,
}

#[derive(Args)]
pub struct ColorRunArgs {
    /// Partition to allocate in: FILE is written by `color plan`, NAME selects one of several
    #[arg(long, short, value_name = "FILE[:NAME]")]
    pub partition: String,
    /// Print what was allocated in each process to standard error at the end
    #[arg(long)]
    pub stats: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", required = true)]
    pub command: Vec<OsString>,
}
