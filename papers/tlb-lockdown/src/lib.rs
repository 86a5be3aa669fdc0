//! TLB lockdown (Song, Park, Kim 2022): real-time programs with their most accessed pages locked in the TLB.
//!
//! [`PAPER`] has its published values and its experiments in the model. [`programs`] are its real-time programs, whole
//! processes with their stack and code; the experiments run recordings of them on one core and on four.
//!
//! ```
//! use lookaside_tlb_lockdown::programs::{program, ProgramInput, ProgramSpec};
//! use lookaside_trace::{Block, Source};
//! use lookaside_workloads::WorkloadStream;
//!
//! let qsort = program("qsort", &ProgramSpec::new(ProgramInput::Small, 1))?;
//! let (mut stream, mut block) = (WorkloadStream::new(qsort), Block::default());
//! assert!(stream.next_block(&mut block)?);
//! assert!(block.accesses() > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod model;
pub mod programs;
mod task;

use lookaside_harness::{ModelExperiments, Paper};

/// The paper.
pub const PAPER: Paper = Paper {
    name: "tlb-lockdown",
    cite: "D. Song, S. Park, H. Kim, Investigation on TLB Miss Impact through TLB Lockdown in Multi-core Systems, 2022",
    model: ModelExperiments { values: include_str!("../values/model.toml"), run: model::RUN },
    metal: None,
};
