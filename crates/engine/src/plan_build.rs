//! Makes an [`EnginePlan`] from a setup: checks it, and makes every choice that does not change during the run.

use lookaside_machine::{FilledBy, Machine, PageSize, Serves, Stage, TableLevel, Tag};
use lookaside_trace::Kind;

use crate::assoc::ArrayShape;
use crate::classes::{BASE, BASE_SHIFT, CLASSES, HUGE, KINDS};
use crate::directories::Directories;
use crate::os::{to_units, PhysicalMemory};
use crate::plan::{
    CachePlan, ChunkNumbers, EnginePlan, FillRule, HostPlan, Route, RouteLevel, TlbPlan, WalkCachePlan, KERNEL_CHUNKS,
    MAX_CHUNK_SHIFT, MAX_WALK_STEPS,
};
use crate::plan_check::{frames, huge_page, locks, walk_plan};
use crate::row_groups::AlikeRule;
use crate::set_index::SetIndex;
use crate::stages::MAX_KEYS;
use crate::tag_layout::TagLayout;
use crate::{Setup, SetupError};

impl EnginePlan {
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

        let leaf_table = guest_levels[leaf_at[BASE]];
        let leaf_table_shift = leaf_table.index_low_bit + leaf_table.index_bits;
        let chunk_shift = huge.shift().min(leaf_table_shift).min(MAX_CHUNK_SHIFT);
        let narrow = format.address_bits() <= 32;
        let guest_memory = PhysicalMemory::guest(&machine.page_table, setup.os.frames, setup.seed);
        let run = if host.is_some() { Some(0) } else { guest_memory.run_shift(base.shift()) };
        let tlb_plan = |tlb| TlbPlan::new(tlb, effective, chunk_shift, narrow, run);
        let mut tlbs: Vec<TlbPlan> = machine.tlbs.iter().map(tlb_plan).collect();
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

        let mut caches: Vec<CachePlan> = machine.caches.iter().map(CachePlan::new).collect();
        let mut ascending: Vec<usize> = (0..caches.len()).collect();
        ascending.sort_by_key(|&i| machine.caches[i].level);
        let serving =
            |kind| ascending.iter().copied().filter(|&i| machine.caches[i].serves.contains(&kind)).collect::<Vec<_>>();
        for (i, cache) in machine.caches.iter().enumerate().filter(|(_, cache)| cache.filled_by == FilledBy::Victims) {
            // `check` has seen that it is the same for all kinds.
            let route = serving(cache.serves[0]);
            let before = route.iter().take_while(|&&other| other != i).last();
            if let Some(&before) = before {
                (caches[before].fill, caches[i].fill) = (FillRule::MissesAndHandsOn, FillRule::VictimsOf(before));
            }
        }
        let mut walk_route = serving(Serves::Load);
        walk_route.retain(|&i| machine.caches[i].level >= machine.walker.first_cache_level);

        let walk_memory_units = to_units(machine.walk_memory_cycles());
        let topology = machine.topology;
        let threads_per_socket = (topology.threads_per_core * topology.cores_per_socket) as usize;
        let data_route = [Serves::Load, Serves::Store, Serves::Fetch].map(serving);
        let stream_units = machine.stream.map(|stream| (to_units(stream.cache_cycles), to_units(stream.memory_cycles)));
        let memory_units = to_units(machine.memory.cycles);
        let directories = Directories::new(machine, &guest_levels, leaf_at, in_parts);
        let host_levels = host.as_ref().map_or(0, |host: &HostPlan| host.levels.len());
        let most_requests = 1 + guest_levels.len() * (1 + host_levels) + host_levels;
        let stalls = data_route.each_ref().map(|route| stalls(route, &caches, memory_units, stream_units));
        Ok(Self {
            format,
            address_mask: (1 << format.address_bits()) - 1,
            chunk_numbers: ChunkNumbers {
                address_mask: (1 << format.address_bits()) - 1,
                shift: chunk_shift,
                kernel_chunks: if narrow { 0 } else { KERNEL_CHUNKS },
            },
            kernel_bit: if narrow { 0 } else { 1 << (format.address_bits() - 1) },
            leaf_shift: [base.shift(), huge.shift()],
            leaf_at,
            guest_walk_caches: leaf_at.map(above),
            guest_fills,
            guest_memory,
            chunk_shift,
            huge_pages_have_parts: tlbs.iter().any(|tlb| tlb.entry_shift[HUGE] == tlb.entry_shift[BASE]),
            alike: alike(&routes, &caches, &data_route),
            most_requests,
            most_items: MAX_KEYS / most_requests,
            walks_are_short: host.is_none()
                && !directories.are_held()
                && guest.len() <= MAX_WALK_STEPS
                && guest_levels.len() <= MAX_WALK_STEPS
                && guest.windows(2).all(|pair| walk_caches[pair[0]].table_level < walk_caches[pair[1]].table_level),
            usual_name: tlbs.first().map_or(0, TlbPlan::tag_name),
            hw_tags: tlbs.iter().any(|tlb| tlb.hw_tag),
            narrow,
            directories,
            walk_caches,
            has_data_caches: !caches.is_empty(),
            cache_order: ascending.clone(),
            data_route,
            walk_route,
            stream_units,
            stalls,
            stream_walk_units: machine.stream.and_then(|stream| stream.walk_cycles).map(to_units),
            caches,
            walks: walk_plan(setup)?,
            memory_units,
            walk_memory_units,
            base_units: to_units(machine.walker.base_cycles),
            switch_units: to_units(machine.context_switch.cycles),
            threads_per_core: topology.threads_per_core as usize,
            threads_per_socket,
            hw_threads: threads_per_socket * topology.sockets as usize,
            guest_levels,
            host,
            tlbs,
            forms: None,
            routes,
        })
    }
}

