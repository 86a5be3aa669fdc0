//! The batch path: accesses to a process's own pages, where no page is locked, go through the hardware in batches,
//! stage by stage (`stages.rs`). All others take the scalar path (`access.rs`), one by one, between batches.

use std::ops::Range;

use lookaside_trace::{Block, Event, Kind};

use crate::batch::Batch;
use crate::chunks::SCATTERED;
use crate::classes::{BASE, BASE_SHIFT};
use crate::context::{Access, AccessContext};
use crate::engine::Engine;
use crate::lookup::SimdLevel;
use crate::pages::NONE;
use crate::plan::WalkPlan;
use crate::prefetch::prefetch;
use crate::routing::{kind_and_class, NO_LEVELS, OFF};
use crate::row_groups::{group_rows, MAX_ROWS};
use crate::rows::RowCost;
use crate::stages::{MAX_ITEMS, MAX_ROUTES};
use crate::trace_hook::NoTracer;

/// Least [`Batch::reach`].
const LEAST_REACH: usize = 4;

impl Engine {
    /// Makes the accesses of a range: in batches where that is possible, else one by one.
    pub(crate) fn accesses_in_batches<const ROWS: bool>(
        &mut self,
        block: &Block,
        range: Range<usize>,
        mut leaves: &[(u32, Event)],
        context: &AccessContext,
    ) {
        let mut batch = self.batch.take().unwrap_or_default();
        self.chunks.begin(context.space, context.hw);
        batch.tally.clear(&context.routing);
        let mut start = range.start;
        while start < range.end {
            let most = range.end.min(start + MAX_ROWS);
            let end = leaves.iter().find_map(|leave| divides(block, leave.0 as usize, start..most)).unwrap_or(most);
            let within;
            (within, leaves) = leaves.split_at(leaves.partition_point(|leave| (leave.0 as usize) < end));
            self.rows_in_batches::<ROWS>(&mut batch, block, start..end, within, context);
            start = end;
        }
        self.add_tally(context, &mut batch.tally);
        self.batch = Some(batch);
    }

    /// Puts accesses into batches and runs these.
    fn rows_in_batches<const ROWS: bool>(
        &mut self,
        batch: &mut Batch,
        block: &Block,
        rows: Range<usize>,
        mut leaves: &[(u32, Event)],
        context: &AccessContext,
    ) {
        let plan = &*context.plan;
        let addrs = &block.addr[rows.clone()];
        let kinds = &block.kind[rows.clone()];
        let groups = group_rows(batch.simd, addrs, kinds, plan.alike_shift, &mut batch.starts);
        batch.first_row = rows.start;
        batch.first_group = 0;
        leaves = self.begin_batch(batch, groups, leaves, context);
        loop {
            if !self.marks_every_access {
                self.gather::<ROWS>(batch, addrs, kinds, groups, context);
            }
            let next = batch.first_group + batch.len;
            if next == groups || batch.len >= batch.limit {
                leaves = self.run_batch::<ROWS>(batch, block, groups, leaves, context);
                if next == groups {
                    break;
                }
                continue;
            }
            let first = usize::from(batch.starts[next]);
            let is_known = self.chunks.find(addrs[first] >> plan.chunk_shift).is_some();
            if !is_known && addrs[first] < plan.user_end && !self.marks_every_access {
                if self.chunks.is_full() {
                    leaves = self.run_batch::<ROWS>(batch, block, groups, leaves, context);
                }
                self.learn(context, addrs[first]);
            } else {
                leaves = self.run_batch::<ROWS>(batch, block, groups, leaves, context);
                batch.first_group += 1;
                self.access_singly::<ROWS>(context, block, batch.rows_of(next));
                leaves = self.begin_batch(batch, groups, leaves, context);
            }
        }
    }

