//! A heap whose pages only ever use chosen TLB sets (TLB coloring, Panchamukhi 2014).
//!
//! A *colour* is a [`Partition`] of the TLB: sets, level by level, and how many entries of each. All that is allocated with a colour
//! lies in pages of that colour, headers and links included; what the heap knows beyond lies in pages of the *bookkeeping*, which has a
//! partition of its own. Where the shares of all colours come to no more than the ways of each set, no allocation's use, and no call of
//! the heap, ever evicts another colour's translations.
//!
//! - Every call takes a bounded number of steps, whatever was allocated before: TLSF (Masmano et al. 2004) in each colour; where its lists promise no
//!   block, at most 48 more are looked at. `realloc` that
//!   must move copies; looking up a pointer's colour takes at most 15 steps (2^15 runs of pages).
//! - **Fragmentation**: with k allocations in use, u bytes in their blocks, r runs of pages and c bytes of pages, a colour has at most
//!   k + r free blocks, so one of at least (c − 16 r − u) / (k + r) bytes; an allocation of n bytes whose class (n + 24 bytes rounded up to 16, then
//!   up by at most a sixteenth) is no larger never fails. With up to 16 free blocks none fails that one of them can hold, so
//!   that an empty colour of up to 16 runs gives its longest run whole. A block is at most 39 bytes larger
//!   than what was asked for, and at least 32, at most 48 bytes for up to 24.
//! - Nothing is allocated after the heap was made, and no page is touched for the first time.
//!
//! ```
//! use lookaside_machine::{preset, PageSize};
//! use lookaside_runtime::color::{ColoredHeap, HeapOptions};
//!
//! let levels = preset("xeon-e5-2650")?.color_levels(PageSize::K4)[..1].to_vec();
//! // The paper's colours: 12 of one set each, 4 of four pages in a row.
//! let mut heap = ColoredHeap::new(&HeapOptions::paper(PageSize::K4, levels.clone(), 4)?)?;
//! let red = heap.malloc(100, 0);
//! assert_eq!(levels[0].set_of(red as u64 >> 12), 4);
//! // SAFETY: it came from there and is not used any more.
//! unsafe { heap.free(red) }?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod area;
mod bins;
mod block;
mod ffi;
mod forks;
mod growing;
mod heap;
mod huge;
mod layout;
mod pick;
mod pool;
mod runs;
mod shared;
mod spec;

use lookaside_machine::{ColorLevel, PageSize, Partition, Partitions, Share, BOOKKEEPING};

pub use growing::{GrowingHeap, Outside};
use heap::Heap;
pub use pool::{Fault, Stats};
pub use shared::SharedHeap;
pub use spec::spec;

/// Why there is no heap, or no stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeapError {
    /// What was asked for can't be had.
    #[error("{0}")]
    Asked(String),
    /// The system refused.
    #[error("{0}")]
    System(String),
}

/// What a heap is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct HeapOptions {
    /// Size of its pages.
    pub page_size: PageSize,
    /// Levels of the TLB that pages are chosen by.
    pub levels: Vec<ColorLevel>,
    /// The colours, by number: 1 to 256. Each needs `pages`, or a number of ways in each of its shares.
    pub colors: Vec<Partition>,
    /// What the heap's own pages may use; `None`: any.
    pub bookkeeping: Option<Partition>,
    /// Headers carry seals, so that pointers that were never given out, or freed before, and overruns are told. Without, only what
    /// is outside of the heap and most of what was freed before is.
    pub checked: bool,
    /// Pages are locked in memory (`mlock`).
    pub locked: bool,
}

impl HeapOptions {
    /// The colours of the paper's chapter 3, of the first of `levels`, with M sets and N ways: numbers 0 to M − R − 1 have one set each,
    /// of those from R on, and N pages (Equation 3.2: M − R colours); the N from M − R on have R contiguous pages, one in each of
    /// the sets below R (Equation 3.1, Corollary 1). The bookkeeping lies in set 0; with R = 0 in the last, beside that colour.
    ///
    /// # Errors
    /// There is no level, or R is more than M, or (indexes that are not linear) such runs do not exist.
    pub fn paper(page_size: PageSize, levels: Vec<ColorLevel>, reserved_sets: u32) -> Result<Self, HeapError> {
        let Some(level) = levels.first() else { return Err(HeapError::Asked("there is no level to colour".into())) };
        let (sets, ways) = (level.sets, level.ways);
        if reserved_sets > sets {
            return Err(HeapError::Asked(format!(
                "{reserved_sets} reserved sets are more than the {sets} of {}",
                level.name
            )));
        }
        let of = |name: String, sets: Vec<u32>, pages: u32, contiguous_pages: u32| Partition {
            name,
            pages: Some(u64::from(pages)),
            contiguous_pages: u64::from(contiguous_pages),
            shares: vec![Share { level: level.name.clone(), sets, ways: Some(pages.div_ceil(contiguous_pages)) }],
        };
        let small = (reserved_sets..sets).map(|set| of(format!("set {set}"), vec![set], ways, 1));
        let row: Vec<u32> = (0..reserved_sets).collect();
        let large = (0..if reserved_sets == 0 { 0 } else { ways })
            .map(|way| of(format!("row {way}"), row.clone(), reserved_sets, reserved_sets));
        let own = if reserved_sets == 0 { sets - 1 } else { 0 };
        let bookkeeping = Partition {
            name: "bookkeeping".into(),
            pages: None,
            contiguous_pages: 1,
            shares: vec![Share { level: level.name.clone(), sets: vec![own], ways: None }],
        };
        Ok(Self {
            page_size,
            colors: small.chain(large).collect(),
            levels,
            bookkeeping: Some(bookkeeping),
            checked: false,
            locked: false,
        })
    }

