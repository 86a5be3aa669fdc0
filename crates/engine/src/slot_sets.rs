//! Sets of few ways under any policy, keys of 32 bits: all ways of a set are compared at once.
//!
//! Sets in order of use (`lru.rs`) and small trees (`plru.rs`) have forms of their own; more ways, or wider keys, are in
//! `assoc.rs`.

use lookaside_stats::SplitMix64;

use crate::assoc::ArrayShape;
use crate::lanes::{Lanes, LANES};
use crate::lookup::{one_by_one, LookupCounts, LookupKeys, LookupResult, EMPTY_TAG};
use crate::prefetch::prefetch;
use crate::replacement::{each_policy, ReplacementPolicy, SetPolicy};

/// Most ways of a set: a cache line of keys.
pub(crate) const MAX_WAYS: usize = 16;

/// Sets of at most [`MAX_WAYS`] ways.
#[derive(Clone, Debug)]
pub(crate) struct SlotSets {
    keys: Vec<u32>,
    ways: usize,
    /// Keys from one set to the next: 4, 8 or 16. Those that are no ways stay empty.
    stride: usize,
    policy: ReplacementPolicy,
}

impl SlotSets {
    /// Empty sets.
    pub(crate) fn new(shape: ArrayShape, rng: SplitMix64) -> Self {
        let stride = shape.ways.next_power_of_two().max(LANES);
        Self {
            keys: vec![EMPTY_TAG; shape.sets * stride],
            ways: shape.ways,
            stride,
            policy: ReplacementPolicy::new(shape.replacement, shape.sets, shape.ways as u32, rng),
        }
    }

    /// Asks a set for a key and touches it, or fills it: what it did, and the key that was thrown out if one was.
    #[inline]
    pub(crate) fn access_or_replace(&mut self, set: usize, key: u32) -> (LookupResult, u32) {
        let (keys, ways) = (&mut self.keys[..], self.ways);
        each_policy!(&mut self.policy, policy => match self.stride {
            4 => use_key::<4, _>(keys, ways, policy, set, key),
            8 => use_key::<8, _>(keys, ways, policy, set, key),
            _ => use_key::<16, _>(keys, ways, policy, set, key),
        })
    }

    /// [`Self::access_or_replace`] of each key of a list.
    pub(crate) fn look_up_list(&mut self, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
        let (stored, ways) = (&mut self.keys[..], self.ways);
        each_policy!(&mut self.policy, policy => match self.stride {
            4 => list::<4, _>(stored, ways, policy, keys, missed),
            8 => list::<8, _>(stored, ways, policy, keys, missed),
            _ => list::<16, _>(stored, ways, policy, keys, missed),
        })
    }

    /// Asks a set for a key and touches it: was it there?
    pub(crate) fn access(&mut self, set: usize, key: u32) -> bool {
        let way = self.find(set, key);
        way.inspect(|&way| self.policy.touch(set, way as u32)).is_some()
    }

    /// Is a key there? Changes nothing.
    pub(crate) fn holds(&self, set: usize, key: u32) -> bool {
        self.find(set, key).is_some()
    }

    /// Invalidates a key: was it there?
    pub(crate) fn remove(&mut self, set: usize, key: u32) -> bool {
        self.find(set, key).map(|way| self.invalidate_way(set, way)).is_some()
    }

    /// Calls `keep` with each key, and puts in its place the one that it answers; `None` = invalid from now on. How many
    /// became so.
    pub(crate) fn update(&mut self, mut keep: impl FnMut(u32) -> Option<u32>) -> u64 {
        let mut gone = 0;
        for at in 0..self.keys.len() {
            if self.keys[at] == EMPTY_TAG {
                continue;
            }
            match keep(self.keys[at]) {
                Some(key) => self.keys[at] = key,
                None => {
                    self.invalidate_way(at / self.stride, at % self.stride);
                    gone += 1;
                }
            }
        }
        gone
    }

    /// Calls `f` with each key.
    pub(crate) fn for_each(&self, f: impl FnMut(u32)) {
        self.keys.iter().copied().filter(|&key| key != EMPTY_TAG).for_each(f);
    }

    /// Brings a set that will be asked soon nearer to the processor; changes nothing.
    pub(crate) fn prefetch(&self, set: usize) {
        prefetch(&self.keys, set * self.stride);
        self.policy.prefetch(set);
    }

    fn find(&self, set: usize, key: u32) -> Option<usize> {
        self.keys[set * self.stride..][..self.ways].iter().position(|&other| other == key)
    }

    fn invalidate_way(&mut self, set: usize, way: usize) {
        let its = &mut self.keys[set * self.stride..][..self.ways];
        its[way] = EMPTY_TAG;
        self.policy.invalidated(set, way as u32, |way| its[way as usize] != EMPTY_TAG);
    }
}

/// Keys ahead whose set is fetched.
const AHEAD: usize = 8;

/// Asks for each key in turn.
fn list<const N: usize, P: SetPolicy>(
    stored: &mut [u32],
    ways: usize,
    policy: &mut P,
    keys: LookupKeys<'_>,
    missed: &mut [u16],
) -> LookupCounts {
    let mut ahead = keys.sets.iter().skip(AHEAD);
    one_by_one(keys, missed, |set, key, _| {
        if let Some(&set) = ahead.next() {
            prefetch(stored, set as usize * N);
            policy.prefetch(set as usize);
        }
        use_key::<N, P>(stored, ways, policy, set, key).0
    })
}

/// [`SlotSets::access_or_replace`] of sets `N` keys apart.
#[inline(always)]
fn use_key<const N: usize, P: SetPolicy>(
    stored: &mut [u32],
    ways: usize,
    policy: &mut P,
    set: usize,
    key: u32,
) -> (LookupResult, u32) {
    let its: &mut [u32; N] = stored[set * N..].first_chunk_mut().expect("a set has its ways");
    let found = bearing(its, key);
    if found != 0 {
        policy.touch(set, found.trailing_zeros());
        return (LookupResult::Hit, EMPTY_TAG);
    }
    let free = bearing(its, EMPTY_TAG) & ((1 << ways) - 1);
    let way = policy.replace(set, || (free != 0).then_some(free.trailing_zeros()));
    let old = std::mem::replace(&mut its[way as usize % N], key);
    (if free == 0 { LookupResult::Evicted } else { LookupResult::New }, old)
}

/// Bits of the places that bear a key.
#[inline(always)]
fn bearing<const N: usize>(keys: &[u32; N], key: u32) -> u32 {
    let wanted = Lanes::splat(key);
    let mut found = 0;
    for (i, &lanes) in keys.as_chunks::<LANES>().0.iter().enumerate() {
        found |= Lanes::new(lanes).equal(wanted) << (LANES * i);
    }
    found
}
