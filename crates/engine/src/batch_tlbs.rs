//! The batch path through the TLBs.

use std::ops::Range;

use lookaside_trace::Block;

use crate::batch::{Batch, KeyLists};
use crate::classes::{BASE, CLASSES, HUGE};
use crate::context::AccessContext;
use crate::engine::Engine;
use crate::lookup::{LookupCounts, LookupKeys};
use crate::routing::{kind_and_class, TlbStage, WayArray};
use crate::set_index::SetIndex;
use crate::stages::{StageOrder, MAX_ITEMS, SAME_PAGE};
use crate::tlb::{TlbInstance, TlbKey};

impl Engine {
    /// Asks the TLBs for a batch's items: `next` is then the stage that had each, and `walks` has those that none had.
    pub(crate) fn look_up_tlbs(&mut self, batch: &mut Batch, block: &Block, context: &AccessContext) {
        let tlb = &context.routing.tlb;
        let len = batch.len;
        for (number, stage) in tlb.stages.iter().enumerate() {
            let number = number as u8;
            if number == tlb.first_coalescing {
                self.mark(batch, context, number);
            }
            let n = tlb.order.items_at(batch.simd, number, &batch.next[..len], &mut batch.lists.items);
            if n == 0 && batch.leaves.is_empty() {
                continue;
            }
            let missed = match &stage.only {
                Some(arrays) => self.look_up_one_array(batch, n, arrays),
                None => self.look_up_several_arrays(batch, n, stage, &tlb.order, number, block),
            };
            let lists = &batch.lists;
            let which = (&lists.items, &lists.missed[..missed]);
            tlb.order.advance(number, which, &batch.route, &mut batch.next, &mut batch.tally.tlb);
        }
        batch.next[..len].iter_mut().for_each(|next| *next &= !SAME_PAGE);
        let end = tlb.order.end();
        batch.walks.len = tlb.order.items_at(batch.simd, end, &batch.next[..len], &mut batch.walks.items);
        if tlb.first_coalescing == end {
            for walk in 0..batch.walks.len {
                let item = usize::from(batch.walks.items[walk]);
                let (_, class) = kind_and_class(usize::from(batch.route[item]));
                self.touch(context, batch.at[item] as usize, batch.addr[item], class);
            }
        }
    }

    /// Sets the touched marks of the items that no stage has had yet, and notes those around them as they are then.
    fn mark(&mut self, batch: &mut Batch, context: &AccessContext, stage: u8) {
        for item in (0..batch.len).filter(|&item| (stage..SAME_PAGE).contains(&batch.next[item])) {
            let (at, va) = (batch.at[item] as usize, batch.addr[item]);
            let (_, class) = kind_and_class(usize::from(batch.route[item]));
            self.touch(context, at, va, class);
            if class == BASE {
                let pages = self.chunks.at(at).pages as usize;
                batch.marks[item] = self.spaces[context.space].pages.touched_around(pages, va);
            }
        }
    }

    /// Asks one array for the first `n` listed items: how many it had not.
    fn look_up_one_array(&mut self, batch: &mut Batch, n: usize, arrays: &[WayArray; CLASSES]) -> usize {
        match &arrays[BASE].index {
            SetIndex::Low { mask } => name(batch, n, arrays, |number| (number & mask) as u32),
            index => name(batch, n, arrays, |number| index.set_of(number) as u32),
        }
        if !arrays[BASE].holds_pages {
            cover(batch, n, arrays);
        }
        let KeyLists { items, sets, words, seconds, bits, missed } = &mut batch.lists;
        let tlb = &mut self.hardware.tlbs[arrays[BASE].slot];
        let mut lookups = LookupCounts::default();
        let mut ask = |tlb: &mut TlbInstance, its: Range<usize>| {
            let keys =
                LookupKeys { sets: &sets[its.clone()], words: &words[its.clone()], seconds: &seconds[its.clone()] };
            let first = lookups.missed;
            lookups.add(tlb.look_up_list(batch.simd, keys, &bits[its.clone()], &mut missed[first..]));
            missed[first..lookups.missed].iter_mut().for_each(|position| *position += its.start as u16);
        };
        let mut from = 0;
        for left in batch.leaves.iter().filter(|left| left.slot == Some(arrays[BASE].slot)) {
            let to = from + items[from..n].partition_point(|&item| item < left.item);
            ask(tlb, from..to);
            left.move_entry_in(tlb);
            from = to;
        }
        ask(tlb, from..n);
        let counts = &mut self.counts.tlbs[arrays[BASE].array];
        counts.fills += (lookups.missed - lookups.merged) as u64;
        counts.evictions += lookups.evicted as u64;
        lookups.missed
    }

    /// Asks several arrays, of which each item asks some: how many had none.
    fn look_up_several_arrays(
        &mut self,
        batch: &mut Batch,
        n: usize,
        stage: &TlbStage,
        order: &StageOrder,
        number: u8,
        block: &Block,
    ) -> usize {
        let mut missed = 0;
        let mut leaves = batch.leaves.iter().filter(|left| left.slot.is_some_and(|slot| stage.has(slot))).peekable();
        for k in 0..n {
            let item = usize::from(batch.lists.items[k]);
            while let Some(left) = leaves.next_if(|left| usize::from(left.item) <= item) {
                left.move_entry(&mut self.hardware);
            }
            let route = usize::from(batch.route[item]);
            let is_first = order.first[route] == number;
            let (array, hit) = match &stage.arrays[route][..] {
                [array] => (array, self.look_up_array(batch, item, array)),
                arrays => {
                    let (array, hit) = self.look_up_arrays(batch, item, arrays, route);
                    if is_first {
                        let (more, repeats) = (batch.count_of(item) - 1, batch.repeats_of(item, block));
                        let counts = &mut self.counts.tlbs[array.array];
                        let (kind, class) = kind_and_class(route);
                        counts.hits[kind][class] += more + repeats;
                        counts.repeat_lookups += repeats;
                    } else if hit {
                        batch.tally.hit_units = batch.tally.hit_units.saturating_add(array.hit_units);
                    }
                    (array, hit)
                }
            };
            batch.hit_units[item] = array.hit_units;
            batch.lists.missed[missed] = k as u16;
            missed += usize::from(!hit);
        }
        leaves.for_each(|left| left.move_entry(&mut self.hardware));
        missed
    }

