//! The arguments of `plan hugepages`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use lookaside_cli::output::OutputArgs;

#[derive(Args)]
pub struct PlanHugepagesArgs {
    /// Number of huge pages to plan for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: u32,
    /// Preset name or description file [default: this machine, measured at the first use]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Without --machine, take the preset closest to this CPU; measure nothing
    #[arg(long, conflicts_with = "machine")]
    pub no_probe: bool,
    /// Run the program natively first, with fixed addresses, and report where each window lies there
    #[arg(long, conflicts_with = "trace")]
    pub native: bool,
    /// Write the plan to FILE
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub report: OutputArgs,
    /// Use a recorded trace instead of running a program
    #[arg(value_name = "TRACE", conflicts_with = "command")]
    pub trace: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "trace")]
    pub command: Vec<OsString>,
}
