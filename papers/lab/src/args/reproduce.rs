//! The arguments of `reproduce`.

use clap::Args;
use lookaside_cli::output::OutputArgs;

#[derive(Args)]
pub struct ReproduceArgs {
    /// Paper: pt-baker, tlb-coloring, fast-address-space-switching, tlb-lockdown or tlb-migration
    pub paper: String,
    /// Measure this machine, in place of the model
    #[arg(long)]
    pub metal: bool,
    /// Seed of the measurements: chooses pages and orders
    #[arg(long, default_value_t = 1, requires = "metal")]
    pub seed: u64,
    /// This machine's TLBs: a preset, or a file as `probe -o` writes it. Else they are looked for, half of the time at
    /// most
    #[arg(long, value_name = "NAME|FILE", requires = "metal")]
    pub machine: Option<String>,
    /// Most seconds that measuring may take
    #[arg(long, default_value_t = 240, value_name = "SECONDS", requires = "metal", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time: u64,
    /// Most memory for the pages measured, in MiB [default: 256, and 1024 for the sweeps of pt-baker]
    #[arg(long, value_name = "MIB", requires = "metal", value_parser = clap::value_parser!(u64).range(16..=65536))]
    pub memory: Option<u64>,
    #[command(flatten)]
    pub output: OutputArgs,
}
