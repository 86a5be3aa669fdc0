//! A batch's way through the TLB levels: which array has each item's page, and which are filled.

use std::ops::Range;

use lookaside_trace::Block;

use crate::batch::{Batch, KeyLists};
use crate::chunks::IS_MARKED_EARLY;
use crate::classes::{BASE, BASE_SHIFT, CLASSES, HUGE};
use crate::context::{AccessContext, KERNEL};
use crate::engine::Engine;
use crate::key_names::name_items;
use crate::lookup::{LookupCounts, LookupKeys};
use crate::plan::{EnginePlan, TlbPlan};
use crate::routing::{kind_and_class, AskedArray};
use crate::space::{physical, AddressSpace};
use crate::stages::{MAX_ITEMS, SAME_PAGE};
use crate::tag_layout::TagLayout;
use crate::tlb::{TlbInstance, TlbKey};
use crate::window::LeavingPage;

/// Fewer items are asked for in turn: to make lists of them takes longer.
const LEAST_LIST: usize = 4;

impl Engine {
    /// Asks the TLBs for a batch's items: `next` is then the stage that had each, and `walks` has those that none had.
    pub(crate) fn ask_tlbs(&mut self, batch: &mut Batch, block: &Block, context: &AccessContext) {
        let tlb = &context.routing.tlb;
        let len = batch.len;
        let end = tlb.order.end();
        let first_in_turn = if len < LEAST_LIST { 0 } else { tlb.first_in_turn };
        let first_marked = if batch.flags & IS_MARKED_EARLY != 0 { 0 } else { tlb.first_coalescing };
        // Of those that are asked for in turn it is not known how far they go.
        let first_marked = if first_marked == end { end } else { first_marked.min(first_in_turn) };
        for number in 0..first_in_turn {
            if number == first_marked {
                self.mark(batch, number);
            }
            self.ask_level(batch, number, block, context);
        }
        batch.walks.len = 0;
        batch.walks.entries.clear();
        if first_in_turn < end {
            if first_marked == first_in_turn {
                self.mark(batch, first_marked);
            }
            self.ask_in_turn(batch, first_in_turn, block, context);
        }
        batch.next[..len].iter_mut().for_each(|next| *next &= !SAME_PAGE);
        batch.walks.len = tlb.order.items_at(batch.simd, end, &batch.next[..len], &mut batch.walks.items);
        if first_marked == end {
            for walk in 0..batch.walks.len {
                let item = usize::from(batch.walks.items[walk]);
                let (_, class) = kind_and_class(usize::from(batch.route[item]));
                self.touch(batch.at[item] as usize, batch.addr[item], class);
            }
        }
    }

    /// Sets the touched marks of the items that no stage has had yet, and notes those around them as they are then.
    fn mark(&mut self, batch: &mut Batch, stage: u8) {
        for item in (0..batch.len).filter(|&item| (stage..SAME_PAGE).contains(&batch.next[item])) {
            let (at, va) = (batch.at[item] as usize, batch.addr[item]);
            let (_, class) = kind_and_class(usize::from(batch.route[item]));
            self.touch(at, va, class);
            if class == BASE {
                let chunk = self.chunks.at(at);
                let pages = &self.spaces[chunk.owner as usize].pages;
                batch.marks[item] = pages.touched_around(chunk.pages as usize, va);
            }
        }
    }

    /// Asks a stage of one array for the items that come to it, and sends those on that it had not.
    fn ask_level(&mut self, batch: &mut Batch, number: u8, block: &Block, context: &AccessContext) {
        let tlb = &context.routing.tlb;
        let Some(asked) = tlb.stages[usize::from(number)].only else { return };
        let mut n = tlb.order.items_at(batch.simd, number, &batch.next[..batch.len], &mut batch.lists.items);
        if n == 0 && batch.leaves.is_empty() {
            return;
        }
        if batch.has_locks() && !context.plan.tlbs[asked.array].locks.is_empty() {
            n = self.drop_locked(batch, n, asked, block, context);
        }
        let missed = self.ask_one_array(batch, n, asked, context);
        let lists = &batch.lists;
        let which = (&lists.items, &lists.missed[..missed]);
        let routes = (&batch.route, batch.only_route());
        tlb.order.advance(number, which, routes, &mut batch.next, &mut batch.tally.tlb);
    }

