//! What is known of each 2 MiB chunk of addresses: its tags (`tags.rs`), its frame, its walk.

use crate::classes::{BASE, CLASSES, HUGE};
use crate::context::AccessContext;
use crate::fasthash::{spread, FastMap, FastSet};
use crate::hardware::Hardware;
use crate::pages::NONE;
use crate::plan::MAX_WALK_STEPS;
use crate::space::{physical, AddressSpace};
use crate::{Detail, Setup};

/// Fewest slots: two leaf tables' worth of a small program, in 8 KiB with its walks.
const LEAST_SLOTS: usize = 1 << 6;

/// Most slots: half of them hold 2 TiB of addresses, in 256 MiB with their walks.
const MOST_SLOTS: usize = 1 << 21;

/// Bits of the hash that choose a slot; more than the most slots have.
const HASH_BITS: u32 = 32;

/// Bits of a chunk number: 57-bit addresses above 20 bits.
const CHUNK_BITS: u32 = 37;

/// No common distance to the frames.
pub(crate) const SCATTERED: u64 = u64::MAX;

/// One chunk of one space as one hardware thread sees it.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct KnownChunk {
    key: u64,
    /// Physical address of the first byte, if the others follow it; else [`SCATTERED`].
    pub(crate) frame: u64,
    /// First tags of the chunk: held by the space, by the space on this hardware thread; then those of the page that is
    /// larger than a chunk, by either.
    pub(crate) tags: [u32; 4],
    /// The chunk's number in the space's `Pages`.
    pub(crate) pages: u32,
    /// Row of the huge page, once it has one.
    pub(crate) huge_row: u32,
    pub(crate) huge_is_touched: bool,
    /// The class, plus [`CLASSES`] where pages may be locked.
    pub(crate) code: u8,
    /// Objects may lie here.
    pub(crate) has_objects: bool,
}

/// What walks read for one chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkWalk {
    /// By guest level: where the table begins that the chunk's walks read.
    pub(crate) tables: [u64; MAX_WALK_STEPS],
    /// By position in the order of asking: tags in the walk caches.
    pub(crate) tags: [u32; MAX_WALK_STEPS],
    /// Levels, a bit each, whose `tables` are known.
    pub(crate) known: u32,
}

/// The key of a free slot; no run's number reaches it.
const FREE: u64 = u64::MAX;

const NOTHING: KnownChunk = KnownChunk {
    key: FREE,
    frame: 0,
    tags: [0; 4],
    pages: 0,
    huge_row: NONE,
    huge_is_touched: false,
    code: 0,
    has_objects: false,
};

const NO_WALK: ChunkWalk = ChunkWalk { tables: [0; MAX_WALK_STEPS], tags: [0; MAX_WALK_STEPS], known: 0 };

/// All chunks that were used since something changed what is known: a hash table that is at most half full, of which a
/// chunk has the first free slot from its hash on.
#[derive(Debug, Default)]
pub(crate) struct KnownChunks {
    slots: Vec<KnownChunk>,
    /// By slot.
    walks: Vec<ChunkWalk>,
    /// Slots that are not free. Those of earlier runs are found no more, and stay until the table is built anew.
    used: usize,
    /// The run's number, above the bits of a chunk.
    run: u64,
    /// Numbers of (space, hardware thread), as long as nothing changes what is known.
    runs: FastMap<(usize, usize), u64>,
    next_run: u64,
}

impl KnownChunks {
    /// What is known may have changed.
    pub(crate) fn forget(&mut self) {
        self.runs.clear();
    }

    /// A run of a space on a hardware thread begins.
    pub(crate) fn begin(&mut self, space: usize, hw: usize) {
        if self.slots.is_empty() || self.next_run >> (64 - CHUNK_BITS) != 0 {
            self.empty(LEAST_SLOTS);
        }
        let next = self.next_run;
        let run = *self.runs.entry((space, hw)).or_insert(next);
        self.next_run += u64::from(run == next);
        self.run = run << CHUNK_BITS;
    }

    /// The slot of a chunk that is known.
    #[inline(always)]
    pub(crate) fn find(&self, chunk: u64) -> Option<usize> {
        // A chunk with more bits would look like one of another run.
        if chunk >> CHUNK_BITS != 0 {
            return None;
        }
        let slot = self.slot_of(self.run | chunk);
        (self.slots[slot].key != FREE).then_some(slot)
    }

    /// The slot that has the key, or else the one that is free for it.
    #[inline(always)]
    fn slot_of(&self, key: u64) -> usize {
        let last = self.slots.len() - 1;
        let mut slot = (spread(key) >> (64 - HASH_BITS)) as usize & last;
        while self.slots[slot].key != key && self.slots[slot].key != FREE {
            slot = (slot + 1) & last;
        }
        slot
    }

