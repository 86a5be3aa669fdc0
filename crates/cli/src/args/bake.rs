//! The arguments of `bake`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use lookaside_cli::output::OutputArgs;

#[derive(Subcommand)]
pub enum BakeCommand {
    /// Run a program with a helper inside that keeps its page tables in the CPU caches
    #[command(after_help = "Examples: lookaside bake run ./server --port 80\n          \
        lookaside bake run --settings prefetch,stride=8,share=0.2 ./server --port 80\n\n\
        Exit code: the program's own; 2 bad input, 126 not executable, 127 not found")]
    Run(BakeRunArgs),
    /// Keep running processes' page tables in the CPU caches, from outside
    #[command(after_help = "Example: lookaside bake pid 4711 --settings scan,share=0.2\n\n\
        Exit codes: 0 success; 1 a process could not be baked; 2 bad input; 128 + signal if interrupted")]
    Pid(BakePidArgs),
    /// Bake whatever may gain on this machine, or all processes of a name or control group, as they come and go
    #[command(
        after_help = "Examples: lookaside bake system --metrics /var/lib/node_exporter/lookaside.prom\n          \
        lookaside bake system --comm redis-server --settings scan,share=0.2\n\n\
        Exit codes: 0 success; 1 a process could not be baked; 2 bad input; 128 + signal if interrupted"
    )]
    System(BakeSystemArgs),
}

#[derive(Args)]
pub struct BakeRunArgs {
    /// How to bake: auto, or BACKEND[,stride=PAGES][,nops=N][,sleep=TIME][,cpu=auto|sibling|N][,share=0.5], where
    /// BACKEND is prefetch (prefetch:t0, :t1, :t2), scan, mincore or module. The share is of one CPU
    #[arg(long, value_name = "SETTINGS", default_value = "auto")]
    pub settings: String,
    /// Print what was done in each process to standard error at the end
    #[arg(long)]
    pub stats: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", required = true)]
    pub command: Vec<OsString>,
}

#[derive(Args)]
pub struct BakePidArgs {
    /// Process IDs
    #[arg(value_name = "PID", required = true)]
    pub pid: Vec<u32>,
    #[command(flatten)]
    pub outside: BakeOutsideArgs,
}

#[derive(Args)]
pub struct BakeSystemArgs {
    /// Only processes with this name, all of them (repeatable) [default: up to 16 busy ones with the most memory in
    /// small pages]
    #[arg(long, value_name = "NAME")]
    pub comm: Vec<String>,
    /// Only processes in this control group and its descendants, all of them (repeatable)
    #[arg(long, value_name = "FOLDER")]
    pub cgroup: Vec<PathBuf>,
    #[command(flatten)]
    pub outside: BakeOutsideArgs,
}

/// Baking from outside.
#[derive(Args)]
pub struct BakeOutsideArgs {
    /// How to bake: as for `bake run`, with the backends scan or module (Lookaside's kernel module); stride and nops
    /// are the module's. The share is of one CPU, for all processes together
    #[arg(long, value_name = "SETTINGS", default_value = "scan,share=0.5")]
    pub settings: String,
    /// Stop after this many seconds [default: when the processes given by number exit, or at Ctrl-C]
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
