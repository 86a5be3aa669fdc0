//! The arguments of `top`.

use clap::Args;

#[derive(Args)]
pub struct TopArgs {
    /// Seconds between updates
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub interval: u64,
    /// Print one snapshot and exit (default when piped)
    #[arg(long)]
    pub once: bool,
    /// Print one snapshot as JSON and exit
    #[arg(long)]
    pub json: bool,
}
