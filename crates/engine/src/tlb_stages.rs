//! A batch's way through the TLBs.

use std::ops::Range;

use lookaside_trace::Block;

use crate::ask::{Asked, Keys};
use crate::batch::{Batch, Lists, AGAIN, MOST};
use crate::engine::{Engine, Run};
use crate::ladder::Ladder;
use crate::lru::Access as Filled;
use crate::plan::{BASE, CLASSES};
use crate::set_index::SetIndex;
use crate::slots::{kind_and_class, TlbStage, WayArray};
use crate::tlb::{TlbInstance, Wanted};

impl Engine {
    /// Asks the TLBs for a batch's items: `next` is then the stage that had each, and `walks` has those that none had.
    pub(crate) fn ask_tlbs(&mut self, batch: &mut Batch, block: &Block, run: &Run) {
        let tlb = &run.slots.tlb;
        let len = batch.len;
        for (number, stage) in tlb.stages.iter().enumerate() {
            let number = number as u8;
            if number == tlb.first_coalescing {
                self.mark(batch, run, number);
            }
            let n = tlb.ladder.items_at(batch.isa, number, &batch.next[..len], &mut batch.lists.items);
            if n == 0 && batch.leaves.is_empty() {
                continue;
            }
            let missed = match &stage.only {
                Some(arrays) => self.ask_one(batch, n, arrays),
                None => self.ask_several(batch, n, stage, &tlb.ladder, number, block),
            };
            let lists = &batch.lists;
            let which = (&lists.items, &lists.missed[..missed]);
            tlb.ladder.go_on(number, which, &batch.route, &mut batch.next, &mut batch.tally.tlb);
        }
        batch.next[..len].iter_mut().for_each(|next| *next &= !AGAIN);
        let end = tlb.ladder.end();
        batch.walks.len = tlb.ladder.items_at(batch.isa, end, &batch.next[..len], &mut batch.walks.items);
        if tlb.first_coalescing == end {
            for walk in 0..batch.walks.len {
                let item = usize::from(batch.walks.items[walk]);
                let (_, class) = kind_and_class(usize::from(batch.route[item]));
                self.touch(run, usize::from(batch.at[item]), batch.addr[item], class);
            }
        }
    }

    /// Sets the touched marks of the items that no stage has had yet, and notes those around them as they are then.
    fn mark(&mut self, batch: &mut Batch, run: &Run, stage: u8) {
        for item in (0..batch.len).filter(|&item| (stage..AGAIN).contains(&batch.next[item])) {
            let (at, va) = (usize::from(batch.at[item]), batch.addr[item]);
            let (_, class) = kind_and_class(usize::from(batch.route[item]));
            self.touch(run, at, va, class);
            if class == BASE {
                let pages = self.places.at(at).pages as usize;
                batch.marks[item] = self.spaces[run.space].pages.touched_around(pages, va);
            }
        }
    }

    /// Asks one array for the first `n` listed items: how many it had not.
    fn ask_one(&mut self, batch: &mut Batch, n: usize, arrays: &[WayArray; CLASSES]) -> usize {
        match &arrays[BASE].index {
            SetIndex::Low { mask } => name(batch, n, arrays, |number| (number & mask) as u32),
            index => name(batch, n, arrays, |number| index.set_of(number) as u32),
        }
        if !arrays[BASE].holds_pages {
            cover(batch, n, arrays);
        }
        let Lists { items, sets, words, seconds, bits, missed } = &mut batch.lists;
        let tlb = &mut self.parts.tlbs[arrays[BASE].slot];
        let mut asked = Asked::default();
        let mut ask = |tlb: &mut TlbInstance, its: Range<usize>| {
            let keys = Keys { sets: &sets[its.clone()], words: &words[its.clone()], seconds: &seconds[its.clone()] };
            let first = asked.missed;
            asked.add(tlb.ask(batch.isa, keys, &bits[its.clone()], &mut missed[first..]));
            missed[first..asked.missed].iter_mut().for_each(|place| *place += its.start as u16);
        };
        let mut from = 0;
        for left in batch.leaves.iter().filter(|left| left.slot == Some(arrays[BASE].slot)) {
            let to = from + items[from..n].partition_point(|&item| item < left.item);
            ask(tlb, from..to);
            left.take_place_in(tlb);
            from = to;
        }
        ask(tlb, from..n);
        let counts = &mut self.counts.tlbs[arrays[BASE].array];
        counts.fills += (asked.missed - asked.merged) as u64;
        counts.evictions += asked.evicted as u64;
        asked.missed
    }

