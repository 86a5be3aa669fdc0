//! One LRU set held in vectors: lookups and fills move its tags.

use crate::lanes::{Lanes, LANES};
use crate::lookup::{LookupResult, EMPTY_TAG};

/// Where a set ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) last_way: u32,
    /// All bits of the last vector's lanes that are no ways.
    pub(crate) beyond: Lanes,
}

/// The first vectors of a set that has them.
#[inline(always)]
pub(crate) fn first<const V: usize>(set: &mut [Lanes]) -> &mut [Lanes; V] {
    set.first_chunk_mut().expect("a set has its vectors")
}

/// The lanes of vector `i` at or before a position.
#[inline(always)]
pub(crate) fn up_to(position: u32, i: usize) -> Lanes {
    let at = (LANES * i) as u32;
    Lanes::splat(position + 1).greater(Lanes::new([at, at + 1, at + 2, at + 3]))
}

/// Bits of the ways, in order, that bear a word.
#[inline(always)]
pub(crate) fn bearing<const V: usize>(set: &[Lanes; V], word: Lanes) -> u32 {
    let mut found = 0;
    for (i, lanes) in set.iter().enumerate() {
        found |= lanes.equal(word) << (LANES * i);
    }
    found
}

/// Moves the ways before the first of `found` back by one over it, and puts a word in front.
#[inline(always)]
pub(crate) fn move_to_front<const V: usize>(set: &mut [Lanes; V], front: Lanes, found: u32) {
    let position = found.trailing_zeros();
    let mut before = front;
    for (i, lanes) in set.iter_mut().enumerate() {
        let old = *lanes;
        *lanes = Lanes::select(up_to(position, i), old.moved_up(before), old);
        before = old;
    }
}

/// Moves all ways back by one, the last one out, and puts a word in front.
#[inline(always)]
pub(crate) fn push<const V: usize>(set: &mut [Lanes; V], front: Lanes, beyond: Lanes) {
    let mut before = front;
    for lanes in set.iter_mut() {
        let old = *lanes;
        *lanes = old.moved_up(before);
        before = old;
    }
    set[V - 1] = set[V - 1].or(beyond);
}

/// [`LruSets::access_or_fill`] of a set of few vectors.
#[inline(always)]
pub(crate) fn few<const V: usize>(set: &mut [Lanes; V], tag: u32, ends: Ends) -> LookupResult {
    let front = Lanes::splat(tag);
    let found = bearing(set, front);
    if found == 0 {
        let last = set[V - 1].equal(Lanes::splat(EMPTY_TAG)) >> (ends.last_way % LANES as u32) & 1;
        push(set, front, ends.beyond);
        return if last == 1 { LookupResult::New } else { LookupResult::Evicted };
    }
    if found & 1 == 0 {
        move_to_front(set, front, found);
    }
    LookupResult::Hit
}

/// [`LruSets::access_or_fill_wide`] of a set of few vectors.
#[inline(always)]
pub(crate) fn few_wide<const V: usize>(set: [&mut [Lanes; V]; 2], words: [u32; 2], ends: Ends) -> LookupResult {
    let [tags, seconds] = set;
    let fronts = words.map(Lanes::splat);
    let found = bearing(tags, fronts[0]) & bearing(seconds, fronts[1]);
    if found == 0 {
        let empty = Lanes::splat(EMPTY_TAG);
        let last = (tags[V - 1].equal(empty) & seconds[V - 1].equal(empty)) >> (ends.last_way % LANES as u32) & 1;
        push(tags, fronts[0], ends.beyond);
        push(seconds, fronts[1], ends.beyond);
        return if last == 1 { LookupResult::New } else { LookupResult::Evicted };
    }
    if found & 1 == 0 {
        move_to_front(tags, fronts[0], found);
        move_to_front(seconds, fronts[1], found);
    }
    LookupResult::Hit
}

/// [`LruSets::access_or_fill`] of a set of many vectors: it is seldom far back, so one pass moves while it looks.
#[inline(never)]
pub(crate) fn many(set: &mut [Lanes], tag: u32, ends: Ends) -> LookupResult {
    let front = Lanes::splat(tag);
    let end = set.len() - 1;
    let last = set[end].equal(Lanes::splat(EMPTY_TAG)) >> (ends.last_way % LANES as u32) & 1;
    let mut before = front;
    for (i, lanes) in set.iter_mut().enumerate() {
        let old = *lanes;
        let found = old.equal(front);
        let moved = old.moved_up(before);
        if found != 0 {
            *lanes = Lanes::select(up_to((LANES * i) as u32 + found.trailing_zeros(), i), moved, old);
            return LookupResult::Hit;
        }
        *lanes = moved;
        before = old;
    }
    set[end] = set[end].or(ends.beyond);
    if last == 1 {
        LookupResult::New
    } else {
        LookupResult::Evicted
    }
}
