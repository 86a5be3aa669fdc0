//! Machine descriptions by name: a preset, a file, or the preset nearest to the running CPU.

use lookaside_host::CpuInfo;
use lookaside_machine::{nearest_preset, CpuId, Machine};

use crate::exit::Failure;

/// The machine of this name: a preset, or else a file.
pub fn find(name: &str) -> Result<Machine, Failure> {
    if name.contains(['/', '.']) {
        return Ok(lookaside_machine::load(name)?);
    }
    Ok(lookaside_machine::preset(name)?)
}

/// The preset nearest to the running CPU, and a sentence that says how near it is.
pub fn nearest() -> (&'static str, String) {
    nearest_preset(&CpuId::from_cpuinfo(CpuInfo::here().text()))
}

/// The machine of this name; without one the preset nearest to the running CPU, said on standard error.
pub fn find_or_nearest(name: Option<&str>) -> Result<Machine, Failure> {
    match name {
        Some(name) => find(name),
        None => {
            let (name, reason) = nearest();
            eprintln!("lookaside: machine {name}: {reason}");
            find(name)
        }
    }
}
