//! The page walk: which entries are read, what serves each, what it costs (`SEMANTICS.md` §6).

use lookaside_machine::Stage;
use lookaside_trace::Kind;

use crate::context::{WalkCost, WalkRequest};
use crate::counts::EngineCounts;
use crate::data_cache::serve;
use crate::directory_walk::{fill_directory, look_up_directory};
use crate::hardware::Hardware;
use crate::os::{entry_prefix, HOST_SPACE};
use crate::plan::{EnginePlan, HostPlan, WalkPlan};
use crate::table_memo::TableMemo;
use crate::trace_hook::{AccessTracer, Reference};

/// One walk under way.
pub(crate) struct PageWalker<'a, T> {
    plan: &'a EnginePlan,
    hardware: &'a mut Hardware,
    tables: &'a mut TableMemo,
    counts: &'a mut EngineCounts,
    tracer: &'a mut T,
    request: WalkRequest<'a>,
    walk: WalkCost,
}

/// Walks for one access that missed every TLB level.
pub(crate) fn walk<T: AccessTracer>(
    plan: &EnginePlan,
    hardware: &mut Hardware,
    tables: &mut TableMemo,
    counts: &mut EngineCounts,
    tracer: &mut T,
    request: WalkRequest<'_>,
) -> WalkCost {
    if plan.walks == WalkPlan::CountOnly {
        return WalkCost::default();
    }
    let walk = WalkCost { units: plan.base_units, ..WalkCost::default() };
    let mut walker = PageWalker { plan, hardware, tables, counts, tracer, request, walk };
    walker.guest();
    walker.walk
}

/// Translates a guest-physical address for someone who reads it by no page of the guest: where it lies, and the units
/// that the host's walk takes.
pub(crate) fn translate_guest<T: AccessTracer>(
    plan: &EnginePlan,
    hardware: &mut Hardware,
    tables: &mut TableMemo,
    counts: &mut EngineCounts,
    tracer: &mut T,
    request: WalkRequest<'_>,
    guest: u64,
) -> (u64, u64) {
    let Some(host) = &plan.host else { return (guest, 0) };
    let mut walker = PageWalker { plan, hardware, tables, counts, tracer, request, walk: WalkCost::default() };
    let physical = walker.host(host, guest);
    (physical, walker.walk.units)
}

impl<T: AccessTracer> PageWalker<'_, T> {
    fn guest(&mut self) {
        let plan = self.plan;
        let WalkRequest { va, id, space, class, .. } = self.request;
        let mut at = plan.guest_levels.len();
        if look_up_directory(plan, self.hardware, self.counts, &self.request) {
            at = plan.directories.position;
        } else {
            for &number in &plan.guest_walk_caches[class] {
                let cache = &plan.walk_caches[number];
                let prefix = va >> cache.low_bit;
                let tag = self.hardware.tags.of_chunk(id, prefix << cache.low_bit >> plan.chunk_shift);
                if self.look_up_walk_cache(number, prefix, tag.into()) {
                    at = cache.above;
                    break;
                }
            }
        }
        for position in (plan.leaf_at[class]..at).rev() {
            let level = &plan.guest_levels[position];
            let entry = self.tables.entry(&plan.guest_memory, space, level, va, Stage::Guest, self.counts);
            self.counts.tables[self.request.side][position] += 1;
            match &plan.host {
                None => self.reference(entry, level.level, Stage::Guest),
                Some(host) => {
                    let physical = self.host(host, entry);
                    self.reference(physical, level.level, Stage::Guest);
                }
            }
            fill_directory(plan, self.hardware, self.counts, &self.request, position);
            if position > plan.leaf_at[class] {
                for &number in &plan.guest_fills[position] {
                    let prefix = entry_prefix(level, va);
                    let chunk = prefix << plan.walk_caches[number].low_bit >> plan.chunk_shift;
                    let tag = self.hardware.tags.of_chunk(id, chunk);
                    let slot = self.request.routing.walk_caches[number];
                    self.hardware.walk_caches[slot].fill(prefix, tag.into());
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
            if self.look_up_walk_cache(number, prefix, prefix) {
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
            self.counts.tables[self.request.side][self.plan.guest_levels.len() + position] += 1;
            self.reference(entry, level.level, Stage::Host);
            if position > host.leaf_at {
                for &number in &host.fills[position] {
                    let slot = self.request.routing.walk_caches[number];
                    let prefix = entry_prefix(level, guest);
                    self.hardware.walk_caches[slot].fill(prefix, prefix);
                }
            }
        }
        for &number in &host.translation_fills {
            let slot = self.request.routing.walk_caches[number];
            self.hardware.walk_caches[slot].fill(guest >> host.page_shift, guest >> host.page_shift);
        }
        physical
    }

    /// Looks up one walk cache.
    fn look_up_walk_cache(&mut self, number: usize, prefix: u64, key: u64) -> bool {
        let slot = self.request.routing.walk_caches[number];
        let hit = self.hardware.walk_caches[slot].access(prefix, key);
        let (lookups, hits) = &mut self.counts.walk_caches[number][self.request.side];
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
                let position =
                    serve(&mut self.hardware.caches, &self.request.routing.walk_route, Kind::Load as usize, physical);
                self.counts.walk_served[self.request.side][position] += 1;
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
