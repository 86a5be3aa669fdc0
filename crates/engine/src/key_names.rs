//! The keys by which an array of pages is asked: a set and a tag for each item of a batch.

use crate::batch::{Batch, KeyLists};
use crate::classes::{BASE, CLASSES, HUGE};
use crate::lookup::SimdLevel;
use crate::routing::WayArray;
use crate::set_index::SetIndex;
use crate::stages::MAX_ITEMS;
use crate::tlb::TagLayout;

/// Sets and tags of the first `n` listed items in an array; `tags` are by the array's name.
pub(crate) fn name_items(batch: &mut Batch, n: usize, arrays: &[WayArray; CLASSES]) {
    let layouts = arrays.each_ref().map(|array| array.layout);
    #[cfg(target_arch = "x86_64")]
    if batch.simd == SimdLevel::Avx512 {
        // SAFETY: the processor has the instructions.
        return unsafe { name_wide(batch, n, &arrays[BASE].index, layouts) };
    }
    name_by(batch, n, &arrays[BASE].index, layouts);
}

/// The same loops, in wide vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
fn name_wide(batch: &mut Batch, n: usize, index: &SetIndex, layouts: [TagLayout; CLASSES]) {
    name_by(batch, n, index, layouts);
}

#[inline(always)]
fn name_by(batch: &mut Batch, n: usize, index: &SetIndex, layouts: [TagLayout; CLASSES]) {
    match index {
        SetIndex::Low { mask } => name(batch, n, layouts, |number| (number & mask) as u32),
        index => name(batch, n, layouts, |number| index.set_of(number) as u32),
    }
}

#[inline(always)]
fn name(batch: &mut Batch, n: usize, layouts: [TagLayout; CLASSES], set_of: impl Fn(u64) -> u32) {
    let has_huge = batch.has_huge();
    let Batch { lists: KeyLists { items, sets, words, .. }, addr, tags, route, len, .. } = batch;
    if n == *len && !has_huge {
        // All items, one after the other: done in vectors.
        let layout = layouts[BASE];
        for ((&addr, &tag), (set, word)) in addr[..n].iter().zip(&tags[..n]).zip(sets.iter_mut().zip(words)) {
            *word = layout.tag(tag, addr);
            *set = set_of(addr >> layout.set_shift);
        }
        return;
    }
    for ((&item, set), word) in items[..n].iter().zip(sets).zip(words) {
        let item = usize::from(item) % MAX_ITEMS;
        let is_huge = has_huge && usize::from(route[item]) % CLASSES == HUGE;
        let layout = layouts[if is_huge { HUGE } else { BASE }];
        *word = layout.tag(tags[item], addr[item]);
        *set = set_of(addr[item] >> layout.set_shift);
    }
}
