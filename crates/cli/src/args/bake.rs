//! The arguments of `bake`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub struct BakeArgs {
    /// A process by number (repeatable)
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// All processes of this name, also those that start later (repeatable)
    #[arg(long, value_name = "NAME")]
    pub comm: Vec<String>,
    /// All processes of a control group and of those below it (repeatable)
    #[arg(long, value_name = "FOLDER")]
    pub cgroup: Vec<PathBuf>,
    /// Of all processes those that are large in small pages and busy, the worst first, as many as 16
    #[arg(long)]
    pub system: bool,
    /// How: scan[,sleep=TIME][,cpu=auto|sibling|N][,share=0.5], or module (Lookaside's kernel module), which takes
    /// [,stride=PAGES][,nops=N] as well; share is of one CPU, for all processes together
    #[arg(long, value_name = "SETTINGS", default_value = "scan,share=0.5")]
    pub settings: String,
    /// End after so many seconds [default: with the processes named by number, or at Ctrl-C]
    #[arg(long, value_name = "SECONDS")]
    pub time: Option<u64>,
    /// Write what is done to a file every second, as OpenMetrics (for a collector of text files)
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Serve the same over HTTP, as 127.0.0.1:9177
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
