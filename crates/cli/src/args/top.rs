//! The arguments of `top`.

use std::path::PathBuf;

use clap::Args;

use lookaside_cli::output::OutputArgs;

#[derive(Args)]
pub struct TopArgs {
    /// Seconds between updates
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub interval: u64,
    /// Print one snapshot and exit (default when piped, and with --html, --json or --openmetrics)
    #[arg(long)]
    pub once: bool,
    /// Add up processes by control group
    #[arg(long)]
    pub cgroups: bool,
    /// Don't sample the busiest processes: no share of translation is shown, and nothing disturbs them
    #[arg(long)]
    pub no_samples: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Print the snapshot as OpenMetrics text in place of the table, or write it to a file beside the table
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub openmetrics: Option<PathBuf>,
}