    /// Asks an array, which is filled if it has not the page: had it?
    fn look_up_array(&mut self, batch: &Batch, item: usize, array: &WayArray) -> bool {
        let key = Self::key(batch, item, array);
        let tlb = &mut self.hardware.tlbs[array.slot];
        if tlb.access(&key) {
            return true;
        }
        let (_, class) = kind_and_class(usize::from(batch.route[item]));
        let mask = covered(array, class, batch.marks[item], batch.addr[item]);
        let filled = tlb.fill(&key, mask, 0);
        self.counts.tlbs[array.array].add_fill(filled);
        false
    }

    /// Asks the several arrays of a level, fills one if none has the page, and counts what that did: the array that has
    /// it now, and whether it had it before.
    fn look_up_arrays<'a>(
        &mut self,
        batch: &Batch,
        item: usize,
        arrays: &'a [WayArray],
        route: usize,
    ) -> (&'a WayArray, bool) {
        let (kind, class) = kind_and_class(route);
        for array in arrays {
            let key = Self::key(batch, item, array);
            if self.hardware.tlbs[array.slot].access(&key) {
                self.counts.tlbs[array.array].hits[kind][class] += 1;
                return (array, true);
            }
        }
        let rotation = &mut self.hardware.tlbs[arrays[0].slot].rotation;
        let array = &arrays[(*rotation % arrays.len() as u64) as usize];
        *rotation += 1;
        // Looked up a second time, which changes nothing.
        self.look_up_array(batch, item, array);
        (array, false)
    }

    /// What to look for in an array.
    #[inline(always)]
    fn key(batch: &Batch, item: usize, array: &WayArray) -> TlbKey {
        let va = batch.addr[item];
        TlbKey {
            set: array.index.set_of(va >> array.layout.set_shift),
            tag: array.layout.tag(batch.tags[item][array.name], va),
            bit: array.layout.bit(va),
        }
    }

    /// Sets the page's touched mark.
    #[inline(always)]
    pub(crate) fn touch(&mut self, context: &AccessContext, at: usize, va: u64, class: usize) {
        let chunk = self.chunks.at_mut(at);
        let pages = &mut self.spaces[context.space].pages;
        if class == BASE {
            pages.touch_base(chunk.pages as usize, va);
        } else if !chunk.huge_is_touched {
            chunk.huge_is_touched = true;
            pages.touch(va, HUGE);
        }
    }
}

/// Sets and tags of the first `n` listed items in an array.
#[inline(always)]
fn name(batch: &mut Batch, n: usize, arrays: &[WayArray; CLASSES], set_of: impl Fn(u64) -> u32) {
    let has_huge = batch.has_huge();
    let Batch { lists: KeyLists { items, sets, words, .. }, addr, tags, route, len, .. } = batch;
    let by_class = arrays.each_ref().map(|array| (array.layout, array.name % 4));
    if n == *len && !has_huge {
        // All items, one after the other: done in vectors.
        let (layout, name) = by_class[BASE];
        for ((addr, tags), (set, word)) in addr[..n].iter().zip(&tags[..n]).zip(sets.iter_mut().zip(words)) {
            *word = layout.tag(tags[name], *addr);
            *set = set_of(addr >> layout.set_shift);
        }
        return;
    }
    let keys = items[..n].iter().zip(sets).zip(words);
    let name = |item: u16, class: usize, set: &mut u32, word: &mut u32| {
        let item = usize::from(item) % MAX_ITEMS;
        let (layout, name) = by_class[class];
        *word = layout.tag(tags[item][name], addr[item]);
        *set = set_of(addr[item] >> layout.set_shift);
    };
    if has_huge {
        keys.for_each(|((&item, set), word)| {
            name(item, usize::from(route[usize::from(item) % MAX_ITEMS]) % CLASSES, set, word)
        });
    } else {
        keys.for_each(|((&item, set), word)| name(item, BASE, set, word));
    }
}

/// The pages that entries of the first `n` listed items would cover, and the items' own.
fn cover(batch: &mut Batch, n: usize, arrays: &[WayArray; CLASSES]) {
    for k in 0..n {
        let item = usize::from(batch.lists.items[k]) % MAX_ITEMS;
        let class = usize::from(batch.route[item]) % CLASSES;
        let va = batch.addr[item];
        batch.lists.bits[k] = arrays[class].layout.bit(va) as u32;
        batch.lists.seconds[k] = covered(&arrays[class], class, batch.marks[item], va) as u32;
    }
}

/// The pages that a new entry covers.
#[inline(always)]
fn covered(array: &WayArray, class: usize, marks: u64, va: u64) -> u64 {
    if array.coalesces && class == BASE {
        array.layout.in_block(marks, va)
    } else {
        array.layout.bit(va)
    }
}
