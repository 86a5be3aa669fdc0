//! LRU sets of every number of ways at once, by the stack property (Mattson, Gecsei, Slutz, Traiger: Evaluation techniques
//! for storage hierarchies, 1970).
//!
//! A set of `w` ways holds the first `w` of its set's stack, in which the page used last comes first. So a page at depth
//! `d` is a hit for every array of more than `d` ways. What is invalidated leaves a hole: to drop it would move pages up
//! into arrays that do not have them. A page that comes in fills the first hole before its old place. Arrays of fewer ways
//! than the hole's depth throw one out; those between do not; those that had the page still have as many free ways, so its
//! old place is a hole now. Ways never filled are holes as well.

use crate::lanes::{Lanes, LANES};
use crate::lookup::{LookupKeys, EMPTY_TAG};
use crate::lru_set::{bearing, first, move_to_front, up_to};
use crate::prefetch::prefetch;

/// Most ways: as many as the bits of a word that says which of them bear a tag.
pub(crate) const MOST_WAYS: usize = 32;

/// The stacks of all sets.
#[derive(Debug)]
pub(crate) struct WayStacks {
    lanes: Vec<Lanes>,
    /// Vectors of a set.
    vectors: usize,
}

/// What a lookup did. All depths are below [`MOST_WAYS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackLookup {
    /// Where the page was.
    pub(crate) depth: Option<usize>,
    /// The hole before that which is filled now.
    pub(crate) hole: Option<usize>,
}

impl WayStacks {
    /// Empty stacks for arrays of at most so many ways.
    pub(crate) fn new(sets: usize, ways: usize) -> Self {
        debug_assert!(ways <= MOST_WAYS);
        let vectors = ways.div_ceil(LANES);
        Self { lanes: vec![Lanes::splat(EMPTY_TAG); sets * vectors], vectors }
    }

    /// Depths of a set: some more than ways were asked for.
    pub(crate) fn depths(ways: usize) -> usize {
        ways.next_multiple_of(LANES)
    }

    /// Uses the page of each key in turn, and calls `see` with the key's position in the list.
    pub(crate) fn look_up_list(&mut self, keys: LookupKeys<'_>, see: impl FnMut(usize, StackLookup)) {
        let lanes = &mut self.lanes[..];
        match self.vectors {
            1 => list::<1>(lanes, keys, see),
            2 => list::<2>(lanes, keys, see),
            3 => list::<3>(lanes, keys, see),
            4 => list::<4>(lanes, keys, see),
            5 => list::<5>(lanes, keys, see),
            6 => list::<6>(lanes, keys, see),
            7 => list::<7>(lanes, keys, see),
            _ => list::<8>(lanes, keys, see),
        }
    }

    /// Invalidates the pages whose tags the predicate picks: how many, by depth, is added to `gone`.
    pub(crate) fn invalidate(&mut self, mut picks: impl FnMut(u32) -> bool, gone: &mut [u64]) {
        self.update(|depth, tag| {
            let is_picked = picks(tag);
            gone[depth] += u64::from(is_picked);
            if is_picked {
                EMPTY_TAG
            } else {
                tag
            }
        });
    }

    /// Puts other tags in the place of those that are there.
    pub(crate) fn rename(&mut self, mut name: impl FnMut(u32) -> u32) {
        self.update(|_, tag| name(tag));
    }

    /// Calls `f` with each tag.
    pub(crate) fn for_each(&self, f: impl FnMut(u32)) {
        self.lanes.iter().flat_map(|lanes| lanes.to_array()).filter(|&tag| tag != EMPTY_TAG).for_each(f);
    }

    /// Puts what `f` makes of depth and tag in the place of each tag.
    fn update(&mut self, mut f: impl FnMut(usize, u32) -> u32) {
        for set in self.lanes.chunks_exact_mut(self.vectors) {
            for (i, lanes) in set.iter_mut().enumerate() {
                let mut tags = lanes.to_array();
                for (lane, tag) in tags.iter_mut().enumerate().filter(|(_, tag)| **tag != EMPTY_TAG) {
                    *tag = f(LANES * i + lane, *tag);
                }
                *lanes = Lanes::new(tags);
            }
        }
    }
}

/// Keys ahead whose set is fetched.
const AHEAD: usize = 12;

