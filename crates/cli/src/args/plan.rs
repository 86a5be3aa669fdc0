//! `lookaside plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lookaside_machine::PageSize;

#[derive(Subcommand)]
pub enum PlanCommand {
    /// Give real-time tasks TLB sets of their own, or say why that cannot be; bound the misses of their jobs
    #[command(after_help = "Example: lookaside plan color tasks.toml --machine xeon-e5-2650 -o partitions.toml\n\n\
        Exit codes: 0 all tasks are isolated; 1 not all, the plan shares least; 2 bad input")]
    Color(Color),
}

#[derive(Args)]
pub struct Color {
    /// The tasks: [[task]] with name, period, execution, pages (or trace), …
    pub tasks: PathBuf,
    /// Preset name or description file [default: the preset nearest to the running CPU]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Size of the pages that are coloured
    #[arg(long, default_value_t = PageSize::K4, value_name = "SIZE")]
    pub page_size: PageSize,
    /// Write the partitions, which a coloured heap reads
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
