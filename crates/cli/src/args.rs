//! The command line: every command by name, with its arguments in a file of its own.

pub mod analyze;
pub mod bake;
pub mod compare;
pub mod hugepages;
pub mod machine;
pub mod model;
pub mod plan;
pub mod probe;
pub mod record;
pub mod recording;
pub mod run;
pub mod simulate;
pub mod top;
pub mod trace;
pub mod validate;
pub mod workload;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Measure what address translation (TLB misses, page-table walks) costs a program, and what would help.
#[derive(Parser)]
#[command(name = "lookaside", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 success; 1 finished with problems (such as a damaged trace); 2 bad input; \
    125 recording failed; 126 program not executable; 127 program not found. \
    analyze and record exit with the program's own code (128 + signal if it was killed).";

#[derive(Subcommand)]
pub enum Command {
    /// Show what address translation costs a program, where, and what would help
    #[command(after_help = "Examples: lookaside analyze --html report.html -- sort big.txt\n          \
        lookaside analyze --measure -- ./join orders.csv\n\n\
        Exit codes: the program's own, 128 + signal if it was killed; 1 a --measure run failed or the trace is damaged; \
        2 bad input; 125 recording failed; 128 + signal if interrupted")]
    Analyze(analyze::AnalyzeArgs),
    /// Record a program's memory accesses as a trace
    #[command(after_help = "Example: lookaside record -o sort.lkt -- sort big.txt")]
    Record(record::RecordArgs),
    /// Run a program with warm page tables, a coloured heap or chosen huge pages
    #[command(
        after_help = "Examples: lookaside run --bake -- ./server --port 80\n          lookaside run --color=partitions.toml:T1 -- ./control\n          \
        lookaside run --hugepages=auto:64 -- ./join\n\n\
        Exit code: the program's own; 2 bad input, 126 not executable, 127 not found"
    )]
    Run(run::RunArgs),
    /// Simulate a trace on one or more machines
    #[command(
        after_help = "Examples: lookaside simulate sort.lkt --machine skylake --set memory.cycles=400\n          \
        lookaside simulate gups.lkt --machine ryzen-5900x --bake prefetch,sleep=100us"
    )]
    Simulate(simulate::SimulateArgs),
    /// List, show and check machine descriptions
    #[command(subcommand, after_help = "Example: lookaside machine show ryzen-5900x")]
    Machine(machine::MachineCommand),
    /// Inspect, convert and check traces
    #[command(subcommand, after_help = "Example: lookaside trace info sort.lkt")]
    Trace(trace::TraceCommand),
    /// Measure this machine's TLBs by timing (no PMU needed)
    #[command(after_help = "Example: lookaside probe -o machine.toml")]
    Probe(probe::ProbeArgs),
    /// Check a machine description: run the same access patterns on this CPU and in the model
    #[command(after_help = "Example: lookaside validate --machine machine.toml --html report.html\n\n\
        Exit codes: 0 median error up to 5 % and worst up to 20 %; 1 larger errors; 2 bad input")]
    Validate(validate::ValidateArgs),
    /// Run and time one of the papers' benchmark programs
    #[command(after_help = "Examples: lookaside workload list\n          \
        lookaside workload gups --size 8G --bake prefetch:t0,stride=8\n          \
        lookaside workload gups --size 64M --record gups.lkt")]
    Workload(workload::WorkloadArgs),
    /// Benchmark a program with small pages, huge pages and baking, and test the differences for significance
    #[command(after_help = "Example: lookaside compare --variants base,thp,bake:scan --runs 10 -- ./gups 8G\n\n\
        Exit codes: 0 success; 1 a run failed; 2 bad input; 126 program not executable; 127 program not found; \
        128 + signal if interrupted")]
    Compare(compare::CompareArgs),
    /// Plan TLB partitions, locked entries or huge pages
    #[command(subcommand, after_help = "Example: lookaside plan color tasks.toml --machine xeon-e5-2650")]
    Plan(plan::PlanCommand),
    /// Reproduce the papers' results and run their experiments (needs lookaside-lab)
    #[command(disable_help_flag = true, after_help = "Example: lookaside lab reproduce pt-baker")]
    Lab {
        /// Arguments for lookaside-lab
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        args: Vec<OsString>,
    },
    /// Keep running processes' page tables in the CPU caches
    #[command(
        after_help = "Examples: lookaside bake --pid 4711\n          lookaside bake --comm redis-server --settings scan,share=0.2\n          \
        lookaside bake --system --metrics /var/lib/node_exporter/lookaside.prom\n\n\
        Exit codes: 0 success; 1 a process could not be baked; 2 bad input; 128 + signal if interrupted"
    )]
    Bake(bake::BakeArgs),
    /// Promote a running process's hottest memory to huge pages
    #[command(
        after_help = "Examples: lookaside hugepages --pid 4711 --budget 64\n          lookaside hugepages --pid 4711 --budget 64 --seconds 20 --dry-run --json\n\n\
        Exit codes: 0 all chosen windows are huge; 1 some are not; 2 bad input, no permission, or no kernel support; \
        128 + signal if interrupted"
    )]
    Hugepages(hugepages::HugepagesArgs),
    /// Show processes by their likely translation cost, live, and which of them are baked
    #[command(after_help = "Example: lookaside top --once\n\nKeys: q quits, up and down scroll")]
    Top(top::TopArgs),
    /// Print a shell completion script
    #[command(after_help = "Example: lookaside completions bash > /etc/bash_completion.d/lookaside")]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages to a directory
    #[command(after_help = "Example: lookaside man /usr/local/share/man/man1")]
    Man {
        /// Directory (must exist)
        folder: PathBuf,
    },
}
