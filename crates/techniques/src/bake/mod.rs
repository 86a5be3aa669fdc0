//! PT-Baker (Chatzopoulos 2024) in the model: a helper beside the program touches page-table entries at its own pace,
//! so that walks find them in a cache.
//!
//! Program and helper go through one engine, in the order of their modelled times. The helper's touches are made there:
//! by its own hardware thread's TLBs, walks and caches, or as the kernel's reads of the entries. What it costs the
//! program is room in what they share: no bandwidth, and nothing of an SMT core's shared pipeline. The program's time is
//! that of a core which does several accesses at once, as far as these need nothing of each other ([`ProgramFlow`]) and
//! memory's bandwidth lets it.
//!
//! ```
//! use lookaside_engine::{FrameLayout, Setup};
//! use lookaside_techniques::bake::{model, BakedProgram, ModelledBaker, ProgramFlow, TouchMethod};
//! use lookaside_workloads::{PatternStream, UniformPages, BASE};
//!
//! let machine = lookaside_machine::preset("ryzen-5900x")?.with_overrides(&["cache.l3.size=256K".into()])?;
//! let setup = Setup::new(machine);
//! let pages = 32 << 10; // whose tables take as much as the last-level cache
//! let program = || PatternStream::new(UniformPages::new(pages, 1), 100_000);
//! let how = BakedProgram { warm_accesses: 50_000, flow: ProgramFlow::Chained };
//! let baker = ModelledBaker::new(TouchMethod::Entries, 1, vec![BASE..BASE + pages * 4096]);
//! let base = model(setup.clone(), &mut program(), &how, None, &[])?;
//! let baked = model(setup, &mut program(), &how, Some(&baker), &[])?;
//! assert!(baked.program.data.cost.walk_references_memory < base.program.data.cost.walk_references_memory);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod baker;
mod compare;
mod helper;
mod model;
mod program_core;
mod stressor;
mod targets;

pub use baker::{
    BakeModelError, BakeResult, BakedProgram, HelperPlacement, HelperResult, ModelledBaker, ProgramFlow, Stressor,
    TouchCost, TouchMethod,
};
pub use compare::{compare_baked, BakeComparison, BakePair};
pub(crate) use helper::RunningHelper;
pub use model::model;
pub(crate) use targets::TargetFinder;
pub use targets::{find_targets, BakeTargets, TargetRegion};
