//! The short path of accesses: a process's own pages where none is locked, in batches that go through the hardware stage
//! by stage (`ladder.rs`). All else goes by the rules of `engine.rs`, one by one, between batches.

use std::ops::Range;

use lookaside_trace::{Block, Event, Kind};

use crate::assoc::prefetch;
use crate::batch::{Batch, MOST};
use crate::engine::{Access, Engine, Run};
use crate::group::{group, MOST_ROWS};
use crate::ladder::ROUTES;
use crate::pages::NONE;
use crate::places::SCATTERED;
use crate::plan::{WalkPlan, BASE, BASE_SHIFT, HUGE};
use crate::rows::RowCost;
use crate::slots::{kind_and_class, NO_LEVELS, OFF};
use crate::trace_hook::Blind;

/// Least [`Batch::reach`].
const LEAST_REACH: usize = 4;

impl Engine {
    /// A run's accesses; those off the short path by all the rules.
    pub(crate) fn accesses_fast<const ROWS: bool>(
        &mut self,
        block: &Block,
        range: Range<usize>,
        mut leaves: &[(u32, Event)],
        run: &Run,
    ) {
        let mut batch = self.batch.take().unwrap_or_default();
        self.places.begin(run.space, run.hw);
        batch.tally.clear(&run.slots);
        let mut start = range.start;
        while start < range.end {
            let most = range.end.min(start + MOST_ROWS);
            let end = leaves.iter().find_map(|leave| divides(block, leave.0 as usize, start..most)).unwrap_or(most);
            let within;
            (within, leaves) = leaves.split_at(leaves.partition_point(|leave| (leave.0 as usize) < end));
            self.rows_in_batches::<ROWS>(&mut batch, block, start..end, within, run);
            start = end;
        }
        self.add_tally(run, &mut batch.tally);
        self.batch = Some(batch);
    }

    /// Puts accesses into batches and runs these.
    fn rows_in_batches<const ROWS: bool>(
        &mut self,
        batch: &mut Batch,
        block: &Block,
        rows: Range<usize>,
        mut leaves: &[(u32, Event)],
        run: &Run,
    ) {
        let plan = &*run.plan;
        let addrs = &block.addr[rows.clone()];
        let kinds = &block.kind[rows.clone()];
        let groups = group(batch.isa, addrs, kinds, plan.alike_shift, &mut batch.starts);
        batch.first_row = rows.start;
        batch.first_group = 0;
        leaves = self.begin_batch(batch, groups, leaves, run);
        loop {
            if !self.marks_every_access {
                self.gather::<ROWS>(batch, addrs, kinds, groups, run);
            }
            let next = batch.first_group + batch.len;
            if next == groups || batch.len >= batch.limit {
                leaves = self.flush::<ROWS>(batch, block, groups, leaves, run);
                if next == groups {
                    break;
                }
                continue;
            }
            let first = usize::from(batch.starts[next]);
            let (at, is_known) = self.places.find(addrs[first] >> plan.chunk_shift);
            if !is_known && addrs[first] < plan.user_end && !self.marks_every_access {
                if self.places.is_in_use(at) {
                    leaves = self.flush::<ROWS>(batch, block, groups, leaves, run);
                }
                self.learn(run, at, addrs[first]);
            } else {
                leaves = self.flush::<ROWS>(batch, block, groups, leaves, run);
                batch.first_group += 1;
                self.by_all_rules::<ROWS>(run, block, batch.rows_of(next));
                leaves = self.begin_batch(batch, groups, leaves, run);
            }
        }
    }

    /// Puts groups into the batch until it is full or one is off the short path, or of an unknown chunk.
    #[inline(never)]
    fn gather<const ROWS: bool>(&self, batch: &mut Batch, addrs: &[u64], kinds: &[Kind], groups: usize, run: &Run) {
        let chunk_shift = run.plan.chunk_shift;
        let route_of = &run.slots.tlb.route_of;
        let pages = &self.spaces[run.space].pages;
        let begun = batch.len;
        let from = batch.first_group + begun;
        let to = groups.min(batch.first_group + batch.limit.min(MOST));
        let (mut len, mut flags) = (begun, batch.flags);
        for group in from..to {
            let first = batch.starts[group];
            let (addr, kind) = (addrs[usize::from(first)], kinds[usize::from(first)] as usize);
            let (at, is_known) = self.places.find(addr >> chunk_shift);
            let place = self.places.at(at);
            let mut route = route_of[(4 * kind + usize::from(place.code)) % route_of.len()];
            if !is_known {
                break;
            }
            if route >= NO_LEVELS {
                if route == OFF || batch.starts[group + 1] - first > 1 {
                    break;
                }
                route -= NO_LEVELS;
            }
            if ROWS && usize::from(place.code) == BASE {
                pages.prefetch_row_number(place.pages as usize, addr);
            }
            let item = len % MOST;
            batch.addr[item] = addr;
            batch.at[item] = at as u16;
            batch.tags[item] = place.tags;
            batch.route[item] = route;
            batch.frame[item] = place.frame;
            flags |= route | u8::from(place.frame == SCATTERED) << 7;
            len += 1;
        }
        (batch.len, batch.flags) = (len, flags);
        let first_stage = &run.slots.tlb.ladder.first;
        for item in begun..len {
            batch.next[item % MOST] = first_stage[usize::from(batch.route[item % MOST]) % ROUTES];
        }
        if run.plan.alike_shift < BASE_SHIFT {
            for item in begun.max(1)..len {
                let (this, before) = (item % MOST, (item - 1) % MOST);
                let route = batch.route[this];
                let is_again =
                    (batch.addr[this] ^ batch.addr[before]) >> BASE_SHIFT == 0 && route == batch.route[before];
                let again = run.slots.tlb.again[usize::from(route) % ROUTES];
                batch.next[this] |= if is_again { again } else { 0 };
            }
        }
    }

