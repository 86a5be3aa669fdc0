//! The path of accesses: batches of them go through the same hardware stage by stage (`stages.rs`): TLB levels
//! (`tlb_levels.rs`), walks (`walks.rs`), data caches (`cache_requests.rs`), rows.

use std::ops::Range;

use lookaside_trace::{Block, Kind, WindowEvent};

use crate::batch::Batch;
use crate::chunks::IS_MARKED_EARLY;
use crate::classes::{BASE, BASE_SHIFT, KINDS};
use crate::context::AccessContext;
use crate::engine::Engine;
use crate::lookup::SimdLevel;
use crate::os::to_cycles;
use crate::pages::NONE;
use crate::plan::{EnginePlan, WalkPlan};
use crate::prefetch::prefetch;
use crate::routing::{kind_and_class, tlb_route};
use crate::row_groups::{group_rows, AlikeRule, MAX_ROWS};
use crate::rows::RowCost;
use crate::stages::{MAX_ITEMS, MAX_ROUTES};
use crate::trace_hook::SeenPart;
use crate::{AccessResult, PagePolicy};

/// Least [`Batch::reach`].
const LEAST_REACH: usize = 4;

impl Engine {
    /// Makes the accesses of a range.
    pub(crate) fn make_accesses<const ROWS: bool>(
        &mut self,
        block: &Block,
        range: Range<usize>,
        mut leaves: &[WindowEvent],
        context: &AccessContext,
        seen: SeenPart,
    ) {
        let mut batch = self.batch.take().unwrap_or_default();
        self.chunks.begin(context.space, context.hw);
        batch.tally.clear(&context.routing);
        batch.seen.part = seen;
        let mut start = range.start;
        while start < range.end {
            let most = range.end.min(start + MAX_ROWS);
            let end = leaves.iter().find_map(|leave| divides(block, leave.at as usize, start..most)).unwrap_or(most);
            let within;
            (within, leaves) = leaves.split_at(leaves.partition_point(|leave| (leave.at as usize) < end));
            self.make_rows::<ROWS>(&mut batch, block, start..end, within, context);
            start = end;
        }
        self.add_tally(context, &mut batch.tally);
        self.batch = Some(batch);
    }

    /// Puts accesses into batches and runs these.
    fn make_rows<const ROWS: bool>(
        &mut self,
        batch: &mut Batch,
        block: &Block,
        rows: Range<usize>,
        mut leaves: &[WindowEvent],
        context: &AccessContext,
    ) {
        let plan = &*context.plan;
        let addrs = &block.addr[rows.clone()];
        let kinds = &block.kind[rows.clone()];
        let alike = if batch.seen.is_any() { AlikeRule { apart: [true; KINDS], ..plan.alike } } else { plan.alike };
        let groups = group_rows(batch.simd, addrs, kinds, alike, &mut batch.starts);
        batch.most_now = batch.most.min(plan.most_items);
        batch.first_row = rows.start;
        batch.first_group = 0;
        leaves = self.begin_batch(batch, groups, leaves, context);
        loop {
            self.gather::<ROWS>(batch, addrs, kinds, groups, context);
            let next = batch.first_group + batch.len;
            if next == groups || batch.len >= batch.limit {
                leaves = self.run_batch::<ROWS>(batch, block, groups, leaves, context);
                if next == groups {
                    break;
                }
                continue;
            }
            // What is known of the others may move.
            if self.chunks.is_full() {
                leaves = self.run_batch::<ROWS>(batch, block, groups, leaves, context);
            }
            self.learn(context, addrs[usize::from(batch.starts[next])]);
        }
    }

