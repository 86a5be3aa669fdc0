//! A setup made ready to run: validated, every choice that does not change during the run made once.

use lookaside_machine::{Machine, PageSize, Serves, SharedBy, Stage, TableFormat, TableLevel, Tag};

use crate::assoc::Shape;
use crate::directories::Directories;
use crate::os::{to_units, PhysicalMemory};
use crate::places::MOST;
use crate::plan_check::{frames, huge_page, locks, walk_plan, SetupError};
use crate::set_index::SetIndex;
use crate::Setup;

/// Size classes of guest leaves: the base page and the huge page.
pub(crate) const CLASSES: usize = 2;
/// Class of base pages.
pub(crate) const BASE: usize = 0;
/// Class of huge pages.
pub(crate) const HUGE: usize = 1;
/// Kinds of access: load, store, fetch.
pub(crate) const KINDS: usize = 3;

/// Everything that stays as it is during a run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) format: TableFormat,
    pub(crate) address_mask: u64,
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
    /// By kind and class: the levels that an access asks.
    pub(crate) routes: [[Route; CLASSES]; KINDS],
    /// log2 bytes of a chunk: see `tags.rs`.
    pub(crate) chunk_shift: u32,
    /// Addresses below are the process's own, and translated as they are.
    pub(crate) user_end: u64,
    /// Pages may be hit that were never walked for: some entries cover several pages, or are locked.
    pub(crate) marks_early: bool,
    /// Accesses of one kind to one address range of `2^alike_shift` bytes, one after the other, are alike.
    pub(crate) alike_shift: u32,
    /// Walks go through one stage and few walk caches, each of a level of its own.
    pub(crate) walks_are_short: bool,
    /// Some array's pages are held apart by hardware thread.
    pub(crate) hw_tags: bool,
    /// The kernel half is told by the translated address.
    narrow: bool,
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
    /// Stores ask a cache that they do not fill.
    pub(crate) stores_pass: bool,
    /// Data caches that a walk asks, in order.
    pub(crate) walk_route: Vec<usize>,
    pub(crate) walks: WalkPlan,
    pub(crate) memory_units: u64,
    pub(crate) walk_memory_units: u64,
    /// By position in the walk's route: what a reference served there costs; the last is memory.
    pub(crate) walk_units: Vec<u64>,
    /// What a line of an ascending walk costs at most: from a cache after the first, from memory.
    pub(crate) stream_units: Option<(u64, u64)>,
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

/// One TLB array.
#[derive(Debug)]
pub(crate) struct TlbPlan {
    pub(crate) shape: Shape,
    pub(crate) index: SetIndex,
    pub(crate) hw_tag: bool,
    pub(crate) global: bool,
    /// log2 of the pages an entry may cover.
    pub(crate) coalesce_shift: u32,
    pub(crate) hit_units: u64,
    pub(crate) shared_by: SharedBy,
    /// log2 page size of its entries for each class, if it has one.
    pub(crate) entry_shift: [Option<u32>; CLASSES],
    pub(crate) locks: Vec<Lock>,
}

/// A page held by a lockable entry.
#[derive(Debug)]
pub(crate) struct Lock {
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
    pub(crate) shift: u32,
}

/// One walk cache.
#[derive(Debug)]
pub(crate) struct WalkCachePlan {
    pub(crate) shape: Shape,
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
    pub(crate) shape: Shape,
    pub(crate) line_shift: u32,
    pub(crate) hit_units: u64,
    pub(crate) shared_by: SharedBy,
    pub(crate) write_allocate: bool,
}

