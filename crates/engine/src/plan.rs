//! What stays the same during a run: the machine and the setup, as numbers that the hot loops use. `plan_build.rs`
//! makes it.

use lookaside_machine::{SharedBy, Stage, TableFormat, TableLevel};

use crate::array_forms::FormsPlan;
use crate::assoc::ArrayShape;
use crate::classes::{CLASSES, KINDS};
use crate::directories::Directories;
use crate::os::PhysicalMemory;
use crate::row_groups::AlikeRule;
use crate::set_index::SetIndex;
use crate::tag_layout::TagLayout;

/// In the number of a chunk: it is the kernel's. Above those of all translated addresses: of at most 57 bits, in chunks of
/// 64 KiB and more.
pub(crate) const KERNEL_CHUNKS: u64 = 1 << 43;

/// log2 of the largest chunk: a tag has room for its pages.
pub(crate) const MAX_CHUNK_SHIFT: u32 = 21;

/// Most guest levels, and most guest walk caches, of a walk that is short.
pub(crate) const MAX_WALK_STEPS: usize = 6;

/// Numbers of chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkNumbers {
    pub(crate) address_mask: u64,
    /// log2 bytes of a chunk.
    pub(crate) shift: u32,
    /// [`KERNEL_CHUNKS`], where the kernel half is told by an untranslated bit; else 0.
    pub(crate) kernel_chunks: u64,
}

impl ChunkNumbers {
    /// Number of the chunk of an address, by which it is known: that of the translated address, and whose half it is in.
    #[inline(always)]
    pub(crate) fn of(&self, addr: u64) -> u64 {
        (addr & self.address_mask) >> self.shift | addr >> (63 - KERNEL_CHUNKS.trailing_zeros()) & self.kernel_chunks
    }
}

/// Everything that stays as it is during a run.
#[derive(Debug)]
pub(crate) struct EnginePlan {
    pub(crate) format: TableFormat,
    pub(crate) address_mask: u64,
    pub(crate) chunk_numbers: ChunkNumbers,
    /// Translated bit that every kernel-half address has, where the kernel half is told by an untranslated one.
    pub(crate) kernel_bit: u64,
    /// log2 bytes of the guest leaf of each class.
    pub(crate) leaf_shift: [u32; CLASSES],
    /// Position in `guest_levels` of each class's leaf.
    pub(crate) leaf_at: [usize; CLASSES],
    /// Levels ascending: the leaf table first.
    pub(crate) guest_levels: Vec<TableLevel>,
    pub(crate) guest_memory: PhysicalMemory,
    pub(crate) host: Option<HostPlan>,
    pub(crate) tlbs: Vec<TlbPlan>,
    /// Which of a chunk's tags the first array goes by, and with it most others: see [`TlbPlan::tag_name`].
    pub(crate) usual_name: usize,
    /// Arrays that are asked in many forms beside the routes.
    pub(crate) forms: Option<FormsPlan>,
    /// By kind and class: the levels that an access asks.
    pub(crate) routes: [[Route; CLASSES]; KINDS],
    /// log2 bytes of a chunk: see `tags.rs`.
    pub(crate) chunk_shift: u32,
    /// Some array holds huge pages by parts as large as base pages: entries of these serve them where a range becomes huge.
    pub(crate) huge_pages_have_parts: bool,
    /// Accesses, one after the other, that go through the hardware as one.
    pub(crate) alike: AlikeRule,
    /// Walks go through one stage and few walk caches, each of a level of its own, and leave the TLBs as they are.
    pub(crate) walks_are_short: bool,
    /// Most lines that an access asks the data caches for: its own, and what its walk reads.
    pub(crate) most_requests: usize,
    /// Accesses of which all find room among a batch's requests.
    pub(crate) most_items: usize,
    /// Some array's pages are held apart by hardware thread.
    pub(crate) hw_tags: bool,
    /// The kernel half is told by the translated address.
    pub(crate) narrow: bool,
    /// Guest walk caches that a walk for a leaf of each class asks, in order.
    pub(crate) guest_walk_caches: [Vec<usize>; CLASSES],
    /// Guest walk caches by position in `guest_levels`.
    pub(crate) guest_fills: Vec<Vec<usize>>,
    pub(crate) walk_caches: Vec<WalkCachePlan>,
    pub(crate) directories: Directories,
    pub(crate) caches: Vec<CachePlan>,
    /// By kind: data caches asked, in order.
    pub(crate) data_route: [Vec<usize>; KINDS],
    /// All data caches in the order that every route asks them in.
    pub(crate) cache_order: Vec<usize>,
    /// Accesses of some kind ask data caches.
    pub(crate) has_data_caches: bool,
    /// Data caches that a walk asks, in order.
    pub(crate) walk_route: Vec<usize>,
    pub(crate) walks: WalkPlan,
    pub(crate) memory_units: u64,
    pub(crate) walk_memory_units: u64,
    /// What a line of an ascending walk costs at most: from a cache after the first, from memory.
    pub(crate) stream_units: Option<(u64, u64)>,
    /// By kind and position in its route: see [`EnginePlan::stall_units`], without a stream and with one.
    pub(crate) stalls: [Vec<[u64; 2]>; KINDS],
    /// Most that a walk costs whose access goes on with one.
    pub(crate) stream_walk_units: Option<u64>,
    pub(crate) base_units: u64,
    pub(crate) switch_units: u64,
    pub(crate) threads_per_core: usize,
    pub(crate) threads_per_socket: usize,
    pub(crate) hw_threads: usize,
}