    /// Drops, of the first `n` listed items, those whose pages are locked in the array, which has them: how many are
    /// left.
    fn drop_locked(
        &mut self,
        batch: &mut Batch,
        n: usize,
        asked: AskedArray,
        block: &Block,
        context: &AccessContext,
    ) -> usize {
        let mut left = 0;
        for k in 0..n {
            let item = usize::from(batch.lists.items[k]);
            if self.is_locked(batch, item, asked, context) {
                self.count_locked(batch, item, asked, block, context);
            } else {
                batch.lists.items[left] = item as u16;
                left += 1;
            }
        }
        left
    }

    /// Is an item's page locked in an array?
    fn is_locked(&self, batch: &Batch, item: usize, asked: AskedArray, context: &AccessContext) -> bool {
        let is_kernels = self.chunks.at(batch.at[item] as usize).owner as usize == KERNEL;
        let (_, class) = kind_and_class(usize::from(batch.route[item]));
        context.plan.tlbs[asked.array].is_locked(context.process, is_kernels, batch.addr[item], class)
    }

    /// Counts an item that is locked in an array, with all its accesses if that is of the first level.
    fn count_locked(
        &mut self,
        batch: &mut Batch,
        item: usize,
        asked: AskedArray,
        block: &Block,
        context: &AccessContext,
    ) {
        let is_first = context.routing.tlb.order.first[usize::from(batch.route[item])] == batch.next[item];
        let more = if is_first { batch.count_of(item) - 1 + batch.repeats_of(item, block) } else { 0 };
        self.counts.tlbs[asked.array].locked_hits += 1 + more;
        batch.seen.locked[item] = batch.seen.is_any();
    }

    /// Asks one array for the first `n` listed items: how many it had not.
    fn ask_one_array(&mut self, batch: &mut Batch, n: usize, asked: AskedArray, context: &AccessContext) -> usize {
        let plan = &context.plan.tlbs[asked.array];
        let name = plan.tag_name();
        if name != context.plan.usual_name {
            self.take_tags(batch, name);
        }
        name_items(batch, n, plan);
        if name != context.plan.usual_name {
            self.take_tags(batch, context.plan.usual_name);
        }
        if plan.coalesce_shift > 0 {
            cover(batch, n, plan);
        }
        let KeyLists { items, sets, words, seconds, bits, missed } = &mut batch.lists;
        let tlb = &mut self.hardware.tlbs[asked.slot];
        let mut lookups = LookupCounts::default();
        let mut ask = |tlb: &mut TlbInstance, its: Range<usize>| {
            let keys =
                LookupKeys { sets: &sets[its.clone()], words: &words[its.clone()], seconds: &seconds[its.clone()] };
            let first = lookups.missed;
            lookups.add(tlb.look_up_list(batch.simd, keys, &bits[its.clone()], &mut missed[first..]));
            missed[first..lookups.missed].iter_mut().for_each(|position| *position += its.start as u16);
        };
        let mut from = 0;
        for left in batch.leaves.iter().filter(|left| left.slot == Some(asked.slot)) {
            let to = from + items[from..n].partition_point(|&item| item < left.item);
            ask(tlb, from..to);
            left.move_entry_in(tlb);
            from = to;
        }
        ask(tlb, from..n);
        let counts = &mut self.counts.tlbs[asked.array];
        counts.fills += (lookups.missed - lookups.merged) as u64;
        counts.evictions += lookups.evicted as u64;
        lookups.missed
    }

