//! Accesses on the short path, gathered: what the stages need of each, in arrays beside each other.

use std::ops::Range;

use lookaside_trace::{Block, Kind};

use crate::ask::Isa;
use crate::engine::Engine;
use crate::group::{Starts, MOST_ROWS};
use crate::ladder::ROUTES;
use crate::plan::{BASE, CLASSES};
use crate::slots::tlb_route;
use crate::tally::Tally;
use crate::walk_stages::{Requests, Walks};
use crate::window::Left;

/// Most items of a batch: what is known of them stays in a first-level cache, and their fields in a [`crate::ladder`]
/// word.
pub(crate) const MOST: usize = 256;

/// In `next`: the item before is to the same page by the same route, so that the first stage has it, and is not changed
/// by it.
pub(crate) const AGAIN: u8 = 0x80;

/// Accesses, each standing for others that are alike: of one kind, to one page (and line, where data caches are asked),
/// one after the other.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) isa: Isa,
    /// Items that make it full.
    pub(crate) most: usize,
    /// Items that make this one full.
    pub(crate) limit: usize,
    /// Items among which the next one looks for pages that leave windows.
    pub(crate) reach: usize,
    pub(crate) len: usize,
    /// The groups of alike ones, from the first row looked at; the group of the first item, whom the others follow.
    pub(crate) starts: Starts,
    pub(crate) first_row: usize,
    pub(crate) first_group: usize,
    pub(crate) addr: [u64; MOST],
    /// Where in `Places` its chunk is, and what that says of its tags.
    pub(crate) at: [u16; MOST],
    pub(crate) tags: [[u32; 4]; MOST],
    /// Physical address of the chunk, or [`crate::places::SCATTERED`].
    pub(crate) frame: [u64; MOST],
    /// All routes, ORed; and the top bit if some chunk is scattered.
    pub(crate) flags: u8,
    /// Route through the TLBs, and the stage it is at; with [`AGAIN`].
    pub(crate) route: [u8; MOST],
    pub(crate) next: [u8; MOST],
    /// Its page's row.
    pub(crate) row: [u32; MOST],
    /// Touched pages around it, where they matter.
    pub(crate) marks: [u64; MOST],
    /// Cost of its hit, where that is not the stage's.
    pub(crate) hit_units: [u64; MOST],
    /// Pages that leave a window before some item.
    pub(crate) leaves: Vec<Left>,
    pub(crate) lists: Lists,
    pub(crate) walks: Walks,
    pub(crate) requests: Requests,
    pub(crate) tally: Tally,
}

impl Batch {
    /// Is some page huge?
    pub(crate) fn has_huge(&self) -> bool {
        usize::from(self.flags) % CLASSES != BASE
    }

    /// Do some chunk's bytes not follow each other in physical memory?
    pub(crate) fn has_scattered(&self) -> bool {
        self.flags >> 7 != 0
    }

    /// Rows of a group, in the block.
    pub(crate) fn rows_of(&self, group: usize) -> Range<usize> {
        self.first_row + usize::from(self.starts[group])..self.first_row + usize::from(self.starts[group + 1])
    }

    /// An item's first row in the block.
    #[inline]
    pub(crate) fn first_of(&self, item: usize) -> usize {
        self.rows_of(self.first_group + item).start
    }

    /// An item's recorded accesses.
    #[inline]
    pub(crate) fn count_of(&self, item: usize) -> u64 {
        self.rows_of(self.first_group + item).len() as u64
    }

    /// Left-out repeats of all of an item's accesses.
    #[inline]
    pub(crate) fn repeats_of(&self, item: usize, block: &Block) -> u64 {
        let rows = self.rows_of(self.first_group + item);
        match block.repeat.get(rows.clone()) {
            Some([repeats]) => u64::from(*repeats),
            _ => rows.map(|row| u64::from(block.repeat.get(row).copied().unwrap_or(0))).sum(),
        }
    }

    /// Counts items, accesses and repeats.
    pub(crate) fn count(&mut self, block: &Block) {
        if self.has_huge() {
            for item in 0..self.len {
                let route = usize::from(self.route[item]) % ROUTES;
                self.tally.items[route] += 1;
                self.tally.accesses[route] += self.count_of(item);
                self.tally.repeats[route] += self.repeats_of(item, block);
            }
            return;
        }
        let rows = self.first_of(0)..self.rows_of(self.first_group + self.len - 1).end;
        let kinds = &block.kind[rows.clone()];
        let repeats = block.repeat.get(rows.start..rows.end.min(block.repeat.len())).unwrap_or(&[]);
        for kind in [Kind::Load, Kind::Store, Kind::Fetch] {
            let route = tlb_route(kind as usize, BASE);
            let of_route = |&&its: &&u8| usize::from(its) == route;
            self.tally.items[route] += count_bytes(&self.route[..self.len], of_route);
            self.tally.accesses[route] += count_bytes(kinds, |&&its| its == kind);
            let of_kind = kinds.iter().zip(repeats).map(|(&its, &n)| if its == kind { u64::from(n) } else { 0 });
            self.tally.repeats[route] += of_kind.sum::<u64>();
        }
    }
}

impl Engine {
    /// For tests: work in batches of so many items at most; `plainly`: in instructions that every processor of the
    /// architecture has. Nothing comes out different.
    #[doc(hidden)]
    pub fn in_batches_of(&mut self, items: usize, plainly: bool) {
        let isa = if plainly { Isa::Baseline } else { Isa::here() };
        self.batch = Some(Box::new(Batch { most: items.clamp(1, MOST), isa, ..Batch::default() }));
    }
}

/// How many bytes are such, in steps that a byte can count.
fn count_bytes<T>(bytes: &[T], is_such: impl Fn(&&T) -> bool) -> u64 {
    let count = |few: &[T]| few.iter().fold(0u8, |n, byte| n + u8::from(is_such(&byte)));
    bytes.chunks(255).map(|few| u64::from(count(few))).sum()
}

/// A stage's list of keys, and what came of it.
#[derive(Debug)]
pub(crate) struct Lists {
    /// The items.
    pub(crate) items: [u16; MOST_KEYS],
    pub(crate) sets: [u32; MOST_KEYS],
    pub(crate) words: [u32; MOST_KEYS],
    pub(crate) seconds: [u32; MOST_KEYS],
    pub(crate) bits: [u32; MOST],
    pub(crate) missed: [u16; MOST_KEYS],
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            isa: Isa::here(),
            most: MOST,
            limit: MOST,
            reach: MOST,
            len: 0,
            starts: [0; MOST_ROWS + 1],
            first_row: 0,
            first_group: 0,
            addr: [0; MOST],
            at: [0; MOST],
            tags: [[0; 4]; MOST],
            frame: [0; MOST],
            flags: 0,
            route: [0; MOST],
            next: [0; MOST],
            row: [0; MOST],
            marks: [0; MOST],
            hit_units: [0; MOST],
            leaves: Vec::new(),
            lists: Lists {
                items: [0; MOST_KEYS],
                sets: [0; MOST_KEYS],
                words: [0; MOST_KEYS],
                seconds: [0; MOST_KEYS],
                bits: [0; MOST],
                missed: [0; MOST_KEYS],
            },
            walks: Walks::default(),
            requests: Requests::default(),
            tally: Tally::default(),
        }
    }
}

/// Room for a list of keys: a batch's references to page tables, and its own lines.
pub(crate) const MOST_KEYS: usize = (MOST * (crate::places::MOST + 1)).next_power_of_two();