    /// The partitions of a file, all of them, in its order; one that is called `bookkeeping` is the heap's own. Without one the heap's own pages
    /// lie in what the others leave: at each level that all of these are bound by, the sets and ways that none of them has.
    pub fn of(partitions: &Partitions) -> Self {
        let is_own = |partition: &&Partition| partition.name == BOOKKEEPING;
        Self {
            page_size: partitions.page_size,
            levels: partitions.levels.clone(),
            colors: partitions.partitions.iter().filter(|partition| !is_own(partition)).cloned().collect(),
            bookkeeping: partitions.partitions.iter().find(is_own).cloned().or_else(|| rest(partitions)),
            checked: false,
            locked: false,
        }
    }
}

/// What the partitions of a file leave; `None`: there is no level that all are bound by.
fn rest(partitions: &Partitions) -> Option<Partition> {
    let all = &partitions.partitions;
    let named = |level: &ColorLevel| all.iter().all(|p| p.shares.iter().any(|share| share.level == level.name));
    // In a level of one set that is promised to more than it holds nobody has a place apart.
    let bound = |level: &&ColorLevel| named(level) && (level.sets > 1 || partitions.oversubscribed(level).is_empty());
    let shares: Vec<Share> = partitions.levels.iter().filter(bound).flat_map(|level| left(all, level)).collect();
    (!shares.is_empty()).then(|| Partition { name: BOOKKEEPING.into(), shares, contiguous_pages: 1, pages: None })
}

/// What they leave of a level: a share for each number of ways. Where they leave nothing, one set without any.
fn left(all: &[Partition], level: &ColorLevel) -> Vec<Share> {
    let mut sets: Vec<Vec<u32>> = vec![Vec::new(); level.ways as usize + 1];
    for set in 0..level.sets {
        let shares = all.iter().flat_map(|partition| &partition.shares);
        let here = shares.filter(|share| share.level == level.name && share.sets.contains(&set));
        let promised: u64 = here.map(|share| u64::from(share.ways.unwrap_or(level.ways))).sum();
        sets[u64::from(level.ways).saturating_sub(promised) as usize].push(set);
    }
    let share = |(ways, sets): (usize, Vec<u32>)| Share { level: level.name.clone(), sets, ways: Some(ways as u32) };
    // A share of no ways keeps the level bound where nothing is left.
    sets.into_iter().enumerate().filter(|(_, sets)| !sets.is_empty()).map(share).collect()
}

/// A coloured heap for one task. [`SharedHeap`] is for several.
///
/// Its memory is given back when it is dropped: nothing that came from it may be used then.
#[derive(Debug)]
pub struct ColoredHeap(Heap);

// SAFETY: it owns its memory, and nothing in it belongs to a thread; its lock is not used.
unsafe impl Send for ColoredHeap {}

impl ColoredHeap {
    /// Makes a heap: all its pages get memory at once.
    ///
    /// # Errors
    /// No such pages exist, or the system refuses memory, locking it, or huge pages for all of a heap of larger pages than 4 KiB: in small ones it
    /// would not lie in its sets.
    pub fn new(options: &HeapOptions) -> Result<Self, HeapError> {
        Heap::new(options).map(Self)
    }

    /// Number of colours.
    pub fn colors(&self) -> u32 {
        self.0.colors()
    }

    /// Memory of a colour, aligned to 16; null: no block is sure to hold it, or there is no such colour. `bytes` up to a run of pages: from a page less 24
    /// bytes on a request that fills no longer run takes a free run whole.
    pub fn malloc(&mut self, bytes: usize, color: u32) -> *mut u8 {
        self.0.malloc(bytes, color)
    }

