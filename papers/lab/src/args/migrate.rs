//! The arguments of `experiment migrate`.

use clap::Args;
use lookaside_cli::output::OutputArgs;

/// What `experiment migrate` is told.
#[derive(Args)]
pub struct Migrate {
    /// CPU that the thread leaves [default: the first allowed]
    #[arg(long, value_name = "CPU")]
    pub from: Option<usize>,
    /// CPU that it moves to [default: the next allowed of another core]
    #[arg(long, value_name = "CPU")]
    pub to: Option<usize>,
    /// Numbers of pages that the thread accesses, by commas [default: 1,4,16,64,256,512,1024,1536; with --quick 1,8,64]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = clap::value_parser!(u64).range(1..))]
    pub pages: Option<Vec<u64>>,
    /// Rounds; each measures everything once, in a new order [default: 40; with --quick 5]. After two minutes none is
    /// begun
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Few pages, few rounds: to see that it works
    #[arg(long)]
    pub quick: bool,
    /// Seed of the orders and of the intervals
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub output: OutputArgs,
}