    /// Puts groups into the batch until it is full or one lies in an unknown chunk.
    #[inline(never)]
    fn gather<const ROWS: bool>(
        &self,
        batch: &mut Batch,
        addrs: &[u64],
        kinds: &[Kind],
        groups: usize,
        context: &AccessContext,
    ) {
        let plan = &*context.plan;
        let pages = &self.spaces[context.space].pages;
        let begun = batch.len;
        let from = batch.first_group + begun;
        let to = groups.min(batch.first_group + batch.limit.min(MAX_ITEMS));
        let (mut len, mut flags, mut routes) = (begun, batch.flags, batch.routes);
        // Copies, which the loop's stores can't change.
        let (chunks, numbers) = (self.chunks.finder(), plan.chunk_numbers);
        let are_far = self.chunks.are_far();
        for group in from..to {
            let first = batch.starts[group];
            let (addr, kind) = (addrs[usize::from(first)], kinds[usize::from(first)] as usize);
            let Some(slot) = chunks.find(numbers.of(addr)) else { break };
            let route = tlb_route(kind, slot.class()) as u8;
            if are_far {
                self.chunks.prefetch(slot.at() as usize);
            }
            if ROWS && slot.class() == BASE {
                // Nothing hangs on it before the batch runs, so many are waited for at once.
                let chunk = self.chunks.at(slot.at() as usize);
                if chunk.owner as usize == context.space {
                    pages.prefetch_row_number(chunk.pages as usize, addr);
                }
            }
            let item = len % MAX_ITEMS;
            batch.addr[item] = addr & numbers.address_mask;
            batch.at[item] = slot.at();
            batch.tags[item] = slot.tag;
            batch.route[item] = route;
            flags |= route | slot.code();
            routes |= 1 << route;
            len += 1;
        }
        if self.marks_every_access {
            flags |= IS_MARKED_EARLY;
        }
        (batch.len, batch.flags, batch.routes) = (len, flags, routes);
        let first_stage = &context.routing.tlb.order.first;
        for item in begun..len {
            batch.next[item % MAX_ITEMS] = first_stage[usize::from(batch.route[item % MAX_ITEMS]) % MAX_ROUTES];
        }
        if plan.alike.shift < BASE_SHIFT && !batch.has_locks() {
            for item in begun.max(1)..len {
                let (this, before) = (item % MAX_ITEMS, (item - 1) % MAX_ITEMS);
                let route = batch.route[this];
                let is_again = (batch.addr[this] ^ batch.addr[before]) >> BASE_SHIFT == 0
                    && route == batch.route[before]
                    && batch.at[this] == batch.at[before];
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
        leaves: &'a [WindowEvent],
        context: &AccessContext,
    ) -> &'a [WindowEvent] {
        if batch.len == 0 {
            return leaves;
        }
        batch.count(block);
        self.locate_leaving_pages(batch, context);
        if ROWS {
            self.number_rows(batch, context);
        }
        self.ask_tlbs(batch, block, context);
        if let Some(passed) = &mut self.passed {
            passed.add(batch, &context.routing.tlb.order);
        }
        self.ask_forms(batch, context);
        if context.plan.walks != WalkPlan::CountOnly && batch.walks.len > 0 {
            self.begin_walks(batch, context);
        }
        self.ask_caches(batch, context);
        self.settle::<ROWS>(batch, context);
        if ROWS {
            self.charge(batch, block, context);
        }
        if batch.seen.is_any() {
            self.show(batch, context);
        }
        // What is looked at in vain where batches end early stays in proportion.
        batch.reach = (2 * batch.len).max(LEAST_REACH);
        batch.first_group += batch.len;
        batch.len = 0;
        batch.flags = 0;
        batch.routes = 0;
        self.begin_batch(batch, groups, &leaves[batch.leaves.len()..], context)
    }

    /// Finds the rows of the items' pages.
    fn number_rows(&mut self, batch: &mut Batch, context: &AccessContext) {
        let (mut page, mut at, mut row) = (u64::MAX, NONE, NONE);
        for item in 0..batch.len {
            let addr = batch.addr[item];
            // Often the item before is to another line of the page.
            if addr >> BASE_SHIFT != page || batch.at[item] != at {
                let (_, class) = kind_and_class(usize::from(batch.route[item]));
                row = self.row(&context.plan, batch.at[item] as usize, addr, class);
                prefetch(&self.rows.pages, row as usize);
                (page, at) = (addr >> BASE_SHIFT, batch.at[item]);
            }
            batch.row[item] = row;
        }
    }

    /// The page's row.
    #[inline(always)]
    fn row(&mut self, plan: &EnginePlan, at: usize, va: u64, class: usize) -> u32 {
        let chunk = self.chunks.at(at);
        let owner = chunk.owner as usize;
        let known = if class == BASE {
            self.spaces[owner].pages.live_row(chunk.pages as usize, va)
        } else {
            (chunk.huge_row != NONE).then_some(chunk.huge_row)
        };
        known.unwrap_or_else(|| {
            let row = self.rows.page(&mut self.spaces, owner, va, class, plan.leaf_shift[class]) as u32;
            self.chunks.at_mut(at).huge_row = row;
            row
        })
    }

    /// Charges the items to rows.
    fn charge(&mut self, batch: &Batch, block: &Block, context: &AccessContext) {
        let (plan, tlb) = (&*context.plan, &context.routing.tlb);
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
                    let array = stage.only.map_or(batch.array[item] as usize, |only| only.array);
                    cost.hit_units = plan.tlbs[array].hit_units;
                }
                None => {
                    cost.walks = 1;
                    if plan.walks != WalkPlan::CountOnly {
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
            let first = batch.first_of(item);
            let ip = || block.ip.get(first).copied().unwrap_or(0);
            let ip = if kind == Kind::Fetch as usize { block.addr[first] } else { ip() };
            self.rows.charge_ip(context.process, ip, &cost);
            if self.chunks.at(batch.at[item] as usize).has_objects {
                self.rows.charge_object(&self.spaces[context.space], va, &cost);
            }
        }
        self.rows.pages[row as usize].accesses += accesses;
    }

    /// Shows what each of a batch's accesses did.
    fn show(&mut self, batch: &mut Batch, context: &AccessContext) {
        let (plan, tlb) = (&*context.plan, &context.routing.tlb);
        let (mut walk, mut references) = (0, 0);
        for item in 0..batch.len {
            let (kind, class) = kind_and_class(usize::from(batch.route[item]));
            let position = batch.position_of_line(plan, item, kind);
            let (locked, streamed) = (batch.seen.locked[item], batch.seen.streamed[item]);
            let mut result = AccessResult {
                locked,
                is_from_memory: position == Some(plan.data_route[kind].len()),
                data_server: position.and_then(|position| plan.data_route[kind].get(position).copied()),
                streamed,
                stall_cycles: position.map_or(0.0, |at| to_cycles(plan.stall_units(kind, at, streamed).into())),
                ..AccessResult::default()
            };
            if let Some(stage) = tlb.stages.get(usize::from(batch.next[item])) {
                let array = stage.only.map_or(batch.array[item] as usize, |only| only.array);
                let level = plan.routes[kind][class].levels.iter().find(|level| level.arrays.contains(&array));
                result.hit = level.map(|level| (level.level, array));
                result.cycles = to_cycles(plan.tlbs[array].hit_units.into());
            } else if plan.walks != WalkPlan::CountOnly {
                let cost = &batch.walks.costs[walk];
                walk += 1;
                result.cycles = to_cycles(cost.units.into());
                result.memory_references = cost.references_memory;
                if batch.seen.part == SeenPart::All {
                    let its = references..references + cost.references as usize;
                    references = its.end;
                    result.references = batch.seen.references[its].to_vec();
                }
            }
            batch.seen.results.push(result);
        }
        batch.seen.references.clear();
        batch.seen.locked[..batch.len].fill(false);
        batch.seen.streamed[..batch.len].fill(false);
    }

    /// Remembers a chunk.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, context: &AccessContext, addr: u64) {
        let plan = &*context.plan;
        // Without tag `global` a kernel page's entry may serve a user address that was never walked for, where either
        // of them is not canonical.
        let is_canonical = addr & plan.address_mask & plan.kernel_bit != 0;
        self.marks_every_access |= plan.is_global(addr) && !is_canonical && plan.kernel_bit != 0;
        if let Some(passed) = self.passed.as_mut().filter(|_| self.setup.os.pages != PagePolicy::Base) {
            passed.add_sized(addr);
        }
        self.chunks.learn(&self.setup, &mut self.hardware, &mut self.spaces, context, addr);
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
