//! PT-Baker (Chatzopoulos 2024) on preset `ryzen-5900x`: its TLB microbenchmark, and its helper beside six programs.

mod baking;
mod claims;
mod findings;
mod microbenchmark;
mod programs;
mod under_stress;

use lookaside_harness::{ModelFindings, RunModel};

/// Both, one after the other.
pub(crate) const RUN: RunModel = |effort, progress| {
    progress("TLB microbenchmark");
    let ModelFindings { machine, mut assumptions, mut findings, mut series } = microbenchmark::run()?;
    let study = baking::run(effort, progress)?;
    assumptions.extend(study.assumptions());
    findings.extend(claims::findings(&study));
    series.extend(claims::series(&study));
    Ok(ModelFindings { machine, assumptions, findings, series })
};