impl Plan {
    /// # Errors
    /// The machine or another part of the setup is impossible.
    pub(crate) fn new(setup: &Setup) -> Result<Self, SetupError> {
        let machine = &setup.machine;
        machine.check()?;
        let format = machine.page_table.format;
        let base = format.page_sizes()[0];
        let huge = huge_page(setup)?;
        frames(setup.os.frames)?;
        let mut guest_levels = format.levels().to_vec();
        guest_levels.reverse();
        let leaf_at = [base, huge].map(|size| position_of_leaf(&guest_levels, size));
        let host = machine.page_table.host.as_ref().zip(PhysicalMemory::host(
            &machine.page_table,
            setup.os.frames,
            setup.seed,
        ));
        let host = host.map(|(table, memory)| HostPlan::new(machine, table.page_size, memory));
        let effective = [base, huge].map(|leaf| host.as_ref().map_or(leaf.shift(), |h| h.page_shift.min(leaf.shift())));

        let in_parts = [base.shift() > effective[BASE], huge.shift() > effective[HUGE]];

        let mut tlbs: Vec<TlbPlan> = machine.tlbs.iter().map(|tlb| TlbPlan::new(tlb, effective)).collect();
        locks(setup, &mut tlbs)?;
        let routes = [Serves::Load, Serves::Store, Serves::Fetch]
            .map(|kind| [0, 1].map(|class| Route::new(machine, &tlbs, kind, class)));

        let walk_caches: Vec<_> = machine.walk_caches.iter().map(|cache| WalkCachePlan::new(machine, cache)).collect();
        let of_stage = |stage: Stage| {
            let mut list: Vec<usize> = (0..walk_caches.len()).filter(|&i| walk_caches[i].stage == stage).collect();
            list.sort_by_key(|&i| walk_caches[i].table_level);
            list
        };
        let guest = of_stage(Stage::Guest);
        let above = |at: usize| {
            guest.iter().copied().filter(|&i| walk_caches[i].table_level > guest_levels[at].level).collect::<Vec<_>>()
        };
        let guest_fills = guest_levels
            .iter()
            .map(|level| guest.iter().copied().filter(|&i| walk_caches[i].table_level == level.level).collect())
            .collect();

        let caches: Vec<CachePlan> = machine.caches.iter().map(CachePlan::new).collect();
        let mut ascending: Vec<usize> = (0..caches.len()).collect();
        ascending.sort_by_key(|&i| machine.caches[i].level);
        let serving =
            |kind| ascending.iter().copied().filter(|&i| machine.caches[i].serves.contains(&kind)).collect::<Vec<_>>();
        let mut walk_route = serving(Serves::Load);
        walk_route.retain(|&i| machine.caches[i].level >= machine.walker.first_cache_level);

        let narrow = format.address_bits() <= 32;
        let leaf_table = guest_levels[leaf_at[BASE]];
        let leaf_table_shift = leaf_table.index_low_bit + leaf_table.index_bits;
        let chunk_shift = huge.shift().min(leaf_table_shift).min(MAX_CHUNK_SHIFT);
        let walk_memory_units = to_units(machine.walk_memory_cycles());
        let topology = machine.topology;
        let threads_per_socket = (topology.threads_per_core * topology.cores_per_socket) as usize;
        Ok(Self {
            format,
            address_mask: (1 << format.address_bits()) - 1,
            kernel_bit: if narrow { 0 } else { 1 << (format.address_bits() - 1) },
            leaf_shift: [base.shift(), huge.shift()],
            leaf_at,
            guest_walk_caches: leaf_at.map(above),
            guest_fills,
            guest_memory: PhysicalMemory::guest(&machine.page_table, setup.os.frames, setup.seed),
            chunk_shift,
            user_end: if narrow { crate::os::NARROW_KERNEL_START } else { 1 << (format.address_bits() - 1) },
            marks_early: tlbs.iter().any(|tlb| tlb.coalesce_shift > 0 || !tlb.locks.is_empty()),
            alike_shift: caches.iter().fold(BASE_SHIFT, |shift, cache| shift.min(cache.line_shift)),
            // Walks over lines are followed item by item.
            walks_are_short: machine.stream.is_none()
                && host.is_none()
                && guest.len() <= MOST
                && guest_levels.len() <= MOST
                && guest.windows(2).all(|pair| walk_caches[pair[0]].table_level < walk_caches[pair[1]].table_level),
            hw_tags: tlbs.iter().any(|tlb| tlb.hw_tag),
            narrow,
            directories: Directories::new(machine, &guest_levels, leaf_at, in_parts),
            walk_caches,
            has_data_caches: !caches.is_empty(),
            stores_pass: serving(Serves::Store).iter().any(|&i| !caches[i].write_allocate),
            cache_order: ascending.clone(),
            data_route: [Serves::Load, Serves::Store, Serves::Fetch].map(serving),
            walk_units: walk_route.iter().map(|&i| caches[i].hit_units).chain([walk_memory_units]).collect(),
            walk_route,
            stream_units: machine.stream.map(|stream| (to_units(stream.cache_cycles), to_units(stream.memory_cycles))),
            stream_walk_units: machine.stream.and_then(|stream| stream.walk_cycles).map(to_units),
            caches,
            walks: walk_plan(setup)?,
            memory_units: to_units(machine.memory.cycles),
            walk_memory_units,
            base_units: to_units(machine.walker.base_cycles),
            switch_units: to_units(machine.context_switch.cycles),
            threads_per_core: topology.threads_per_core as usize,
            threads_per_socket,
            hw_threads: threads_per_socket * topology.sockets as usize,
            guest_levels,
            host,
            tlbs,
            routes,
        })
    }

    /// As `os::is_global`.
    #[inline]
    pub(crate) fn is_global(&self, addr: u64) -> bool {
        if self.narrow {
            crate::os::is_global(self.format, addr)
        } else {
            addr >> 63 != 0
        }
    }

