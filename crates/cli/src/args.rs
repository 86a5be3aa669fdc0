//! The command line.

pub mod bake;
pub mod compare;
pub mod experiment;
pub mod experiment_migrate;
pub mod hugepages;
pub mod plan;
pub mod probe;
pub mod run;
pub mod top;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::workload::WorkloadArgs;

/// What translation (TLB misses, page-table walks) costs a program, and what would help.
#[derive(Parser)]
#[command(name = "lookaside", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 done, but not clean (damage found in a trace, a published row not \
    reproduced); 2 bad input, one line says what and where; 125 the recording broke off; 126 program not executable; \
    127 program not found. analyze and record pass on the program's own exit code (128 + signal if it was killed).";

#[derive(Subcommand)]
pub enum Command {
    /// Find out what translation costs a program, where, and what would help
    #[command(after_help = "Examples: lookaside analyze --html report.html -- sort big.txt\n          \
        lookaside analyze --measure -- ./join orders.csv\n\n\
        Exit codes: the program's own, 128 + signal if it was killed; 1 a run of --measure failed, or the trace could not be \
        read whole; 2 bad input; 125 the recording broke off; 128 + signal interrupted")]
    Analyze(Analyze),
    /// Record a program's accesses as a trace
    #[command(after_help = "Example: lookaside record -o sort.lkt -- sort big.txt")]
    Record(Record),
    /// Run a program with its page-table entries kept warm, with its heap inside a TLB partition, or with chosen huge pages
    #[command(
        after_help = "Examples: lookaside run --bake -- ./server --port 80\n          lookaside run --color=partitions.toml:T1 -- ./control\n          \
        lookaside run --hugepages=auto:64 -- ./join\n\n\
        Exit code: the program's own; 2 bad input, 126 not executable, 127 not found"
    )]
    Run(run::Run),
    /// Run a trace through one or several machines
    #[command(
        after_help = "Examples: lookaside simulate sort.lkt --machine skylake --set tlb.stlb.ways=24\n          \
        lookaside simulate gups.lkt --machine ryzen-5900x --bake prefetch,sleep=100us"
    )]
    Simulate(Simulate),
    /// List, show or check machine descriptions
    #[command(subcommand, after_help = "Example: lookaside machine show ryzen-5900x")]
    Machine(MachineCommand),
    /// Look at, convert or check traces
    #[command(subcommand, after_help = "Example: lookaside trace info sort.lkt")]
    Trace(TraceCommand),
    /// Run a paper's experiments and put our values beside the published ones
    #[command(after_help = "Example: lookaside reproduce pt-baker --metal")]
    Reproduce(Reproduce),
    /// Measure this machine's TLBs, without a PMU
    #[command(after_help = "Example: lookaside probe -o machine.toml")]
    Probe(probe::Probe),
    /// Hold a machine description against this machine: the same patterns on the metal and in the model
    #[command(after_help = "Example: lookaside validate --machine machine.toml -o report.html\n\n\
        Exit codes: 0 median error at most 10 % and worst at most 30 %; 1 not; 2 bad input")]
    Validate(probe::Validate),
    /// Run a program of the papers, with or without a baker, and time it
    #[command(after_help = "Examples: lookaside workload list\n          \
        lookaside workload gups --size 8G --bake prefetch:t0,stride=8\n          \
        lookaside workload gups --size 64M --record gups.lkt")]
    Workload(WorkloadArgs),
    /// Does it help? The same program in several ways, in turns: huge pages, baking; what is significant
    #[command(after_help = "Example: lookaside compare --variants base,thp,bake:scan --runs 10 -- ./gups 8G\n\n\
        Exit codes: 0 compared; 1 a program failed; 2 bad input; 126, 127 the program can't be executed, isn't there; 128 + signal interrupted")]
    Compare(compare::Compare),
    /// Plan what to do about translation
    #[command(subcommand, after_help = "Example: lookaside plan color tasks.toml --machine xeon-e5-2650")]
    Plan(plan::PlanCommand),
    /// Experiments of the papers on this machine, beside the model
    #[command(subcommand, after_help = "Example: lookaside experiment tasks tasks.toml --machine machine.toml")]
    Experiment(experiment::ExperimentCommand),
    /// Keep the page-table entries of running processes warm, from outside
    #[command(
        after_help = "Examples: lookaside bake --pid 4711\n          lookaside bake --comm redis-server --settings scan,share=0.2\n          \
        lookaside bake --system --metrics /var/lib/node_exporter/lookaside.prom\n\n\
        Exit codes: 0 done; 1 a process could not be baked; 2 bad input; 128 + signal interrupted"
    )]
    Bake(bake::Bake),
    /// Make huge pages of the memory that a running process is seen in most, from outside
    #[command(
        after_help = "Examples: lookaside hugepages --pid 4711 --budget 64\n          lookaside hugepages --pid 4711 --budget 64 --seconds 20 --dry-run --json\n\n\
        Exit codes: 0 all chosen windows are huge; 1 some are not; 2 bad input, no permission, or a kernel that can't; 128 + signal interrupted"
    )]
    Hugepages(hugepages::Hugepages),
    /// Processes by what translation may cost them, live; which are baked, and by whom
    #[command(after_help = "Example: lookaside top --once\n\nKeys: q ends, up and down scroll")]
    Top(top::Top),
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

