//! What follows from the data caches' answers to a batch: what each walk cost, and which accesses go on with an ascending
//! walk over lines (`SEMANTICS.md` §7).

use crate::batch::Batch;
use crate::classes::SIDE_OF;
use crate::context::AccessContext;
use crate::engine::Engine;
use crate::plan::{EnginePlan, WalkPlan};
use crate::routing::kind_and_class;

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
