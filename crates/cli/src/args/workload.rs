//! The arguments of `workload`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lookaside_workloads::Pages;
use serde::Serialize;

#[derive(Args)]
pub struct WorkloadArgs {
    /// Its name, or `list`
    pub name: String,
    /// Bytes of all its arrays together: 512M, 8G (binary units)
    #[arg(long, short, default_value = "1G", value_name = "BYTES")]
    pub size: String,
    /// Seed of its input
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How often the main task is done
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub rounds: u64,
    /// Pages of its arrays
    #[arg(long, value_enum, default_value = "base")]
    pub pages: WorkloadPagesArg,
    /// Keep the page-table entries of its main array warm meanwhile: auto[,cpu=auto][,share=0.5]; or prefetch, scan,
    /// load, mincore or module, with settings as prefetch:t0,stride=8,nops=0,sleep=500us,cpu=auto,share=1
    #[arg(long, value_name = "SETTINGS")]
    pub bake: Option<String>,
    /// Write the main task's accesses as a trace, for `simulate`, `analyze` and `plan`; nothing is timed
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with_all = ["bake", "pages"])]
    pub record: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadPagesArg {
    /// Base pages only
    Base,
    /// Transparent huge pages
    Thp,
    /// Neither asked for nor refused, as by most programs: for `compare`, `run --hugepages` and `hugepages --pid`
    #[value(name = "asis")]
    #[serde(rename = "asis")]
    AsIs,
}

impl From<WorkloadPagesArg> for Pages {
    fn from(arg: WorkloadPagesArg) -> Self {
        match arg {
            WorkloadPagesArg::Base => Self::Base,
            WorkloadPagesArg::Thp => Self::Thp,
            WorkloadPagesArg::AsIs => Self::AsIs,
        }
    }
}
