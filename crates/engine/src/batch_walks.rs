//! The batch path through walk caches and data caches, for walks of one stage that ask few walk caches.

use lookaside_machine::Stage;

use crate::batch::{Batch, BatchWalks, CacheRequests, KeyLists};
use crate::chunks::SCATTERED;
use crate::classes::{BASE, SIDES, SIDE_OF};
use crate::context::{AccessContext, WalkRequest};
use crate::data_cache::{is_in_a_peer, serve, CacheInstance, LineLayout, NO_LINE};
use crate::engine::Engine;
use crate::lookup::LookupKeys;
use crate::plan::{FillRule, WalkPlan};
use crate::routing::{kind_and_class, side_and_class, walk_cache_route, WALKS_THROUGH_CACHES};
use crate::rows::RowCost;
use crate::set_index::SetIndex;
use crate::space::physical;
use crate::stages::{MAX_ITEMS, MAX_KEYS, MAX_ROUTES};
use crate::store::AHEAD;
use crate::trace_hook::NoTracer;
use crate::walker::walk;

impl Engine {
    /// Asks the walk caches for a batch's walks.
    pub(crate) fn look_up_walk_caches(&mut self, batch: &mut Batch, context: &AccessContext) {
        let plan = &*context.plan;
        let order = &context.routing.walk_cache_stages;
        let walks = &mut batch.walks;
        for walk in 0..walks.len {
            let (kind, class) = kind_and_class(usize::from(batch.route[usize::from(walks.items[walk])]));
            let route = walk_cache_route(SIDE_OF[kind], class);
            walks.route[walk] = route as u8;
            walks.next[walk] = order.first[route];
            batch.tally.walks[route] += 1;
        }
        let offset = plan.guest_walk_caches.each_ref().map(|list| plan.guest_walk_caches[BASE].len() - list.len());
        for (stage, &number) in plan.guest_walk_caches[BASE].iter().enumerate() {
            let KeyLists { items, sets, words, missed, .. } = &mut batch.lists;
            let n = order.items_at(batch.simd, stage as u8, &walks.next[..walks.len], items);
            if n == 0 {
                continue;
            }
            let low_bit = plan.walk_caches[number].low_bit;
            let cache = &mut self.hardware.walk_caches[context.routing.walk_caches[number]];
            for k in 0..n {
                let item = usize::from(walks.items[usize::from(items[k])]);
                let (_, class) = kind_and_class(usize::from(batch.route[item]));
                sets[k] = cache.set_of(batch.addr[item] >> low_bit) as u32;
                words[k] = self.chunks.walk_at(batch.at[item] as usize).tags[stage - offset[class]];
            }
            // What misses is filled: the entry is read, since the walk begins above it.
            let keys = LookupKeys { sets: &sets[..n], words: &words[..n], seconds: &[] };
            let lookups = cache.store.look_up_list(batch.simd, keys, missed);
            let which = (&*items, &missed[..lookups.missed]);
            order.advance(stage as u8, which, &walks.route, &mut walks.next, &mut batch.tally.walk_cache);
        }
    }

    /// Asks the data caches for what a batch's walks read and its items' own lines.
    pub(crate) fn look_up_caches<const ROWS: bool>(&mut self, batch: &mut Batch, context: &AccessContext) {
        let plan = &*context.plan;
        let entries = if plan.walks == WalkPlan::CountOnly { 0 } else { self.request_entries(batch, context) };
        let lines = if plan.has_data_caches { batch.len } else { 0 };
        let left: u32 = batch.leaves.iter().map(|left| left.lines.count_ones()).sum();
        batch.requests.len = entries + lines + if plan.has_data_caches { left as usize } else { 0 };
        if plan.has_data_caches {
            self.request_lines(batch, context);
        }
        let order = &context.routing.data_cache_stages;
        let requests = &mut batch.requests;
        for (stage, &number) in plan.cache_order.iter().enumerate() {
            let KeyLists { items, sets, words, seconds, missed, .. } = &mut batch.lists;
            let n = order.items_at(batch.simd, stage as u8, &requests.next[..requests.len], items);
            if n == 0 {
                continue;
            }
            let fill = plan.caches[number].fill;
            if fill != FillRule::Misses {
                let slot_of = |number: usize| context.routing.caches[number];
                let own = if let FillRule::VictimsOf(feeder) = fill { Some(slot_of(feeder)) } else { None };
                let slots = (slot_of(number), own);
                let missed = access_one_by_one(&mut self.hardware.caches, slots, &items[..n], requests, missed);
                let which = (&*items, missed);
                order.advance(stage as u8, which, &requests.route, &mut requests.next, &mut batch.tally.cache);
                continue;
            }
            let cache = &mut self.hardware.caches[context.routing.caches[number]];
            let asked = (&items[..n], &requests.physical);
            match &cache.layout.index {
                SetIndex::Low { mask } => {
                    name_lines(&cache.layout, asked, sets, words, seconds, |line| (line & mask) as u32);
                }
                index => name_lines(&cache.layout, asked, sets, words, seconds, |line| index.set_of(line) as u32),
            }
            let keys = LookupKeys { sets: &sets[..n], words: &words[..n], seconds: &seconds[..n] };
            let lookups = cache.store.look_up_list(batch.simd, keys, missed);
            let which = (&*items, &missed[..lookups.missed]);
            order.advance(stage as u8, which, &requests.route, &mut requests.next, &mut batch.tally.cache);
        }
        if ROWS && plan.walks != WalkPlan::CountOnly {
            self.add_costs(batch, context);
        }
    }

