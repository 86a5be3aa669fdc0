//! The arguments of `simulate`.

use std::path::PathBuf;

use clap::Args;

use super::model::ModelArgs;
use lookaside_cli::output::OutputArgs;

#[derive(Args)]
pub struct SimulateArgs {
    /// Trace file: native, Lackey, ChampSim, drmemtrace, text or CSV ("-" for standard input)
    pub trace: PathBuf,
    #[command(flatten)]
    pub machine: ModelArgs,
    /// Count page walks only: no page-table references, caches or costs
    #[arg(long)]
    pub count_only: bool,
    /// Omit the rows by page, region, object, instruction and thread
    #[arg(long)]
    pub totals: bool,
    /// Also simulate the trace with a baker: prefetch, load, module, scan or mincore, with settings such as
    /// prefetch,stride=8,nops=0,sleep=500us,cpu=sibling
    #[arg(long, value_name = "SETTINGS", conflicts_with = "count_only")]
    pub bake: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}
