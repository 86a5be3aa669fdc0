//! The arguments of `plan lock`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lookaside_techniques::lock::select::Selector;

#[derive(Args)]
pub struct PlanLockArgs {
    /// Entries to plan for [default: all lockable ones]
    #[arg(long, value_name = "N")]
    pub entries: Option<u32>,
    /// Preset name or description file
    #[arg(long, short, value_name = "NAME|FILE", default_value = "cortex-a9")]
    pub machine: String,
    /// How to choose; the others are put beside it
    #[arg(long, value_enum, default_value = "gain")]
    pub select: SelectArg,
    /// TLB array whose entries are locked [default: the one that has lockable entries]
    #[arg(long, value_name = "NAME")]
    pub tlb: Option<String>,
    /// Run the program plainly first, with fixed addresses, and say where each page lies there
    #[arg(long, conflicts_with = "trace")]
    pub native: bool,
    /// Write the plan
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// A recorded trace in place of a program
    #[arg(value_name = "TRACE", conflicts_with = "command")]
    pub trace: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "trace")]
    pub command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SelectArg {
    /// Most data accesses: the paper's
    Accesses,
    /// Most misses
    Misses,
    /// Page after page, what removes most stall cycles in the mean over several seeds
    Gain,
    /// The same for the worst seed
    Worst,
}

impl From<SelectArg> for Selector {
    fn from(arg: SelectArg) -> Self {
        match arg {
            SelectArg::Accesses => Self::Accesses,
            SelectArg::Misses => Self::Misses,
            SelectArg::Gain => Self::Gain,
            SelectArg::Worst => Self::Worst,
        }
    }
}
