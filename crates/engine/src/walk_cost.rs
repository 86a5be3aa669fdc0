//! What a walk costs (`SEMANTICS.md` §6): the walker's own cycles, hits in walk caches, and each entry that it reads by
//! what served it.

use crate::batch::Batch;
use crate::classes::SIDE_OF;
use crate::context::AccessContext;
use crate::engine::Engine;
use crate::plan::{EnginePlan, WalkPlan};
use crate::routing::kind_and_class;

/// What one walk read and cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkCost {
    pub(crate) references: u64,
    pub(crate) references_memory: u64,
    pub(crate) units: u64,
}

impl WalkCost {
    /// A walk begins.
    #[inline(always)]
    pub(crate) fn begin(&mut self, plan: &EnginePlan) {
        *self = Self { units: plan.base_units, ..Self::default() };
    }

    /// A walk cache had what it looked for.
    #[inline(always)]
    pub(crate) fn add_hit(&mut self, plan: &EnginePlan, walk_cache: usize) {
        self.units += plan.walk_caches[walk_cache].hit_units;
    }

    /// Adds what one of its references costs; `server`: the data cache that had the entry, memory if none.
    #[inline(always)]
    pub(crate) fn serve(&mut self, plan: &EnginePlan, server: Option<usize>) {
        self.units += plan.reference_units(server);
        self.references_memory += u64::from(server.is_none());
    }
}

impl EnginePlan {
    /// Units of a walk's reference that this data cache served, memory if none.
    #[inline(always)]
    pub(crate) fn reference_units(&self, server: Option<usize>) -> u64 {
        server.map_or(self.walk_memory_units, |number| self.caches[number].hit_units)
    }
}

impl Engine {
    /// The data caches have answered: what each of a batch's walks cost, and which accesses go on with an ascending walk
    /// over lines.
    pub(crate) fn settle<const ROWS: bool>(&mut self, batch: &mut Batch, context: &AccessContext) {
        let plan = &*context.plan;
        let has_walks = plan.walks != WalkPlan::CountOnly && batch.walks.len > 0;
        if has_walks && (ROWS || batch.seen.is_any() || plan.stream_walk_units.is_some()) {
            charge_walks(batch, plan);
        }
        if plan.stream_units.is_some() {
            self.follow_streams(batch, context, has_walks);
        }
    }

    /// Follows ascending walks over lines, item by item.
    fn follow_streams(&mut self, batch: &mut Batch, context: &AccessContext, has_walks: bool) {
        let plan = &*context.plan;
        let end = context.routing.tlb.order.end();
        let mut walk = 0;
        for item in 0..batch.len {
            let (kind, _) = kind_and_class(usize::from(batch.route[item]));
            let line = batch.addr[item] >> plan.alike.shift;
            let is_followed = SIDE_OF[kind] == 0 && !plan.data_route[kind].is_empty();
            if has_walks && batch.next[item] == end {
                let cost = &mut batch.walks.costs[walk];
                walk += 1;
                // The walk for an access that comes next is under way before it.
                let most = plan.stream_walk_units.filter(|most| cost.units > *most && is_followed);
                if let Some(most) = most.filter(|_| self.streams[context.hw].would_go_on(line)) {
                    let ahead = cost.units - most;
                    self.counts.walk_units_ahead[SIDE_OF[kind]] += u128::from(ahead);
                    batch.tally.walk_units_ahead += ahead;
                    cost.units = most;
                }
            }
            if is_followed {
                let streamed = self.streams[context.hw].access(line);
                batch.seen.streamed[item] = streamed && batch.seen.is_any();
                if let Some(position) = batch.position_of_line(plan, item, kind).filter(|_| streamed) {
                    self.counts.data_streamed[kind][position] += 1;
                }
            }
        }
    }
}

/// Adds to each walk what its references cost.
fn charge_walks(batch: &mut Batch, plan: &EnginePlan) {
    let mut seen = batch.seen.references.iter_mut();
    for walk in 0..batch.walks.len {
        let cost = &mut batch.walks.costs[walk];
        if let WalkPlan::AlwaysAt(number) = plan.walks {
            (0..cost.references).for_each(|_| cost.serve(plan, Some(number)));
            seen.by_ref().for_each(|reference| reference.server = Some(number));
            continue;
        }
        let first = usize::from(batch.walks.request[walk]);
        for &server in &batch.requests.next[first..first + cost.references as usize] {
            let server = plan.cache_order.get(usize::from(server)).copied();
            cost.serve(plan, server);
            if let Some(reference) = seen.next() {
                reference.server = server;
            }
        }
    }
}
