//! Address-space ids (ASIDs) in TLB entries, given out and reclaimed as an operating system does.

use crate::context::KERNEL;
use crate::hardware::Hardware;
use crate::plan::EnginePlan;
use crate::tags::KERNEL_ID;

/// The id of each space, and those that are free.
#[derive(Debug)]
pub(crate) struct SpaceIds {
    /// By space.
    ids: Vec<Option<u64>>,
    free: Vec<u64>,
    next: u64,
    max: u64,
}

impl SpaceIds {
    /// Ids up to `max`; the kernel's space, which comes first, has its own.
    pub(crate) fn new(max: u64) -> Self {
        Self { ids: vec![Some(KERNEL_ID)], free: Vec::new(), next: KERNEL_ID + 1, max }
    }

    /// Adds a space that has no id yet.
    pub(crate) fn add_space(&mut self) {
        self.ids.push(None);
    }

    /// The id of a space, if it has one: without, no entry is held under it.
    pub(crate) fn of(&self, space: usize) -> Option<u64> {
        self.ids[space]
    }

    /// Is there no id left to give out?
    pub(crate) fn are_used_up(&self) -> bool {
        self.next > self.max && self.free.is_empty()
    }

    /// Gives a space an id. The caller sees to it that there is one.
    pub(crate) fn give(&mut self, space: usize) -> u64 {
        let id = self.free.pop().unwrap_or(self.next);
        self.next = self.next.max(id + 1);
        self.ids[space] = Some(id);
        id
    }

    /// Takes back the ids that no entry is held under.
    #[cold]
    pub(crate) fn reclaim(&mut self, hardware: &mut Hardware, plan: &EnginePlan, invalidated: &mut [u64]) {
        let held = hardware.ids_held(plan);
        for id in &mut self.ids[KERNEL + 1..] {
            if let Some(free) = id.take_if(|id| !held.contains(id)) {
                self.free.push(free);
            }
        }
        if self.free.is_empty() {
            // More spaces hold entries than there are ids (over 250 even at 1024 threads and 57 bits):
            // as real ASID allocators do, start over with everything flushed.
            for id in &mut self.ids[KERNEL + 1..] {
                if let Some(id) = id.take() {
                    hardware.shoot_down(plan, id, None, invalidated);
                    self.free.push(id);
                }
            }
        }
    }
}

/// The processes that may have entries on a hardware thread, where their number is bounded: Linux keeps a few PCIDs for
/// each x86 CPU, and gives them out in turn.
#[derive(Clone, Debug)]
pub(crate) struct AsidSlots {
    processes: Vec<Option<u32>>,
    next: usize,
}

impl AsidSlots {
    /// So many free slots, at least one.
    pub(crate) fn new(slots: u32) -> Self {
        Self { processes: vec![None; slots as usize], next: 0 }
    }

    /// A process runs next: the process that loses its slot to it, if it had none and the next slot is taken.
    pub(crate) fn enter(&mut self, process: u32) -> Option<u32> {
        if self.processes.contains(&Some(process)) {
            return None;
        }
        let replaced = self.processes[self.next].replace(process);
        self.next = (self.next + 1) % self.processes.len();
        replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_in_turn_to_processes_that_have_none() {
        let mut slots = AsidSlots::new(2);
        let replaced: Vec<_> = [7, 8, 7, 9, 7, 8, 8].into_iter().map(|process| slots.enter(process)).collect();
        // 9 takes the slot of 7, though 8 was used longer ago; 7 that of 8, 8 that of 9.
        assert_eq!(replaced, [None, None, None, Some(7), Some(8), Some(9), None]);
    }
}
