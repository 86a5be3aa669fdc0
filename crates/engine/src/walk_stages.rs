//! A batch's way through walk caches and data caches, where walks are short: of one stage, through few walk caches.

use crate::ask::Keys;
use crate::batch::{Batch, Lists, MOST, MOST_KEYS};
use crate::counts::SIDE_OF;
use crate::engine::{physical, Engine, Run};
use crate::ladder::ROUTES;
use crate::places::SCATTERED;
use crate::plan::{WalkPlan, BASE};
use crate::rows::RowCost;
use crate::slots::{kind_and_class, walk_cache_route, WALKS_THROUGH_CACHES};
use crate::trace_hook::Blind;
use crate::walker::{serve, walk, Walk, WalkFor};

/// A batch's walks.
#[derive(Debug)]
pub(crate) struct Walks {
    pub(crate) len: usize,
    pub(crate) items: [u16; MOST],
    /// Route through the walk caches, and the one that it is at.
    route: [u8; MOST],
    next: [u8; MOST],
    pub(crate) came: [Walk; MOST],
}

impl Default for Walks {
    fn default() -> Self {
        Self { len: 0, items: [0; MOST], route: [0; MOST], next: [0; MOST], came: [Walk::default(); MOST] }
    }
}

/// A batch's requests to the data caches, in order.
#[derive(Debug)]
pub(crate) struct Requests {
    len: usize,
    physical: [u64; MOST_KEYS],
    /// Route through the data caches, and the one that it is at.
    route: [u8; MOST_KEYS],
    next: [u8; MOST_KEYS],
}

impl Default for Requests {
    fn default() -> Self {
        Self { len: 0, physical: [0; MOST_KEYS], route: [0; MOST_KEYS], next: [0; MOST_KEYS] }
    }
}

impl Requests {
    #[inline(always)]
    fn push(&mut self, physical: u64, route: usize, first: u8) {
        let request = self.len % MOST_KEYS;
        self.physical[request] = physical;
        self.route[request] = route as u8;
        self.next[request] = first;
        self.len += 1;
    }
}

impl Engine {
    /// Asks the walk caches for a batch's walks.
    pub(crate) fn ask_walk_caches(&mut self, batch: &mut Batch, run: &Run) {
        let plan = &*run.plan;
        let ladder = &run.slots.walk_cache_ladder;
        let walks = &mut batch.walks;
        for walk in 0..walks.len {
            let (kind, class) = kind_and_class(usize::from(batch.route[usize::from(walks.items[walk])]));
            let route = walk_cache_route(SIDE_OF[kind], class);
            walks.route[walk] = route as u8;
            walks.next[walk] = ladder.first[route];
            batch.tally.walks[route] += 1;
        }
        let offset = plan.guest_walk_caches.each_ref().map(|list| plan.guest_walk_caches[BASE].len() - list.len());
        for (stage, &number) in plan.guest_walk_caches[BASE].iter().enumerate() {
            let Lists { items, sets, words, missed, .. } = &mut batch.lists;
            let n = ladder.items_at(batch.isa, stage as u8, &walks.next[..walks.len], items);
            if n == 0 {
                continue;
            }
            let low_bit = plan.walk_caches[number].low_bit;
            let cache = &mut self.parts.walk_caches[run.slots.walk_caches[number]];
            for k in 0..n {
                let item = usize::from(walks.items[usize::from(items[k])]);
                let (_, class) = kind_and_class(usize::from(batch.route[item]));
                sets[k] = cache.set_of(batch.addr[item] >> low_bit) as u32;
                words[k] = self.places.walk_at(usize::from(batch.at[item])).tags[stage - offset[class]];
            }
            // What misses is filled: the entry is read, since the walk begins above it.
            let keys = Keys { sets: &sets[..n], words: &words[..n], seconds: &[] };
            let asked = cache.store.ask(batch.isa, keys, missed);
            let which = (&*items, &missed[..asked.missed]);
            ladder.go_on(stage as u8, which, &walks.route, &mut walks.next, &mut batch.tally.walk_cache);
        }
    }

