//! Which TLB arrays hold entries of page directories too: a walk that finds one there begins below it (`SEMANTICS.md`
//! §6).

use lookaside_machine::{Machine, TableLevel};

use crate::classes::{BASE, CLASSES, HUGE};

/// The table level whose entries point to leaf tables.
const DIRECTORY_LEVEL: u32 = 2;

/// The arrays, and what their entries of directories are.
#[derive(Debug)]
pub(crate) struct Directories {
    /// Numbers in the machine file, ascending.
    pub(crate) arrays: Vec<usize>,
    /// Low bit, in an address, of an entry's number.
    pub(crate) low_bit: u32,
    /// Position of their level among the table's, ascending: those before it are read after a hit.
    pub(crate) position: usize,
    /// By class: do walks for its leaves go through entries of the kind?
    pub(crate) lead_to: [bool; CLASSES],
}

impl Directories {
    /// `leaf_at`: position of each class's leaf; `in_parts`: the host holds the leaf by smaller pages.
    pub(crate) fn new(
        machine: &Machine,
        guest_levels: &[TableLevel],
        leaf_at: [usize; CLASSES],
        in_parts: [bool; CLASSES],
    ) -> Self {
        let position = guest_levels.iter().position(|level| level.level == DIRECTORY_LEVEL);
        // A leaf of the level is no page of any array where it is held in parts: it is an entry on the way to these.
        let leads_to = |class: usize| match position {
            Some(position) if leaf_at[class] == position => in_parts[class],
            Some(position) => leaf_at[class] < position,
            None => false,
        };
        let holds = |&number: &usize| machine.tlbs[number].directory_entries;
        Self {
            arrays: (0..machine.tlbs.len()).filter(|number| position.is_some() && holds(number)).collect(),
            low_bit: position.map_or(0, |at| guest_levels[at].index_low_bit),
            position: position.unwrap_or_default(),
            lead_to: [BASE, HUGE].map(leads_to),
        }
    }

    /// Some array holds such entries.
    pub(crate) fn are_held(&self) -> bool {
        !self.arrays.is_empty()
    }
}