    /// Puts groups into the batch until it is full or one must take the scalar path or lies in an unknown chunk.
    #[inline(never)]
    fn gather<const ROWS: bool>(
        &self,
        batch: &mut Batch,
        addrs: &[u64],
        kinds: &[Kind],
        groups: usize,
        context: &AccessContext,
    ) {
        let chunk_shift = context.plan.chunk_shift;
        let route_of = &context.routing.tlb.route_of;
        let pages = &self.spaces[context.space].pages;
        let begun = batch.len;
        let from = batch.first_group + begun;
        let to = groups.min(batch.first_group + batch.limit.min(MAX_ITEMS));
        let (mut len, mut flags) = (begun, batch.flags);
        for group in from..to {
            let first = batch.starts[group];
            let (addr, kind) = (addrs[usize::from(first)], kinds[usize::from(first)] as usize);
            let Some(slot) = self.chunks.find(addr >> chunk_shift) else { break };
            let mut route = route_of[(4 * kind + usize::from(slot.code)) % route_of.len()];
            if route >= NO_LEVELS {
                if route == OFF || batch.starts[group + 1] - first > 1 {
                    break;
                }
                route -= NO_LEVELS;
            }
            // Nothing hangs on it before the batch runs, so many are waited for at once.
            let chunk = self.chunks.at(slot.at as usize);
            if ROWS && usize::from(slot.code) == BASE {
                pages.prefetch_row_number(chunk.pages as usize, addr);
            }
            let item = len % MAX_ITEMS;
            batch.addr[item] = addr;
            batch.at[item] = slot.at;
            batch.tags[item] = chunk.tags;
            batch.route[item] = route;
            batch.frame[item] = chunk.frame;
            flags |= route | u8::from(chunk.frame == SCATTERED) << 7;
            len += 1;
        }
        (batch.len, batch.flags) = (len, flags);
        let first_stage = &context.routing.tlb.order.first;
        for item in begun..len {
            batch.next[item % MAX_ITEMS] = first_stage[usize::from(batch.route[item % MAX_ITEMS]) % MAX_ROUTES];
        }
        if context.plan.alike_shift < BASE_SHIFT {
            for item in begun.max(1)..len {
                let (this, before) = (item % MAX_ITEMS, (item - 1) % MAX_ITEMS);
                let route = batch.route[this];
                let is_again =
                    (batch.addr[this] ^ batch.addr[before]) >> BASE_SHIFT == 0 && route == batch.route[before];
                let again = context.routing.tlb.again[usize::from(route) % MAX_ROUTES];
                batch.next[this] |= if is_again { again } else { 0 };
            }
        }
    }

