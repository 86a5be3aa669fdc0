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
    /// Also count by page, region, object, instruction and thread, and put these rows into the JSON
    #[arg(long, requires = "json", conflicts_with = "bake")]
    pub full: bool,
    /// Also simulate the trace with a baker: prefetch, load, module, scan or mincore, with settings such as
    /// prefetch,stride=8,nops=0,sleep=500us,cpu=sibling
    #[arg(long, value_name = "SETTINGS", conflicts_with = "count_only")]
    pub bake: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}
