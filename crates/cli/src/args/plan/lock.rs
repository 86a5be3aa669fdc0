//! The arguments of `plan lock`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lookaside_techniques::lock::select::PageSelector;

use lookaside_cli::output::OutputArgs;

#[derive(Args)]
pub struct PlanLockArgs {
    /// Number of entries to plan for [default: all lockable ones]
    #[arg(long, value_name = "N")]
    pub entries: Option<u32>,
    /// Preset name or description file
    #[arg(long, short, value_name = "NAME|FILE", default_value = "cortex-a9")]
    pub machine: String,
    /// How to choose pages (the report compares all of them)
    #[arg(long, value_enum, default_value = "gain")]
    pub select: SelectArg,
    /// TLB array to lock entries of [default: the one with lockable entries]
    #[arg(long, value_name = "NAME")]
    pub tlb: Option<String>,
    /// Run the program natively first, with fixed addresses, and report where each page lies there
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SelectArg {
    /// Pages with most data accesses (the paper's rule)
    Accesses,
    /// Pages with most misses
    Misses,
    /// Greedily, the page that removes most stall cycles on average over several seeds
    Gain,
    /// Like gain, but for the worst seed
    Worst,
}

impl From<SelectArg> for PageSelector {
    fn from(arg: SelectArg) -> Self {
        match arg {
            SelectArg::Accesses => Self::Accesses,
            SelectArg::Misses => Self::Misses,
            SelectArg::Gain => Self::Gain,
            SelectArg::Worst => Self::Worst,
        }
    }
}