/// The host stage of a nested machine.
#[derive(Debug)]
pub(crate) struct HostPlan {
    pub(crate) memory: PhysicalMemory,
    pub(crate) page_shift: u32,
    /// Levels ascending.
    pub(crate) levels: Vec<TableLevel>,
    pub(crate) leaf_at: usize,
    /// Host walk caches asked, in order: those of level 1 first.
    pub(crate) walk_caches: Vec<usize>,
    /// Caches of whole translations.
    pub(crate) translation_fills: Vec<usize>,
    /// Host walk caches by position in `levels` (non-leaf ones).
    pub(crate) fills: Vec<Vec<usize>>,
}

/// What a walk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkPlan {
    Full,
    AlwaysAt(usize),
    CountOnly,
}

/// One TLB array: all that is to be known of it but what it holds, which each [instance](crate::tlb::TlbInstance) has.
#[derive(Debug)]
pub(crate) struct TlbPlan {
    pub(crate) shape: ArrayShape,
    pub(crate) index: SetIndex,
    pub(crate) hw_tag: bool,
    pub(crate) global: bool,
    /// log2 of the pages an entry may cover.
    pub(crate) coalesce_shift: u32,
    pub(crate) hit_units: u64,
    pub(crate) shared_by: SharedBy,
    /// log2 page size of its entries for each class, if it has one.
    pub(crate) entry_shift: [Option<u32>; CLASSES],
    /// How tags of each class come from addresses; alike, if it has entries for one of them only.
    pub(crate) layouts: [TagLayout; CLASSES],
    /// The pages of an entry have one distance to their frames, whichever they are.
    pub(crate) keeps_distance: bool,
    pub(crate) locks: Vec<LockedEntry>,
}

/// A page held by a lockable entry.
#[derive(Debug)]
pub(crate) struct LockedEntry {
    pub(crate) process: Option<u32>,
    pub(crate) global: bool,
    pub(crate) va: u64,
}

/// Levels that an access asks in turn.
#[derive(Debug, Default)]
pub(crate) struct Route {
    pub(crate) levels: Vec<RouteLevel>,
}

/// The arrays of one level that take part, all with entries of one size.
#[derive(Debug)]
pub(crate) struct RouteLevel {
    pub(crate) level: u32,
    pub(crate) arrays: Vec<usize>,
}

/// One walk cache.
#[derive(Debug)]
pub(crate) struct WalkCachePlan {
    pub(crate) shape: ArrayShape,
    pub(crate) hit_units: u64,
    pub(crate) shared_by: SharedBy,
    pub(crate) stage: Stage,
    pub(crate) table_level: u32,
    /// A key's low bit in the address.
    pub(crate) low_bit: u32,
    /// Position of its level among the table's levels, ascending: those before it are read after a hit.
    pub(crate) above: usize,
}

/// One data cache.
#[derive(Debug)]
pub(crate) struct CachePlan {
    pub(crate) shape: ArrayShape,
    pub(crate) index: SetIndex,
    pub(crate) line_shift: u32,
    pub(crate) hit_units: u64,
    pub(crate) shared_by: SharedBy,
    pub(crate) write_allocate: bool,
    pub(crate) fill: FillRule,
}

/// What an access does to a data cache that it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FillRule {
    /// A line asked for in vain comes in.
    Misses,
    /// The same, and the cache asked next gets what goes out.
    MissesAndHandsOn,
    /// What the cache of this number, asked before, throws out comes in, and a line that is found goes out.
    VictimsOf(usize),
}

impl EnginePlan {
    /// As `os::is_global`.
    #[inline]
    pub(crate) fn is_global(&self, addr: u64) -> bool {
        if self.narrow {
            crate::os::is_global(self.format, addr)
        } else {
            addr >> 63 != 0
        }
    }

    /// What an access of a kind that was served at a position of its route waits for beyond a hit in the first cache.
    #[inline]
    pub(crate) fn stall_units(&self, kind: usize, position: usize, streamed: bool) -> u64 {
        self.stalls[kind].get(position).map_or(0, |units| units[usize::from(streamed)])
    }

    /// Do the bytes of a chunk of this class follow each other in physical memory?
    pub(crate) fn chunk_is_contiguous(&self, class: usize) -> bool {
        let run = self.guest_memory.run_shift(self.leaf_shift[class]);
        self.host.is_none() && run.is_none_or(|run| run >= self.chunk_shift)
    }

    /// Number of the instance that a hardware thread uses.
    pub(crate) fn instance_of(&self, shared_by: SharedBy, hw: usize) -> usize {
        match shared_by {
            SharedBy::Thread => hw,
            SharedBy::Core => hw / self.threads_per_core,
            SharedBy::Socket => hw / self.threads_per_socket,
        }
    }
}
