//! The page walk: which entries are read, what serves each, what it costs (`SEMANTICS.md` §6).

use lookaside_machine::{Stage, TableLevel};
use lookaside_trace::Kind;

use crate::counts::Counts;
use crate::fasthash::{spread, FastSet};
use crate::os::{entry_prefix, table_prefix, PhysicalMemory, HOST_SPACE};
use crate::parts::{Cache, Parts};
use crate::plan::{HostPlan, Plan, WalkPlan};
use crate::slots::Slots;
use crate::trace_hook::{Reference, Tracer};

/// What one walk came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    pub(crate) references: u64,
    pub(crate) references_memory: u64,
    pub(crate) units: u64,
}

/// Who walks, for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkFor<'a> {
    pub(crate) slots: &'a Slots,
    pub(crate) side: usize,
    /// The tables' space: number for `os.rs`, id in keys.
    pub(crate) space: u64,
    pub(crate) id: u64,
    /// Id of the running process's space, and the hardware thread: what TLB entries may be held under.
    pub(crate) run_id: u64,
    pub(crate) hw: usize,
    pub(crate) va: u64,
    pub(crate) class: usize,
}

/// One walk under way.
pub(crate) struct Walker<'a, T> {
    pub(crate) plan: &'a Plan,
    pub(crate) parts: &'a mut Parts,
    tables: &'a mut Tables,
    pub(crate) counts: &'a mut Counts,
    tracer: &'a mut T,
    pub(crate) of: WalkFor<'a>,
    walk: Walk,
}

/// Walks for one access that missed every TLB level.
pub(crate) fn walk<T: Tracer>(
    plan: &Plan,
    parts: &mut Parts,
    tables: &mut Tables,
    counts: &mut Counts,
    tracer: &mut T,
    of: WalkFor<'_>,
) -> Walk {
    if plan.walks == WalkPlan::CountOnly {
        return Walk::default();
    }
    let walk = Walk { units: plan.base_units, ..Walk::default() };
    let mut walker = Walker { plan, parts, tables, counts, tracer, of, walk };
    walker.guest();
    walker.walk
}

/// Translates a guest-physical address for someone who reads it by no page of the guest: where it lies, and the units that
/// the host's walk takes.
pub(crate) fn translate_guest<T: Tracer>(
    plan: &Plan,
    parts: &mut Parts,
    tables: &mut Tables,
    counts: &mut Counts,
    tracer: &mut T,
    of: WalkFor<'_>,
    guest: u64,
) -> (u64, u64) {
    let Some(host) = &plan.host else { return (guest, 0) };
    let mut walker = Walker { plan, parts, tables, counts, tracer, of, walk: Walk::default() };
    let physical = walker.host(host, guest);
    (physical, walker.walk.units)
}

