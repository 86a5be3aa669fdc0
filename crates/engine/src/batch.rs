//! A batch of accesses as a structure of arrays: what each stage of their path (`access.rs`) needs of them.

use std::ops::Range;

use lookaside_trace::{Block, Kind};

use crate::batch_tally::BatchTally;
use crate::chunks::{IS_SCATTERED, MAY_BE_LOCKED};
use crate::classes::{BASE, CLASSES};
use crate::data_cache::NO_LINE;
use crate::lookup::SimdLevel;
use crate::plan::EnginePlan;
use crate::routing::tlb_route;
use crate::row_groups::{GroupStarts, MAX_ROWS};
use crate::stages::{MAX_ITEMS, MAX_KEYS, MAX_ROUTES};
use crate::trace_hook::SeenAccesses;
use crate::walk_cost::WalkCost;
use crate::window::LeavingPage;

/// Accesses, each standing for others that are alike: of one kind, to one page (and line, where data caches are asked),
/// one after the other.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) simd: SimdLevel,
    /// Most items of any batch; of one of those accesses that are now made.
    pub(crate) most: usize,
    pub(crate) most_now: usize,
    /// Most items of this batch.
    pub(crate) limit: usize,
    /// Items among which the next one looks for pages that leave windows.
    pub(crate) reach: usize,
    pub(crate) len: usize,
    /// The groups of alike ones, from the first row looked at; the group of the first item, whom the others follow.
    pub(crate) starts: GroupStarts,
    pub(crate) first_row: usize,
    pub(crate) first_group: usize,
    pub(crate) addr: [u64; MAX_ITEMS],
    /// Number of its chunk in `KnownChunks`, and the chunk's first tag [as most arrays name
    /// it](crate::plan::EnginePlan::usual_name).
    pub(crate) at: [u32; MAX_ITEMS],
    pub(crate) tags: [u32; MAX_ITEMS],
    /// All routes and the codes of all chunks, ORed.
    pub(crate) flags: u8,
    /// All routes, a bit each.
    pub(crate) routes: u8,
    /// Route through the TLBs, and the stage it is at; with [`SAME_PAGE`].
    pub(crate) route: [u8; MAX_ITEMS],
    pub(crate) next: [u8; MAX_ITEMS],
    /// Its page's row.
    pub(crate) row: [u32; MAX_ITEMS],
    /// Touched pages around it, where they matter.
    pub(crate) marks: [u64; MAX_ITEMS],
    /// The array that has it, where its stage is of several.
    pub(crate) array: [u32; MAX_ITEMS],
    /// Pages that leave a window before some item.
    pub(crate) leaves: Vec<LeavingPage>,
    pub(crate) lists: KeyLists,
    pub(crate) walks: BatchWalks,
    /// The walks asked the walk caches as lists.
    pub(crate) walks_by_lists: bool,
    pub(crate) requests: CacheRequests,
    /// By item: which request is for its own line.
    pub(crate) line_at: [u16; MAX_ITEMS],
    pub(crate) tally: BatchTally,
    /// Whether each access is a batch, and what each did.
    pub(crate) seen: SeenAccesses,
}

impl Batch {
    /// Is some page huge?
    pub(crate) fn has_huge(&self) -> bool {
        usize::from(self.flags) % CLASSES != BASE
    }

    /// The route of all items, if it is one.
    pub(crate) fn only_route(&self) -> Option<usize> {
        self.routes.is_power_of_two().then(|| self.routes.trailing_zeros() as usize)
    }

    /// Do some chunk's bytes not follow each other in physical memory?
    pub(crate) fn has_scattered(&self) -> bool {
        self.flags & IS_SCATTERED != 0
    }