    /// Does the next chunk to be learned move the others to other slots?
    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.slots.len() / 2
    }

    /// Builds the table anew without what earlier runs knew, and so large that a quarter of it is in use; where there
    /// are too many, all are learned again.
    fn make_room(&mut self) {
        let runs: FastSet<u64> = self.runs.values().copied().collect();
        let is_live = |chunk: &KnownChunk| chunk.key != FREE && runs.contains(&(chunk.key >> CHUNK_BITS));
        let live = self.slots.iter().filter(|chunk| is_live(chunk)).count();
        let len = (4 * live).next_power_of_two().clamp(LEAST_SLOTS, MOST_SLOTS);
        let (slots, walks) = (std::mem::take(&mut self.slots), std::mem::take(&mut self.walks));
        self.fill_with_nothing(len);
        if live >= len / 2 {
            return;
        }
        for (chunk, walk) in slots.into_iter().zip(walks).filter(|(chunk, _)| is_live(chunk)) {
            let slot = self.slot_of(chunk.key);
            (self.slots[slot], self.walks[slot]) = (chunk, walk);
        }
        self.used = live;
    }

    fn fill_with_nothing(&mut self, len: usize) {
        self.slots = vec![NOTHING; len];
        self.walks = vec![NO_WALK; len];
        self.used = 0;
    }

    fn empty(&mut self, len: usize) {
        self.fill_with_nothing(len);
        self.runs.clear();
        self.next_run = 0;
    }

    #[inline(always)]
    pub(crate) fn at(&self, at: usize) -> &KnownChunk {
        &self.slots[at]
    }

    #[inline(always)]
    pub(crate) fn at_mut(&mut self, at: usize) -> &mut KnownChunk {
        &mut self.slots[at]
    }

    #[inline(always)]
    pub(crate) fn walk_at(&mut self, at: usize) -> &mut ChunkWalk {
        &mut self.walks[at]
    }

    /// Works out a chunk that is not known; all others may get other slots if [`Self::is_full`]. The caller sees to it
    /// that there is room for its tags.
    #[cold]
    #[inline(never)]
    pub(crate) fn learn(
        &mut self,
        setup: &Setup,
        hardware: &mut Hardware,
        space: &mut AddressSpace,
        context: &AccessContext,
        va: u64,
    ) {
        let plan = &*context.plan;
        let class = space.class_at(va, &setup.os.pages, plan.leaf_shift[HUGE]);
        let chunk = va >> plan.chunk_shift;
        let large = va >> plan.leaf_shift[HUGE] << plan.leaf_shift[HUGE] >> plan.chunk_shift;
        let hw_holder = context.id * plan.hw_threads as u64 + context.hw as u64;
        let mut tag = |on_hw: bool, chunk: u64| match on_hw {
            false => hardware.tags.of_chunk(context.id, chunk),
            true if plan.hw_tags => hardware.tags.of_chunk(hw_holder, chunk),
            true => 0,
        };
        let tags = [tag(false, chunk), tag(true, chunk), tag(false, large), tag(true, large)];
        let start = chunk << plan.chunk_shift;
        let frame = if plan.chunk_is_contiguous(class) { physical(plan, space, start, class) } else { SCATTERED };
        let end = start + (1 << plan.chunk_shift);
        let has_locks = plan.tlbs.iter().any(|tlb| tlb.has_locks_in(start, end));
        if self.is_full() {
            self.make_room();
        }
        let key = self.run | chunk;
        let at = self.slot_of(key);
        self.used += 1;
        self.slots[at] = KnownChunk {
            key,
            frame,
            tags,
            pages: if class == BASE { space.pages.chunk_at(va) as u32 } else { 0 },
            huge_row: NONE,
            huge_is_touched: false,
            code: (class + if has_locks { CLASSES } else { 0 }) as u8,
            has_objects: setup.detail == Detail::Rows && space.has_object_in(start, end),
        };
        if plan.walks_are_short {
            let tags = std::array::from_fn(|i| match plan.guest_walk_caches[class].get(i) {
                Some(&number) => {
                    let low_bit = plan.walk_caches[number].low_bit;
                    hardware.tags.of_chunk(context.id, va >> low_bit << low_bit >> plan.chunk_shift)
                }
                None => 0,
            });
            self.walks[at] = ChunkWalk { tags, ..NO_WALK };
        }
    }
}

/// Chunks that [`KnownChunks::learn`] may number.
pub(crate) const TAGS_PER_CHUNK: u32 = 4 + MAX_WALK_STEPS as u32;