    /// Asks the stages from `first_in_turn` on for one item after the other, each of which walks before the next one asks
    /// if walks change them.
    fn ask_in_turn(&mut self, batch: &mut Batch, first_in_turn: u8, block: &Block, context: &AccessContext) {
        let tlb = &context.routing.tlb;
        let end = tlb.order.end();
        let is_asked = |left: &LeavingPage| {
            left.slot.is_some_and(|slot| tlb.stages[usize::from(first_in_turn)..].iter().any(|stage| stage.has(slot)))
        };
        let mut at = 0;
        for item in 0..batch.len {
            while let Some(left) = batch.leaves.get(at).filter(|left| usize::from(left.item) <= item) {
                if is_asked(left) {
                    left.move_entry(&mut self.hardware);
                }
                at += 1;
            }
            let first = batch.next[item];
            if !(first_in_turn..=end).contains(&first) {
                continue;
            }
            let route = usize::from(batch.route[item]);
            while batch.next[item] < end {
                let number = batch.next[item];
                let arrays = &tlb.stages[usize::from(number)].arrays[route];
                if self.ask_arrays(batch, item, arrays, block, context) {
                    break;
                }
                tlb.order.advance_one(number, route, &mut batch.next[item], &mut batch.tally.tlb);
            }
            if batch.next[item] == end && tlb.walks_change_stages {
                self.walk_in_turn(batch, item, context);
            }
            let mut filled = first;
            while filled < batch.next[item] {
                let arrays = &tlb.stages[usize::from(filled)].arrays[route];
                self.fill_arrays(batch, item, filled, arrays, block, context);
                filled = tlb.order.after(filled, route);
            }
        }
        let rest = batch.leaves[at..].iter().filter(|left| is_asked(left));
        rest.for_each(|left| left.move_entry(&mut self.hardware));
    }

    /// Asks the arrays of a level for an item: has one of them it?
    fn ask_arrays(
        &mut self,
        batch: &mut Batch,
        item: usize,
        arrays: &[AskedArray],
        block: &Block,
        context: &AccessContext,
    ) -> bool {
        for &asked in arrays {
            let tlb = &context.plan.tlbs[asked.array];
            let locked = batch.has_locks() && !tlb.locks.is_empty() && self.is_locked(batch, item, asked, context);
            if locked {
                self.count_locked(batch, item, asked, block, context);
            }
            let key = self.key(batch, item, asked.array, context);
            if locked || self.hardware.tlbs[asked.slot].access(&key) {
                let number = batch.next[item];
                self.count_held(batch, item, number, arrays.len(), asked.array, block, context);
                if arrays.len() > 1 {
                    let (kind, class) = kind_and_class(usize::from(batch.route[item]));
                    self.counts.tlbs[asked.array].hits[kind][class] += 1;
                    if context.routing.tlb.order.first[usize::from(batch.route[item])] != number {
                        batch.tally.hit_units = batch.tally.hit_units.saturating_add(tlb.hit_units);
                    }
                }
                return true;
            }
        }
        false
    }

    /// Fills one of the arrays of a level with an item's page, which none of them has.
    fn fill_arrays(
        &mut self,
        batch: &mut Batch,
        item: usize,
        number: u8,
        arrays: &[AskedArray],
        block: &Block,
        context: &AccessContext,
    ) {
        let mut asked = arrays[0];
        if arrays.len() > 1 {
            let rotation = &mut self.hardware.tlbs[asked.slot].rotation;
            asked = arrays[(*rotation % arrays.len() as u64) as usize];
            *rotation += 1;
        }
        let tlb = &context.plan.tlbs[asked.array];
        let key = self.key(batch, item, asked.array, context);
        let (_, class) = kind_and_class(usize::from(batch.route[item]));
        let (va, marks) = (batch.addr[item], batch.marks[item]);
        let (mask, distance) = if tlb.layouts[class].coalesces() && !tlb.keeps_distance {
            let space = &self.spaces[self.chunks.at(batch.at[item] as usize).owner as usize];
            joined_pages(&context.plan, space, marks, va, class, &tlb.layouts[class])
        } else {
            (covered(tlb, class, marks, va), 0)
        };
        let filled = self.hardware.tlbs[asked.slot].fill(&key, mask, distance);
        self.counts.tlbs[asked.array].add_fill(filled);
        self.count_held(batch, item, number, arrays.len(), asked.array, block, context);
    }