#[inline(always)]
fn list<const V: usize>(lanes: &mut [Lanes], keys: LookupKeys<'_>, mut see: impl FnMut(usize, StackLookup)) {
    let mut ahead = keys.sets.iter().skip(AHEAD);
    for (k, (&set, &tag)) in keys.sets.iter().zip(keys.words).enumerate() {
        if let Some(&set) = ahead.next() {
            prefetch(lanes, set as usize * V);
        }
        see(k, use_page(first::<V>(&mut lanes[set as usize * V..]), tag));
    }
}

/// Uses a page of a set.
#[inline(always)]
fn use_page<const V: usize>(set: &mut [Lanes; V], tag: u32) -> StackLookup {
    let front = Lanes::splat(tag);
    let found = bearing(set, front);
    if found & 1 == 1 {
        return StackLookup { depth: Some(0), hole: None };
    }
    let empty = Lanes::splat(EMPTY_TAG);
    let holes = bearing(set, empty);
    move_to_front(set, front, found | holes);
    let depth = (found != 0).then_some(found.trailing_zeros());
    // All bits below the lowest of `found`; all if there is none.
    let before = holes & !found & found.wrapping_sub(1);
    if let Some(depth) = depth.filter(|_| before != 0) {
        let i = depth as usize / LANES;
        // Not in front: there it would have been found at once.
        set[i] = Lanes::select(up_to(depth, i), Lanes::select(up_to(depth - 1, i), set[i], empty), set[i]);
    }
    StackLookup {
        depth: depth.map(|depth| depth as usize),
        hole: (before != 0).then_some(before.trailing_zeros() as usize),
    }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::Replacement;
    use lookaside_stats::SplitMix64;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::assoc::{ArrayShape, Assoc, EMPTY_KEY};
    use crate::lookup::LookupResult;

    /// What an array of each number of ways counts.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Counts {
        hits: u64,
        evictions: u64,
        invalidated: u64,
    }

    proptest! {
        #[test]
        fn a_stack_is_an_array_of_each_number_of_ways(
            most in 1..=MOST_WAYS,
            steps in vec((vec(0..60u32, 0..30), vec(0..60u32, 0..9), any::<bool>()), 0..12),
        ) {
            let shape = |ways| ArrayShape { sets: 2, ways, replacement: Replacement::Lru, repeated_keys: false };
            let mut arrays: Vec<Assoc> = (1..=most).map(|ways| Assoc::new(shape(ways), SplitMix64::new(0))).collect();
            let mut counts = vec![Counts::default(); most];
            let mut stacks = WayStacks::new(2, most);
            let depths = WayStacks::depths(most);
            let (mut hits, mut filled, mut emptied, mut gone) =
                (vec![0; depths], vec![0; depths], vec![0; depths], vec![0; depths]);
            let mut lookups = 0;
            for (list, picked, renames) in steps {
                let sets: Vec<u32> = list.iter().map(|tag| tag % 2).collect();
                lookups += list.len() as u64;
                stacks.look_up_list(LookupKeys { sets: &sets, words: &list, seconds: &[] }, |_, lookup| {
                    lookup.depth.into_iter().for_each(|depth| hits[depth] += 1u64);
                    if let Some(hole) = lookup.hole {
                        filled[hole] += 1u64;
                        lookup.depth.into_iter().for_each(|depth| emptied[depth] += 1u64);
                    }
                });
                stacks.invalidate(|tag| picked.contains(&tag), &mut gone);
                for (array, counts) in arrays.iter_mut().zip(&mut counts) {
                    for &tag in &list {
                        let result = array.access_or_fill(tag as usize % 2, tag.into());
                        counts.hits += u64::from(result == LookupResult::Hit);
                        counts.evictions += u64::from(result == LookupResult::Evicted);
                    }
                    counts.invalidated += array.invalidate(|_, key| picked.contains(&(key as u32)));
                }
                if renames {
                    stacks.rename(|tag| tag ^ 64);
                    arrays.iter_mut().for_each(|array| array.rename(|key| key ^ 64));
                }
                let mut all = Vec::new();
                stacks.for_each(|tag| all.push(u64::from(tag)));
                let largest = arrays[most - 1].keys().iter().filter(|&&key| key != EMPTY_KEY);
                prop_assert!(largest.clone().all(|key| all.contains(key)));
                for (ways, expected) in (1..=most).zip(&counts) {
                    let sum = |by_depth: &[u64]| by_depth[..ways].iter().sum::<u64>();
                    let misses = lookups - sum(&hits);
                    let evictions = misses - (sum(&filled) - sum(&emptied));
                    let came = Counts { hits: sum(&hits), evictions, invalidated: sum(&gone) };
                    prop_assert_eq!(&came, expected, "{} ways", ways);
                }
            }
        }
    }
}