    /// Requests of what walks read, each before its item's line: how many.
    fn request_entries(&mut self, batch: &mut Batch, context: &AccessContext) -> usize {
        let plan = &*context.plan;
        let BatchWalks { len, items, route: routes, next, costs, to, request, .. } = &mut batch.walks;
        let items = &items[..*len];
        let lines = usize::from(plan.has_data_caches);
        let (mut entries, mut left) = (0, 0);
        let mut leaves = batch.leaves.iter().peekable();
        for (walk, &item) in items.iter().enumerate() {
            while let Some(its) = leaves.next_if(|left| left.item <= item) {
                left += its.lines.count_ones() as usize;
            }
            let hit = plan.guest_walk_caches[BASE].get(usize::from(next[walk]));
            let (side, class) = side_and_class(routes[walk]);
            let its_to = hit.map_or(plan.guest_levels.len(), |&number| plan.walk_caches[number].above);
            let its = its_to - plan.leaf_at[class];
            to[walk] = its_to as u8;
            // The last of its requests.
            request[walk] = (entries + lines * (usize::from(item) + left) + its) as u16;
            costs[walk].references = its as u64;
            batch.tally.references[side] += its as u64;
            entries += its;
        }
        let space = self.spaces[context.space].number;
        for (position, level) in plan.guest_levels.iter().enumerate() {
            let (low, mask) = (level.index_low_bit, (1 << level.index_bits) - 1);
            let shift = level.entry_bytes.trailing_zeros();
            let mut counts = [0; SIDES];
            for (walk, &item) in items.iter().enumerate() {
                let (side, class) = side_and_class(routes[walk]);
                if !(plan.leaf_at[class]..usize::from(to[walk])).contains(&position) {
                    continue;
                }
                counts[side] += 1;
                let item = usize::from(item) % MAX_ITEMS;
                let va = batch.addr[item];
                let within = (va >> low & mask) << shift;
                let chunk = self.chunks.walk_at(batch.at[item] as usize);
                if chunk.known >> position & 1 == 0 {
                    let entry = self.tables.entry(&plan.guest_memory, space, level, va, Stage::Guest, &mut self.counts);
                    chunk.known |= 1 << position;
                    chunk.tables[position] = entry - within;
                }
                request[walk] -= 1;
                let at = usize::from(request[walk]) % MAX_KEYS;
                let route = WALKS_THROUGH_CACHES + side;
                batch.requests.physical[at] = chunk.tables[position] + within;
                batch.requests.route[at] = route as u8;
                batch.requests.next[at] = context.routing.data_cache_stages.first[route];
            }
            for (side, count) in counts.into_iter().enumerate() {
                self.counts.tables[side][position] += count;
            }
        }
        // Requested or not: the lines take their places.
        if plan.walks == WalkPlan::Full {
            entries
        } else {
            0
        }
    }

    /// Requests of items' own lines, each after what its walk reads; before that, of those of pages that leave.
    fn request_lines(&self, batch: &mut Batch, context: &AccessContext) {
        let order = &context.routing.data_cache_stages;
        let within = (1 << context.plan.chunk_shift) - 1;
        let end = context.routing.tlb.order.end();
        let has_scattered = batch.has_scattered();
        let (mut entries, mut walk, mut left, mut leaves) = (0, 0, 0, 0);
        for item in 0..batch.len.min(MAX_ITEMS) {
            while let Some(its) = batch.leaves.get(leaves).filter(|its| usize::from(its.item) <= item) {
                let (kind, page, mut lines) = (its.kind, its.page, its.lines);
                batch.tally.lines[kind] += u64::from(lines.count_ones());
                while lines != 0 {
                    let at = (item + entries + left) % MAX_KEYS;
                    batch.requests.physical[at] = page | u64::from(lines.trailing_zeros()) << 6;
                    batch.requests.route[at] = kind as u8;
                    batch.requests.next[at] = order.first[kind % MAX_ROUTES];
                    lines &= lines - 1;
                    left += 1;
                }
                leaves += 1;
            }
            let is_walk = usize::from(batch.next[item] == end && context.plan.walks == WalkPlan::Full);
            entries += is_walk * batch.walks.costs[walk % MAX_ITEMS].references as usize;
            walk += is_walk;
            let at = (item + entries + left) % MAX_KEYS;
            let (kind, _) = kind_and_class(usize::from(batch.route[item]));
            batch.requests.physical[at] = if has_scattered {
                self.physical_of(batch, context, item)
            } else {
                batch.frame[item] + (batch.addr[item] & within)
            };
            batch.requests.route[at] = kind as u8;
            batch.requests.next[at] = order.first[kind % MAX_ROUTES];
        }
    }