    /// Runs a batch, and begins the next: the leaves that are left.
    #[inline(never)]
    fn flush<'a, const ROWS: bool>(
        &mut self,
        batch: &mut Batch,
        block: &Block,
        groups: usize,
        leaves: &'a [(u32, Event)],
        run: &Run,
    ) -> &'a [(u32, Event)] {
        if batch.len == 0 {
            return leaves;
        }
        let plan = &*run.plan;
        batch.count(block);
        self.place_leaves(batch, run);
        if ROWS {
            self.number_rows(batch, run);
        }
        self.ask_tlbs(batch, block, run);
        let in_stages = plan.walks_are_short || plan.walks == WalkPlan::CountOnly && plan.stream_units.is_none();
        // A leave may tell lines that were stored to.
        if in_stages && !plan.stores_pass {
            if plan.walks != WalkPlan::CountOnly && batch.walks.len > 0 {
                self.ask_walk_caches(batch, run);
            }
            self.ask_caches::<ROWS>(batch, run);
        } else {
            self.walk_and_serve(batch, run);
        }
        if ROWS {
            self.charge(batch, block, run);
        }
        // What is looked at in vain where batches end early stays in proportion.
        batch.reach = (2 * batch.len).max(LEAST_REACH);
        batch.first_group += batch.len;
        batch.len = 0;
        batch.flags = 0;
        self.begin_batch(batch, groups, &leaves[batch.leaves.len()..], run)
    }

    /// Finds the rows of the items' pages.
    fn number_rows(&mut self, batch: &mut Batch, run: &Run) {
        let (mut page, mut row) = (u64::MAX, NONE);
        for item in 0..batch.len {
            let addr = batch.addr[item];
            // Often the item before is to another line of the page.
            if addr >> BASE_SHIFT != page {
                let (_, class) = kind_and_class(usize::from(batch.route[item]));
                row = self.row(run, usize::from(batch.at[item]), addr, class);
                prefetch(&self.rows.pages, row as usize);
                page = addr >> BASE_SHIFT;
            }
            batch.row[item] = row;
        }
    }

    /// The page's row.
    #[inline(always)]
    fn row(&mut self, run: &Run, at: usize, va: u64, class: usize) -> u32 {
        let place = self.places.at(at);
        let known = if class == BASE {
            self.spaces[run.space].pages.live_row(place.pages as usize, va)
        } else {
            (place.huge_row != NONE).then_some(place.huge_row)
        };
        known.unwrap_or_else(|| {
            let shift = run.plan.leaf_shift[class];
            let row = self.rows.page(&mut self.spaces, run.space, va, class, shift) as u32;
            self.places.at_mut(at).huge_row = row;
            row
        })
    }

    /// Sets the page's touched mark.
    #[inline(always)]
    pub(crate) fn touch(&mut self, run: &Run, at: usize, va: u64, class: usize) {
        let place = self.places.at_mut(at);
        let pages = &mut self.spaces[run.space].pages;
        if class == BASE {
            pages.touch_base(place.pages as usize, va);
        } else if !place.huge_is_touched {
            place.huge_is_touched = true;
            pages.touch(va, HUGE);
        }
    }

    /// Charges the items to rows.
    fn charge(&mut self, batch: &Batch, block: &Block, run: &Run) {
        let tlb = &run.slots.tlb;
        let end = tlb.ladder.end();
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
            if stage == tlb.ladder.first[route] && stage != end {
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
                    if run.plan.walks != WalkPlan::CountOnly {
                        let came = &batch.walks.came[walk];
                        cost.walk_references = came.references;
                        cost.walk_references_memory = came.references_memory;
                        cost.walk_units = came.units;
                    }
                    walk += 1;
                }
            }
            self.rows.pages[row as usize].cost.add(&cost);
            let va = batch.addr[item];
            let (kind, _) = kind_and_class(route);
            let ip = || block.ip.get(batch.first_of(item)).copied().unwrap_or(0);
            let ip = if kind == Kind::Fetch as usize { va } else { ip() };
            self.rows.charge_ip(run.process, ip, &cost);
            if self.places.at(usize::from(batch.at[item])).has_objects {
                self.rows.charge_object(&self.spaces[run.space], va, &cost);
            }
        }
        self.rows.pages[row as usize].accesses += accesses;
    }

    /// Works out a chunk.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, run: &Run, at: usize, va: u64) {
        let space = &mut self.spaces[run.space];
        self.places.learn(at, &self.setup, &mut self.parts, space, run, va);
    }

    /// Accesses off the short path.
    #[cold]
    #[inline(never)]
    fn by_all_rules<const ROWS: bool>(&mut self, run: &Run, block: &Block, range: Range<usize>) {
        for i in range {
            self.access::<ROWS, _>(run, Access::of(block, i), &mut Blind);
            self.enter_window(run, block.addr[i], block.kind[i]);
        }
    }
}

/// Where a page leaves a window between accesses that would be one item: there, if that is among these rows.
fn divides(block: &Block, row: usize, rows: Range<usize>) -> Option<usize> {
    let is_inside = rows.start < row && row < rows.end;
    (is_inside && (block.addr[row] ^ block.addr[row - 1]) >> BASE_SHIFT == 0).then_some(row)
}
