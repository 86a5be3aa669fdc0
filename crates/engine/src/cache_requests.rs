//! A batch's requests to the data caches, in order: what its walks read and its items' own lines. All of them ask one
//! cache before the next.

use lookaside_trace::Kind;

use crate::batch::{Batch, CacheRequests, KeyLists};
use crate::chunks::SCATTERED;
use crate::classes::SIDE_OF;
use crate::context::AccessContext;
use crate::data_cache::{is_in_a_peer, CacheInstance, NO_LINE};
use crate::engine::Engine;
use crate::key_names::name_lines;
use crate::lookup::LookupKeys;
use crate::plan::{FillRule, WalkPlan};
use crate::routing::{kind_and_class, WALKS_THROUGH_CACHES};
use crate::space::physical;
use crate::stages::{MAX_ITEMS, MAX_KEYS, MAX_ROUTES};
use crate::store::AHEAD;

impl Engine {
    /// Asks the data caches for what a batch's walks read and its items' own lines.
    pub(crate) fn ask_caches(&mut self, batch: &mut Batch, context: &AccessContext) {
        let plan = &*context.plan;
        batch.requests.len = 0;
        if plan.walks == WalkPlan::Full && batch.walks.len > 0 {
            self.request_entries(batch, context);
        }
        if plan.has_data_caches {
            self.request_lines(batch, context);
        }
        let order = &context.routing.data_cache_stages;
        // Items' own lines alone, all of one kind.
        let is_plain = batch.requests.len == batch.len && batch.leaves.is_empty() && batch.walks.len == 0;
        let only = batch.only_route().filter(|_| is_plain).map(|route| kind_and_class(route).0);
        let requests = &mut batch.requests;
        for (stage, &number) in plan.cache_order.iter().enumerate() {
            let KeyLists { items, missed, .. } = &mut batch.lists;
            let n = order.items_at(batch.simd, stage as u8, &requests.next[..requests.len], items);
            if n == 0 {
                continue;
            }
            let of = &plan.caches[number];
            if of.fill != FillRule::Misses || !of.write_allocate {
                let slot_of = |number: usize| context.routing.caches[number];
                let own = if let FillRule::VictimsOf(feeder) = of.fill { Some(slot_of(feeder)) } else { None };
                let slots = (slot_of(number), own);
                let missed = ask_one_by_one(&mut self.hardware.caches, slots, &items[..n], requests, missed);
                let which = (&*items, missed);
                order.advance(stage as u8, which, (&requests.route, only), &mut requests.next, &mut batch.tally.cache);
                continue;
            }
            let cache = &mut self.hardware.caches[context.routing.caches[number]];
            name_lines(batch.simd, &cache.layout, requests, n, &mut batch.lists);
            let KeyLists { items, sets, words, seconds, missed, .. } = &mut batch.lists;
            let keys = LookupKeys { sets: &sets[..n], words: &words[..n], seconds: &seconds[..n] };
            let lookups = cache.store.look_up_list(batch.simd, keys, missed);
            let which = (&*items, &missed[..lookups.missed]);
            order.advance(stage as u8, which, (&requests.route, only), &mut requests.next, &mut batch.tally.cache);
        }
    }

    /// Requests of what walks read, each walk's before its item's line.
    fn request_entries(&mut self, batch: &mut Batch, context: &AccessContext) {
        let plan = &*context.plan;
        let first = &context.routing.data_cache_stages.first;
        let lines = usize::from(plan.has_data_caches);
        let walks = &mut batch.walks;
        let (mut entries, mut left) = (0, 0);
        let mut leaves = batch.leaves.iter().peekable();
        for (walk, &item) in walks.items[..walks.len].iter().enumerate() {
            while let Some(its) = leaves.next_if(|left| left.item <= item) {
                left += its.lines.count_ones() as usize;
            }
            walks.request[walk] = (entries + lines * (usize::from(item) + left)) as u16;
            entries += walks.costs[walk].references as usize;
        }
        batch.requests.len = entries;
        let mut request = |at: usize, side: usize, physical: u64| {
            let (at, route) = (at % MAX_KEYS, WALKS_THROUGH_CACHES + side);
            batch.requests.physical[at] = physical;
            batch.requests.route[at] = route as u8;
            batch.requests.next[at] = first[route];
        };
        if !batch.walks_by_lists {
            let mut rest = &walks.entries[..];
            for (walk, &item) in walks.items[..walks.len].iter().enumerate() {
                let (kind, _) = kind_and_class(usize::from(batch.route[usize::from(item)]));
                let its;
                (its, rest) = rest.split_at(walks.costs[walk].references as usize);
                for (at, &physical) in its.iter().enumerate() {
                    request(usize::from(walks.request[walk]) + at, SIDE_OF[kind], physical);
                }
            }
            return;
        }
        self.read_entries(walks, &batch.addr, &batch.at, context, |walk, side, nth, physical| {
            request(usize::from(walk) + nth, side, physical);
        });
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
            batch.line_at[item] = at as u16;
            batch.requests.physical[at] = if has_scattered {
                self.physical_of(batch, context, item)
            } else {
                self.chunks.at(batch.at[item] as usize).frame + (batch.addr[item] & within)
            };
            batch.requests.route[at] = kind as u8;
            batch.requests.next[at] = order.first[kind % MAX_ROUTES];
        }
        batch.requests.len += batch.len + left;
    }

    /// Physical address of an item.
    fn physical_of(&self, batch: &Batch, context: &AccessContext, item: usize) -> u64 {
        let (_, class) = kind_and_class(usize::from(batch.route[item]));
        let va = batch.addr[item];
        let chunk = self.chunks.at(batch.at[item] as usize);
        match chunk.frame {
            SCATTERED => physical(&context.plan, &self.spaces[chunk.owner as usize], va, class),
            first => first + (va & ((1 << context.plan.chunk_shift) - 1)),
        }
    }
}

/// Asks a cache that hands on what it throws out, or is filled by that, or not by stores, for some requests in turn.
/// `own`: the slot of the one that hands on to it. The places in the list of those that it had not.
fn ask_one_by_one<'a>(
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
        let is_store = usize::from(requests.route[item]) == Kind::Store as usize;
        let was_there = caches[slot].access(physical, is_store, &mut requests.thrown_out[item]);
        missed[n] = k as u16;
        n += usize::from(!was_there && !is_in_a_peer(caches, slot, own, physical));
    }
    &missed[..n]
}
