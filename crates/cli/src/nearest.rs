//! The preset nearest to the running CPU, and what was measured put over it.

use lookaside_host::CpuInfo;
use lookaside_machine::{nearest_preset, preset, CpuId, Machine};
use lookaside_probe::ProbeReport;

use crate::exit::Failure;

/// The preset nearest to the running CPU, and a sentence that says how near it is.
pub fn nearest() -> (&'static str, String) {
    nearest_preset(&CpuId::from_cpuinfo(CpuInfo::here().text()))
}

/// The description that a report makes of this machine, over the nearest preset.
pub fn described(report: &ProbeReport) -> Result<Machine, Failure> {
    let (nearest, _) = nearest();
    let mut machine = report.machine(&preset(nearest)?);
    machine.name = "this".into();
    machine.check()?;
    Ok(machine)
}
