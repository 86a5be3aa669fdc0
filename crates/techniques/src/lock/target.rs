//! Where a machine can lock pages, and how many.

use lookaside_machine::{Machine, Tlb};

use crate::plan::PlanError;

/// A TLB array with lockable entries, and how many of them a plan may fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTarget {
    /// The array's name.
    pub tlb: String,
    /// Entries.
    pub entries: u32,
}

impl LockTarget {
    /// The array of this name, else the only one that has lockable entries; so many of them, else all.
    ///
    /// # Errors
    /// The machine has none, or several and none is named, or fewer entries.
    pub fn find(machine: &Machine, tlb: Option<&str>, entries: Option<u32>) -> Result<Self, PlanError> {
        let impossible = |why: String| PlanError::Impossible(format!("{}: {why}", machine.name));
        let lockable: Vec<&Tlb> = machine.tlbs.iter().filter(|array| array.lockable_entries > 0).collect();
        let names = || lockable.iter().map(|array| array.name.as_str()).collect::<Vec<_>>().join(", ");
        if lockable.is_empty() {
            let why = "no TLB array has lockable entries; choose a machine that has some, such as cortex-a9";
            return Err(impossible(why.into()));
        }
        let array = match tlb {
            Some(name) => array(machine, name)?,
            None if lockable.len() == 1 => lockable[0],
            None => {
                return Err(impossible(format!("several TLB arrays have lockable entries; name one of {}", names())))
            }
        };
        let most = array.lockable_entries;
        match entries.unwrap_or(most) {
            _ if most == 0 => {
                Err(impossible(format!("TLB {:?} has no lockable entries; these have: {}", array.name, names())))
            }
            0 => Err(impossible("0 entries: nothing to plan; give at least 1".into())),
            asked if asked > most => Err(impossible(format!(
                "TLB {:?} has {most} lockable entries, not {asked}; a plan for them says what more would add",
                array.name
            ))),
            entries => Ok(Self { tlb: array.name.clone(), entries }),
        }
    }
}

/// The array of a name.
///
/// # Errors
/// There is none.
pub(super) fn array<'a>(machine: &'a Machine, name: &str) -> Result<&'a Tlb, PlanError> {
    machine.tlbs.iter().find(|array| array.name == name).ok_or_else(|| {
        let names: Vec<&str> = machine.tlbs.iter().map(|array| array.name.as_str()).collect();
        PlanError::Impossible(format!("{}: no TLB is named {name:?}; it has: {}", machine.name, names.join(", ")))
    })
}