/// How programs are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// Exact, through our Valgrind tool
    Valgrind,
    /// Exact, foreign ISAs, through QEMU's user-mode emulator
    Qemu,
    /// Clock sampling at native speed
    Sample,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GranularityArg {
    /// Repeats of a page are counted, not recorded: fastest
    Page,
    /// Repeats of a line are counted, not recorded: data caches see every line
    Line,
    /// Every access is recorded
    Byte,
}

#[derive(Args)]
pub struct MachineArgs {
    /// Preset name or description file; may be given several times to `simulate`
    /// [default: the preset nearest to the running CPU]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Vec<String>,
    /// Change one value of the machine, as tlb.stlb.ways=24 (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Page sizes that the modelled OS uses
    #[arg(long, value_enum, default_value = "base")]
    pub pages: PagesArg,
    /// Where the modelled OS puts frames: contiguous, random, or fragmented:N (runs of N pages)
    #[arg(long, default_value = "contiguous", value_parser = parse_frames)]
    pub frames: lookaside_engine::FrameLayout,
    /// Seed of random replacement and frame placement
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PagesArg {
    /// Base pages only
    Base,
    /// Transparent huge pages wherever a mapping holds one
    Thp,
}

#[derive(Args)]
pub struct Analyze {
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write everything as JSON ("-" = standard output, in place of the text)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Rows in each table of the text [default: as many as one screen holds]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// How to record [default: the best that is installed]
    #[arg(long, value_enum)]
    pub backend: Option<BackendArg>,
    /// See every access through the model, or say why that can't be: never fall back to sampling
    #[arg(long, conflicts_with = "backend")]
    pub exact: bool,
    /// What an exact recording may leave out
    #[arg(long, value_enum, default_value = "page")]
    pub granularity: GranularityArg,
    /// Samples per second of CPU time
    #[arg(long, default_value_t = 1000, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub hz: u32,
    /// Then run the program plainly, with and without huge pages, and put what they gain beside what is predicted; so many
    /// rounds of both, after one that does not count [default: 10]
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "10",
          conflicts_with_all = ["trace", "pid"], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub measure: Option<u32>,
    /// Install what is missing without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Analyze a recorded trace in place of a program
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pid", "command", "backend"])]
    pub trace: Option<PathBuf>,
    /// Sample a process that runs already, until it ends or Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "exact"])]
    pub pid: Option<u32>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["trace", "pid"])]
    pub command: Vec<OsString>,
}

