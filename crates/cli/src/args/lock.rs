//! The arguments of `lock`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lookaside_techniques::lock::select::PageSelector;

use super::plan::PlannedProgram;
use lookaside_cli::output::OutputArgs;

#[derive(Subcommand)]
pub enum LockCommand {
    /// Choose pages to pin in a TLB's lockable entries, from a recorded run
    #[command(after_help = "Examples: lookaside lock plan --entries 4 -o plan.toml ./control\n          \
        lookaside lock plan --machine cortex-a9 --select worst --trace control.lkt\n\n\
        Exit codes: 0 success; 1 the trace is damaged or the program failed (the plan is still made); 2 bad input; \
        125 recording failed; 128 + signal if interrupted (prints the pages with most misses, no plan)")]
    Plan(LockPlanArgs),
}

#[derive(Args)]
pub struct LockPlanArgs {
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
    /// Write the plan to FILE
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub report: OutputArgs,
    #[command(flatten)]
    pub program: PlannedProgram,
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
