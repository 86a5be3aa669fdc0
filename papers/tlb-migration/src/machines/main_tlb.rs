//! The Cortex-A7's TLBs: a micro TLB of page numbers, and the main TLB, whose entries are the words that its registers
//! show.

use std::collections::VecDeque;

use lookaside_stats::SplitMix64;

use super::paging::Leaf;
use crate::interface::{ArmPageSize, Descriptor, InterfaceError, ReadOperation, A7_SETS, A7_WAYS};

/// What an entry is found by: the page's number, or the section's above all pages'.
fn key(page: ArmPageSize, v_page: u32) -> u32 {
    match page {
        ArmPageSize::Small | ArmPageSize::Large => v_page,
        ArmPageSize::Section | ArmPageSize::Supersection => 1 << 20 | v_page >> 8,
    }
}

/// Pages of the most recent misses, first in, first out.
#[derive(Clone, Debug)]
pub(super) struct MicroTlb {
    keys: VecDeque<u32>,
    entries: usize,
}

impl MicroTlb {
    pub(super) fn new(entries: u32) -> Self {
        Self { keys: VecDeque::with_capacity(entries as usize), entries: entries as usize }
    }

    pub(super) fn finds(&self, leaf: &Leaf) -> bool {
        self.keys.contains(&key(leaf.page, leaf.v_page))
    }

    pub(super) fn fill(&mut self, leaf: &Leaf) {
        if self.keys.len() == self.entries {
            self.keys.pop_front();
        }
        self.keys.push_back(key(leaf.page, leaf.v_page));
    }

    pub(super) fn flush(&mut self) {
        self.keys.clear();
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct DescriptorSlot {
    key: u32,
    registers: [u32; 3],
}

impl DescriptorSlot {
    fn valid(&self) -> bool {
        self.registers[0] & 1 != 0
    }
}

/// 128 sets of two ways, random replacement (not published; the preset's).
#[derive(Clone, Debug)]
pub(super) struct MainTlb {
    slots: Vec<DescriptorSlot>,
    random: SplitMix64,
}

impl MainTlb {
    pub(super) fn new(seed: u64) -> Self {
        let entries = usize::from(A7_SETS) * usize::from(A7_WAYS);
        Self { slots: vec![DescriptorSlot::default(); entries], random: SplitMix64::new(seed) }
    }

    fn at(way: usize, set: usize) -> usize {
        way * usize::from(A7_SETS) + set
    }

    /// The low seven bits of the page's number (section 3.2); of a section's, likewise.
    fn set(key: u32) -> usize {
        (key & (u32::from(A7_SETS) - 1)) as usize
    }

    fn ways(key: u32) -> [usize; A7_WAYS as usize] {
        [Self::at(0, Self::set(key)), Self::at(1, Self::set(key))]
    }

    pub(super) fn finds(&self, leaf: &Leaf) -> bool {
        let key = key(leaf.page, leaf.v_page);
        Self::ways(key).into_iter().any(|at| self.slots[at].valid() && self.slots[at].key == key)
    }

    /// Takes in what a walk found.
    ///
    /// # Errors
    /// It has no code as a descriptor.
    pub(super) fn fill(&mut self, leaf: &Leaf, asid: u8) -> Result<(), InterfaceError> {
        let key = key(leaf.page, leaf.v_page);
        let section = leaf.page == ArmPageSize::Section;
        let descriptor = Descriptor {
            valid: true,
            // 4 KiB, or 1 MiB in VMSAv7's format.
            size: if section { 0b100 } else { 0 },
            s1_size: if section { 2 } else { 0 },
            va: (key >> 7) as u16 & 0x1fff,
            asid,
            not_global: !leaf.global,
            ap: leaf.ap,
            pa: leaf.p_page,
            domain: 1,
            ..Descriptor::default()
        };
        let ways = Self::ways(key);
        let at = match ways.into_iter().find(|at| !self.slots[*at].valid()) {
            Some(at) => at,
            None => ways[self.random.below_u32(A7_WAYS.into()) as usize],
        };
        self.slots[at] = DescriptorSlot { key, registers: descriptor.encode()? };
        Ok(())
    }

    /// Data Register 0 to 2 after a write to the operation register.
    ///
    /// # Errors
    /// The register cannot contain that.
    pub(super) fn read(&self, operation: u32) -> Result<[u32; 3], InterfaceError> {
        let at = ReadOperation::decode(operation)?;
        Ok(self.slots[Self::at(at.way().into(), at.index().into())].registers)
    }

    pub(super) fn flush(&mut self) {
        self.slots.fill(DescriptorSlot::default());
    }
}