    /// Asks the data caches for what a batch's walks read and its items' own lines.
    pub(crate) fn ask_caches<const ROWS: bool>(&mut self, batch: &mut Batch, run: &Run) {
        let plan = &*run.plan;
        batch.requests.len = 0;
        let mut from = 0;
        if plan.walks != WalkPlan::CountOnly {
            for walk in 0..batch.walks.len {
                let item = usize::from(batch.walks.items[walk]);
                if plan.has_data_caches {
                    self.request_lines(batch, run, from..item);
                }
                self.request_entries(batch, run, walk, item);
                from = item;
            }
        }
        if plan.has_data_caches {
            self.request_lines(batch, run, from..batch.len);
        }
        let ladder = &run.slots.cache_ladder;
        let requests = &mut batch.requests;
        for (stage, &number) in plan.cache_order.iter().enumerate() {
            let Lists { items, sets, words, seconds, missed, .. } = &mut batch.lists;
            let n = ladder.items_at(batch.isa, stage as u8, &requests.next[..requests.len], items);
            if n == 0 {
                continue;
            }
            let cache = &mut self.parts.caches[run.slots.caches[number]];
            let naming = cache.naming;
            let keys = items[..n].iter().zip(sets.iter_mut()).zip(words.iter_mut().zip(seconds.iter_mut()));
            for ((&item, set), (word, second)) in keys {
                let key;
                (*set, key) = naming.key_of(requests.physical[usize::from(item) % MOST_KEYS]);
                *word = key as u32;
                *second = (key >> 32) as u32;
            }
            let keys = Keys { sets: &sets[..n], words: &words[..n], seconds: &seconds[..n] };
            let asked = cache.store.ask(batch.isa, keys, missed);
            let which = (&*items, &missed[..asked.missed]);
            ladder.go_on(stage as u8, which, &requests.route, &mut requests.next, &mut batch.tally.cache);
        }
        if ROWS && plan.walks != WalkPlan::CountOnly {
            self.add_costs(batch, run);
        }
    }

    /// Requests of items' own lines.
    #[inline(always)]
    fn request_lines(&self, batch: &mut Batch, run: &Run, items: std::ops::Range<usize>) {
        let ladder = &run.slots.cache_ladder;
        let within = (1 << run.plan.chunk_shift) - 1;
        let from = batch.requests.len.min(MOST_KEYS - items.len());
        let to = from + items.len();
        if batch.has_scattered() {
            for (request, item) in (from..to).zip(items.clone()) {
                batch.requests.physical[request] = self.physical_of(batch, run, item);
            }
        } else {
            let lines = batch.requests.physical[from..to].iter_mut();
            for ((line, frame), va) in lines.zip(&batch.frame[items.clone()]).zip(&batch.addr[items.clone()]) {
                *line = frame + (va & within);
            }
        }
        let routes = batch.requests.route[from..to].iter_mut().zip(&mut batch.requests.next[from..to]);
        for ((route, next), &its) in routes.zip(&batch.route[items]) {
            let (kind, _) = kind_and_class(usize::from(its));
            *route = kind as u8;
            *next = ladder.first[kind % ROUTES];
        }
        batch.requests.len = to;
    }

