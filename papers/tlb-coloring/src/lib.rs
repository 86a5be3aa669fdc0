//! TLB coloring (Panchamukhi 2014): real-time tasks whose pages use TLB sets of their own.
//!
//! [`PAPER`] has its published values and its task sets in the model and on this machine. [`tasks`] runs any set of
//! real-time tasks on one CPU of this machine, its pages placed in chosen sets, and counts each job's TLB misses;
//! [`view()`] is its report. [`programs`] are the small programs that the paper's tasks run.
//!
//! ```
//! use lookaside_machine::{preset, PageSize};
//! use lookaside_tlb_coloring::tasks::{two_tasks, CountedBy};
//!
//! // Section 6.0.8's two tasks, on the first level of the paper's machine: each has a set's ways.
//! let machine = preset("xeon-e5-2650").expect("a preset");
//! let level = &machine.color_levels(PageSize::K4)[0];
//! let set = two_tasks(level, true, CountedBy::Timing);
//! assert_eq!(set.tasks.len(), 2);
//! ```

mod metal;
mod model;
pub mod programs;
mod view;

use lookaside_harness::{ModelExperiments, Paper};

pub use metal::tasks;
pub use view::{view, TASKS_SCHEMA};

/// The paper.
pub const PAPER: Paper = Paper {
    name: "tlb-coloring",
    cite:
        "S. A. Panchamukhi, Providing Task Isolation via TLB Coloring, MS thesis, North Carolina State University, 2014",
    model: ModelExperiments { values: include_str!("../values/model.toml"), run: model::RUN },
    metal: Some(metal::EXPERIMENTS),
};
