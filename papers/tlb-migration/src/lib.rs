//! TLB migration (Landsberg 2018): a thread takes its translations along to the next core.
//!
//! The interfaces are usable by themselves. The Cortex-A7 lets its main TLB be read: an entry is a [`Descriptor`],
//! asked for by a [`ReadOperation`]. Four modified interfaces, of the simulated TLB, also take entries: an [`Entry`]
//! has bits in each, and a [`Port`] is the registers in front of a TLB ([`Slots`]).
//!
//! [`machines`] has the paper's two machines, its benchmarks on them, and a Linux that takes entries along. [`metal`]
//! times a thread's move between CPUs of this machine; [`view()`] is its report. [`PAPER`] sets the paper's published
//! values beside what the model gives.
//!
//! ```
//! use lookaside_tlb_migration::{Descriptor, ReadOperation};
//!
//! // The page of the address in the paper's section 2.1, in way 1.
//! let (va, index) = Descriptor::va_and_index(0xffc0_0248);
//! let at = ReadOperation::new(1, index)?;
//! assert_eq!(at.encode(), 0x8000_0000);
//! let registers = Descriptor { valid: true, va, ..Descriptor::default() }.encode()?;
//! assert_eq!(registers, [0x0003_ff01, 0, 0]);
//! assert_eq!(Descriptor::decode(registers)?.virtual_address(at)?, 0xffc0_0000);
//! # Ok::<(), lookaside_tlb_migration::InterfaceError>(())
//! ```

mod interface;
pub mod machines;
pub mod metal;
mod model;
mod view;

use lookaside_harness::{ModelExperiments, Paper};

pub use interface::*;
pub use view::{view, MIGRATION_SCHEMA};

/// The paper.
pub const PAPER: Paper = Paper {
    name: "tlb-migration",
    cite: "T. Landsberg, Analyzing and Optimizing TLB-Induced Thread Migration Costs on Linux/ARM, master's thesis, \
           Leibniz Universität Hannover, 2018",
    model: ModelExperiments { values: model::VALUES, run: model::RUN },
    metal: None,
};
