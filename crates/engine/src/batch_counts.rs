//! Adds what batches tallied to the engine's counts, at the end of a run of accesses.

use crate::batch_tally::BatchTally;
use crate::classes::{BASE, CLASSES, KINDS, SIDES};
use crate::context::AccessContext;
use crate::plan::WalkPlan;
use crate::routing::{kind_and_class, walk_cache_route, WALKS_THROUGH_CACHES};
use crate::rows::RowCost;
use crate::stages::MAX_ROUTES;
use crate::Engine;

impl Engine {
    /// Adds what was counted in a run of accesses.
    pub(crate) fn add_tally(&mut self, context: &AccessContext, tally: &mut BatchTally) {
        let mut sum = RowCost { hit_units: tally.hit_units, ..RowCost::default() };
        self.add_tlbs(context, tally, &mut sum);
        if sum.walks > 0 && context.plan.walks != WalkPlan::CountOnly {
            self.add_walks(context, tally, &mut sum);
        }
        if context.plan.has_data_caches {
            self.add_data(context, tally);
        }
        self.threads[context.thread].cost.add(&sum);
        for route in (0..KINDS * CLASSES).filter(|&route| tally.accesses[route] > 0) {
            let (kind, _) = kind_and_class(route);
            let count = tally.accesses[route] + tally.repeats[route];
            self.spaces[context.space].accesses[kind] += count;
            self.threads[context.thread].accesses += count;
        }
    }

    fn add_tlbs(&mut self, context: &AccessContext, tally: &mut BatchTally, sum: &mut RowCost) {
        let tlb = &context.routing.tlb;
        for route in (0..MAX_ROUTES).filter(|&route| tally.items[route] > 0) {
            let (kind, class) = kind_and_class(route);
            let levels = &context.plan.routes[kind][class].levels;
            let more = tally.accesses[route] - tally.items[route];
            let repeats = tally.repeats[route];
            tally.tlb.begin(&tlb.order, route, tally.items[route]);
            self.counts.repeats[kind] += repeats;
            let mut stages = tlb.order.stages_of(route);
            let mut reached = stages.next().map_or(0, |stage| tally.tlb.at(stage, route));
            if levels.is_empty() {
                sum.l1_misses += reached;
            }
            for (at, level) in levels.iter().enumerate() {
                let next = stages.next().map_or(0, |stage| tally.tlb.at(stage, route));
                let more = if at == 0 { more } else { 0 };
                self.counts.reached[kind][class][at] += reached + more;
                let hits = reached - next + more;
                if at == 0 {
                    sum.l1_misses += next;
                }
                reached = next;
                let [array] = level.arrays[..] else { continue };
                let counts = &mut self.counts.tlbs[array];
                counts.hits[kind][class] += hits;
                if at == 0 {
                    counts.hits[kind][class] += repeats;
                    counts.repeat_lookups += repeats;
                } else {
                    let units = context.plan.tlbs[array].hit_units.saturating_mul(hits);
                    sum.hit_units = sum.hit_units.saturating_add(units);
                }
            }
            self.counts.reached[kind][class][levels.len()] += reached;
            sum.walks += reached;
        }
    }

    fn add_walks(&mut self, context: &AccessContext, tally: &mut BatchTally, sum: &mut RowCost) {
        let plan = &*context.plan;
        sum.walk_units = tally.walk_units;
        for side in 0..SIDES {
            for class in 0..CLASSES {
                self.add_walk_caches(context, tally, (side, class));
            }
            let references = tally.references[side];
            sum.walk_references += references;
            match plan.walks {
                WalkPlan::Full => self.add_references(context, tally, side, sum),
                WalkPlan::AlwaysAt(number) => {
                    let units = plan.reference_units(Some(number)).saturating_mul(references);
                    sum.walk_units = sum.walk_units.saturating_add(units);
                }
                WalkPlan::CountOnly => {}
            }
        }
        sum.walk_units = sum.walk_units.saturating_sub(tally.walk_units_ahead);
    }

    /// Lookups and hits of walks that asked the walk caches as lists.
    fn add_walk_caches(&mut self, context: &AccessContext, tally: &mut BatchTally, (side, class): (usize, usize)) {
        let order = &context.routing.walk_cache_stages;
        let route = walk_cache_route(side, class);
        if tally.walks[route] == 0 {
            return;
        }
        tally.walk_cache.begin(order, route, tally.walks[route]);
        let mut stages = order.stages_of(route);
        let mut asked = stages.next().map_or((0, 0), |stage| (stage, tally.walk_cache.at(stage, route)));
        for stage in stages {
            let number = context.plan.guest_walk_caches[BASE][usize::from(asked.0)];
            let missed = tally.walk_cache.at(stage, route);
            let (all_lookups, all_hits) = &mut self.counts.walk_caches[number][side];
            *all_lookups += asked.1;
            *all_hits += asked.1 - missed;
            asked = (stage, missed);
        }
    }

    /// Walks' references of a side, by what served them.
    fn add_references(&mut self, context: &AccessContext, tally: &mut BatchTally, side: usize, sum: &mut RowCost) {
        let plan = &*context.plan;
        let order = &context.routing.data_cache_stages;
        let route = WALKS_THROUGH_CACHES + side;
        tally.cache.begin(order, route, tally.references[side]);
        let mut stages = order.stages_of(route);
        let mut reached = stages.next().map_or(0, |stage| tally.cache.at(stage, route));
        for (position, count) in self.counts.walk_served[side].iter_mut().enumerate() {
            let next = stages.next().map_or(0, |stage| tally.cache.at(stage, route));
            let served = reached - next;
            reached = next;
            *count += served;
            let server = plan.walk_route.get(position).copied();
            sum.walk_units = sum.walk_units.saturating_add(plan.reference_units(server).saturating_mul(served));
            sum.walk_references_memory += if server.is_none() { served } else { 0 };
        }
    }

    /// Accesses to the items' own lines. All of an item's but the first find the line in the first cache.
    fn add_data(&mut self, context: &AccessContext, tally: &mut BatchTally) {
        let order = &context.routing.data_cache_stages;
        for kind in (0..KINDS).filter(|&kind| !context.plan.data_route[kind].is_empty()) {
            let routes = kind * CLASSES..(kind + 1) * CLASSES;
            let items: u64 = routes.clone().map(|route| tally.items[route]).sum();
            let accesses: u64 = routes.map(|route| tally.accesses[route]).sum();
            if items + tally.lines[kind] == 0 {
                continue;
            }
            self.counts.data_served[kind][0] += accesses - items;
            tally.cache.begin(order, kind, items + tally.lines[kind]);
            let mut stages = order.stages_of(kind);
            let mut reached = stages.next().map_or(0, |stage| tally.cache.at(stage, kind));
            for served in &mut self.counts.data_served[kind] {
                let next = stages.next().map_or(0, |stage| tally.cache.at(stage, kind));
                *served += reached - next;
                reached = next;
            }
        }
    }
}
