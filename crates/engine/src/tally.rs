//! What a run of accesses on the short path counts: little for each, and all else from it at the end.

use crate::counts::SIDES;
use crate::engine::{Engine, Run};
use crate::ladder::{Came, ROUTES};
use crate::plan::{WalkPlan, BASE, CLASSES, KINDS};
use crate::rows::RowCost;
use crate::slots::{kind_and_class, walk_cache_route, Slots, WALKS_THROUGH_CACHES};

/// What a run's batches came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// What came to the stages after their first.
    pub(crate) tlb: Came,
    pub(crate) walk_cache: Came,
    pub(crate) cache: Came,
    /// By TLB route: items, recorded accesses, left-out repeats.
    pub(crate) items: [u64; ROUTES],
    pub(crate) accesses: [u64; ROUTES],
    pub(crate) repeats: [u64; ROUTES],
    /// Hit costs after the first level, in levels of several arrays.
    pub(crate) hit_units: u64,
    /// By route through the walk caches: short walks.
    pub(crate) walks: [u64; SIDES * CLASSES],
    /// By side: what they read.
    pub(crate) references: [u64; SIDES],
    /// By kind: items that asked the data caches not in stages, and lines that asked them beside the items.
    pub(crate) served: [u64; KINDS],
    pub(crate) lines: [u64; KINDS],
}

impl Tally {
    /// Nothing was counted.
    pub(crate) fn clear(&mut self, slots: &Slots) {
        self.tlb.clear(&slots.tlb.ladder);
        self.walk_cache.clear(&slots.walk_cache_ladder);
        self.cache.clear(&slots.cache_ladder);
        let (tlb, walk_cache, cache) =
            (std::mem::take(&mut self.tlb), std::mem::take(&mut self.walk_cache), std::mem::take(&mut self.cache));
        *self = Self { tlb, walk_cache, cache, ..Self::default() };
    }
}

impl Engine {
    /// Adds what was counted in a run.
    pub(crate) fn add_tally(&mut self, run: &Run, tally: &mut Tally) {
        let mut sum = RowCost { hit_units: tally.hit_units, ..RowCost::default() };
        self.add_tlbs(run, tally, &mut sum);
        if tally.walks != [0; SIDES * CLASSES] {
            self.add_walks(run, tally, &mut sum);
        }
        if run.plan.has_data_caches {
            self.add_data(run, tally);
        }
        self.threads[run.thread].cost.add(&sum);
        for route in 0..KINDS * CLASSES {
            let (kind, _) = kind_and_class(route);
            let count = tally.accesses[route] + tally.repeats[route];
            self.spaces[run.space].accesses[kind] += count;
            self.threads[run.thread].accesses += count;
        }
    }

    fn add_tlbs(&mut self, run: &Run, tally: &mut Tally, sum: &mut RowCost) {
        let tlb = &run.slots.tlb;
        for route in (0..ROUTES).filter(|&route| tally.items[route] > 0) {
            let (kind, class) = kind_and_class(route);
            let levels = &run.plan.routes[kind][class].levels;
            let more = tally.accesses[route] - tally.items[route];
            let repeats = tally.repeats[route];
            tally.tlb.begin(&tlb.ladder, route, tally.items[route]);
            self.counts.repeats[kind] += repeats;
            let mut stages = tlb.ladder.stages_of(route);
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
                    let units = run.plan.tlbs[array].hit_units.saturating_mul(hits);
                    sum.hit_units = sum.hit_units.saturating_add(units);
                }
            }
            self.counts.reached[kind][class][levels.len()] += reached;
            sum.walks += reached;
        }
    }

    /// Short walks.
    fn add_walks(&mut self, run: &Run, tally: &mut Tally, sum: &mut RowCost) {
        let plan = &*run.plan;
        let ladder = &run.slots.walk_cache_ladder;
        for side in 0..SIDES {
            for class in 0..CLASSES {
                let route = walk_cache_route(side, class);
                let walks = tally.walks[route];
                if walks == 0 {
                    continue;
                }
                tally.walk_cache.begin(ladder, route, walks);
                sum.walk_units = sum.walk_units.saturating_add(plan.base_units.saturating_mul(walks));
                let mut stages = ladder.stages_of(route);
                let mut asked = stages.next().map_or((0, 0), |stage| (stage, tally.walk_cache.at(stage, route)));
                for stage in stages {
                    let number = plan.guest_walk_caches[BASE][usize::from(asked.0)];
                    let missed = tally.walk_cache.at(stage, route);
                    let hits = asked.1 - missed;
                    let (all_lookups, all_hits) = &mut self.counts.walk_caches[number][side];
                    *all_lookups += asked.1;
                    *all_hits += hits;
                    let units = plan.walk_caches[number].hit_units.saturating_mul(hits);
                    sum.walk_units = sum.walk_units.saturating_add(units);
                    asked = (stage, missed);
                }
            }
            let references = tally.references[side];
            sum.walk_references += references;
            match plan.walks {
                WalkPlan::Full => self.add_references(run, tally, side, sum),
                WalkPlan::AlwaysAt(number) => {
                    let units = plan.caches[number].hit_units.saturating_mul(references);
                    sum.walk_units = sum.walk_units.saturating_add(units);
                }
                WalkPlan::CountOnly => {}
            }
        }
    }

    /// Short walks' references of a side, by what served them.
    fn add_references(&mut self, run: &Run, tally: &mut Tally, side: usize, sum: &mut RowCost) {
        let ladder = &run.slots.cache_ladder;
        let route = WALKS_THROUGH_CACHES + side;
        tally.cache.begin(ladder, route, tally.references[side]);
        let came: Vec<u64> = ladder.stages_of(route).map(|stage| tally.cache.at(stage, route)).collect();
        for (position, &units) in run.plan.walk_units.iter().enumerate() {
            let served = came[position] - came.get(position + 1).copied().unwrap_or(0);
            self.counts.walk_served[side][position] += served;
            sum.walk_units = sum.walk_units.saturating_add(units.saturating_mul(served));
            if position + 1 == came.len() {
                sum.walk_references_memory += served;
            }
        }
    }

    /// Accesses to the items' own lines. All of an item's but the first find the line in the first cache.
    fn add_data(&mut self, run: &Run, tally: &mut Tally) {
        let ladder = &run.slots.cache_ladder;
        for kind in (0..KINDS).filter(|&kind| !run.plan.data_route[kind].is_empty()) {
            let routes = kind * CLASSES..(kind + 1) * CLASSES;
            let items: u64 = routes.clone().map(|route| tally.items[route]).sum();
            let accesses: u64 = routes.map(|route| tally.accesses[route]).sum();
            self.counts.data_served[kind][0] += accesses - items;
            tally.cache.begin(ladder, kind, items - tally.served[kind] + tally.lines[kind]);
            let mut stages = ladder.stages_of(kind);
            let mut reached = stages.next().map_or(0, |stage| tally.cache.at(stage, kind));
            for served in &mut self.counts.data_served[kind] {
                let next = stages.next().map_or(0, |stage| tally.cache.at(stage, kind));
                *served += reached - next;
                reached = next;
            }
        }
    }
}
