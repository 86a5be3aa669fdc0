//! Fast address-space switching (Wiggins, Tuch, Uhlig, Heiser 2003) on preset `sa1100`: Linux and L4 that flush on each switch, and
//! with domains in place of flushes; and what sharing TLB entries is worth on today's `golden-cove`.

mod claims;
mod footprint;
mod study;
mod today;
mod world;

use super::{Ran, Run};

/// All of it.
pub(super) const RUN: Run = |effort, progress| {
    let study = study::run(effort, progress)?;
    progress("today");
    let today = today::run(effort)?;
    let (mut findings, mut series) = (claims::findings(&study), claims::series(&study));
    findings.extend(today::findings(&today));
    series.extend(today::series(&today));
    let mut assumptions = footprint::assumptions();
    assumptions.push(today::assumption());
    Ok(Ran { machine: "sa1100".into(), assumptions, findings, series })
};
