//! The page walk: which entries are read, what serves each, what it costs (`SEMANTICS.md` §6).

use lookaside_machine::Stage;

use crate::context::WalkRequest;
use crate::counts::EngineCounts;
use crate::directory_walk::{fill_directory, look_up_directory};
use crate::hardware::Hardware;
use crate::os::{entry_prefix, HOST_SPACE};
use crate::plan::{EnginePlan, HostPlan, WalkPlan};
use crate::table_memo::TableMemo;
use crate::trace_hook::Reference;
use crate::walk_cost::WalkCost;

/// One walk under way.
pub(crate) struct PageWalker<'a> {
    plan: &'a EnginePlan,
    hardware: &'a mut Hardware,
    tables: &'a mut TableMemo,
    counts: &'a mut EngineCounts,
    /// Where the addresses of entries go that are to be asked for; and what is seen of them.
    entries: (&'a mut Vec<u64>, Option<&'a mut Vec<Reference>>),
    request: WalkRequest<'a>,
    walk: WalkCost,
}

impl<'a> PageWalker<'a> {
    pub(crate) fn new(
        plan: &'a EnginePlan,
        hardware: &'a mut Hardware,
        tables: &'a mut TableMemo,
        counts: &'a mut EngineCounts,
        entries: (&'a mut Vec<u64>, Option<&'a mut Vec<Reference>>),
        request: WalkRequest<'a>,
    ) -> Self {
        Self { plan, hardware, tables, counts, entries, request, walk: WalkCost::default() }
    }

    /// Walks for an access that no TLB had: what that read, and what it cost but for this.
    pub(crate) fn guest(mut self) -> WalkCost {
        let plan = self.plan;
        self.walk.begin(plan);
        let WalkRequest { va, id, space, class, .. } = self.request;
        let at = self.begins_at();
        for position in (plan.leaf_at[class]..at).rev() {
            let level = &plan.guest_levels[position];
            let entry = self.tables.entry(&plan.guest_memory, space, level, va, Stage::Guest, self.counts);
            self.counts.tables[self.request.side][position] += 1;
            let physical = plan.host.as_ref().map_or(entry, |host| self.host(host, entry));
            self.reference(physical, level.level, Stage::Guest);
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
        self.walk
    }

    /// Translates a guest-physical address for someone who reads it by no page of the guest: where it lies, and what the
    /// host's walk read and cost but for this.
    pub(crate) fn guest_address(mut self, guest: u64) -> (u64, WalkCost) {
        let physical = self.plan.host.as_ref().map_or(guest, |host| self.host(host, guest));
        (physical, self.walk)
    }

    /// The position that the guest's walk reads below.
    fn begins_at(&mut self) -> usize {
        let plan = self.plan;
        let WalkRequest { va, id, class, .. } = self.request;
        if look_up_directory(plan, self.hardware, self.counts, &self.request) {
            return plan.directories.position;
        }
        for &number in &plan.guest_walk_caches[class] {
            let cache = &plan.walk_caches[number];
            let prefix = va >> cache.low_bit;
            let tag = self.hardware.tags.of_chunk(id, prefix << cache.low_bit >> plan.chunk_shift);
            if self.look_up_walk_cache(number, prefix, tag.into()) {
                return cache.above;
            }
        }
        plan.guest_levels.len()
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
            self.walk.add_hit(self.plan, number);
        }
        hit
    }

    /// One reference to a page-table entry.
    fn reference(&mut self, physical: u64, level: u32, stage: Stage) {
        self.walk.references += 1;
        if self.plan.walks == WalkPlan::Full {
            self.entries.0.push(physical);
        }
        if let Some(seen) = &mut self.entries.1 {
            // What served it comes later.
            seen.push(Reference { address: physical, level, stage, server: None });
        }
    }
}
