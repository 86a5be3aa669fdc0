//! The arguments of `workload`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lookaside_cli::output::OutputArgs;
use lookaside_workloads::Pages;

#[derive(Args)]
pub struct WorkloadArgs {
    /// Workload name, or `list`
    pub name: String,
    /// Total size of its arrays: 512M, 8G (binary units)
    #[arg(long, short, default_value = "1G", value_name = "BYTES")]
    pub size: String,
    /// Seed for its input
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How often to repeat the main task
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub rounds: u64,
    /// Page size of its arrays
    #[arg(long, value_enum, default_value = "base")]
    pub pages: WorkloadPagesArg,
    /// Keep the page tables of its main array in the CPU caches: auto[,cpu=auto][,share=0.5]; or prefetch, scan, load,
    /// mincore or module, with settings such as prefetch:t0,stride=8,nops=0,sleep=500us,cpu=auto,share=1
    #[arg(long, value_name = "SETTINGS")]
    pub bake: Option<String>,
    /// Write the main task's accesses to FILE as a trace, without timing
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with_all = ["bake", "pages"])]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadPagesArg {
    /// Small pages only
    Base,
    /// Transparent huge pages
    Thp,
    /// The system's default: for `compare`, `hugepages run` and `hugepages apply`
    #[value(name = "asis")]
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
