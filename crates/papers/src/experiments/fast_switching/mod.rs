//! Fast address-space switching (Wiggins, Tuch, Uhlig, Heiser 2003) on preset `sa1100`: Linux and L4 that flush on each switch, and
//! with domains in place of flushes.

mod claims;
mod footprint;
mod study;
mod world;

use super::{Ran, Run};

/// All of it.
pub(super) const RUN: Run = |effort, progress| {
    let study = study::run(effort, progress)?;
    Ok(Ran {
        machine: "sa1100".into(),
        assumptions: footprint::assumptions(),
        findings: claims::findings(&study),
        series: claims::series(&study),
    })
};
