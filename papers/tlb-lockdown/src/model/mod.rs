//! TLB lockdown (Song, Park, Kim 2022) on preset `cortex-a9`: three real-time programs with their most accessed pages
//! locked, on one core and on four.

mod claims;
mod lockdown_bench;
mod lockdown_runs;

use lookaside_harness::{Effort, ModelFindings, RunModel};

use lockdown_bench::LockdownBench;

/// All of it.
pub(crate) const RUN: RunModel = |effort, progress| {
    // The paper's runs, or the fewest that differ.
    let runs = match effort {
        Effort::Usual => 100,
        Effort::Quick => 2,
    };
    progress("recording programs");
    let lab = LockdownBench::new(effort)?;
    let study = lockdown_runs::run(&lab, runs, progress)?;
    Ok(ModelFindings {
        machine: lab.machine().to_string(),
        assumptions: lab.assumptions(runs),
        findings: claims::findings(&study),
        series: claims::series(&study),
    })
};