    /// Notes the array that has an item's page now, and counts there, if several arrays are asked first, the item's
    /// accesses after its own.
    #[allow(clippy::too_many_arguments)] // each is another part of one item
    fn count_held(
        &mut self,
        batch: &mut Batch,
        item: usize,
        number: u8,
        arrays: usize,
        array: usize,
        block: &Block,
        context: &AccessContext,
    ) {
        let route = usize::from(batch.route[item]);
        if batch.next[item] == number {
            batch.array[item] = array as u32;
        }
        if arrays > 1 && context.routing.tlb.order.first[route] == number {
            let (more, repeats) = (batch.count_of(item) - 1, batch.repeats_of(item, block));
            let counts = &mut self.counts.tlbs[array];
            let (kind, class) = kind_and_class(route);
            counts.hits[kind][class] += more + repeats;
            counts.repeat_lookups += repeats;
        }
    }

    /// What to look for in an array.
    fn key(&mut self, batch: &Batch, item: usize, array: usize, context: &AccessContext) -> TlbKey {
        let (va, plan) = (batch.addr[item], &*context.plan);
        let (_, class) = kind_and_class(usize::from(batch.route[item]));
        let (tlb, chunk) = (&plan.tlbs[array], self.chunks.at(batch.at[item] as usize));
        if tlb.layouts[class].is_beyond_chunks {
            let held_by = (chunk.owner as usize == KERNEL, context.id, context.hw);
            return tlb.key_held_by(plan, &mut self.hardware.tags, held_by, va, class);
        }
        tlb.key(chunk.tags[tlb.tag_name()], va, class)
    }

    /// The items' tags by one of their chunks' names.
    fn take_tags(&self, batch: &mut Batch, name: usize) {
        for (tag, &at) in batch.tags.iter_mut().zip(&batch.at[..batch.len]) {
            *tag = self.chunks.at(at as usize).tags[name];
        }
    }

    /// Sets the page's touched mark.
    #[inline(always)]
    pub(crate) fn touch(&mut self, at: usize, va: u64, class: usize) {
        if class == BASE {
            if !self.chunks.note_touched(at, va) {
                let chunk = self.chunks.at(at);
                self.spaces[chunk.owner as usize].pages.touch_base(chunk.pages as usize, va);
            }
            return;
        }
        let chunk = self.chunks.at_mut(at);
        if !chunk.huge_is_touched {
            chunk.huge_is_touched = true;
            self.spaces[chunk.owner as usize].pages.touch(va, HUGE);
        }
    }
}

/// Those pages of an item's block that one entry can cover, and the distance of all of them to their frames; `marks`: the
/// touched ones around.
fn joined_pages(
    plan: &EnginePlan,
    space: &AddressSpace,
    marks: u64,
    va: u64,
    class: usize,
    layout: &TagLayout,
) -> (u64, u64) {
    let distance = |va: u64| (physical(plan, space, va, class) >> BASE_SHIFT).wrapping_sub(va >> BASE_SHIFT);
    let (own_bit, own) = (layout.bit(va), distance(va));
    if class != BASE {
        return (own_bit, own);
    }
    let first = (va >> BASE_SHIFT) - u64::from(own_bit.trailing_zeros());
    let mut rest = layout.in_block(marks, va);
    let mut mask = own_bit;
    while rest != 0 {
        let i = rest.trailing_zeros();
        mask |= u64::from(distance((first + u64::from(i)) << BASE_SHIFT) == own) << i;
        rest &= rest - 1;
    }
    (mask, own)
}

/// The pages that entries of the first `n` listed items would cover, and the items' own.
fn cover(batch: &mut Batch, n: usize, tlb: &TlbPlan) {
    for k in 0..n {
        let item = usize::from(batch.lists.items[k]) % MAX_ITEMS;
        let class = usize::from(batch.route[item]) % CLASSES;
        let va = batch.addr[item];
        batch.lists.bits[k] = tlb.layouts[class].bit(va) as u32;
        batch.lists.seconds[k] = covered(tlb, class, batch.marks[item], va) as u32;
    }
}

/// The pages that a new entry covers.
#[inline(always)]
fn covered(tlb: &TlbPlan, class: usize, marks: u64, va: u64) -> u64 {
    let layout = &tlb.layouts[class];
    if layout.coalesces() && class == BASE {
        layout.in_block(marks, va)
    } else {
        layout.bit(va)
    }
}