impl<T: Tracer> Walker<'_, T> {
    fn guest(&mut self) {
        let plan = self.plan;
        let WalkFor { va, id, space, class, .. } = self.of;
        let mut at = plan.guest_levels.len();
        if self.ask_directories() {
            at = plan.directories.position;
        } else {
            for &number in &plan.guest_walk_caches[class] {
                let cache = &plan.walk_caches[number];
                let prefix = va >> cache.low_bit;
                let tag = self.parts.tags.of_chunk(id, prefix << cache.low_bit >> plan.chunk_shift);
                if self.ask(number, prefix, tag.into()) {
                    at = cache.above;
                    break;
                }
            }
        }
        for position in (plan.leaf_at[class]..at).rev() {
            let level = &plan.guest_levels[position];
            let entry = self.tables.entry(&plan.guest_memory, space, level, va, Stage::Guest, self.counts);
            self.counts.tables[self.of.side][position] += 1;
            match &plan.host {
                None => self.reference(entry, level.level, Stage::Guest),
                Some(host) => {
                    let physical = self.host(host, entry);
                    self.reference(physical, level.level, Stage::Guest);
                }
            }
            self.fill_directories(position);
            if position > plan.leaf_at[class] {
                for &number in &plan.guest_fills[position] {
                    let prefix = entry_prefix(level, va);
                    let chunk = prefix << plan.walk_caches[number].low_bit >> plan.chunk_shift;
                    let tag = self.parts.tags.of_chunk(id, chunk);
                    let slot = self.of.slots.walk_caches[number];
                    self.parts.walk_caches[slot].fill(prefix, tag.into());
                }
            }
        }
        if let Some(host) = &plan.host {
            self.host(host, plan.guest_memory.data_address(space, va, plan.leaf_shift[class]));
        }
    }

    /// Translates a guest-physical address by the host's tables.
    fn host(&mut self, host: &HostPlan, guest: u64) -> u64 {
        let physical = host.memory.data_address(HOST_SPACE, guest, host.page_shift);
        let mut at = host.levels.len();
        for &number in &host.walk_caches {
            let cache = &self.plan.walk_caches[number];
            let prefix = guest >> cache.low_bit;
            if self.ask(number, prefix, prefix) {
                if cache.table_level == 1 {
                    return physical;
                }
                at = cache.above;
                break;
            }
        }
        for position in (host.leaf_at..at).rev() {
            let level = &host.levels[position];
            let entry = self.tables.entry(&host.memory, HOST_SPACE, level, guest, Stage::Host, self.counts);
            self.counts.tables[self.of.side][self.plan.guest_levels.len() + position] += 1;
            self.reference(entry, level.level, Stage::Host);
            if position > host.leaf_at {
                for &number in &host.fills[position] {
                    let slot = self.of.slots.walk_caches[number];
                    let prefix = entry_prefix(level, guest);
                    self.parts.walk_caches[slot].fill(prefix, prefix);
                }
            }
        }
        for &number in &host.translation_fills {
            let slot = self.of.slots.walk_caches[number];
            self.parts.walk_caches[slot].fill(guest >> host.page_shift, guest >> host.page_shift);
        }
        physical
    }

    /// Asks one walk cache.
    fn ask(&mut self, number: usize, prefix: u64, key: u64) -> bool {
        let slot = self.of.slots.walk_caches[number];
        let hit = self.parts.walk_caches[slot].access(prefix, key);
        let (lookups, hits) = &mut self.counts.walk_caches[number][self.of.side];
        *lookups += 1;
        if hit {
            *hits += 1;
            self.walk.units += self.plan.walk_caches[number].hit_units;
        }
        hit
    }

    /// One reference to a page-table entry.
    fn reference(&mut self, physical: u64, level: u32, stage: Stage) {
        let plan = self.plan;
        self.walk.references += 1;
        let server = match plan.walks {
            WalkPlan::AlwaysAt(number) => {
                self.walk.units += plan.caches[number].hit_units;
                Some(number)
            }
            _ => {
                let position = serve(&mut self.parts.caches, &self.of.slots.walk_route, Kind::Load as usize, physical);
                self.counts.walk_served[self.of.side][position] += 1;
                let server = plan.walk_route.get(position).copied();
                self.walk.units += server.map_or(plan.walk_memory_units, |number| plan.caches[number].hit_units);
                self.walk.references_memory += u64::from(server.is_none());
                server
            }
        };
        if T::ENABLED {
            self.tracer.reference(Reference { address: physical, level, stage, server });
        }
    }
}

/// Asks the data caches of a route in turn for a byte's line, for an access of this kind; fills those that had it not and are filled by
/// such. The server's position in the route; its length = memory.
#[inline(always)]
pub(crate) fn serve(caches: &mut [Cache], route: &[usize], kind: usize, physical: u64) -> usize {
    for (position, &slot) in route.iter().enumerate() {
        if caches[slot].access(physical, kind == Kind::Store as usize) {
            return position;
        }
    }
    route.len()
}

/// Remembers where tables lie, and which guest tables were ever read.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Key and base of the table seen last at each place.
    memo: Vec<(TableKey, u64)>,
    read: FastSet<TableKey>,
}

/// Space, level and stage, prefix.
type TableKey = (u64, u32, u64);

/// Tables remembered: enough for 16 GiB of leaf tables, in 256 KiB.
const MEMO_LEN: usize = 1 << 13;

impl Tables {
    pub(crate) fn new() -> Self {
        Self { memo: vec![((u64::MAX, 0, 0), 0); MEMO_LEN], read: FastSet::default() }
    }

    /// Address of the guest's entry for `va` at a level.
    pub(crate) fn guest_entry(
        &mut self,
        memory: &PhysicalMemory,
        space: u64,
        level: &TableLevel,
        va: u64,
        counts: &mut Counts,
    ) -> u64 {
        self.entry(memory, space, level, va, Stage::Guest, counts)
    }

    /// Address of the entry for `va` at a level.
    #[inline]
    fn entry(
        &mut self,
        memory: &PhysicalMemory,
        space: u64,
        level: &TableLevel,
        va: u64,
        stage: Stage,
        counts: &mut Counts,
    ) -> u64 {
        let key = (space, level.level << 1 | stage as u32, table_prefix(level, va));
        let hash = spread(key.0 ^ u64::from(key.1) << 56 ^ key.2.rotate_left(20));
        let place = &mut self.memo[(hash >> (64 - MEMO_LEN.trailing_zeros())) as usize];
        if place.0 != key {
            *place = (key, memory.table_base(space, level, va));
            if stage == Stage::Guest && self.read.insert(key) {
                counts.table_bytes += u64::from(level.entry_bytes) << level.index_bits;
            }
        }
        let index = va >> level.index_low_bit & ((1 << level.index_bits) - 1);
        place.1 + index * u64::from(level.entry_bytes)
    }
}
