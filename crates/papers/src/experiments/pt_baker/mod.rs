//! PT-Baker (Chatzopoulos 2024) on preset `ryzen-5900x`: its TLB microbenchmark, and its helper beside six programs.

mod baking;
mod claims;
mod microbenchmark;
mod pressed;
mod programs;

use super::{Ran, Run};

/// Both, one after the other.
pub(super) const RUN: Run = |effort, progress| {
    progress("TLB microbenchmark");
    let Ran { machine, mut assumptions, mut findings, mut series } = microbenchmark::run()?;
    let study = baking::run(effort, progress)?;
    assumptions.extend(study.assumptions());
    findings.extend(claims::findings(&study));
    series.extend(claims::series(&study));
    Ok(Ran { machine, assumptions, findings, series })
};
