//! PT-Baker (Chatzopoulos 2024): a helper thread keeps page-table entries warm in the caches.
//!
//! [`PAPER`] has its published values, its TLB microbenchmark and its helper beside six programs in the model; and on
//! this machine the microbenchmark and sweeps of the helper's settings. What a program links to be baked is
//! `lookaside_runtime`'s `pt_baker.h`.
//!
//! ```no_run
//! use lookaside_harness::Effort;
//!
//! let found = lookaside_pt_baker::PAPER.reproduce(Effort::Quick, &mut |step| eprintln!("{step}"))?;
//! println!("{} of {} rows that count hold", found.holding(), found.counted().count());
//! # Ok::<(), lookaside_harness::ModelFailed>(())
//! ```

mod metal;
mod model;

use lookaside_harness::{ModelExperiments, Paper};

/// The paper.
pub const PAPER: Paper = Paper {
    name: "pt-baker",
    cite: "A. E. Chatzopoulos, Improving the Locality of Page Table Walks in the Cache Hierarchy of Modern Microprocessors, \
           BSc thesis, National and Kapodistrian University of Athens, 2024",
    model: ModelExperiments { values: include_str!("../values/model.toml"), run: model::RUN },
    metal: Some(metal::EXPERIMENTS),
};