    /// Requests of what a walk reads.
    #[inline(always)]
    fn request_entries(&mut self, batch: &mut Batch, run: &Run, walk: usize, item: usize) {
        let plan = &*run.plan;
        let (kind, class) = kind_and_class(usize::from(batch.route[item]));
        let side = SIDE_OF[kind];
        let va = batch.addr[item];
        let hit = plan.guest_walk_caches[BASE].get(usize::from(batch.walks.next[walk]));
        let to = hit.map_or(plan.guest_levels.len(), |&number| plan.walk_caches[number].above);
        let from = plan.leaf_at[class];
        let route = WALKS_THROUGH_CACHES + side;
        let first = run.slots.cache_ladder.first[route];
        let place = self.places.walk_at(usize::from(batch.at[item]));
        for position in (from..to).rev() {
            self.counts.tables[side][position] += 1;
            let level = &plan.guest_levels[position];
            let within = (va >> level.index_low_bit & ((1 << level.index_bits) - 1)) * u64::from(level.entry_bytes);
            if place.known >> position & 1 == 0 {
                let space = self.spaces[run.space].number;
                let entry = self.tables.guest_entry(&plan.guest_memory, space, level, va, &mut self.counts);
                place.known |= 1 << position;
                place.tables[position] = entry - within;
            }
            if plan.walks == WalkPlan::Full {
                batch.requests.push(place.tables[position] + within, route, first);
            }
        }
        let references = (to - from) as u64;
        batch.walks.came[walk].references = references;
        batch.tally.references[side] += references;
    }

    /// Adds up what each walk cost.
    fn add_costs(&mut self, batch: &mut Batch, run: &Run) {
        let plan = &*run.plan;
        let end = run.slots.cache_ladder.end();
        let mut request = 0;
        for walk in 0..batch.walks.len {
            let came = &mut batch.walks.came[walk];
            let hit = plan.guest_walk_caches[BASE].get(usize::from(batch.walks.next[walk]));
            came.units = plan.base_units + hit.map_or(0, |&number| plan.walk_caches[number].hit_units);
            came.references_memory = 0;
            if let WalkPlan::AlwaysAt(number) = plan.walks {
                came.units += plan.caches[number].hit_units * came.references;
                continue;
            }
            while usize::from(batch.requests.route[request]) < WALKS_THROUGH_CACHES {
                request += 1;
            }
            for _ in 0..came.references {
                let server = batch.requests.next[request];
                request += 1;
                let cache = plan.cache_order.get(usize::from(server));
                came.units += cache.map_or(plan.walk_memory_units, |&number| plan.caches[number].hit_units);
                came.references_memory += u64::from(server == end);
            }
        }
    }

    /// Walks and serves a batch's items one by one, where walks are not short.
    pub(crate) fn walk_and_serve(&mut self, batch: &mut Batch, run: &Run) {
        let plan = &*run.plan;
        let end = run.slots.tlb.ladder.end();
        let mut walks = 0;
        for item in 0..batch.len {
            let (kind, class) = kind_and_class(usize::from(batch.route[item]));
            let va = batch.addr[item];
            if batch.next[item] == end {
                let space = self.spaces[run.space].number;
                let of = WalkFor { slots: &run.slots, side: SIDE_OF[kind], space, id: run.id, va, class };
                let came = walk(plan, &mut self.parts, &mut self.tables, &mut self.counts, &mut Blind, of);
                self.threads[run.thread].cost.add(&RowCost {
                    walk_references: came.references,
                    walk_references_memory: came.references_memory,
                    walk_units: came.units,
                    ..RowCost::default()
                });
                batch.walks.came[walks] = came;
                walks += 1;
            }
            let route = &run.slots.data_route[kind];
            if !route.is_empty() {
                let physical = self.physical_of(batch, run, item);
                let position = serve(&mut self.parts.caches, route, physical);
                self.counts.data_served[kind][position] += 1;
                batch.tally.served[kind] += 1;
            }
        }
    }

    /// Physical address of an item.
    fn physical_of(&self, batch: &Batch, run: &Run, item: usize) -> u64 {
        let (_, class) = kind_and_class(usize::from(batch.route[item]));
        let va = batch.addr[item];
        match batch.frame[item] {
            SCATTERED => physical(&run.plan, &self.spaces[run.space], va, class),
            first => first + (va & ((1 << run.plan.chunk_shift) - 1)),
        }
    }
}
