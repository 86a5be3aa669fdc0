//! The arguments of `plan`.

pub mod color;
pub mod hugepages;
pub mod lock;

use clap::Subcommand;

use color::PlanColorArgs;
use hugepages::PlanHugepagesArgs;
use lock::PlanLockArgs;

#[derive(Subcommand)]
pub enum PlanCommand {
    /// Give real-time tasks TLB sets of their own, or say why that cannot be; bound the misses of their jobs
    #[command(after_help = "Example: lookaside plan color tasks.toml --machine xeon-e5-2650 -o partitions.toml\n\n\
        Exit codes: 0 all tasks are isolated; 1 not all, the plan shares least; 2 bad input")]
    Color(PlanColorArgs),
    /// Choose the pages to pin in a TLB's lockable entries, from a recorded run
    #[command(after_help = "Examples: lookaside plan lock --entries 4 -o plan.toml -- ./control\n          \
        lookaside plan lock --machine cortex-a9 --select worst control.lkt\n\n\
        Exit codes: 0 planned; 1 planned, but a part of the trace could not be read, or the program failed; 2 bad input; \
        125 the recording broke off; 128 + signal interrupted: the pages with most misses, no plan")]
    Lock(PlanLockArgs),
    /// Choose the 2 MiB windows of memory that are worth a huge page each, from a recorded run
    #[command(after_help = "Examples: lookaside plan hugepages --budget 16 -o plan.toml -- ./join\n          \
        lookaside plan hugepages --budget 64 --machine skylake join.lkt\n\n\
        Exit codes: 0 planned; 1 planned, but a part of the trace could not be read, or the program failed; 2 bad input; \
        125 the recording broke off; 128 + signal interrupted: the windows with most walks, no plan")]
    Hugepages(PlanHugepagesArgs),
}
