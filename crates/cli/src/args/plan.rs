//! `lookaside plan`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lookaside_machine::PageSize;

#[derive(Subcommand)]
pub enum PlanCommand {
    /// Give real-time tasks TLB sets of their own, or say why that cannot be; bound the misses of their jobs
    #[command(after_help = "Example: lookaside plan color tasks.toml --machine xeon-e5-2650 -o partitions.toml\n\n\
        Exit codes: 0 all tasks are isolated; 1 not all, the plan shares least; 2 bad input")]
    Color(Color),
    /// Choose the pages to pin in a TLB's lockable entries, from a recorded run
    #[command(after_help = "Examples: lookaside plan lock --entries 4 -o plan.toml -- ./control\n          \
        lookaside plan lock --machine cortex-a9 --select worst control.lkt\n\n\
        Exit codes: 0 planned; 1 planned, but a part of the trace could not be read, or the program failed; 2 bad input; \
        125 the recording broke off; 128 + signal interrupted: the pages with most misses, no plan")]
    Lock(Lock),
    /// Choose the 2 MiB windows of memory that are worth a huge page each, from a recorded run
    #[command(after_help = "Examples: lookaside plan hugepages --budget 16 -o plan.toml -- ./join\n          \
        lookaside plan hugepages --budget 64 --machine skylake join.lkt\n\n\
        Exit codes: 0 planned; 1 planned, but a part of the trace could not be read, or the program failed; 2 bad input; \
        125 the recording broke off; 128 + signal interrupted: the windows with most walks, no plan")]
    Hugepages(Hugepages),
}

#[derive(Args)]
pub struct Color {
    /// The tasks: [[task]] with name, period, execution, pages (or trace), …
    pub tasks: PathBuf,
    /// Preset name or description file [default: the preset nearest to the running CPU]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Size of the pages that are coloured
    #[arg(long, default_value_t = PageSize::K4, value_name = "SIZE")]
    pub page_size: PageSize,
    /// Write the partitions, which a coloured heap reads
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Lock {
    /// Entries to plan for [default: all lockable ones]
    #[arg(long, value_name = "N")]
    pub entries: Option<u32>,
    /// Preset name or description file
    #[arg(long, short, value_name = "NAME|FILE", default_value = "cortex-a9")]
    pub machine: String,
    /// How to choose; the others are put beside it
    #[arg(long, value_enum, default_value = "gain")]
    pub select: SelectArg,
    /// TLB array whose entries are locked [default: the one that has lockable entries]
    #[arg(long, value_name = "NAME")]
    pub tlb: Option<String>,
    /// Run the program plainly first, with fixed addresses, and say where each page lies there
    #[arg(long, conflicts_with = "trace")]
    pub native: bool,
    /// Write the plan
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// A recorded trace in place of a program
    #[arg(value_name = "TRACE", conflicts_with = "command")]
    pub trace: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "trace")]
    pub command: Vec<OsString>,
}

#[derive(Args)]
pub struct Hugepages {
    /// Huge pages to plan for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: u32,
    /// Preset name or description file [default: the preset nearest to the running CPU]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Run the program plainly first, with fixed addresses, and say where each window lies there
    #[arg(long, conflicts_with = "trace")]
    pub native: bool,
    /// Write the plan
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// A recorded trace in place of a program
    #[arg(value_name = "TRACE", conflicts_with = "command")]
    pub trace: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "trace")]
    pub command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SelectArg {
    /// Most data accesses: the paper's
    Accesses,
    /// Most misses
    Misses,
    /// Page after page, what removes most stall cycles in the mean over several seeds
    Gain,
    /// The same for the worst seed
    Worst,
}