    /// Do all entries of a coalescing array that cover pages of one block have one distance to their frames?
    pub(crate) fn blocks_keep_distance(&self, tlb: &TlbPlan) -> bool {
        let run = self.guest_memory.run_shift(self.leaf_shift[BASE]);
        // Where a range becomes huge, entries of its base pages stay, and have another distance than its parts.
        let holds_parts_of_huge_pages = tlb.entry_shift[HUGE] == Some(BASE_SHIFT);
        // Without tag `global` kernel pages may stand beside pages of the process that have the same translated bits.
        // Masks of longer blocks have more bits than fit beside a tag.
        (tlb.global || self.narrow)
            && tlb.coalesce_shift <= 5
            && self.host.is_none()
            && run.is_none_or(|run| run >= BASE_SHIFT + tlb.coalesce_shift && !holds_parts_of_huge_pages)
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

/// log2 of the smallest page of every format (4 KiB).
pub(crate) const BASE_SHIFT: u32 = 12;
/// log2 of the largest chunk: a tag has room for its pages.
const MAX_CHUNK_SHIFT: u32 = 21;

impl HostPlan {
    fn new(machine: &Machine, page_size: PageSize, memory: PhysicalMemory) -> Self {
        let mut levels = memory.format().levels().to_vec();
        levels.reverse();
        let leaf_at = position_of_leaf(&levels, page_size);
        let leaf_level = levels[leaf_at].level;
        let mut host: Vec<usize> =
            (0..machine.walk_caches.len()).filter(|&i| machine.walk_caches[i].stage == Stage::Host).collect();
        host.sort_by_key(|&i| machine.walk_caches[i].table_level);
        let level_of = |i: usize| machine.walk_caches[i].table_level;
        let of_level = |level: u32| host.iter().copied().filter(|&i| level_of(i) == level).collect::<Vec<_>>();
        Self {
            page_shift: page_size.shift(),
            leaf_at,
            walk_caches: host.iter().copied().filter(|&i| level_of(i) == 1 || level_of(i) > leaf_level).collect(),
            translation_fills: of_level(1),
            fills: levels.iter().map(|l| if l.level == 1 { Vec::new() } else { of_level(l.level) }).collect(),
            levels,
            memory,
        }
    }
}

impl TlbPlan {
    fn new(tlb: &lookaside_machine::Tlb, effective: [u32; CLASSES]) -> Self {
        let entry_shift =
            effective.map(|s| tlb.page_sizes.iter().map(|size| size.shift()).filter(|&shift| shift <= s).max());
        Self {
            shape: Shape {
                sets: tlb.sets() as usize,
                ways: tlb.ways.count(tlb.entries) as usize,
                replacement: tlb.replacement,
                repeated_keys: tlb.coalesce_pages > 1,
            },
            index: SetIndex::new(&tlb.index, tlb.sets()),
            hw_tag: tlb.tags.contains(&Tag::HwThread),
            global: tlb.tags.contains(&Tag::Global),
            coalesce_shift: tlb.coalesce_pages.trailing_zeros(),
            hit_units: to_units(tlb.hit_cycles),
            shared_by: tlb.shared_by,
            entry_shift,
            locks: Vec::new(),
        }
    }
}

impl Route {
    fn new(machine: &Machine, tlbs: &[TlbPlan], kind: Serves, class: usize) -> Self {
        let mut numbers: Vec<u32> = machine.tlbs.iter().map(|tlb| tlb.level).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let level = |level: u32| {
            let takes_part = |i: &usize| machine.tlbs[*i].level == level && machine.tlbs[*i].serves.contains(&kind);
            let shift = (0..tlbs.len()).filter(takes_part).filter_map(|i| tlbs[i].entry_shift[class]).max()?;
            let arrays = (0..tlbs.len()).filter(takes_part).filter(|&i| tlbs[i].entry_shift[class] == Some(shift));
            Some(RouteLevel { level, arrays: arrays.collect(), shift })
        };
        Self { levels: numbers.into_iter().filter_map(level).collect() }
    }
}

impl WalkCachePlan {
    fn new(machine: &Machine, cache: &lookaside_machine::WalkCache) -> Self {
        let host = machine.page_table.host.as_ref();
        let format = match (cache.stage, host) {
            (Stage::Host, Some(host)) => host.format,
            _ => machine.page_table.format,
        };
        let of_level = format.levels().iter().find(|l| l.level == cache.table_level).map_or(0, |l| l.index_low_bit);
        let low_bit = match (cache.stage, cache.table_level, host) {
            (Stage::Host, 1, Some(host)) => host.page_size.shift(),
            _ => of_level,
        };
        Self {
            shape: Shape {
                sets: cache.sets() as usize,
                ways: cache.ways.count(cache.entries) as usize,
                replacement: cache.replacement,
                repeated_keys: false,
            },
            hit_units: to_units(cache.hit_cycles),
            shared_by: cache.shared_by,
            stage: cache.stage,
            table_level: cache.table_level,
            low_bit,
            above: format.levels().iter().filter(|level| level.level < cache.table_level).count(),
        }
    }
}

impl CachePlan {
    fn new(cache: &lookaside_machine::Cache) -> Self {
        Self {
            shape: Shape {
                sets: cache.sets() as usize,
                ways: cache.ways.count(cache.lines()) as usize,
                replacement: cache.replacement,
                repeated_keys: false,
            },
            line_shift: cache.line_bytes.trailing_zeros(),
            hit_units: to_units(cache.hit_cycles),
            shared_by: cache.shared_by,
            write_allocate: cache.write_allocate,
        }
    }
}

/// Position of the level that ends a walk for a leaf of this size.
fn position_of_leaf(levels: &[TableLevel], size: PageSize) -> usize {
    levels.iter().position(|level| level.leaf_sizes.contains(&size)).unwrap_or(0)
}