    /// May some page be locked?
    pub(crate) fn has_locks(&self) -> bool {
        self.flags & MAY_BE_LOCKED != 0
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

    /// Position in its route of the data cache that served an item, the route's length being memory; none if it asks none.
    pub(crate) fn position_of_line(&self, plan: &EnginePlan, item: usize, kind: usize) -> Option<usize> {
        let route = &plan.data_route[kind];
        let server = plan.cache_order.get(usize::from(self.requests.next[usize::from(self.line_at[item])]));
        let position = || server.and_then(|server| route.iter().position(|number| number == server));
        (!route.is_empty()).then(|| position().unwrap_or(route.len()))
    }

    /// Counts items, accesses and repeats.
    pub(crate) fn count(&mut self, block: &Block) {
        if self.has_huge() || self.len < FEW_ITEMS {
            for item in 0..self.len {
                let route = usize::from(self.route[item]) % MAX_ROUTES;
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

/// Fewer items are counted one by one: to look at all of a kind takes longer.
const FEW_ITEMS: usize = 8;

/// How many bytes are such, in steps that a byte can count.
fn count_bytes<T>(bytes: &[T], is_such: impl Fn(&&T) -> bool) -> u64 {
    let count = |few: &[T]| few.iter().fold(0u8, |n, byte| n + u8::from(is_such(&byte)));
    bytes.chunks(255).map(|few| u64::from(count(few))).sum()
}

/// The keys that a stage looks up, and the positions of those that it missed.
#[derive(Debug)]
pub(crate) struct KeyLists {
    /// The items.
    pub(crate) items: [u16; MAX_KEYS],
    pub(crate) sets: [u32; MAX_KEYS],
    pub(crate) words: [u32; MAX_KEYS],
    pub(crate) seconds: [u32; MAX_KEYS],
    pub(crate) bits: [u32; MAX_ITEMS],
    pub(crate) missed: [u16; MAX_KEYS],
}

/// A batch's walks.
#[derive(Debug)]
pub(crate) struct BatchWalks {
    pub(crate) len: usize,
    pub(crate) items: [u16; MAX_ITEMS],
    /// Route through the walk caches, and the one that it is at.
    pub(crate) route: [u8; MAX_ITEMS],
    pub(crate) next: [u8; MAX_ITEMS],
    /// Position that its reading ends before, and its first request.
    pub(crate) to: [u8; MAX_ITEMS],
    pub(crate) request: [u16; MAX_ITEMS],
    pub(crate) costs: [WalkCost; MAX_ITEMS],
    /// What walks read that went one by one, in order.
    pub(crate) entries: Vec<u64>,
}

impl Default for BatchWalks {
    fn default() -> Self {
        Self {
            len: 0,
            items: [0; MAX_ITEMS],
            route: [0; MAX_ITEMS],
            next: [0; MAX_ITEMS],
            to: [0; MAX_ITEMS],
            request: [0; MAX_ITEMS],
            costs: [WalkCost::default(); MAX_ITEMS],
            entries: Vec::new(),
        }
    }
}

/// A batch's requests to the data caches, in order.
#[derive(Debug)]
pub(crate) struct CacheRequests {
    pub(crate) len: usize,
    pub(crate) physical: [u64; MAX_KEYS],
    /// The line that the cache asked last threw out for it, where it hands that on.
    pub(crate) thrown_out: [u64; MAX_KEYS],
    /// Route through the data caches, and the one that it is at.
    pub(crate) route: [u8; MAX_KEYS],
    pub(crate) next: [u8; MAX_KEYS],
}

impl Default for CacheRequests {
    fn default() -> Self {
        Self {
            len: 0,
            physical: [0; MAX_KEYS],
            thrown_out: [NO_LINE; MAX_KEYS],
            route: [0; MAX_KEYS],
            next: [0; MAX_KEYS],
        }
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            simd: SimdLevel::detect(),
            most: MAX_ITEMS,
            most_now: MAX_ITEMS,
            limit: MAX_ITEMS,
            reach: MAX_ITEMS,
            len: 0,
            starts: [0; MAX_ROWS + 1],
            first_row: 0,
            first_group: 0,
            addr: [0; MAX_ITEMS],
            at: [0; MAX_ITEMS],
            tags: [0; MAX_ITEMS],
            flags: 0,
            routes: 0,
            route: [0; MAX_ITEMS],
            next: [0; MAX_ITEMS],
            row: [0; MAX_ITEMS],
            marks: [0; MAX_ITEMS],
            array: [0; MAX_ITEMS],
            leaves: Vec::new(),
            lists: KeyLists {
                items: [0; MAX_KEYS],
                sets: [0; MAX_KEYS],
                words: [0; MAX_KEYS],
                seconds: [0; MAX_KEYS],
                bits: [0; MAX_ITEMS],
                missed: [0; MAX_KEYS],
            },
            walks: BatchWalks::default(),
            walks_by_lists: false,
            requests: CacheRequests::default(),
            line_at: [0; MAX_ITEMS],
            tally: BatchTally::default(),
            seen: SeenAccesses::default(),
        }
    }
}
