//! The arguments of `validate`.

use clap::Args;

use lookaside_cli::output::OutputArgs;

#[derive(Args)]
pub struct ValidateArgs {
    /// Preset name or description file [default: probe this machine first]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Run fewer patterns, fewer times
    #[arg(long)]
    pub quick: bool,
    /// Seed for the patterns, the model and the probe
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Size of the largest pattern in MiB [default: half of the free memory]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=32768))]
    pub memory: Option<u64>,
    /// Time limit, not counting the probe
    #[arg(long, default_value_t = 900, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub time: u64,
    #[command(flatten)]
    pub output: OutputArgs,
}
