//! The arguments of `top`.

use clap::Args;

#[derive(Args)]
pub struct TopArgs {
    /// Seconds from one look to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub interval: u64,
    /// Two looks, then a table of all; so where standard output is no terminal
    #[arg(long)]
    pub once: bool,
    /// Two looks, then JSON
    #[arg(long)]
    pub json: bool,
}