    /// Adds up what each walk cost.
    fn add_costs(&mut self, batch: &mut Batch, context: &AccessContext) {
        let plan = &*context.plan;
        let end = context.routing.data_cache_stages.end();
        let mut request = 0;
        for walk in 0..batch.walks.len {
            let cost = &mut batch.walks.costs[walk];
            let hit = plan.guest_walk_caches[BASE].get(usize::from(batch.walks.next[walk]));
            cost.units = plan.base_units + hit.map_or(0, |&number| plan.walk_caches[number].hit_units);
            cost.references_memory = 0;
            if let WalkPlan::AlwaysAt(number) = plan.walks {
                cost.units += plan.caches[number].hit_units * cost.references;
                continue;
            }
            while usize::from(batch.requests.route[request]) < WALKS_THROUGH_CACHES {
                request += 1;
            }
            for _ in 0..cost.references {
                let server = batch.requests.next[request];
                request += 1;
                let cache = plan.cache_order.get(usize::from(server));
                cost.units += cache.map_or(plan.walk_memory_units, |&number| plan.caches[number].hit_units);
                cost.references_memory += u64::from(server == end);
            }
        }
    }

    /// Walks and serves a batch's items one by one, where walks are not short.
    pub(crate) fn walk_and_serve(&mut self, batch: &mut Batch, context: &AccessContext) {
        let plan = &*context.plan;
        let end = context.routing.tlb.order.end();
        let mut walks = 0;
        let mut left = 0;
        for item in 0..batch.len {
            while let Some(its) = batch.leaves.get(left).filter(|its| usize::from(its.item) <= item) {
                self.serve_lines(context, its.kind, its.page, its.lines);
                left += 1;
            }
            let (kind, class) = kind_and_class(usize::from(batch.route[item]));
            let va = batch.addr[item];
            if batch.next[item] == end {
                let space = self.spaces[context.space].number;
                let side = SIDE_OF[kind];
                let of = WalkRequest {
                    routing: &context.routing,
                    side,
                    space,
                    id: context.id,
                    run_id: context.id,
                    hw: context.hw,
                    va,
                    class,
                };
                let mut cost = walk(plan, &mut self.hardware, &mut self.tables, &mut self.counts, &mut NoTracer, of);
                self.walk_ahead(context, kind, va, &mut cost);
                self.threads[context.thread].cost.add(&RowCost {
                    walk_references: cost.references,
                    walk_references_memory: cost.references_memory,
                    walk_units: cost.units,
                    ..RowCost::default()
                });
                batch.walks.costs[walks] = cost;
                walks += 1;
            }
            let route = &context.routing.data_route[kind];
            if !route.is_empty() {
                let physical = self.physical_of(batch, context, item);
                let position = serve(&mut self.hardware.caches, route, kind, physical);
                self.counts.data_served[kind][position] += 1;
                self.follow(context, kind, va, position);
                batch.tally.served[kind] += 1;
            }
        }
    }

    /// Physical address of an item.
    fn physical_of(&self, batch: &Batch, context: &AccessContext, item: usize) -> u64 {
        let (_, class) = kind_and_class(usize::from(batch.route[item]));
        let va = batch.addr[item];
        match batch.frame[item] {
            SCATTERED => physical(&context.plan, &self.spaces[context.space], va, class),
            first => first + (va & ((1 << context.plan.chunk_shift) - 1)),
        }
    }
}

/// Asks a cache that hands on what it throws out, or is filled by that, for some requests in turn. `own`: the slot of the
/// one that hands on to it. The places in the list of those that it had not.
fn access_one_by_one<'a>(
    caches: &mut [CacheInstance],
    (slot, own): (usize, Option<usize>),
    items: &[u16],
    requests: &mut CacheRequests,
    missed: &'a mut [u16],
) -> &'a [u16] {
    let mut n = 0;
    for (k, &item) in items.iter().enumerate() {
        if let Some(&item) = items.get(k + AHEAD) {
            let item = usize::from(item);
            caches[slot].prefetch(requests.physical[item]);
            if own.is_some() && requests.thrown_out[item] != NO_LINE {
                caches[slot].prefetch(requests.thrown_out[item]);
            }
        }
        let item = usize::from(item);
        let physical = requests.physical[item];
        let was_there = caches[slot].access(physical, false, &mut requests.thrown_out[item]);
        missed[n] = k as u16;
        n += usize::from(!was_there && !is_in_a_peer(caches, slot, own, physical));
    }
    &missed[..n]
}

/// Sets and keys of the lines that some requests ask for.
#[inline(always)]
fn name_lines(
    layout: &LineLayout,
    (items, physical): (&[u16], &[u64; MAX_KEYS]),
    sets: &mut [u32],
    words: &mut [u32],
    seconds: &mut [u32],
    set_of: impl Fn(u64) -> u32,
) {
    for ((&item, set), (word, second)) in items.iter().zip(sets).zip(words.iter_mut().zip(seconds)) {
        let key;
        (*set, key) = layout.key_by(&set_of, physical[usize::from(item) % MAX_KEYS]);
        *word = key as u32;
        *second = (key >> 32) as u32;
    }
}
