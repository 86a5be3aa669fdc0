//! The keys by which an array is asked: a set and a tag for each item of a batch, or for each line.
//!
//! The loops are compiled twice: for all processors of the architecture, and for the widest vectors.

use crate::batch::{Batch, CacheRequests, KeyLists};
use crate::classes::{BASE, CLASSES, HUGE};
use crate::data_cache::LineLayout;
use crate::lookup::SimdLevel;
use crate::plan::TlbPlan;
use crate::set_index::SetIndex;
use crate::stages::{MAX_ITEMS, MAX_KEYS};
use crate::tag_layout::TagLayout;

/// Sets and tags of the first `n` listed items in an array; `tags` are by the array's name.
pub(crate) fn name_items(batch: &mut Batch, n: usize, tlb: &TlbPlan) {
    #[cfg(target_arch = "x86_64")]
    if batch.simd == SimdLevel::Avx512 {
        // SAFETY: the processor has the instructions.
        return unsafe { name_items_wide(batch, n, tlb) };
    }
    name_items_by(batch, n, tlb);
}

/// Sets and keys of the lines that the first `n` listed requests ask for.
pub(crate) fn name_lines(
    simd: SimdLevel,
    layout: &LineLayout,
    requests: &CacheRequests,
    n: usize,
    lists: &mut KeyLists,
) {
    #[cfg(target_arch = "x86_64")]
    if simd == SimdLevel::Avx512 {
        // SAFETY: the processor has the instructions.
        return unsafe { name_lines_wide(layout, requests, n, lists) };
    }
    let _ = simd;
    name_lines_by(layout, requests, n, lists);
}

/// The same loops, in wide vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
fn name_items_wide(batch: &mut Batch, n: usize, tlb: &TlbPlan) {
    name_items_by(batch, n, tlb);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
fn name_lines_wide(layout: &LineLayout, requests: &CacheRequests, n: usize, lists: &mut KeyLists) {
    name_lines_by(layout, requests, n, lists);
}

#[inline(always)]
fn name_items_by(batch: &mut Batch, n: usize, tlb: &TlbPlan) {
    let layouts = tlb.layouts;
    match &tlb.index {
        SetIndex::Low { mask } => name_each_item(batch, n, layouts, |number| (number & mask) as u32),
        index => name_each_item(batch, n, layouts, |number| index.set_of(number) as u32),
    }
}

#[inline(always)]
fn name_lines_by(layout: &LineLayout, requests: &CacheRequests, n: usize, lists: &mut KeyLists) {
    match &layout.index {
        SetIndex::Low { mask } => name_each_line(layout, requests, n, lists, |line| (line & mask) as u32),
        index => name_each_line(layout, requests, n, lists, |line| index.set_of(line) as u32),
    }
}

#[inline(always)]
fn name_each_item(batch: &mut Batch, n: usize, layouts: [TagLayout; CLASSES], set_of: impl Fn(u64) -> u32) {
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

#[inline(always)]
fn name_each_line(
    layout: &LineLayout,
    requests: &CacheRequests,
    n: usize,
    lists: &mut KeyLists,
    set_of: impl Fn(u64) -> u32,
) {
    let KeyLists { items, sets, words, seconds, .. } = lists;
    let layout = layout.shifts;
    let name = |physical: u64, (set, (word, second)): (&mut u32, (&mut u32, &mut u32))| {
        let key;
        (*set, key) = layout.key_by(&set_of, physical);
        *word = key as u32;
        *second = (key >> 32) as u32;
    };
    let keys = sets.iter_mut().zip(words.iter_mut().zip(seconds));
    if n == requests.len {
        requests.physical[..n].iter().zip(keys).for_each(|(&physical, key)| name(physical, key));
    } else {
        let of = |&item: &u16| requests.physical[usize::from(item) % MAX_KEYS];
        items[..n].iter().map(of).zip(keys).for_each(|(physical, key)| name(physical, key));
    }
}
