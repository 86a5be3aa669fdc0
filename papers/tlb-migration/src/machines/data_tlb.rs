//! The simulated machine's data TLB: fully associative, in the order of use. Beyond the paper, its entries have ages.

use std::num::NonZeroU32;

use super::paging::PAGE_SHIFT;
use crate::interface::{Entry, Slot, Slots, AGES};

/// Fully associative, LRU. Index 0 is the entry used last: gem5's `TLB::insert` and `lookup` keep the table in that
/// order.
///
/// Ages are what hardware could count: a counter of three bits an entry, which a use sets to zero, and a divider of the
/// TLB's lookups. Each time that it comes to its period, the counters of the address space that runs, and of global
/// entries, go up by one, to seven at most. So an address space does not age while another runs.
#[derive(Clone, Debug)]
pub(super) struct DataTlb {
    slots: Vec<Slot>,
    entries: usize,
    /// Lookups from one tick to the next; none: ages are not counted.
    period: Option<NonZeroU32>,
    /// Lookups since the last tick.
    since_tick: u64,
    pub(super) restored: Restored,
}

/// Entries of programs that an interface wrote into TLBs. Global ones are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// How many.
    pub entries: u64,
    /// Of these, the ones that were used before they were put out.
    pub used: u64,
}

impl DataTlb {
    pub(super) fn new(entries: usize) -> Self {
        let slots = Vec::with_capacity(entries);
        Self { slots, entries, period: None, since_tick: 0, restored: Restored::default() }
    }

    /// What it has, the entry used last first.
    pub(super) fn held(&self) -> &[Slot] {
        &self.slots
    }

    /// Ages are counted by so many lookups from now on.
    pub(super) fn count_ages(&mut self, period: NonZeroU32) {
        self.period = Some(period);
    }

    /// An access: the entry, which is now the one used last.
    pub(super) fn find(&mut self, asid: u8, v_page: u32) -> Option<Entry> {
        self.look_up(asid, 1);
        let at = self.slots.iter().position(|slot| matches(&slot.entry, asid, v_page))?;
        self.slots[..=at].rotate_right(1);
        let slot = &mut self.slots[0];
        self.restored.used += u64::from(!slot.used && !slot.entry.global);
        (slot.used, slot.age) = (true, 0);
        Some(slot.entry)
    }

    /// So many more accesses to the page that was accessed last.
    pub(super) fn repeat(&mut self, asid: u8, count: u64) {
        self.look_up(asid, count);
        self.slots.first_mut().into_iter().for_each(|slot| slot.age = 0);
    }

    /// A walk found it.
    pub(super) fn fill(&mut self, entry: Entry) {
        self.take_in(Slot { entry, used: true, age: 0 });
    }

    pub(super) fn drop_page(&mut self, asid: u8, v_page: u32) {
        self.slots.retain(|slot| !matches(&slot.entry, asid, v_page));
    }

    pub(super) fn flush(&mut self) {
        self.slots.clear();
    }

    fn look_up(&mut self, asid: u8, count: u64) {
        let Some(period) = self.period else { return };
        self.since_tick += count;
        if self.since_tick < u64::from(period.get()) {
            return;
        }
        let ticks = (self.since_tick / u64::from(period.get())).min(AGES.into()) as u8;
        self.since_tick %= u64::from(period.get());
        for slot in self.slots.iter_mut().filter(|slot| slot.entry.global || slot.entry.asid == asid) {
            slot.age = (slot.age + ticks).min(AGES - 1);
        }
    }

    fn take_in(&mut self, slot: Slot) {
        self.drop_page(slot.entry.asid, slot.entry.v_page);
        self.slots.truncate(self.entries - 1);
        self.slots.insert(0, slot);
    }
}

impl Slots for DataTlb {
    fn slots(&self) -> u32 {
        self.entries as u32
    }

    fn slot(&self, index: u32) -> Option<Slot> {
        self.slots.get(index as usize).copied()
    }

    fn insert(&mut self, entry: Entry) {
        self.restored.entries += u64::from(!entry.global);
        self.take_in(Slot { entry, used: false, age: 0 });
    }
}

fn matches(entry: &Entry, asid: u8, v_page: u32) -> bool {
    let size = !((1 << (entry.page.shift() - PAGE_SHIFT)) - 1);
    entry.v_page == v_page & size && (entry.global || entry.asid == asid)
}
