//! TLB lockdown (Song, Park, Kim 2022) on preset `cortex-a9`: three real-time programs with their most accessed pages locked, on one
//! core and on four.

mod claims;
mod lab;
mod study;

use super::{Ran, Run};
use crate::Effort;
use lab::Lab;

/// All of it.
pub(super) const RUN: Run = |effort, progress| {
    // The paper's runs, or the fewest that differ.
    let runs = match effort {
        Effort::Usual => 100,
        Effort::Quick => 2,
    };
    progress("recording programs");
    let lab = Lab::new(effort)?;
    let study = study::run(&lab, runs, progress)?;
    Ok(Ran {
        machine: lab.machine().to_string(),
        assumptions: lab.assumptions(runs),
        findings: claims::findings(&study),
        series: claims::series(&study),
    })
};
