//! The scalar path: one access by every rule of `SEMANTICS.md`. TLB lookup, walk, fill, data caches, rows.

use lookaside_trace::Kind;

use crate::classes::SIDE_OF;
use crate::context::{Access, AccessContext, WalkCost, WalkRequest, KERNEL};
use crate::data_cache::serve;
use crate::os::to_cycles;
use crate::rows::RowCost;
use crate::space::physical;
use crate::tags::KERNEL_ID;
use crate::tlb_lookup::Hit;
use crate::trace_hook::AccessTracer;
use crate::walker::walk;
use crate::{AccessResult, Engine};

impl Engine {
    /// Makes one access.
    pub(crate) fn access<const ROWS: bool, T: AccessTracer>(
        &mut self,
        context: &AccessContext,
        access: Access,
        tracer: &mut T,
    ) {
        let plan = &*context.plan;
        self.spaces[context.space].accesses[access.kind] += 1 + access.repeat;
        self.threads[context.thread].accesses += 1 + access.repeat;
        let global = plan.is_global(access.addr);
        let va = access.addr & plan.address_mask;
        let space = if global { KERNEL } else { context.space };
        let class = self.spaces[space].class_at(va, &self.setup.os.pages, plan.leaf_shift[1]);
        // Without tag `global` a kernel page's entry may serve a user address that was never walked for, where
        // either of them is not canonical.
        self.marks_every_access |= global && va & plan.kernel_bit == 0 && plan.kernel_bit != 0;
        if self.marks_every_access || plan.marks_early || va & plan.kernel_bit != 0 {
            self.spaces[space].pages.touch(va, class);
        }

        let row = if ROWS { self.rows.page(&mut self.spaces, space, va, class, plan.leaf_shift[class]) } else { 0 };

        let side = SIDE_OF[access.kind];
        let route = &plan.routes[access.kind][class];
        let hit = self.look_up(context, access.kind, global, va, class);
        let at = hit.map_or(route.levels.len(), |hit| hit.at);

        let mut cost = RowCost { l1_misses: u64::from(at > 0 || hit.is_none()), ..RowCost::default() };
        let mut units = 0;
        match hit {
            Some(hit) => {
                units = plan.tlbs[hit.array].hit_units;
                cost.hit_units = units;
            }
            None => {
                self.spaces[space].pages.touch(va, class);
                let id = if global { KERNEL_ID } else { context.id };
                let number = self.spaces[space].number;
                let (run_id, hw) = (context.id, context.hw);
                let of = WalkRequest { routing: &context.routing, side, space: number, id, run_id, hw, va, class };
                let mut walk = walk(plan, &mut self.hardware, &mut self.tables, &mut self.counts, tracer, of);
                self.walk_ahead(context, access.kind, va, &mut walk);
                units += walk.units;
                cost.walks = 1;
                cost.walk_references = walk.references;
                cost.walk_references_memory = walk.references_memory;
                cost.walk_units = walk.units;
            }
        }
        let first_level_filled = self.fill(context, access.kind, global, va, class, at);
        let holder = match hit {
            Some(Hit { at: 0, array, locked }) => Some((array, locked)),
            _ => first_level_filled.map(|array| (array, false)),
        };
        if access.repeat > 0 {
            self.count_repeats(access.kind, class, access.repeat, holder);
        }

        let (mut data_server, mut streamed, mut stall_units) = (None, false, 0);
        if plan.has_data_caches {
            let route = &context.routing.data_route[access.kind];
            if !route.is_empty() {
                let physical = physical(plan, &self.spaces[space], va, class);
                let position = serve(&mut self.hardware.caches, route, access.kind, physical);
                self.counts.data_served[access.kind][position] += 1;
                data_server = plan.data_route[access.kind].get(position).copied();
                streamed = self.follow(context, access.kind, va, position);
                if T::ENABLED {
                    stall_units = plan.stall_units(access.kind, position, streamed);
                }
            }
        }

        if cost.l1_misses > 0 {
            self.threads[context.thread].cost.add(&cost);
        }
        if ROWS {
            self.rows.pages[row].accesses += 1 + access.repeat;
            if cost.l1_misses > 0 {
                self.rows.pages[row].cost.add(&cost);
                let ip = if access.kind == Kind::Fetch as usize { access.addr } else { access.ip };
                self.rows.charge_ip(context.process, ip, &cost);
                if !global {
                    self.rows.charge_object(&self.spaces[context.space], va, &cost);
                }
            }
        }
        if T::ENABLED {
            let level = |hit: Hit| (plan.routes[access.kind][class].levels[hit.at].level, hit.array);
            tracer.access(AccessResult {
                hit: hit.map(level),
                locked: hit.is_some_and(|hit| hit.locked),
                references: Vec::new(),
                cycles: to_cycles(units.into()),
                data_server,
                streamed,
                stall_cycles: to_cycles(stall_units.into()),
            });
        }
    }

    /// Bounds what the walk for an access that comes next costs, if that goes on with an ascending walk.
    pub(crate) fn walk_ahead(&mut self, context: &AccessContext, kind: usize, va: u64, walk: &mut WalkCost) {
        let Some(most) = context.plan.stream_walk_units else { return };
        let followed = SIDE_OF[kind] == 0 && !context.routing.data_route[kind].is_empty();
        if walk.units > most && followed && self.streams[context.hw].would_go_on(va >> context.plan.alike_shift) {
            self.counts.walk_units_ahead[SIDE_OF[kind]] += u128::from(walk.units - most);
            walk.units = most;
        }
    }

    /// Whether an access that was served at a position of its route goes on with an ascending walk; counts it.
    pub(crate) fn follow(&mut self, context: &AccessContext, kind: usize, va: u64, position: usize) -> bool {
        let streamed = context.plan.stream_units.is_some()
            && SIDE_OF[kind] == 0
            && self.streams[context.hw].access(va >> context.plan.alike_shift);
        self.counts.data_streamed[kind][position] += u64::from(streamed);
        streamed
    }
}
