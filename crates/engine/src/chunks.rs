//! What is known of each 2 MiB chunk of addresses: whose it is, its tags (`tags.rs`), its frame, its walk.

use crate::classes::{BASE, BASE_SHIFT, HUGE};
use crate::context::{AccessContext, KERNEL};
use crate::fasthash::{FastMap, FastSet, MULTIPLIER};
use crate::hardware::Hardware;
use crate::pages::NONE;
use crate::plan::{KERNEL_CHUNKS, MAX_CHUNK_SHIFT, MAX_WALK_STEPS};
use crate::prefetch::prefetch;
use crate::space::{physical, AddressSpace};
use crate::tags::KERNEL_ID;
use crate::{Detail, Setup};

/// Fewest slots: a small program's chunks, in 1 KiB.
const LEAST_SLOTS: usize = 1 << 6;

/// Most slots: half of them are of 2 TiB of addresses, with 240 MiB.
const MOST_SLOTS: usize = 1 << 21;

/// Of smaller tables, so many slots to a chunk at least: where chunks come in no order, one that is not at the first place
/// looked at costs a branch that nobody could foretell. Free slots lie between those in use, and take memory alone.
const SLOTS_PER_CHUNK: usize = 8;

/// More chunks than this are far: a [`KnownChunk`] and a [`TouchedPages`] of each fill 1 MiB, as much as a usual
/// second-level cache. (To fetch them ahead of time where they are nearer took more time than it saved.)
const FAR_CHUNKS: usize = 1 << 13;

/// Chunks next to each other have slots next to each other: one cache line of them.
const NEIGHBOUR_BITS: u32 = 2;

/// To the slot that is looked at next: past those of the neighbours, which are taken too; odd, so that every slot comes.
const NEXT_SLOT: usize = (1 << NEIGHBOUR_BITS) + 1;

/// Bits of a chunk number.
const CHUNK_BITS: u32 = KERNEL_CHUNKS.trailing_zeros() + 1;

/// Numbers of runs; with the last one and a chunk of all ones a key would be [`FREE`].
const RUNS: u64 = (1 << (64 - CHUNK_BITS)) - 1;

/// No common distance to the frames.
pub(crate) const SCATTERED: u64 = u64::MAX;

/// One chunk of one space as one hardware thread sees it.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct KnownChunk {
    /// Physical address of the first byte, if the others follow it; else [`SCATTERED`].
    pub(crate) frame: u64,
    /// First tags of the chunk, as arrays name its pages: held by the running process's space, by that on this hardware
    /// thread; then by the space whose pages they are, in either way.
    pub(crate) tags: [u32; 4],
    /// Index of the space whose pages they are: the process's, or the kernel's.
    pub(crate) owner: u32,
    /// The chunk's number in the space's `Pages`.
    pub(crate) pages: u32,
    /// Row of the huge page, once it has one.
    pub(crate) huge_row: u32,
    pub(crate) huge_is_touched: bool,
    /// Objects may lie here.
    pub(crate) has_objects: bool,
}

/// Base pages of a chunk that are known to be touched, a bit each.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct TouchedPages([u64; CHUNK_PAGES / 64]);

/// Base pages of the largest chunk.
const CHUNK_PAGES: usize = 1 << (MAX_CHUNK_SHIFT - BASE_SHIFT);

/// What walks read for one chunk.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct ChunkWalk {
    /// By guest level: where the table begins that the chunk's walks read.
    pub(crate) tables: [u64; MAX_WALK_STEPS],
    /// By position in the order of asking: tags in the walk caches.
    pub(crate) tags: [u32; MAX_WALK_STEPS],
    /// Levels, a bit each, whose `tables` are known.
    pub(crate) known: u32,
}

/// Where a chunk is, and by which route accesses to it go: all that most accesses need of it, four to a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub(crate) struct ChunkSlot {
    key: u64,
    /// Number of the chunk, above its code.
    at_and_code: u32,
    /// Its first tag as [most arrays](crate::plan::EnginePlan::usual_name) name its pages.
    pub(crate) tag: u32,
}

/// In a slot's code: pages of the chunk may be locked.
pub(crate) const MAY_BE_LOCKED: u8 = 0x40;

/// In a slot's code: its pages may be hit that were never walked for, so that each access marks them as touched.
pub(crate) const IS_MARKED_EARLY: u8 = 0x20;

/// In a slot's code: its bytes do not follow each other in physical memory.
pub(crate) const IS_SCATTERED: u8 = 0x80;

impl ChunkSlot {
    fn new(key: u64, at: usize, code: u8, tag: u32) -> Self {
        Self { key, at_and_code: (at as u32) << 8 | u32::from(code), tag }
    }