    /// The same, of zeros.
    pub fn calloc(&mut self, count: usize, bytes: usize, color: u32) -> *mut u8 {
        calloc(&mut self.0, count, bytes, color)
    }

    /// The same, at a multiple of a power of two; null also for what is none.
    pub fn aligned(&mut self, alignment: usize, bytes: usize, color: u32) -> *mut u8 {
        aligned(&mut self.0, alignment, bytes, color)
    }

    /// Changes an allocation's size, where it stands if it can; `Ok(null)`: there is no room, and it stays as it is.
    ///
    /// # Errors
    /// `old` is no allocation of this colour; nothing is changed.
    ///
    /// # Safety
    /// As [`ColoredHeap::free`]; `old` may be null.
    pub unsafe fn realloc(&mut self, old: *mut u8, bytes: usize, color: u32) -> Result<*mut u8, Fault> {
        // SAFETY: the caller's.
        unsafe { self.0.realloc(old, bytes, color) }
    }

    /// Gives an allocation back; null is none.
    ///
    /// # Errors
    /// What is wrong with the pointer; nothing is changed then.
    ///
    /// # Safety
    /// `bytes` came from this heap and nobody uses it any more; in a checked heap it may be anything.
    pub unsafe fn free(&mut self, bytes: *mut u8) -> Result<(), Fault> {
        // SAFETY: the caller's.
        unsafe { self.0.free(bytes, None) }
    }

    /// The same, of a colour that it must have.
    ///
    /// # Errors
    /// As [`ColoredHeap::free`].
    ///
    /// # Safety
    /// As [`ColoredHeap::free`].
    pub unsafe fn free_of(&mut self, bytes: *mut u8, color: u32) -> Result<(), Fault> {
        // SAFETY: the caller's.
        unsafe { self.0.free(bytes, Some(color)) }
    }

    /// Bytes of an allocation that may be used: what was asked for, and at most 31 more (40 for up to 9); whole pages where a run was taken whole.
    ///
    /// # Errors
    /// It is no allocation of this heap.
    pub fn usable_size(&mut self, bytes: *mut u8) -> Result<usize, Fault> {
        self.0.usable(bytes)
    }

    /// Counts of a colour.
    pub fn stats(&mut self, color: u32) -> Option<Stats> {
        self.0.stats(color)
    }

    /// Whether what can be looked at in constant time is sound: lists, their first blocks, counts.
    pub fn is_sound(&mut self) -> bool {
        self.0.sound()
    }

    /// Goes through a colour's blocks in the order of addresses: first byte, bytes, in use or not. `false`: a header is damaged.
    pub fn walk(&mut self, color: u32, mut each: impl FnMut(*mut u8, usize, bool)) -> bool {
        self.0.walk(color, &mut each)
    }

    /// Numbers of a colour's pages.
    pub fn vpns(&self, color: u32) -> Vec<u64> {
        self.0.vpns(color)
    }

    /// Numbers of the bookkeeping's pages.
    pub fn bookkeeping_vpns(&self) -> &[u64] {
        self.0.control_vpns()
    }

    /// Bytes of its pages that the system has in huge pages now (it reads `/proc/self/smaps`). A heap of huge pages begins with all of them; the system
    /// divides those that are written to after a fork, while both processes have them.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn huge_bytes(&self) -> Result<u64, HeapError> {
        self.0.huge_bytes()
    }

    /// A stack of contiguous pages of a colour, and below them one that faults: the lowest byte that may be used, and bytes. Its entry is
    /// never needed, as it is never touched.
    ///
    /// # Errors
    /// The colour has no such run free, or the system refuses the guard.
    pub fn stack(&mut self, bytes: usize, color: u32) -> Result<(*mut u8, usize), HeapError> {
        self.0.stack(bytes, color)
    }

    /// Gives a stack back.
    ///
    /// # Errors
    /// It is none of this heap.
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub unsafe fn end_stack(&mut self, lowest: *mut u8) -> Result<(), HeapError> {
        // SAFETY: the caller's.
        unsafe { self.0.end_stack(lowest) }
    }
}

fn calloc(heap: &mut Heap, count: usize, bytes: usize, color: u32) -> *mut u8 {
    let start = heap.malloc(count.saturating_mul(bytes), color);
    if !start.is_null() {
        // SAFETY: that many bytes were just allocated; a product that overflows is never had.
        unsafe { std::ptr::write_bytes(start, 0, count * bytes) };
    }
    start
}

fn aligned(heap: &mut Heap, alignment: usize, bytes: usize, color: u32) -> *mut u8 {
    if !alignment.is_power_of_two() {
        return std::ptr::null_mut();
    }
    heap.aligned(alignment, bytes, color)
}
