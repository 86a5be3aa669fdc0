//! Arguments of `hugepages`.

use clap::{Args, ValueEnum};
use lookaside_runtime::hugepages::By;

#[derive(Args)]
pub struct HugepagesArgs {
    /// The process, by number
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Huge pages of 2 MiB to make at most, beside those that it has
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: u32,
    /// Look at it for so many seconds before choosing
    #[arg(long, default_value_t = 5, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// How to find out where it is [default: sample, and referenced where that is refused]
    #[arg(long, value_enum)]
    pub by: Option<ByArg>,
    /// Choose only; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    /// Samples of data addresses at equal times of its CPU time: where it waits
    Sample,
    /// Referenced bits of its pages, of which the system tells a sum for each mapping
    Referenced,
}

impl From<ByArg> for By {
    fn from(arg: ByArg) -> Self {
        match arg {
            ByArg::Sample => Self::Sample,
            ByArg::Referenced => Self::Referenced,
        }
    }
}
