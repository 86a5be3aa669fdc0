//! A slot of the recorder's filter: the access that the counts of left-out accesses belong to.

use lookaside_trace::{Block, Event, Kind};

/// One slot of the filter: the page that was recorded last, by what kind of access, and its row if it is in the block
/// of number `block`.
#[derive(Clone, Copy)]
pub(super) struct FilterSlot {
    pub(super) addr: u64,
    pub(super) row: u32,
    pub(super) kind: Kind,
    pub(super) block: u64,
}

/// Blocks count from 1.
pub(super) const NO_SLOT: FilterSlot = FilterSlot { addr: 0, row: 0, kind: Kind::Load, block: 0 };

/// The block under construction.
#[derive(Clone, Copy)]
pub(super) struct BlockUnderConstruction {
    /// Its number, from 1.
    pub(super) number: u64,
    /// The bits of an address that are recorded.
    pub(super) addr_mask: u64,
}

impl FilterSlot {
    /// Credits `count` accesses that were left out to the slot's row, or as an event before `row`.
    #[inline]
    pub(super) fn credit(self, count: u64, row: usize, current: BlockUnderConstruction, block: &mut Block) {
        if self.block == current.number {
            if let Some(repeat) = block.repeat.get_mut(self.row as usize) {
                if let Some(sum) = u32::try_from(count).ok().and_then(|count| repeat.checked_add(count)) {
                    *repeat = sum;
                    return;
                }
            }
        }
        if count != 0 {
            let (addr, kind) = (self.addr & current.addr_mask, self.kind);
            block.events.push((row as u32, Event::Repeats { addr, kind, count }));
        }
    }
}
