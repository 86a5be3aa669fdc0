//! A cache of what is known of each 2 MiB chunk of addresses: its tags (`tags.rs`), its frame, its walk.

use crate::classes::{BASE, CLASSES, HUGE};
use crate::context::AccessContext;
use crate::hardware::Hardware;
use crate::pages::NONE;
use crate::plan::MAX_WALK_STEPS;
use crate::space::{physical, AddressSpace};
use crate::{Detail, Setup};

/// Chunks remembered: 8 GiB of addresses, in 256 KiB (and as much for walks).
const REMEMBERED: usize = 1 << 12;

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

/// The chunks used lately.
#[derive(Debug, Default)]
pub(crate) struct KnownChunks {
    chunks: Box<[KnownChunk]>,
    walks: Vec<ChunkWalk>,
    /// The run's number, above the bits of a chunk.
    run: u64,
    /// Numbers of (space, hardware thread), as long as nothing changes what is remembered.
    runs: crate::fasthash::FastMap<(usize, usize), u64>,
    next_run: u64,
}

impl KnownChunks {
    /// What is remembered may have changed.
    pub(crate) fn forget(&mut self) {
        self.runs.clear();
    }

    /// A run of a space on a hardware thread begins.
    pub(crate) fn begin(&mut self, space: usize, hw: usize) {
        if self.chunks.is_empty() || self.next_run >> (64 - CHUNK_BITS) != 0 {
            let nothing = KnownChunk {
                key: u64::MAX,
                frame: 0,
                tags: [0; 4],
                pages: 0,
                huge_row: NONE,
                huge_is_touched: false,
                code: 0,
                has_objects: false,
            };
            self.chunks = vec![nothing; REMEMBERED].into();
            self.walks =
                vec![ChunkWalk { tables: [0; MAX_WALK_STEPS], tags: [0; MAX_WALK_STEPS], known: 0 }; REMEMBERED];
            self.runs.clear();
            self.next_run = 0;
        }
        let next = self.next_run;
        let run = *self.runs.entry((space, hw)).or_insert(next);
        self.next_run += u64::from(run == next);
        self.run = run << CHUNK_BITS;
    }

    /// Where a chunk would be, and whether it is there.
    #[inline(always)]
    pub(crate) fn find(&self, chunk: u64) -> (usize, bool) {
        // Spaces and hardware threads begin at different places.
        let at = (chunk ^ self.run >> (CHUNK_BITS - 4)) as usize % REMEMBERED;
        // Chunks of other addresses than a run's own have more bits, and are never there.
        (at, self.chunks[at].key ^ self.run == chunk)
    }

    /// Is another chunk of this run there?
    pub(crate) fn is_in_use(&self, at: usize) -> bool {
        self.chunks[at].key >> CHUNK_BITS == self.run >> CHUNK_BITS
    }

    #[inline(always)]
    pub(crate) fn at(&self, at: usize) -> &KnownChunk {
        &self.chunks[at]
    }

    #[inline(always)]
    pub(crate) fn at_mut(&mut self, at: usize) -> &mut KnownChunk {
        &mut self.chunks[at]
    }

    #[inline(always)]
    pub(crate) fn walk_at(&mut self, at: usize) -> &mut ChunkWalk {
        &mut self.walks[at]
    }

    /// Works out a chunk. The caller sees to it that there is room for its tags.
    #[cold]
    #[inline(never)]
    pub(crate) fn learn(
        &mut self,
        at: usize,
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
        self.chunks[at] = KnownChunk {
            key: self.run | chunk,
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
            self.walks[at] = ChunkWalk { tables: [0; MAX_WALK_STEPS], tags, known: 0 };
        }
    }
}

/// Chunks that [`KnownChunks::learn`] may number.
pub(crate) const TAGS_PER_CHUNK: u32 = 4 + MAX_WALK_STEPS as u32;
