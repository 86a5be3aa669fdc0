//! Leaf page tables: 256 pages of a section each.

use super::address::SECTION_PAGES;
use super::hardware::WalkedPage;

/// Pages in a table.
const PAGES: usize = SECTION_PAGES as usize;

/// An entry of a leaf page table: a frame and what may be done with it, or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeafEntry(u32);

const FLAGS_BITS: u32 = 12;
const VALID: u32 = 1;
const WRITABLE: u32 = 2;
const UNCACHED: u32 = 4;
const OF_REGION: u32 = 8;

impl LeafEntry {
    /// Nothing.
    pub(super) const EMPTY: Self = Self(0);

    /// A page in this frame.
    pub(super) fn new(frame: u32, writable: bool) -> Self {
        Self(frame << FLAGS_BITS | VALID | if writable { WRITABLE } else { 0 })
    }

    /// The same, of a shared region.
    pub(super) fn of_region(self) -> Self {
        Self(self.0 | OF_REGION)
    }

    /// The same, kept out of caches.
    pub(super) fn uncached(self) -> Self {
        Self(self.0 | UNCACHED)
    }

    /// The same, so many frames on.
    pub(super) fn later(self, frames: u32) -> Self {
        Self(self.0 + (frames << FLAGS_BITS))
    }

    pub(super) fn is_valid(self) -> bool {
        self.0 & VALID != 0
    }

    pub(super) fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }

    pub(super) fn is_of_region(self) -> bool {
        self.0 & OF_REGION != 0
    }

    /// As a walk finds it under this domain.
    pub(super) fn page(self, domain: u8) -> Option<WalkedPage> {
        self.is_valid().then_some(WalkedPage {
            domain,
            frame: self.0 >> FLAGS_BITS,
            writable: self.is_writable(),
            cached: self.0 & UNCACHED == 0,
        })
    }
}

/// All leaf page tables, those that are free too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeafTables {
    tables: Vec<[LeafEntry; PAGES]>,
    /// Valid entries of each.
    used: Vec<u32>,
    free: Vec<u32>,
}

impl LeafTables {
    /// An empty table's number.
    pub(super) fn make(&mut self) -> u32 {
        if let Some(table) = self.free.pop() {
            return table;
        }
        self.tables.push([LeafEntry::EMPTY; PAGES]);
        self.used.push(0);
        (self.tables.len() - 1) as u32
    }

    /// Gives a table back. It is emptied; the caching page directory may go on naming it under a domain that nobody is
    /// granted.
    pub(super) fn give_back(&mut self, table: u32) {
        self.tables[table as usize] = [LeafEntry::EMPTY; PAGES];
        self.used[table as usize] = 0;
        self.free.push(table);
    }

    /// The entry of a page, by its page number's low bits.
    #[inline]
    pub(super) fn leaf(&self, table: u32, page: u32) -> LeafEntry {
        self.tables[table as usize][page as usize % PAGES]
    }

    /// Sets the entry of a page.
    pub(super) fn set(&mut self, table: u32, page: u32, leaf: LeafEntry) {
        let old = std::mem::replace(&mut self.tables[table as usize][page as usize % PAGES], leaf);
        let used = &mut self.used[table as usize];
        *used = *used + u32::from(leaf.is_valid()) - u32::from(old.is_valid());
    }

    /// Changes all valid entries of a table.
    pub(super) fn change(&mut self, table: u32, to: impl Fn(LeafEntry) -> LeafEntry) {
        self.tables[table as usize].iter_mut().filter(|leaf| leaf.is_valid()).for_each(|leaf| *leaf = to(*leaf));
    }

    /// A copy of a table, its entries marked as those of a shared region.
    pub(super) fn copy_of_region(&mut self, table: u32) -> u32 {
        let copy = self.make();
        self.tables[copy as usize] = self.tables[table as usize];
        self.used[copy as usize] = self.used[table as usize];
        self.change(copy, LeafEntry::of_region);
        copy
    }

    pub(super) fn is_empty(&self, table: u32) -> bool {
        self.used[table as usize] == 0
    }

    /// The first of so many free pages in a row, by its number in the section.
    pub(super) fn gap(&self, table: u32, pages: u32) -> Option<u32> {
        let mut run = 0;
        for (page, leaf) in (0..).zip(&self.tables[table as usize]) {
            run = if leaf.is_valid() { 0 } else { run + 1 };
            if run == pages {
                return Some(page + 1 - pages);
            }
        }
        None
    }
}
