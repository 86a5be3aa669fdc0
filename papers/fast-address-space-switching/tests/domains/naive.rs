//! What every access has to give: pages by process, words by frame, and neither TLB nor cache.

use std::collections::{BTreeMap, HashMap};

use lookaside_fast_address_space_switching::domains::{
    AddressSpaceError, Denied, ProcessId, PAGE_BYTES, PAGE_SHIFT, SLOT_SHIFT,
};

use crate::processor::initial;

#[derive(Clone, Copy, Debug)]
pub struct NaivePage {
    pub frame: u32,
    pub writable: bool,
    pub region: Option<usize>,
}

#[derive(Default)]
pub struct NaiveProcess {
    pub slot: u8,
    /// By page number.
    pub pages: BTreeMap<u32, NaivePage>,
}

#[derive(Default)]
pub struct Naive {
    pub kernel_start: u32,
    pub processes: BTreeMap<usize, NaiveProcess>,
    /// By frame and word; what nobody wrote is [`initial`].
    pub memory: HashMap<(u32, u32), u32>,
}

impl Naive {
    pub fn create(&mut self, process: usize, id: ProcessId) {
        self.processes.insert(process, NaiveProcess { slot: id.slot(), pages: BTreeMap::new() });
    }

    /// As if everything were flushed on each switch: there is nothing to flush.
    pub fn access(&mut self, running: Option<usize>, addr: u32, store: Option<u32>) -> Result<u32, Denied> {
        let process = running.and_then(|running| self.processes.get(&running)).ok_or(Denied::Nobody)?;
        if addr >= self.kernel_start {
            return Err(Denied::Kernel);
        }
        // By the processor's rule, a process's own slot is its low 32 MiB seen again.
        let in_own_slot = addr >> SLOT_SHIFT == u32::from(process.slot);
        let addr = if in_own_slot { addr & ((1 << SLOT_SHIFT) - 1) } else { addr };
        let page = *process.pages.get(&(addr >> PAGE_SHIFT)).ok_or(Denied::Unmapped)?;
        let word = addr % PAGE_BYTES / 4;
        if let Some(value) = store {
            if !page.writable {
                return Err(Denied::ReadOnly);
            }
            self.memory.insert((page.frame, word), value);
        }
        Ok(self.memory.get(&(page.frame, word)).copied().unwrap_or(initial(page.frame, word)))
    }

    /// What a fixed range of a process has to be refused for.
    pub fn refuses_range(&self, process: usize, addr: u32, pages: u32) -> Option<AddressSpaceError> {
        let Some(process) = self.processes.get(&process) else { return Some(AddressSpaceError::NoProcess) };
        if let Some(error) = self.refuses_addresses(addr, pages) {
            return Some(error);
        }
        let range = addr >> PAGE_SHIFT..(addr >> PAGE_SHIFT) + pages;
        let low = 1 << (SLOT_SHIFT - PAGE_SHIFT);
        let own = |page: &u32| *page >= low && page / low == u32::from(process.slot);
        if range.clone().any(|page| own(&page)) {
            return Some(AddressSpaceError::OwnSlot { addr, slot: process.slot });
        }
        let taken = range.clone().find(|page| process.pages.contains_key(page));
        taken.map(|page| AddressSpaceError::Taken { addr: page << PAGE_SHIFT })
    }

    /// What a range has to be refused for, whoever asks.
    pub fn refuses_addresses(&self, addr: u32, pages: u32) -> Option<AddressSpaceError> {
        let end = u64::from(addr) + u64::from(pages) * u64::from(PAGE_BYTES);
        if pages == 0 {
            Some(AddressSpaceError::Empty)
        } else if !addr.is_multiple_of(PAGE_BYTES) {
            Some(AddressSpaceError::Unaligned { addr, to: PAGE_BYTES })
        } else if end > 1 << 32 {
            Some(AddressSpaceError::OverTheEnd { addr, pages })
        } else if end > u64::from(self.kernel_start) {
            Some(AddressSpaceError::Kernel { addr, pages, kernel_start: self.kernel_start })
        } else {
            None
        }
    }

    /// What an `unmap` has to be refused for.
    pub fn refuses_unmap(&self, process: usize, addr: u32, pages: u32) -> Option<AddressSpaceError> {
        let Some(process) = self.processes.get(&process) else { return Some(AddressSpaceError::NoProcess) };
        if let Some(error) = self.refuses_addresses(addr, pages) {
            return Some(error);
        }
        (addr >> PAGE_SHIFT..(addr >> PAGE_SHIFT) + pages).find_map(|page| match process.pages.get(&page) {
            None => Some(AddressSpaceError::NotMapped { addr: page << PAGE_SHIFT }),
            Some(NaivePage { region: Some(_), .. }) => Some(AddressSpaceError::OfRegion { addr: page << PAGE_SHIFT }),
            Some(_) => None,
        })
    }

    pub fn map(&mut self, process: usize, addr: u32, pages: u32, first: NaivePage) {
        let of = self.processes.get_mut(&process).expect("it lives");
        for n in 0..pages {
            let page = NaivePage { frame: first.frame + n, ..first };
            assert!(of.pages.insert((addr >> PAGE_SHIFT) + n, page).is_none(), "{addr:#x} was taken");
        }
    }
}
