//! The arguments of `simulate`.

use std::path::PathBuf;

use clap::Args;

use super::model::ModelArgs;

#[derive(Args)]
pub struct SimulateArgs {
    /// Trace: native, Lackey, ChampSim, drmemtrace, text, CSV ("-" = standard input)
    pub trace: PathBuf,
    #[command(flatten)]
    pub machine: ModelArgs,
    /// Count walks only: no references, no caches, no cost
    #[arg(long)]
    pub count_only: bool,
    /// Leave out the rows by page, region, object, instruction and thread
    #[arg(long)]
    pub totals: bool,
    /// Run it a second time with a baker's helper beside it: prefetch, load, module, scan or mincore, with settings as
    /// prefetch,stride=8,nops=0,sleep=500us,cpu=sibling
    #[arg(long, value_name = "SETTINGS", conflicts_with = "count_only")]
    pub bake: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
