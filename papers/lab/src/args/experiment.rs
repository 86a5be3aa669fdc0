//! `lookaside lab experiment`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lookaside_cli::output::OutputArgs;

use super::migrate::Migrate;

#[derive(Subcommand)]
pub enum ExperimentCommand {
    /// Real-time tasks on one CPU, each with pages of chosen TLB sets: misses of their jobs, by counted walks or by
    /// timing, beside the model
    #[command(after_help = "Examples: lookaside lab experiment tasks tasks.toml --machine machine.toml\n          \
        lookaside lab experiment tasks tasks.toml --pages planned,same-sets --hyperperiods 500 --json\n\n\
        Exit codes: 0 at least 99 % of the jobs that nothing else hit missed as modelled; 1 not, or there are none; 2 bad input; 128 + signal interrupted")]
    Tasks(Tasks),
    /// What a switch takes here, of processes, of threads and of compartments by protection keys, on one CPU: lat_ctx
    /// and extreme, with memory of their own and in common, in base and in huge pages
    #[command(after_help = "Examples: lookaside lab experiment switch --html switch.html\n          \
        lookaside lab experiment switch --participants 2,6,7,8 --kib 0 --children 2,6,7 --pages 1,64,512 --rounds 20\n\n\
        Exit codes: 0 measured; 1 broke off, or no round was complete in time; 2 bad input; 128 + signal interrupted; complete rounds are told")]
    Switch(Switch),
    /// A thread that moves to another CPU: its first accesses there, with nothing done, with translations prefetched,
    /// with huge pages
    #[command(after_help = "Examples: lookaside lab experiment migrate --html migrate.html\n          \
        lookaside lab experiment migrate --from 0 --to 4 --pages 64,1536 --json\n\n\
        Exit codes: 0 measured; 1 no round was complete in time; 2 bad input; 128 + signal interrupted, complete rounds are told")]
    Migrate(Migrate),
}

#[derive(Args)]
pub struct Switch {
    /// Participants of the rings of lat_ctx [default: 2,4,8,16,32,64]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub participants: Option<Vec<usize>>,
    /// KiB that each of them reads in its turn [default: 0,4,16,64,256]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub kib: Option<Vec<u64>>,
    /// Participants of the rings of extreme [default: 2,4,16]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub children: Option<Vec<usize>>,
    /// Pages of 4 KiB that each of them reads a word of in its turn [default: 1,4,16,32,64,128,256,512,1024,1536]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub pages: Option<Vec<u64>>,
    /// Rounds; each measures everything once, in a new order, with new memory, processes and threads; the default takes
    /// about two minutes [default: 12]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Nothing is measured after so many seconds; complete rounds are told
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub time: u64,
    /// CPU of the participants [default: the last one allowed]
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<usize>,
    /// Seed of the orders and of the intervals
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Little of everything, for a few seconds: to see that it works
    #[arg(long)]
    pub quick: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Where pages lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PagesArg {
    /// By the plan, one task at a time: what the system takes
    Alone,
    /// In sets by `lookaside color plan`
    Planned,
    /// All tasks in the same sets, as few as hold the pages of one
    SameSets,
    /// Where the C library puts them
    Malloc,
}

#[derive(Args)]
pub struct Tasks {
    /// The tasks: [[task]] with name, phase, period, execution, pages; program = "fft" runs that on them
    pub tasks: PathBuf,
    /// Preset name or description file of this machine [default: probe it first]
    #[arg(long, short, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Where the tasks' pages lie, a run each
    #[arg(long, value_delimiter = ',', default_values_t = [PagesArg::Alone, PagesArg::Planned, PagesArg::SameSets, PagesArg::Malloc], value_enum)]
    pub pages: Vec<PagesArg>,
    /// Hyperperiods of each run
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    pub hyperperiods: u64,
    /// TLB of the description whose misses are counted [default: the first with more than one set]
    #[arg(long, value_name = "NAME")]
    pub level: Option<String>,
    /// CPU that the tasks run on [default: of those allowed the one with most of its core to itself]
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<usize>,
    /// Seed of the order of a task's pages, and of the probe
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub output: OutputArgs,
}