    /// Number of the chunk.
    #[inline(always)]
    pub(crate) fn at(self) -> u32 {
        self.at_and_code >> 8
    }

    /// The class, with [`MAY_BE_LOCKED`], [`IS_MARKED_EARLY`], [`IS_SCATTERED`].
    #[inline(always)]
    pub(crate) fn code(self) -> u8 {
        self.at_and_code as u8
    }

    /// The class of its pages.
    #[inline(always)]
    pub(crate) fn class(self) -> usize {
        usize::from(self.code() & 1)
    }
}

/// The key of a free slot.
const FREE: u64 = u64::MAX;

/// All chunks that were used since something changed what is known, in the order of their first use; and a hash table
/// that says where a chunk is in it.
#[derive(Debug, Default)]
pub(crate) struct KnownChunks {
    slots: Vec<ChunkSlot>,
    /// 64 less the bits of a hash that choose a line of slots.
    hash_shift: u32,
    /// Those of earlier runs are found no more, and stay until the table is built anew.
    chunks: Vec<KnownChunk>,
    touched: Vec<TouchedPages>,
    /// As `chunks`, where walks are short.
    walks: Vec<ChunkWalk>,
    /// The run's number, above the bits of a chunk.
    run: u64,
    /// Numbers of (space, hardware thread), as long as nothing changes what is known.
    runs: FastMap<(usize, usize), u64>,
    next_run: u64,
    /// Of which run `run` is, if nothing has changed since.
    last: Option<(usize, usize)>,
}

/// Finds chunks of a run: a copy of what is needed for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkFinder<'a> {
    slots: &'a [ChunkSlot],
    hash_shift: u32,
    run: u64,
}

impl ChunkFinder<'_> {
    /// The slot of a chunk that is known.
    #[inline(always)]
    pub(crate) fn find(&self, chunk: u64) -> Option<ChunkSlot> {
        let slot = self.slots[self.slot_of(self.run | chunk)];
        (slot.key != FREE).then_some(slot)
    }

    /// The slot that has the key, or else the one that is free for it.
    #[inline(always)]
    fn slot_of(&self, key: u64) -> usize {
        let line = (key >> NEIGHBOUR_BITS).wrapping_mul(MULTIPLIER) >> self.hash_shift;
        let mut slot = (line << NEIGHBOUR_BITS | key & ((1 << NEIGHBOUR_BITS) - 1)) as usize;
        while self.slots[slot].key != key && self.slots[slot].key != FREE {
            slot = (slot + NEXT_SLOT) & (self.slots.len() - 1);
        }
        slot
    }
}

impl KnownChunks {
    /// What is known may have changed.
    pub(crate) fn forget(&mut self) {
        self.runs.clear();
        self.last = None;
    }

    /// A run of a space on a hardware thread begins.
    pub(crate) fn begin(&mut self, space: usize, hw: usize) {
        // Often it goes on with the last one.
        if self.last == Some((space, hw)) {
            return;
        }
        self.last = Some((space, hw));
        if self.slots.is_empty() || self.next_run == RUNS {
            self.runs.clear();
            self.next_run = 0;
            self.make_room();
        }
        let next = self.next_run;
        let run = *self.runs.entry((space, hw)).or_insert(next);
        self.next_run += u64::from(run == next);
        self.run = run << CHUNK_BITS;
    }

