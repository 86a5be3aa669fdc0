//! The arguments of `plan color`.

use std::path::PathBuf;

use clap::Args;
use lookaside_machine::PageSize;

use lookaside_cli::output::OutputArgs;

#[derive(Args)]
pub struct PlanColorArgs {
    /// Task set (TOML): [[task]] tables with name, period, execution, pages (or trace), …
    pub tasks: PathBuf,
    /// Preset name or description file [default: this machine, measured at the first use]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Without --machine, take the preset closest to this CPU; measure nothing
    #[arg(long, conflicts_with = "machine")]
    pub no_probe: bool,
    /// Page size to colour
    #[arg(long, default_value_t = PageSize::K4, value_name = "SIZE")]
    pub page_size: PageSize,
    /// Write the partitions to FILE, for coloured heaps
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub report: OutputArgs,
}
