//! The arguments of `hugepages`.

use std::ffi::OsString;
use std::path::PathBuf;

use super::plan::PlannedProgram;
use clap::{Args, Subcommand, ValueEnum};
use lookaside_cli::output::OutputArgs;
use lookaside_runtime::hugepages::{CodeBudget, ObservedBy};

#[derive(Subcommand)]
pub enum HugepagesCommand {
    /// Choose the 2 MiB windows that are worth a huge page, from a recorded run
    #[command(after_help = "Examples: lookaside hugepages plan --budget 16 -o plan.toml ./join\n          \
        lookaside hugepages plan --budget 64 --machine skylake --trace join.lkt\n          \
        lookaside hugepages plan --text --budget 8 -o code.toml gcc -O2 -c sum.c\n\n\
        Exit codes: 0 success; 1 the trace is damaged or the program failed (the plan is still made); 2 bad input; \
        125 recording failed; 128 + signal if interrupted (prints the windows with most walks, no plan)")]
    Plan(HugepagesPlanArgs),
    /// Run a program with its hottest memory, what a plan names, or its code on huge pages
    #[command(after_help = "Examples: lookaside hugepages run --budget 64 ./join\n          \
        lookaside hugepages run --plan plan.toml ./join\n          \
        lookaside hugepages run --text gcc -O2 -c sum.c\n\n\
        Exit code: the program's own; 2 bad input, 126 not executable, 127 not found")]
    Run(HugepagesRunArgs),
    /// Promote a running process's hottest memory to huge pages
    #[command(
        after_help = "Examples: lookaside hugepages apply --pid 4711 --budget 64\n          lookaside hugepages apply --pid 4711 --budget 64 --seconds 20 --dry-run --json\n\n\
        The pages stay huge until the process frees that memory or ends, or until `lookaside undo`; --dry-run shows the \
        choice and changes nothing. Whether they help, `lookaside trial` measures.\n\n\
        Exit codes: 0 all chosen windows are huge; 1 some are not; 2 bad input, no permission, or no kernel support; \
        128 + signal if interrupted"
    )]
    Apply(HugepagesApplyArgs),
}

#[derive(Args)]
pub struct HugepagesPlanArgs {
    /// Plan for code: choose the windows of the program and its libraries to put on huge pages before main
    #[arg(long, conflicts_with = "native")]
    pub text: bool,
    /// Number of huge pages to plan for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: u32,
    /// Preset name or description file [default: this machine, measured at the first use]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Without --machine, take the preset closest to this CPU; measure nothing
    #[arg(long, conflicts_with = "machine")]
    pub no_probe: bool,
    /// Write the plan to FILE
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub report: OutputArgs,
    #[command(flatten)]
    pub program: PlannedProgram,
}

#[derive(Args)]
pub struct HugepagesRunArgs {
    /// Keep up to K of the hottest 2 MiB windows of the program and its children huge
    #[arg(long, value_name = "K", required_unless_present_any = ["plan", "text"], value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: Option<u32>,
    /// Put on huge pages what FILE names (written by `hugepages plan`): windows of memory, or of code
    #[arg(long, value_name = "FILE", conflicts_with = "budget")]
    pub plan: Option<PathBuf>,
    /// Put code on huge pages before main: all whole 2 MiB windows of the program and its libraries, or N at most
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub text: Option<CodeBudget>,
    /// Write no /tmp/perf-PID.map, by which profilers name the functions of code on huge pages
    #[arg(long)]
    pub no_perf_map: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", required = true)]
    pub command: Vec<OsString>,
}

#[derive(Args)]
pub struct HugepagesApplyArgs {
    /// Process ID
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Maximum number of 2 MiB pages to create, besides those it has
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: u32,
    /// Seconds to observe the process before choosing
    #[arg(long, default_value_t = 5, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// How to find hot memory [default: sample, or referenced if sampling is not permitted]
    #[arg(long, value_enum)]
    pub by: Option<ByArg>,
    /// Show what would be promoted; change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    /// Sample data addresses at equal intervals of CPU time: shows where the process waits
    Sample,
    /// Count referenced bits, which the kernel reports per mapping
    Referenced,
}

impl From<ByArg> for ObservedBy {
    fn from(arg: ByArg) -> Self {
        match arg {
            ByArg::Sample => Self::Sample,
            ByArg::Referenced => Self::Referenced,
        }
    }
}