    /// Finds chunks of the run.
    #[inline(always)]
    pub(crate) fn finder(&self) -> ChunkFinder<'_> {
        ChunkFinder { slots: &self.slots, hash_shift: self.hash_shift, run: self.run }
    }

    /// The slot that has the key, or else the one that is free for it.
    fn slot_of(&self, key: u64) -> usize {
        self.finder().slot_of(key)
    }

    /// Does the next chunk to be learned move the others?
    pub(crate) fn is_full(&self) -> bool {
        let least = if self.slots.len() < MOST_SLOTS { SLOTS_PER_CHUNK } else { 2 };
        self.chunks.len() >= self.slots.len() / least
    }

    /// Drops what earlier runs knew, and makes the table so large that as many come to be known again; where there are
    /// too many, all are learned again.
    fn make_room(&mut self) {
        let runs: FastSet<u64> = self.runs.values().copied().collect();
        let is_live = |slot: &&ChunkSlot| slot.key != FREE && runs.contains(&(slot.key >> CHUNK_BITS));
        let mut live: Vec<ChunkSlot> = self.slots.iter().filter(is_live).copied().collect();
        let len = (2 * SLOTS_PER_CHUNK * live.len()).next_power_of_two().clamp(LEAST_SLOTS, MOST_SLOTS);
        if live.len() >= len / 2 {
            live.clear();
        }
        live.sort_unstable_by_key(|slot| slot.at());
        self.hash_shift = 64 - (len.trailing_zeros() - NEIGHBOUR_BITS);
        self.slots = vec![ChunkSlot::new(FREE, 0, 0, 0); len];
        for (at, old) in live.iter().enumerate() {
            let slot = self.slot_of(old.key);
            self.slots[slot] = ChunkSlot::new(old.key, at, old.code(), old.tag);
            self.chunks[at] = self.chunks[old.at() as usize];
            self.touched[at] = self.touched[old.at() as usize];
            if let Some(&walk) = self.walks.get(old.at() as usize) {
                self.walks[at] = walk;
            }
        }
        self.chunks.truncate(live.len());
        self.touched.truncate(live.len());
        self.walks.truncate(live.len());
    }

    #[inline(always)]
    pub(crate) fn at(&self, at: usize) -> &KnownChunk {
        &self.chunks[at]
    }

    #[inline(always)]
    pub(crate) fn at_mut(&mut self, at: usize) -> &mut KnownChunk {
        &mut self.chunks[at]
    }

    /// Is what is known more than a usual second-level cache holds?
    pub(crate) fn are_far(&self) -> bool {
        self.touched.len() > FAR_CHUNKS
    }

    /// Brings nearer what a walk for a page of the chunk, or a data cache, will ask.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: usize) {
        prefetch(&self.touched, at);
        prefetch(&self.chunks, at);
        prefetch(&self.walks, at);
    }

    /// Notes that the base page at `va` of a chunk is touched: was that known?
    #[inline(always)]
    pub(crate) fn note_touched(&mut self, at: usize, va: u64) -> bool {
        let page = (va >> BASE_SHIFT) as usize % CHUNK_PAGES;
        let word = &mut self.touched[at].0[page / 64];
        let bit = 1 << (page % 64);
        let is_known = *word & bit != 0;
        if !is_known {
            *word |= bit;
        }
        is_known
    }

    #[inline(always)]
    pub(crate) fn walk_at(&mut self, at: usize) -> &mut ChunkWalk {
        &mut self.walks[at]
    }

    /// Adds a chunk that is not known, its walk aside.
    fn add(&mut self, chunk: u64, code: u8, tag: u32, known: KnownChunk) {
        if self.is_full() {
            self.make_room();
        }
        let key = self.run | chunk;
        let slot = self.slot_of(key);
        self.slots[slot] = ChunkSlot::new(key, self.chunks.len(), code, tag);
        self.chunks.push(known);
        self.touched.push(TouchedPages::default());
    }

    /// Works out the chunk of an address, which is not known; all others may get other numbers if [`Self::is_full`]. The
    /// caller sees to it that there is room for its tags.
    #[cold]
    #[inline(never)]
    pub(crate) fn learn(
        &mut self,
        setup: &Setup,
        hardware: &mut Hardware,
        spaces: &mut [AddressSpace],
        context: &AccessContext,
        addr: u64,
    ) {
        let plan = &*context.plan;
        let is_kernels = plan.is_global(addr);
        let va = addr & plan.address_mask;
        let owner = if is_kernels { KERNEL } else { context.space };
        let owner_id = if is_kernels { KERNEL_ID } else { context.id };
        let space = &mut spaces[owner];
        let class = space.class_at(va, &setup.os.pages, plan.leaf_shift[HUGE]);
        let chunk = va >> plan.chunk_shift;
        let mut tag = |id: u64, on_hw: bool| match on_hw {
            false => hardware.tags.of_chunk(id, chunk),
            true if plan.hw_tags => hardware.tags.of_chunk(id * plan.hw_threads as u64 + context.hw as u64, chunk),
            true => 0,
        };
        let tags = [(context.id, false), (context.id, true), (owner_id, false), (owner_id, true)]
            .map(|(id, on_hw)| tag(id, on_hw));
        let start = chunk << plan.chunk_shift;
        let frame = if plan.chunk_is_contiguous(class) { physical(plan, space, start, class) } else { SCATTERED };
        let end = start + (1 << plan.chunk_shift);
        let has_locks = plan.tlbs.iter().any(|tlb| tlb.has_locks_in(start, end));
        let is_marked = has_locks || va & plan.kernel_bit != 0 || class == HUGE && plan.huge_pages_have_parts;
        let flag = |is_such: bool, flag: u8| if is_such { flag } else { 0 };
        let code = class as u8
            | flag(has_locks, MAY_BE_LOCKED)
            | flag(is_marked, IS_MARKED_EARLY)
            | flag(frame == SCATTERED, IS_SCATTERED);
        let pages = if class == BASE { space.pages.chunk_at(va) as u32 } else { 0 };
        let has_objects = setup.detail == Detail::Rows && !is_kernels && space.has_object_in(start, end);
        let owner = owner as u32;
        let known = KnownChunk { frame, tags, owner, pages, huge_row: NONE, huge_is_touched: false, has_objects };
        self.add(plan.chunk_numbers.of(addr), code, tags[plan.usual_name], known);
        if plan.walks_are_short {
            let tags = std::array::from_fn(|i| match plan.guest_walk_caches[class].get(i) {
                Some(&number) => {
                    let low_bit = plan.walk_caches[number].low_bit;
                    hardware.tags.of_chunk(owner_id, va >> low_bit << low_bit >> plan.chunk_shift)
                }
                None => 0,
            });
            self.walks.push(ChunkWalk { tables: [0; MAX_WALK_STEPS], tags, known: 0 });
        }
    }
}

