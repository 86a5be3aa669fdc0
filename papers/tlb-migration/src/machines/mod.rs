//! The paper's two machines, its benchmark on them, and a Linux that takes TLB entries along.
//!
//! - [`CortexA7`]: two levels of TLB, walks that the caches serve, two slots for `pld`, a stride prefetcher.
//!   [`A7Benchmark`] runs on it.
//! - [`Gem5`]: the simulated machine with the four interfaces, in order, one reference at a time. [`Gem5Benchmark`]
//!   runs on it.
//! - [`Linux`]: run queues on [`Gem5`]'s cores. A thread that is moved takes its entries along, or does not.
//! - Beyond the paper: a [`Predictor`] of what will be used, recorded [`ProgramSteps`]s as a [`MigratingTasks`], and a
//!   [`Periodic`] task.
//!
//! Entries are words: what the model's software saves is what it read from a [`Port`](crate::Port)'s registers, or what
//! a [`Descriptor`](crate::Descriptor) says, and what the TLB takes in is decoded from them.
//!
//! ```
//! use lookaside_tlb_migration::machines::{Gem5Benchmark, STRIDE_68K};
//! use lookaside_tlb_migration::Version;
//!
//! let machine = lookaside_machine::preset("gem5-armv7")?;
//! let steps = Gem5Benchmark::new(&machine, 32, STRIDE_68K)?.six_steps(Version::V4)?;
//! assert!(steps.migrated_cycles < steps.clean_cycles);
//! assert!(steps.speedup_cycles() > 0, "32 pages are worth it");
//! let steps = Gem5Benchmark::new(&machine, 1, STRIDE_68K)?.six_steps(Version::V4)?;
//! assert!(steps.speedup_cycles() < 0, "one page is not");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod a7_benchmark;
mod cache;
mod cortex_a7;
mod data_tlb;
mod dram;
mod gem5;
mod gem5_benchmark;
mod linux;
mod main_tlb;
mod paging;
mod periodic;
mod processes;
mod program;
mod saving;
mod stale;
mod stride;
mod task_set;
#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::interface::InterfaceError;
pub use a7_benchmark::{A7Benchmark, Preloaded, Restore, JUDGE_CYCLES};
pub use cortex_a7::{CortexA7, A7_INTERVAL_CYCLES, PLD_MOST};
pub use data_tlb::Restored;
pub use gem5::{Gem5, COUNTER_HZ, GEM5_MEMORY_CYCLES};
pub use gem5_benchmark::{Gem5Benchmark, GEM5_OTHERS};
pub use linux::{Linux, Predictor, TaskId, MIGRATION_LINES, PROCESS_CYCLES, USER_LOOP};
pub use paging::{Leaf, PageTables, TableWalk, KERNEL_OFFSET, PAGE_SHIFT, SPACES_MOST};
pub use periodic::{Jobs, Periodic};
pub use processes::SimulatedProcessId;
pub use program::{DataStep, ProgramSteps};
pub use saving::{Saved, ENTRY_WALKS};
pub use task_set::{Along, MigratingTasks, MigrationCounts, MoveSchedule, Moves};

/// Pages from one access to the next in the paper's 4k-benchmark.
pub const STRIDE_4K: u32 = 1;
/// And in its 68k-benchmark.
pub const STRIDE_68K: u32 = 17;

/// What the benchmark's steps took (section 4.3), in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Step 2: the pages accessed with a clean TLB.
    pub clean_cycles: u64,
    /// Step 3: the relevant entries saved.
    pub save_cycles: u64,
    /// Step 5: restored.
    pub restore_cycles: u64,
    /// Step 6: the pages accessed with a migrated TLB.
    pub migrated_cycles: u64,
    /// Entries that were saved.
    pub saved_entries: u32,
}

impl Steps {
    /// What migration gained, less what it cost.
    pub fn speedup_cycles(&self) -> i64 {
        let signed = |cycles: u64| i64::try_from(cycles).unwrap_or(i64::MAX);
        signed(self.clean_cycles)
            - signed(self.migrated_cycles)
            - signed(self.restore_cycles)
            - signed(self.save_cycles)
    }
}

/// Why something could not be modelled.
#[derive(Debug, Error)]
pub enum MigrationModelError {
    /// The machine is of another kind.
    #[error("{machine}: the model of TLB migration needs {what}")]
    Machine {
        /// Its name.
        machine: String,
        /// What it lacks.
        what: &'static str,
    },
    /// No page is mapped there.
    #[error("address {va:#x}: no page is mapped there")]
    Unmapped {
        /// As accessed.
        va: u32,
    },
    /// A small page cannot be mapped where the kernel has a section.
    #[error("address {va:#x}: the kernel has a section there; map pages elsewhere")]
    Section {
        /// As asked.
        va: u32,
    },
    /// No room for another page table.
    #[error("too many page tables: the model has room for pages in 3 GiB")]
    Tables,
    /// The benchmark needs at least one page, and the model ends somewhere.
    #[error("{pages} pages: the model takes 1 to {most}")]
    Pages {
        /// As asked.
        pages: u32,
        /// The most.
        most: u32,
    },
    /// No such core.
    #[error("core {core}: there are {cores}, counted from 0")]
    Core {
        /// As asked.
        core: usize,
        /// How many there are.
        cores: usize,
    },
    /// No such task, or it has to be running and is not.
    #[error("no such task, or it is not running")]
    Task,
    /// No such process.
    #[error("no such process")]
    Process,
    /// No room for another process's tables.
    #[error("more than {most} processes: the model has no room for their page tables")]
    Processes {
        /// The most.
        most: u32,
    },
    /// A recording cannot be read, or is of nothing.
    #[error("{recording}: {reason}")]
    Recording {
        /// What was to be read.
        recording: String,
        /// Why not.
        reason: String,
    },
    /// An interface refused.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}
