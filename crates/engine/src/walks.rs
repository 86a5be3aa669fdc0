//! A batch's walks: where each begins, by what walk caches or a directory's entry say, and what it reads. Walks of one
//! stage ask one walk cache before the next, all of them; others go one by one (`walker.rs`).

use lookaside_machine::Stage;

use crate::batch::{Batch, BatchWalks, KeyLists};
use crate::classes::{BASE, SIDES, SIDE_OF};
use crate::context::{AccessContext, WalkRequest, KERNEL};
use crate::engine::Engine;
use crate::lookup::LookupKeys;
use crate::plan::WalkPlan;
use crate::routing::{kind_and_class, side_and_class, walk_cache_route};
use crate::stages::MAX_ITEMS;
use crate::tags::KERNEL_ID;
use crate::trace_hook::SeenPart;
use crate::walker::PageWalker;

impl Engine {
    /// Walks for the items that no TLB had, all but those that have walked in turn.
    pub(crate) fn begin_walks(&mut self, batch: &mut Batch, context: &AccessContext) {
        batch.walks_by_lists = context.plan.walks_are_short && batch.seen.part != SeenPart::All;
        if batch.walks_by_lists {
            self.ask_walk_caches(batch, context);
            self.end_walks(batch, context);
        } else if !context.routing.tlb.walks_change_stages {
            for walk in 0..batch.walks.len {
                self.walk(batch, walk, usize::from(batch.walks.items[walk]), context);
            }
        }
    }

    /// Walks for an item before the next one asks the TLBs.
    pub(crate) fn walk_in_turn(&mut self, batch: &mut Batch, item: usize, context: &AccessContext) {
        self.walk(batch, batch.walks.len, item, context);
        batch.walks.len += 1;
    }

    /// Walks for an item by every rule.
    fn walk(&mut self, batch: &mut Batch, walk: usize, item: usize, context: &AccessContext) {
        let (kind, class) = kind_and_class(usize::from(batch.route[item]));
        let owner = self.chunks.at(batch.at[item] as usize).owner as usize;
        let request = WalkRequest {
            routing: &context.routing,
            side: SIDE_OF[kind],
            space: self.spaces[owner].number,
            id: if owner == KERNEL { KERNEL_ID } else { context.id },
            run_id: context.id,
            hw: context.hw,
            va: batch.addr[item],
            class,
        };
        let seen = (batch.seen.part == SeenPart::All).then_some(&mut batch.seen.references);
        let entries = &mut batch.walks.entries;
        let (hardware, tables, counts) = (&mut self.hardware, &mut self.tables, &mut self.counts);
        let cost = PageWalker::new(&context.plan, hardware, tables, counts, (entries, seen), request).guest();
        batch.tally.references[SIDE_OF[kind]] += cost.references;
        batch.tally.walk_units = batch.tally.walk_units.saturating_add(cost.units);
        batch.walks.costs[walk] = cost;
    }

    /// Asks the walk caches for a batch's walks.
    fn ask_walk_caches(&mut self, batch: &mut Batch, context: &AccessContext) {
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
            order.advance(stage as u8, which, (&walks.route, None), &mut walks.next, &mut batch.tally.walk_cache);
        }
    }

    /// How many entries each walk reads, now that it is known where it begins.
    fn end_walks(&mut self, batch: &mut Batch, context: &AccessContext) {
        let plan = &*context.plan;
        let BatchWalks { len, route: routes, next, costs, to, .. } = &mut batch.walks;
        let mut all_units = batch.tally.walk_units;
        for walk in 0..*len {
            let hit = plan.guest_walk_caches[BASE].get(usize::from(next[walk]));
            let (side, class) = side_and_class(routes[walk]);
            let above = hit.map_or(plan.guest_levels.len(), |&number| plan.walk_caches[number].above);
            to[walk] = above as u8;
            let cost = &mut costs[walk];
            cost.begin(plan);
            hit.inspect(|&&number| cost.add_hit(plan, number));
            cost.references = (above - plan.leaf_at[class]) as u64;
            batch.tally.references[side] += cost.references;
            all_units = all_units.saturating_add(cost.units);
        }
        batch.tally.walk_units = all_units;
        if plan.walks != WalkPlan::Full {
            self.read_entries(&batch.walks, &batch.addr, &batch.at, context, |_, _, _, _| {});
        }
    }

    /// Calls `read` with what each walk's request is, its side, and the place among its entries and the address of each
    /// entry: level by level, so that the places of tables are at hand.
    pub(crate) fn read_entries(
        &mut self,
        walks: &BatchWalks,
        addrs: &[u64; MAX_ITEMS],
        ats: &[u32; MAX_ITEMS],
        context: &AccessContext,
        mut read: impl FnMut(u16, usize, usize, u64),
    ) {
        let plan = &*context.plan;
        for (position, level) in plan.guest_levels.iter().enumerate() {
            let (low, mask) = (level.index_low_bit, (1 << level.index_bits) - 1);
            let shift = level.entry_bytes.trailing_zeros();
            let mut counts = [0; SIDES];
            for (walk, &item) in walks.items[..walks.len].iter().enumerate() {
                let (side, class) = side_and_class(walks.route[walk]);
                let to = usize::from(walks.to[walk]);
                if !(plan.leaf_at[class]..to).contains(&position) {
                    continue;
                }
                counts[side] += 1;
                let item = usize::from(item) % MAX_ITEMS;
                let va = addrs[item];
                let within = (va >> low & mask) << shift;
                let at = ats[item] as usize;
                if self.chunks.walk_at(at).known >> position & 1 == 0 {
                    let space = self.spaces[self.chunks.at(at).owner as usize].number;
                    let entry = self.tables.entry(&plan.guest_memory, space, level, va, Stage::Guest, &mut self.counts);
                    let chunk = self.chunks.walk_at(at);
                    chunk.known |= 1 << position;
                    chunk.tables[position] = entry - within;
                }
                let entry = self.chunks.walk_at(at).tables[position] + within;
                read(walks.request[walk], side, to - 1 - position, entry);
            }
            for (side, count) in counts.into_iter().enumerate() {
                self.counts.tables[side][position] += count;
            }
        }
    }
}
