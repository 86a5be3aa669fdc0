//! The arguments of `probe`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lookaside_probe::ProbeStep;

#[derive(Args)]
pub struct ProbeArgs {
    /// Write a machine description; what is not measured is the nearest preset's
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// One step only, with what it needs
    #[arg(long, value_enum, value_name = "STEP")]
    pub only: Option<StepArg>,
    /// Leave out what takes long
    #[arg(long)]
    pub quick: bool,
    /// Seed of the experiments
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Most seconds it may take
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time: u64,
    /// Most memory it may use, in MiB
    #[arg(long, default_value_t = 256, value_name = "MIB", value_parser = clap::value_parser!(u64).range(16..=65536))]
    pub memory: u64,
    /// Write what every finding rests on into a folder
    #[arg(long, value_name = "DIR")]
    pub evidence: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A part of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StepArg {
    /// The first level: entries, ways, sets, index
    L1,
    /// The second level, and the first
    L2,
    /// Replacement policies, and the levels
    Policy,
    /// Prefetches, stores, context switches, other CPUs, sets that the system disturbs; and the levels
    Effects,
    /// Hardware counters, and the levels
    Counters,
    /// Data caches and memory
    Caches,
    /// What walks cost by where their tables lie; the levels and the caches
    Walks,
    /// How many entries above the leaf's are at hand for walks; the levels and the caches
    WalkCaches,
    /// What one entry covers: contiguous pages, huge pages; a second stage of translation
    Covers,
    /// What loads cost that lie far apart and in a row; all but policies
    Spread,
    /// Levels for 2 MiB and 1 GiB pages, where these have entries of a kind of their own; needs what one entry covers
    Large,
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
        }
    }
}
