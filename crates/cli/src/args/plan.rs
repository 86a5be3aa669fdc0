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
    /// Partition the TLB among real-time tasks and bound their jobs' misses
    #[command(after_help = "Example: lookaside plan color tasks.toml --machine xeon-e5-2650 -o partitions.toml\n\n\
        Exit codes: 0 all tasks are isolated; 1 some share sets (as few as possible); 2 bad input")]
    Color(PlanColorArgs),
    /// Choose pages to pin in a TLB's lockable entries, from a recorded run
    #[command(after_help = "Examples: lookaside plan lock --entries 4 -o plan.toml -- ./control\n          \
        lookaside plan lock --machine cortex-a9 --select worst control.lkt\n\n\
        Exit codes: 0 success; 1 the trace is damaged or the program failed (the plan is still made); 2 bad input; \
        125 recording failed; 128 + signal if interrupted (prints the pages with most misses, no plan)")]
    Lock(PlanLockArgs),
    /// Choose the 2 MiB windows that are worth a huge page, from a recorded run
    #[command(after_help = "Examples: lookaside plan hugepages --budget 16 -o plan.toml -- ./join\n          \
        lookaside plan hugepages --budget 64 --machine skylake join.lkt\n\n\
        Exit codes: 0 success; 1 the trace is damaged or the program failed (the plan is still made); 2 bad input; \
        125 recording failed; 128 + signal if interrupted (prints the windows with most walks, no plan)")]
    Hugepages(PlanHugepagesArgs),
}
