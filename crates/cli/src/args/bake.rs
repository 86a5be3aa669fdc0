//! The arguments of `bake`.

use std::path::PathBuf;

use clap::Args;

use lookaside_cli::output::OutputArgs;

#[derive(Args)]
pub struct BakeArgs {
    /// Process ID (repeatable)
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Processes with this name, including ones that start later (repeatable)
    #[arg(long, value_name = "NAME")]
    pub comm: Vec<String>,
    /// Processes in this control group and its descendants (repeatable)
    #[arg(long, value_name = "FOLDER")]
    pub cgroup: Vec<PathBuf>,
    /// Up to 16 busy processes with the most memory in small pages
    #[arg(long)]
    pub system: bool,
    /// How to bake: scan[,sleep=TIME][,cpu=auto|sibling|N][,share=0.5], or module (Lookaside's kernel module), which
    /// also takes [,stride=PAGES][,nops=N]. The share is of one CPU, for all processes together
    #[arg(long, value_name = "SETTINGS", default_value = "scan,share=0.5")]
    pub settings: String,
    /// Stop after this many seconds [default: when the processes given by --pid exit, or at Ctrl-C]
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u64>,
    /// Write OpenMetrics counters to FILE every second (for a textfile collector)
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Serve OpenMetrics counters over HTTP, for example on 127.0.0.1:9177
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}