/// Accesses of one kind to one page, and line where data caches are asked: after the first the others find both. But
/// where there is no TLB each of them walks, and where stores do not fill a cache each of them asks the next.
fn alike(routes: &[[Route; CLASSES]; KINDS], caches: &[CachePlan], data_route: &[Vec<usize>; KINDS]) -> AlikeRule {
    let passes =
        |kind: usize| kind == Kind::Store as usize && data_route[kind].iter().any(|&i| !caches[i].write_allocate);
    AlikeRule {
        shift: caches.iter().fold(BASE_SHIFT, |shift, cache| shift.min(cache.line_shift)),
        apart: std::array::from_fn(|kind| passes(kind) || routes[kind].iter().any(|route| route.levels.is_empty())),
    }
}

/// By position in a route of data caches, memory last: what an access that is served there waits for beyond a hit in the
/// first, without a stream and with one.
fn stalls(route: &[usize], caches: &[CachePlan], memory_units: u64, stream_units: Option<(u64, u64)>) -> Vec<[u64; 2]> {
    let units: Vec<u64> = route.iter().map(|&i| caches[i].hit_units).chain([memory_units]).collect();
    let stall = |(position, &alone): (usize, &u64)| {
        let streamed = stream_units.map_or(alone, |(from_cache, from_memory)| {
            alone.min(if position < route.len() { from_cache } else { from_memory })
        });
        [alone, streamed].map(|served| served.saturating_sub(units[0]))
    };
    units.iter().enumerate().map(stall).collect()
}

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
    /// `run`: log2 of the bytes that follow each other in physical memory as in virtual memory; none: all do.
    fn new(
        tlb: &lookaside_machine::Tlb,
        effective: [u32; CLASSES],
        chunk_shift: u32,
        narrow: bool,
        run: Option<u32>,
    ) -> Self {
        let entry_shift =
            effective.map(|s| tlb.page_sizes.iter().map(|size| size.shift()).filter(|&shift| shift <= s).max());
        let coalesce_shift = tlb.coalesce_pages.trailing_zeros();
        let global = tlb.tags.contains(&Tag::Global);
        let layout = |shift: Option<u32>| {
            let shift = shift.or(entry_shift[BASE]).or(entry_shift[HUGE]);
            TagLayout::new(shift.unwrap_or(BASE_SHIFT), coalesce_shift, chunk_shift, shift != entry_shift[BASE])
        };
        // Where a range becomes huge, entries of its base pages stay, and have another distance than its parts.
        let holds_parts_of_huge_pages = entry_shift[HUGE] == Some(BASE_SHIFT);
        // Without tag `global` kernel pages may stand beside pages of the process that have the same translated bits.
        // Masks of longer blocks have more bits than fit beside a tag.
        let blocks_keep_distance = (global || narrow)
            && coalesce_shift <= 5
            && run.is_none_or(|run| run >= BASE_SHIFT + coalesce_shift && !holds_parts_of_huge_pages);
        Self {
            shape: ArrayShape {
                sets: tlb.sets() as usize,
                ways: tlb.ways.count(tlb.entries) as usize,
                replacement: tlb.replacement,
                repeated_keys: tlb.coalesce_pages > 1,
            },
            index: SetIndex::new(&tlb.index, tlb.sets()),
            hw_tag: tlb.tags.contains(&Tag::HwThread),
            global,
            coalesce_shift,
            hit_units: to_units(tlb.hit_cycles),
            shared_by: tlb.shared_by,
            entry_shift,
            layouts: entry_shift.map(layout),
            keeps_distance: coalesce_shift == 0 || blocks_keep_distance,
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
            Some(RouteLevel { level, arrays: arrays.collect() })
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
            shape: ArrayShape {
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
            shape: ArrayShape {
                sets: cache.sets() as usize,
                ways: cache.ways.count(cache.lines()) as usize,
                replacement: cache.replacement,
                repeated_keys: false,
            },
            index: SetIndex::new(&cache.index, cache.sets()),
            line_shift: cache.line_bytes.trailing_zeros(),
            hit_units: to_units(cache.hit_cycles),
            shared_by: cache.shared_by,
            write_allocate: cache.write_allocate,
            fill: FillRule::Misses,
        }
    }
}

/// Position of the level that ends a walk for a leaf of this size.
fn position_of_leaf(levels: &[TableLevel], size: PageSize) -> usize {
    levels.iter().position(|level| level.leaf_sizes.contains(&size)).unwrap_or(0)
}