    /// Asks several arrays, of which each item asks some: how many had none.
    fn ask_several(
        &mut self,
        batch: &mut Batch,
        n: usize,
        stage: &TlbStage,
        ladder: &Ladder,
        number: u8,
        block: &Block,
    ) -> usize {
        let mut missed = 0;
        let mut leaves = batch.leaves.iter().filter(|left| left.slot.is_some_and(|slot| stage.has(slot))).peekable();
        for k in 0..n {
            let item = usize::from(batch.lists.items[k]);
            while let Some(left) = leaves.next_if(|left| usize::from(left.item) <= item) {
                left.take_place(&mut self.parts);
            }
            let route = usize::from(batch.route[item]);
            let is_first = ladder.first[route] == number;
            let (array, hit) = match &stage.arrays[route][..] {
                [array] => (array, self.ask_array(batch, item, array)),
                arrays => {
                    let (array, hit) = self.ask_arrays(batch, item, arrays, route);
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
        leaves.for_each(|left| left.take_place(&mut self.parts));
        missed
    }

    /// Asks an array, which is filled if it has not the page: had it?
    fn ask_array(&mut self, batch: &Batch, item: usize, array: &WayArray) -> bool {
        let wanted = Self::wanted(batch, item, array);
        let tlb = &mut self.parts.tlbs[array.slot];
        if tlb.access(&wanted) {
            return true;
        }
        let (_, class) = kind_and_class(usize::from(batch.route[item]));
        let mask = covered(array, class, batch.marks[item], batch.addr[item]);
        let filled = tlb.fill(&wanted, mask, 0);
        let counts = &mut self.counts.tlbs[array.array];
        counts.fills += u64::from(filled != Filled::Hit);
        counts.evictions += u64::from(filled == Filled::Evicted);
        false
    }

    /// Asks the several arrays of a level, fills one if none has the page, and counts what that did: the array that has
    /// it now, and whether it had it before.
    fn ask_arrays<'a>(
        &mut self,
        batch: &Batch,
        item: usize,
        arrays: &'a [WayArray],
        route: usize,
    ) -> (&'a WayArray, bool) {
        let (kind, class) = kind_and_class(route);
        for array in arrays {
            let wanted = Self::wanted(batch, item, array);
            if self.parts.tlbs[array.slot].access(&wanted) {
                self.counts.tlbs[array.array].hits[kind][class] += 1;
                return (array, true);
            }
        }
        let rotation = &mut self.parts.tlbs[arrays[0].slot].rotation;
        let array = &arrays[(*rotation % arrays.len() as u64) as usize];
        *rotation += 1;
        // Asked a second time, which changes nothing.
        self.ask_array(batch, item, array);
        (array, false)
    }

    /// What to look for in an array.
    #[inline(always)]
    fn wanted(batch: &Batch, item: usize, array: &WayArray) -> Wanted {
        let va = batch.addr[item];
        Wanted {
            set: array.index.set_of(va >> array.naming.set_shift),
            tag: array.naming.tag(batch.tags[item][array.name], va),
            bit: array.naming.bit(va),
        }
    }
}

/// Sets and tags of the first `n` listed items in an array.
#[inline(always)]
fn name(batch: &mut Batch, n: usize, arrays: &[WayArray; CLASSES], set_of: impl Fn(u64) -> u32) {
    let has_huge = batch.has_huge();
    let Batch { lists: Lists { items, sets, words, .. }, addr, tags, route, .. } = batch;
    let keys = items[..n].iter().zip(sets).zip(words);
    let by_class = arrays.each_ref().map(|array| (array.naming, array.name % 4));
    let name = |item: u16, class: usize, set: &mut u32, word: &mut u32| {
        let item = usize::from(item) % MOST;
        let (naming, name) = by_class[class];
        *word = naming.tag(tags[item][name], addr[item]);
        *set = set_of(addr[item] >> naming.set_shift);
    };
    if has_huge {
        keys.for_each(|((&item, set), word)| {
            name(item, usize::from(route[usize::from(item) % MOST]) % CLASSES, set, word)
        });
    } else {
        keys.for_each(|((&item, set), word)| name(item, BASE, set, word));
    }
}

/// The pages that entries of the first `n` listed items would cover, and the items' own.
fn cover(batch: &mut Batch, n: usize, arrays: &[WayArray; CLASSES]) {
    for k in 0..n {
        let item = usize::from(batch.lists.items[k]) % MOST;
        let class = usize::from(batch.route[item]) % CLASSES;
        let va = batch.addr[item];
        batch.lists.bits[k] = arrays[class].naming.bit(va) as u32;
        batch.lists.seconds[k] = covered(&arrays[class], class, batch.marks[item], va) as u32;
    }
}

/// The pages that a new entry covers.
#[inline(always)]
fn covered(array: &WayArray, class: usize, marks: u64, va: u64) -> u64 {
    if array.coalesces && class == BASE {
        array.naming.in_block(marks, va)
    } else {
        array.naming.bit(va)
    }
}
