//! The arguments of `probe`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lookaside_cli::output::OutputArgs;
use lookaside_probe::ProbeStep;

#[derive(Args)]
pub struct ProbeArgs {
    /// Write a machine description; values that were not measured come from the closest preset
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Run one step only, and the steps it depends on
    #[arg(long, value_enum, value_name = "STEP")]
    pub only: Option<StepArg>,
    /// Skip the slow steps
    #[arg(long)]
    pub quick: bool,
    /// Seed for the experiments
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Time limit
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time: u64,
    /// Memory limit in MiB [default: 256, and for random reads 1024 or a quarter of the free memory]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(16..=65536))]
    pub memory: Option<u64>,
    /// Write the measurements behind each finding to a directory
    #[arg(long, value_name = "DIR")]
    pub evidence: Option<PathBuf>,
    #[command(flatten)]
    pub report: OutputArgs,
}

/// A part of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StepArg {
    /// First-level TLB: entries, ways, sets, index
    L1,
    /// Second-level TLB (includes l1)
    L2,
    /// Replacement policies (includes l2)
    Policy,
    /// Prefetches, stores, context switches, other CPUs, sets disturbed by the system (includes l2)
    Effects,
    /// Hardware counters (includes l2)
    Counters,
    /// Data caches and memory
    Caches,
    /// Cost of a page walk by the cache that holds its tables (includes l2, caches)
    Walks,
    /// Size of the page-walk caches (includes l2, caches)
    WalkCaches,
    /// Reach of one TLB entry: contiguous pages, huge pages, nested translation (includes walks)
    Covers,
    /// Cost of scattered and sequential loads (includes walks)
    Spread,
    /// TLBs with separate entries for 2 MiB and 1 GiB pages (includes covers)
    Large,
    /// Nanoseconds of random reads, reads beside a stream, page faults; bytes read a second
    Timing,
}

impl From<StepArg> for ProbeStep {
    fn from(arg: StepArg) -> Self {
        match arg {
            StepArg::L1 => Self::L1,
            StepArg::L2 => Self::L2,
            StepArg::Policy => Self::Policy,
            StepArg::Effects => Self::Effects,
            StepArg::Counters => Self::Counters,
            StepArg::Caches => Self::Caches,
            StepArg::Walks => Self::Walks,
            StepArg::WalkCaches => Self::WalkCaches,
            StepArg::Covers => Self::Covers,
            StepArg::Spread => Self::Spread,
            StepArg::Large => Self::Large,
            StepArg::Timing => Self::Timing,
        }
    }
}
