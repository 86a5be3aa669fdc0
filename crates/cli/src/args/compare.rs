//! The arguments of `compare`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use lookaside_runtime::compare::pressure::Pressure;

#[derive(Args)]
pub struct CompareArgs {
    /// Ways to run the program, by commas: base (small pages), thp, nothp (base again: a control), asis (the system's
    /// settings), hugepages:auto:K (chosen while it runs), hugepages:FILE (a plan's), bake:SETTINGS (as
    /// bake:scan,sleep=1ms)
    #[arg(long, value_name = "LIST", default_value = "base,thp,bake:scan")]
    pub variants: String,
    /// Rounds that count; each runs every variant once, in a new order
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// Rounds before them that don't count
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub warmup: u32,
    /// What is compared: wall, user, sys (seconds), or a regular expression whose first group (or whole match) is a
    /// number in the program's output; the last match counts
    #[arg(long, default_value = "wall", value_name = "wall|user|sys|REGEX")]
    pub metric: String,
    /// What runs beside, by stress-ng: none, cache:N, stream:N (the paper's levels: cache:1, stream:2, stream:3)
    #[arg(long, default_value = "none", value_name = "LEVEL")]
    pub pressure: Pressure,
    /// Seed of the orders and of the intervals
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    pub command: Vec<OsString>,
}