#[derive(Args)]
pub struct Record {
    /// Trace file to write
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// How to record [default: the best that is installed]
    #[arg(long, value_enum)]
    pub backend: Option<BackendArg>,
    /// What an exact recording may leave out
    #[arg(long, value_enum, default_value = "page")]
    pub granularity: GranularityArg,
    /// Leave out repeats of the last page within 2^N classes of pages: smaller, exact only for
    /// machines whose first-level sets determine the low N bits of the page number
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=4))]
    pub filter_log2_classes: u32,
    /// Leave out repeats of loads and of stores apart: exact for machines with a first-level TLB for
    /// each (golden-cove), and not for others
    #[arg(long)]
    pub filter_stores_apart: bool,
    /// Record no instruction fetches
    #[arg(long)]
    pub no_fetches: bool,
    /// Samples per second of CPU time
    #[arg(long, default_value_t = 1000, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub hz: u32,
    /// Install what is missing without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Sample a process that runs already, until it ends or Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<u32>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "pid")]
    pub command: Vec<OsString>,
}

#[derive(Args)]
pub struct Simulate {
    /// Trace: native, Lackey, ChampSim, drmemtrace, text, CSV ("-" = standard input)
    pub trace: PathBuf,
    #[command(flatten)]
    pub machine: MachineArgs,
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

#[derive(Subcommand)]
pub enum MachineCommand {
    /// The presets, a line each
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// One machine in full
    Show {
        /// Preset name or description file
        machine: String,
        /// Change one value, as tlb.stlb.ways=24 (repeatable)
        #[arg(long, value_name = "PATH=VALUE")]
        set: Vec<String>,
        /// Print the description file
        #[arg(long, conflicts_with = "json")]
        toml: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check description files
    Check {
        /// Description files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

#[derive(Subcommand)]
pub enum TraceCommand {
    /// What is in a trace
    Info {
        /// Trace
        trace: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// A trace as text
    Cat {
        /// Trace
        trace: PathBuf,
    },
    /// The first accesses and events of a trace, as text
    Head {
        /// Trace
        trace: PathBuf,
        /// Lines
        #[arg(short, default_value_t = 20)]
        n: u64,
    },
    /// Write a trace in another format
    Convert {
        /// Trace to read
        from: PathBuf,
        /// Trace to write
        to: PathBuf,
        /// Format to write [default: by the ending: .lkt native, .champsim, .txt]
        #[arg(long, value_enum)]
        format: Option<ExportFormat>,
    },
    /// Read all of a trace and say which bytes are damaged
    Check {
        /// Trace
        trace: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Native
    Lkt,
    /// ChampSim's 64-byte records
    Champsim,
    /// Text
    Text,
}

#[derive(Args)]
pub struct Reproduce {
    /// Paper: pt-baker, tlb-coloring, fast-address-space-switching, tlb-lockdown or tlb-migration
    pub paper: String,
    /// Measure this machine, in place of the model
    #[arg(long)]
    pub metal: bool,
    /// Seed of the measurements: chooses pages and orders
    #[arg(long, default_value_t = 1, requires = "metal")]
    pub seed: u64,
    /// This machine's TLBs: a preset, or a file as `probe -o` writes it. Else they are looked for, half of the time at most
    #[arg(long, value_name = "NAME|FILE", requires = "metal")]
    pub machine: Option<String>,
    /// Most seconds that measuring may take
    #[arg(long, default_value_t = 240, value_name = "SECONDS", requires = "metal", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time: u64,
    /// Most memory for the pages measured, in MiB [default: 256, and 1024 for the sweeps of pt-baker]
    #[arg(long, value_name = "MIB", requires = "metal", value_parser = clap::value_parser!(u64).range(16..=65536))]
    pub memory: Option<u64>,
    /// Write rows and curves as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn parse_frames(text: &str) -> Result<lookaside_engine::FrameLayout, String> {
    use lookaside_engine::FrameLayout;
    match text.split_once(':') {
        None if text == "contiguous" => Ok(FrameLayout::Contiguous),
        None if text == "random" => Ok(FrameLayout::Random),
        Some(("fragmented", n)) => match n.parse::<u64>() {
            Ok(run_pages) if run_pages.is_power_of_two() => Ok(FrameLayout::Fragmented { run_pages }),
            _ => Err(format!("{n:?} is not a power of two")),
        },
        _ => Err("write contiguous, random or fragmented:N".into()),
    }
}
