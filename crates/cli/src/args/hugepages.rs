//! Arguments of `hugepages`.

use clap::{Args, ValueEnum};
use lookaside_cli::output::OutputArgs;
use lookaside_runtime::hugepages::ObservedBy;

#[derive(Args)]
pub struct HugepagesArgs {
    /// Process ID
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Maximum number of 2 MiB pages to create, besides those it has
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: u32,
    /// Seconds to observe the process before choosing
    #[arg(long, default_value_t = 5, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// How to find hot memory [default: sample, or referenced if sampling is not permitted]
    #[arg(long, value_enum)]
    pub by: Option<ByArg>,
    /// Show what would be promoted; change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    /// Sample data addresses at equal intervals of CPU time: shows where the process waits
    Sample,
    /// Count referenced bits, which the kernel reports per mapping
    Referenced,
}

impl From<ByArg> for ObservedBy {
    fn from(arg: ByArg) -> Self {
        match arg {
            ByArg::Sample => Self::Sample,
            ByArg::Referenced => Self::Referenced,
        }
    }
}
