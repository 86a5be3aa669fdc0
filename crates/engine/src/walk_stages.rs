//! A batch's way through walk caches and data caches, where walks are short: of one stage, through few walk caches.

use crate::ask::Keys;
use crate::batch::{Batch, Lists, MOST, MOST_KEYS};
use crate::counts::{SIDES, SIDE_OF};
use crate::engine::{physical, Engine, Run};
use crate::ladder::ROUTES;
use crate::places::SCATTERED;
use crate::plan::{WalkPlan, BASE};
use crate::rows::RowCost;
use crate::slots::{kind_and_class, side_and_class, walk_cache_route, WALKS_THROUGH_CACHES};
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
    /// Position that its reading ends before, and its request that is made next.
    to: [u8; MOST],
    request: [u16; MOST],
    pub(crate) came: [Walk; MOST],
}

impl Default for Walks {
    fn default() -> Self {
        Self {
            len: 0,
            items: [0; MOST],
            route: [0; MOST],
            next: [0; MOST],
            to: [0; MOST],
            request: [0; MOST],
            came: [Walk::default(); MOST],
        }
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
        let entries = if plan.walks == WalkPlan::CountOnly { 0 } else { self.request_entries(batch, run) };
        let lines = if plan.has_data_caches { batch.len } else { 0 };
        let left: u32 = batch.leaves.iter().map(|left| left.lines.count_ones()).sum();
        batch.requests.len = entries + lines + if plan.has_data_caches { left as usize } else { 0 };
        if plan.has_data_caches {
            self.request_lines(batch, run);
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

    /// Requests of what walks read, each before its item's line: how many.
    fn request_entries(&mut self, batch: &mut Batch, run: &Run) -> usize {
        let plan = &*run.plan;
        let Walks { len, items, route: routes, next, came, to, request, .. } = &mut batch.walks;
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
            came[walk].references = its as u64;
            batch.tally.references[side] += its as u64;
            entries += its;
        }
        let space = self.spaces[run.space].number;
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
                let item = usize::from(item) % MOST;
                let va = batch.addr[item];
                let within = (va >> low & mask) << shift;
                let place = self.places.walk_at(usize::from(batch.at[item]));
                if place.known >> position & 1 == 0 {
                    let entry = self.tables.guest_entry(&plan.guest_memory, space, level, va, &mut self.counts);
                    place.known |= 1 << position;
                    place.tables[position] = entry - within;
                }
                request[walk] -= 1;
                let at = usize::from(request[walk]) % MOST_KEYS;
                let route = WALKS_THROUGH_CACHES + side;
                batch.requests.physical[at] = place.tables[position] + within;
                batch.requests.route[at] = route as u8;
                batch.requests.next[at] = run.slots.cache_ladder.first[route];
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
    fn request_lines(&self, batch: &mut Batch, run: &Run) {
        let ladder = &run.slots.cache_ladder;
        let within = (1 << run.plan.chunk_shift) - 1;
        let end = run.slots.tlb.ladder.end();
        let has_scattered = batch.has_scattered();
        let (mut entries, mut walk, mut left, mut leaves) = (0, 0, 0, 0);
        for item in 0..batch.len.min(MOST) {
            while let Some(its) = batch.leaves.get(leaves).filter(|its| usize::from(its.item) <= item) {
                let (kind, page, mut lines) = (its.kind, its.page, its.lines);
                batch.tally.lines[kind] += u64::from(lines.count_ones());
                while lines != 0 {
                    let at = (item + entries + left) % MOST_KEYS;
                    batch.requests.physical[at] = page | u64::from(lines.trailing_zeros()) << 6;
                    batch.requests.route[at] = kind as u8;
                    batch.requests.next[at] = ladder.first[kind % ROUTES];
                    lines &= lines - 1;
                    left += 1;
                }
                leaves += 1;
            }
            let is_walk = usize::from(batch.next[item] == end && run.plan.walks == WalkPlan::Full);
            entries += is_walk * batch.walks.came[walk % MOST].references as usize;
            walk += is_walk;
            let at = (item + entries + left) % MOST_KEYS;
            let (kind, _) = kind_and_class(usize::from(batch.route[item]));
            batch.requests.physical[at] = if has_scattered {
                self.physical_of(batch, run, item)
            } else {
                batch.frame[item] + (batch.addr[item] & within)
            };
            batch.requests.route[at] = kind as u8;
            batch.requests.next[at] = ladder.first[kind % ROUTES];
        }
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
        let mut left = 0;
        for item in 0..batch.len {
            while let Some(its) = batch.leaves.get(left).filter(|its| usize::from(its.item) <= item) {
                self.serve_lines(run, its.kind, its.page, its.lines);
                left += 1;
            }
            let (kind, class) = kind_and_class(usize::from(batch.route[item]));
            let va = batch.addr[item];
            if batch.next[item] == end {
                let space = self.spaces[run.space].number;
                let side = SIDE_OF[kind];
                let of = WalkFor { slots: &run.slots, side, space, id: run.id, run_id: run.id, hw: run.hw, va, class };
                let mut came = walk(plan, &mut self.parts, &mut self.tables, &mut self.counts, &mut Blind, of);
                self.walk_ahead(run, kind, va, &mut came);
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
                let position = serve(&mut self.parts.caches, route, kind, physical);
                self.counts.data_served[kind][position] += 1;
                self.follow(run, kind, va, position);
                batch.tally.served[kind] += 1;
            }
        }
    }

    /// Bounds what the walk for an access that comes next costs, if that goes on with an ascending walk.
    pub(crate) fn walk_ahead(&mut self, run: &Run, kind: usize, va: u64, walk: &mut Walk) {
        let Some(most) = run.plan.stream_walk_units else { return };
        let followed = SIDE_OF[kind] == 0 && !run.slots.data_route[kind].is_empty();
        if walk.units > most && followed && self.streams[run.hw].would_go_on(va >> run.plan.alike_shift) {
            self.counts.walk_units_ahead[SIDE_OF[kind]] += u128::from(walk.units - most);
            walk.units = most;
        }
    }

    /// Whether an access that was served at a position of its route goes on with an ascending walk; counts it.
    pub(crate) fn follow(&mut self, run: &Run, kind: usize, va: u64, position: usize) -> bool {
        let streamed = run.plan.stream_units.is_some()
            && SIDE_OF[kind] == 0
            && self.streams[run.hw].access(va >> run.plan.alike_shift);
        self.counts.data_streamed[kind][position] += u64::from(streamed);
        streamed
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
