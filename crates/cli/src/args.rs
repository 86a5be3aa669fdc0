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

/// What translation (TLB misses, page-table walks) costs a program, and what would help.
#[derive(Parser)]
#[command(name = "lookaside", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 done, but not clean (damage found in a trace); 2 bad input, one line says what and where; 125 the recording broke off; 126 program not executable; \
    127 program not found. analyze and record pass on the program's own exit code (128 + signal if it was killed).";

#[derive(Subcommand)]
pub enum Command {
    /// Find out what translation costs a program, where, and what would help
    #[command(after_help = "Examples: lookaside analyze --html report.html -- sort big.txt\n          \
        lookaside analyze --measure -- ./join orders.csv\n\n\
        Exit codes: the program's own, 128 + signal if it was killed; 1 a run of --measure failed, or the trace could not be \
        read whole; 2 bad input; 125 the recording broke off; 128 + signal interrupted")]
    Analyze(analyze::AnalyzeArgs),
    /// Record a program's accesses as a trace
    #[command(after_help = "Example: lookaside record -o sort.lkt -- sort big.txt")]
    Record(record::RecordArgs),
    /// Run a program with its page-table entries kept warm, with its heap inside a TLB partition, or with chosen huge
    /// pages
    #[command(
        after_help = "Examples: lookaside run --bake -- ./server --port 80\n          lookaside run --color=partitions.toml:T1 -- ./control\n          \
        lookaside run --hugepages=auto:64 -- ./join\n\n\
        Exit code: the program's own; 2 bad input, 126 not executable, 127 not found"
    )]
    Run(run::RunArgs),
    /// Run a trace through one or several machines
    #[command(
        after_help = "Examples: lookaside simulate sort.lkt --machine skylake --set tlb.stlb.ways=24\n          \
        lookaside simulate gups.lkt --machine ryzen-5900x --bake prefetch,sleep=100us"
    )]
    Simulate(simulate::SimulateArgs),
    /// List, show or check machine descriptions
    #[command(subcommand, after_help = "Example: lookaside machine show ryzen-5900x")]
    Machine(machine::MachineCommand),
    /// Look at, convert or check traces
    #[command(subcommand, after_help = "Example: lookaside trace info sort.lkt")]
    Trace(trace::TraceCommand),
    /// Measure this machine's TLBs, without a PMU
    #[command(after_help = "Example: lookaside probe -o machine.toml")]
    Probe(probe::ProbeArgs),
    /// Hold a machine description against this machine: the same patterns on the metal and in the model
    #[command(after_help = "Example: lookaside validate --machine machine.toml -o report.html\n\n\
        Exit codes: 0 median error at most 10 % and worst at most 30 %; 1 not; 2 bad input")]
    Validate(validate::ValidateArgs),
    /// Run a program of the papers, with or without a baker, and time it
    #[command(after_help = "Examples: lookaside workload list\n          \
        lookaside workload gups --size 8G --bake prefetch:t0,stride=8\n          \
        lookaside workload gups --size 64M --record gups.lkt")]
    Workload(workload::WorkloadArgs),
    /// Does it help? The same program in several ways, in turns: huge pages, baking; what is significant
    #[command(after_help = "Example: lookaside compare --variants base,thp,bake:scan --runs 10 -- ./gups 8G\n\n\
        Exit codes: 0 compared; 1 a program failed; 2 bad input; 126, 127 the program can't be executed, isn't there; 128 + signal interrupted")]
    Compare(compare::CompareArgs),
    /// Plan what to do about translation
    #[command(subcommand, after_help = "Example: lookaside plan color tasks.toml --machine xeon-e5-2650")]
    Plan(plan::PlanCommand),
    /// The papers: their published values beside ours, and their experiments on this machine (by lookaside-lab)
    #[command(disable_help_flag = true, after_help = "Example: lookaside lab reproduce pt-baker")]
    Lab {
        /// What lookaside-lab is given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        args: Vec<OsString>,
    },
    /// Keep the page-table entries of running processes warm, from outside
    #[command(
        after_help = "Examples: lookaside bake --pid 4711\n          lookaside bake --comm redis-server --settings scan,share=0.2\n          \
        lookaside bake --system --metrics /var/lib/node_exporter/lookaside.prom\n\n\
        Exit codes: 0 done; 1 a process could not be baked; 2 bad input; 128 + signal interrupted"
    )]
    Bake(bake::BakeArgs),
    /// Make huge pages of the memory that a running process is seen in most, from outside
    #[command(
        after_help = "Examples: lookaside hugepages --pid 4711 --budget 64\n          lookaside hugepages --pid 4711 --budget 64 --seconds 20 --dry-run --json\n\n\
        Exit codes: 0 all chosen windows are huge; 1 some are not; 2 bad input, no permission, or a kernel that can't; 128 + signal interrupted"
    )]
    Hugepages(hugepages::HugepagesArgs),
    /// Processes by what translation may cost them, live; which are baked, and by whom
    #[command(after_help = "Example: lookaside top --once\n\nKeys: q ends, up and down scroll")]
    Top(top::TopArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example: lookaside completions bash > /etc/bash_completion.d/lookaside")]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Write man pages into a folder
    #[command(after_help = "Example: lookaside man /usr/local/share/man/man1")]
    Man {
        /// Folder; must exist
        folder: PathBuf,
    },
}
