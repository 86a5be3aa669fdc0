//! The arguments of `compare`.

use std::ffi::OsString;

use clap::Args;
use lookaside_runtime::compare::pressure::Pressure;

use lookaside_cli::output::OutputArgs;

#[derive(Args)]
pub struct CompareArgs {
    /// Variants to compare, separated by commas: base (small pages), thp, nothp (base again, as a control), asis (the
    /// system's settings), text (code on huge pages; text:N: N windows of 2 MiB at
    /// most; text:PLAN: those of a file written by `hugepages plan --text`), hugepages:auto:K (K windows chosen at
    /// run time), hugepages:PLAN (a file written by `hugepages plan`), bake:SETTINGS (for example
    /// bake:scan,sleep=1ms)
    #[arg(long, value_name = "LIST", default_value = "base,thp,bake:scan")]
    pub variants: String,
    /// Measured rounds; each runs every variant once, in random order
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// Warm-up rounds
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub warmup: u32,
    /// What to compare: wall, user or sys time, or a number in the program's output, given as a regular expression
    /// (its first group or whole match; the last match counts)
    #[arg(long, default_value = "wall", value_name = "wall|user|sys|REGEX")]
    pub metric: String,
    /// Background load by stress-ng: none, cache:N or stream:N (the paper used cache:1, stream:2 and stream:3)
    #[arg(long, default_value = "none", value_name = "LEVEL")]
    pub pressure: Pressure,
    /// Seed for the order of runs and the confidence intervals
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub output: OutputArgs,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", required = true)]
    pub command: Vec<OsString>,
}
