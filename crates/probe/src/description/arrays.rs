//! Finds and removes TLB arrays of a machine description.

use lookaside_machine::{Machine, PageSize, Serves, Tlb};

/// Whether an array is of this level and takes loads of 4 KiB pages.
pub(crate) fn serves(tlb: &Tlb, level: u32) -> bool {
    tlb.level == level && tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&PageSize::K4)
}

/// Drops arrays that are for no size any more, and what is said of them.
pub(crate) fn drop_empty(machine: &mut Machine) {
    for gone in machine.tlbs.iter().filter(|tlb| tlb.page_sizes.is_empty()) {
        let line = format!("tlb.{}:", gone.name);
        machine.not_determined.retain(|other| !other.starts_with(&line));
    }
    machine.tlbs.retain(|tlb| !tlb.page_sizes.is_empty());
}
