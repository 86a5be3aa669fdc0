//! TLB arrays that hold entries of page directories too: a walk that finds one there begins below it (`SEMANTICS.md` §6).

use lookaside_machine::{Machine, TableLevel};

use crate::levels::held_under;
use crate::lru::Access as Filled;
use crate::parts::KERNEL_ID;
use crate::plan::{Plan, BASE, CLASSES, HUGE};
use crate::tlb::Wanted;
use crate::trace_hook::Tracer;
use crate::walker::{WalkFor, Walker};

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

impl<T: Tracer> Walker<'_, T> {
    /// Asks the arrays in turn for the directory's entry.
    pub(crate) fn ask_directories(&mut self) -> bool {
        let directories = &self.plan.directories;
        if !directories.lead_to[self.of.class] {
            return false;
        }
        for (place, &array) in directories.arrays.iter().enumerate() {
            let wanted = self.wanted_directory(array);
            let hit = self.parts.tlbs[self.of.slots.tlbs[array]].access(&wanted);
            let (lookups, hits) = &mut self.counts.walk_caches[self.plan.walk_caches.len() + place][self.of.side];
            *lookups += 1;
            if hit {
                *hits += 1;
                return true;
            }
        }
        false
    }

    /// Fills the entry of this position if it is a directory's: it was just read.
    pub(crate) fn fill_directories(&mut self, position: usize) {
        let directories = &self.plan.directories;
        if position != directories.position || !directories.lead_to[self.of.class] {
            return;
        }
        for &array in &self.plan.directories.arrays {
            let wanted = self.wanted_directory(array);
            let filled = self.parts.tlbs[self.of.slots.tlbs[array]].fill(&wanted, wanted.bit, 0);
            let tally = &mut self.counts.tlbs[array];
            tally.fills += u64::from(filled != Filled::Hit);
            tally.evictions += u64::from(filled == Filled::Evicted);
        }
    }

    fn wanted_directory(&mut self, array: usize) -> Wanted {
        let plan: &Plan = self.plan;
        let WalkFor { id, run_id, hw, va, .. } = self.of;
        let tlb = &plan.tlbs[array];
        let holder = tlb.holder(plan, held_under(tlb, id == KERNEL_ID, run_id), hw);
        tlb.wanted_directory(plan, &mut self.parts.tags, holder, va)
    }
}
