//! Fast address-space switching (Wiggins, Tuch, Uhlig, Heiser 2003) on preset `sa1100`: Linux and L4 that flush on each
//! switch, and with domains in place of flushes; and what sharing TLB entries is worth on today's `golden-cove`.

mod claims;
mod footprint;
mod kernels_compared;
mod sharing_today;
mod switching_runs;

use lookaside_harness::{ModelFindings, RunModel};

/// All of it.
pub(crate) const RUN: RunModel = |effort, progress| {
    let study = switching_runs::run(effort, progress)?;
    progress("today");
    let today = sharing_today::run(effort)?;
    let (mut findings, mut series) = (claims::findings(&study), claims::series(&study));
    findings.extend(sharing_today::findings(&today));
    series.extend(sharing_today::series(&today));
    let mut assumptions = footprint::assumptions();
    assumptions.push(sharing_today::assumption());
    Ok(ModelFindings { machine: "sa1100".into(), assumptions, findings, series })
};
