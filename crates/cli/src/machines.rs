//! Machine descriptions by name: a preset, a file, the machine at hand, or the preset nearest to its CPU.

use lookaside_machine::Machine;

use crate::exit::Failure;
use crate::here::MachineHere;
use crate::nearest::nearest;
use crate::say::say;

/// The machine of this name: a preset, a file, or `this`, the machine at hand.
pub fn find(name: &str) -> Result<Machine, Failure> {
    if name == "this" {
        let here = MachineHere::find()?;
        if !here.measured {
            say(format_args!("machine {}: {}", here.machine.name, here.reason));
        }
        return Ok(here.machine);
    }
    if name.contains(['/', '.']) {
        return Ok(lookaside_machine::load(name)?);
    }
    Ok(lookaside_machine::preset(name)?)
}

/// A machine, and why it is this one.
pub struct ChosenMachine {
    /// Its description.
    pub machine: Machine,
    /// Why: asked for, measured, or the preset nearest to the running CPU.
    pub reason: String,
    /// It is a preset that nobody asked for.
    pub is_guess: bool,
}

impl ChosenMachine {
    /// The machine of this name. Without one the preset nearest to this CPU, where `probe` is off; else that which the
    /// environment variable `LOOKASIDE_MACHINE` names; else the machine at hand, measured at the first use.
    pub fn find(name: Option<&str>, probe: bool) -> Result<Self, Failure> {
        let of_name = |name: &str, reason: &str| -> Result<Self, Failure> {
            Ok(Self { machine: find(name)?, reason: reason.into(), is_guess: false })
        };
        if let Some(name) = name {
            return of_name(name, "asked for");
        }
        if !probe {
            let (name, reason) = nearest();
            return Ok(Self { machine: find(name)?, reason, is_guess: true });
        }
        if let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
            let name = name.to_str().ok_or_else(|| Failure::bad(format_args!("{VARIABLE}: not UTF-8")))?;
            return of_name(name, "LOOKASIDE_MACHINE names it");
        }
        let here = MachineHere::find()?;
        Ok(Self { machine: here.machine, reason: here.reason, is_guess: !here.measured })
    }

    /// The same, with a line on standard error where no name was given.
    pub fn find_aloud(name: Option<&str>, probe: bool) -> Result<Machine, Failure> {
        let chosen = Self::find(name, probe)?;
        if name.is_none() {
            say(format_args!("machine {}: {}", chosen.machine.name, chosen.reason));
        }
        Ok(chosen.machine)
    }
}

/// Names the machine where no argument does.
const VARIABLE: &str = "LOOKASIDE_MACHINE";