    /// Runs a batch, and begins the next: the leaves that are left.
    #[inline(never)]
    fn run_batch<'a, const ROWS: bool>(
        &mut self,
        batch: &mut Batch,
        block: &Block,
        groups: usize,
        leaves: &'a [(u32, Event)],
        context: &AccessContext,
    ) -> &'a [(u32, Event)] {
        if batch.len == 0 {
            return leaves;
        }
        let plan = &*context.plan;
        batch.count(block);
        self.locate_leaving_pages(batch, context);
        if ROWS {
            self.number_rows(batch, context);
        }
        self.look_up_tlbs(batch, block, context);
        let in_stages = plan.walks_are_short || plan.walks == WalkPlan::CountOnly && plan.stream_units.is_none();
        // A leave may tell lines that were stored to.
        if in_stages && !plan.stores_pass {
            if plan.walks != WalkPlan::CountOnly && batch.walks.len > 0 {
                self.look_up_walk_caches(batch, context);
            }
            self.look_up_caches::<ROWS>(batch, context);
        } else {
            self.walk_and_serve(batch, context);
        }
        if ROWS {
            self.charge(batch, block, context);
        }
        // What is looked at in vain where batches end early stays in proportion.
        batch.reach = (2 * batch.len).max(LEAST_REACH);
        batch.first_group += batch.len;
        batch.len = 0;
        batch.flags = 0;
        self.begin_batch(batch, groups, &leaves[batch.leaves.len()..], context)
    }

    /// Finds the rows of the items' pages.
    fn number_rows(&mut self, batch: &mut Batch, context: &AccessContext) {
        let (mut page, mut row) = (u64::MAX, NONE);
        for item in 0..batch.len {
            let addr = batch.addr[item];
            // Often the item before is to another line of the page.
            if addr >> BASE_SHIFT != page {
                let (_, class) = kind_and_class(usize::from(batch.route[item]));
                row = self.row(context, batch.at[item] as usize, addr, class);
                prefetch(&self.rows.pages, row as usize);
                page = addr >> BASE_SHIFT;
            }
            batch.row[item] = row;
        }
    }

    /// The page's row.
    #[inline(always)]
    fn row(&mut self, context: &AccessContext, at: usize, va: u64, class: usize) -> u32 {
        let chunk = self.chunks.at(at);
        let known = if class == BASE {
            self.spaces[context.space].pages.live_row(chunk.pages as usize, va)
        } else {
            (chunk.huge_row != NONE).then_some(chunk.huge_row)
        };
        known.unwrap_or_else(|| {
            let shift = context.plan.leaf_shift[class];
            let row = self.rows.page(&mut self.spaces, context.space, va, class, shift) as u32;
            self.chunks.at_mut(at).huge_row = row;
            row
        })
    }

    /// Charges the items to rows.
    fn charge(&mut self, batch: &Batch, block: &Block, context: &AccessContext) {
        let tlb = &context.routing.tlb;
        let end = tlb.order.end();
        let mut walk = 0;
        let (mut row, mut accesses) = (batch.row[0], 0);
        for item in 0..batch.len {
            // Those to one page, one after the other, as one.
            if batch.row[item] != row {
                self.rows.pages[row as usize].accesses += std::mem::take(&mut accesses);
                row = batch.row[item];
            }
            accesses += batch.count_of(item) + batch.repeats_of(item, block);
            let route = usize::from(batch.route[item]);
            let stage = batch.next[item];
            if stage == tlb.order.first[route] && stage != end {
                continue;
            }
            let mut cost = RowCost { l1_misses: 1, ..RowCost::default() };
            match tlb.stages.get(usize::from(stage)) {
                Some(stage) => {
                    let units = stage.only.as_ref().map(|only| only[0].hit_units);
                    cost.hit_units = units.unwrap_or(batch.hit_units[item]);
                }
                None => {
                    cost.walks = 1;
                    if context.plan.walks != WalkPlan::CountOnly {
                        let walk = &batch.walks.costs[walk];
                        cost.walk_references = walk.references;
                        cost.walk_references_memory = walk.references_memory;
                        cost.walk_units = walk.units;
                    }
                    walk += 1;
                }
            }
            self.rows.pages[row as usize].cost.add(&cost);
            let va = batch.addr[item];
            let (kind, _) = kind_and_class(route);
            let ip = || block.ip.get(batch.first_of(item)).copied().unwrap_or(0);
            let ip = if kind == Kind::Fetch as usize { va } else { ip() };
            self.rows.charge_ip(context.process, ip, &cost);
            if self.chunks.at(batch.at[item] as usize).has_objects {
                self.rows.charge_object(&self.spaces[context.space], va, &cost);
            }
        }
        self.rows.pages[row as usize].accesses += accesses;
    }

    /// Remembers a chunk.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, context: &AccessContext, va: u64) {
        let space = &mut self.spaces[context.space];
        self.chunks.learn(&self.setup, &mut self.hardware, space, context, va);
    }

    /// Makes accesses by the scalar path.
    #[cold]
    #[inline(never)]
    fn access_singly<const ROWS: bool>(&mut self, context: &AccessContext, block: &Block, range: Range<usize>) {
        for i in range {
            self.access::<ROWS, _>(context, Access::of(block, i), &mut NoTracer);
            self.enter_window(context, block.addr[i], block.kind[i]);
        }
    }
}

impl Engine {
    /// For tests: work in batches of so many items at most; `portably`: in instructions that every processor of the
    /// architecture has. Nothing comes out different.
    #[doc(hidden)]
    pub fn in_batches_of(&mut self, items: usize, portably: bool) {
        let simd = if portably { SimdLevel::Baseline } else { SimdLevel::detect() };
        self.batch = Some(Box::new(Batch { most: items.clamp(1, MAX_ITEMS), simd, ..Batch::default() }));
    }
}

/// Where a page leaves a window between accesses that would be one item: there, if that is among these rows.
fn divides(block: &Block, row: usize, rows: Range<usize>) -> Option<usize> {
    let is_inside = rows.start < row && row < rows.end;
    (is_inside && (block.addr[row] ^ block.addr[row - 1]) >> BASE_SHIFT == 0).then_some(row)
}