/// Chunks that [`KnownChunks::learn`] may number.
pub(crate) const TAGS_PER_CHUNK: u32 = 4 + MAX_WALK_STEPS as u32;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// A chunk that is known by its frame.
    fn of_frame(frame: u64) -> KnownChunk {
        let (tags, owner, pages, huge_row) = ([0; 4], 0, 0, NONE);
        KnownChunk { frame, tags, owner, pages, huge_row, huge_is_touched: false, has_objects: false }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Begin(usize, usize),
        Forget,
        Use(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        // Dense, a huge page's or a region's distance apart, and anywhere.
        let chunk = prop_oneof![
            0u64..300,
            (0u64..300).prop_map(|chunk| chunk << 9),
            (0u64..300).prop_map(|chunk| (0x7f << 19) + chunk),
            any::<u64>().prop_map(|chunk| chunk >> 20),
        ];
        prop_oneof![
            3 => (0usize..3, 0usize..2).prop_map(|(space, hw)| Step::Begin(space, hw)),
            1 => Just(Step::Forget),
            60 => chunk.prop_map(Step::Use),
        ]
    }

    proptest! {
        /// Held to a map that forgets nothing but what it is told to.
        #[test]
        fn every_chunk_is_found_until_it_is_forgotten(steps in prop::collection::vec(step(), 1..1500)) {
            let mut known = KnownChunks::default();
            let mut model: HashMap<(usize, usize, u64), u64> = HashMap::new();
            let mut run = (0, 0);
            known.begin(0, 0);
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Begin(space, hw) => run = (space, hw),
                    Step::Forget => {
                        known.forget();
                        model.clear();
                    }
                    Step::Use(chunk) => {
                        let slot = known.finder().find(chunk);
                        let found = slot.map(|slot| (known.at(slot.at() as usize).frame, slot.code()));
                        let expected = model.get(&(run.0, run.1, chunk)).copied();
                        prop_assert_eq!(found, expected.map(|frame| (frame, frame as u8)));
                        if expected.is_none() {
                            known.add(chunk, number as u8, 0, of_frame(number as u64));
                            model.insert((run.0, run.1, chunk), number as u64);
                        }
                    }
                }
                known.begin(run.0, run.1);
            }
            prop_assert!(known.chunks.len() <= known.slots.len() / 2);
        }
    }

    #[test]
    fn what_is_forgotten_again_and_again_takes_no_room() {
        let mut known = KnownChunks::default();
        for round in 0..10_000 {
            known.begin(0, 0);
            (0..20).for_each(|chunk| known.add(chunk, 0, 0, of_frame(round)));
            known.forget();
        }
        assert!(known.slots.len() <= 4 * SLOTS_PER_CHUNK * 20, "{}", known.slots.len());
    }

    #[test]
    fn the_largest_table_begins_anew_when_it_is_half_full() {
        let mut known = KnownChunks::default();
        known.begin(0, 0);
        let most = MOST_SLOTS as u64 / 2;
        (0..most).for_each(|chunk| known.add(chunk, 0, 0, of_frame(chunk)));
        assert!([0, most / 2, most - 1].into_iter().all(|chunk| known.finder().find(chunk).is_some()));
        known.add(most, 0, 0, of_frame(most));
        assert_eq!((known.slots.len(), known.chunks.len()), (MOST_SLOTS, 1));
        assert!(known.finder().find(0).is_none() && known.finder().find(most).is_some());
    }

    #[test]
    fn runs_are_numbered_anew_when_their_numbers_are_used_up() {
        let mut known = KnownChunks::default();
        known.begin(0, 0);
        known.add(7, 0, 0, of_frame(1));
        known.next_run = RUNS;
        known.begin(1, 0);
        assert!(known.finder().find(7).is_none(), "its number may be given to another");
        assert_eq!((known.run, known.next_run), (0, 1));
    }
}
