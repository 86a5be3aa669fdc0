//! The arguments of `top`.

use clap::Args;

use lookaside_cli::output::OutputArgs;

#[derive(Args)]
pub struct TopArgs {
    /// Seconds between updates
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub interval: u64,
    /// Print one snapshot and exit (default when piped, and with --html or --json)
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}
