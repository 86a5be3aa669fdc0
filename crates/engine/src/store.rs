//! A set-associative (or fully associative) store of keys: what TLB arrays, walk caches and data caches have in
//! common. Picks the form that suits the policy.

use lookaside_machine::Replacement;
use lookaside_stats::SplitMix64;

use crate::assoc::{ArrayShape, Assoc, EMPTY_KEY};
use crate::lookup::{one_by_one, LookupCounts, LookupKeys, LookupResult, SimdLevel};
use crate::lru::{LruSets, MAX_WAYS};
use crate::plru::{self, TreeSets};

/// Keys ahead whose set is fetched.
const AHEAD: usize = 8;

/// Keys in sets of ways. A key is at most as wide as the store was made for, and never all ones.
#[derive(Clone, Debug)]
pub(crate) enum KeyStore {
    /// LRU, keys of 32 bits.
    Narrow(LruSets),
    /// LRU, keys of 64 bits.
    Wide(LruSets),
    /// Tree pseudo-LRU of few ways, keys of 32 bits.
    Tree(TreeSets),
    /// Any other policy, or very many ways.
    Any(Assoc),
}

impl KeyStore {
    /// An empty store of keys of so many bits.
    pub(crate) fn new(shape: ArrayShape, key_bits: u32, rng: SplitMix64) -> Self {
        let is_few = shape.ways <= plru::MAX_WAYS && shape.ways.is_power_of_two();
        if shape.replacement == Replacement::TreePlru && is_few && key_bits <= 32 {
            Self::Tree(TreeSets::new(shape.sets, shape.ways))
        } else if shape.replacement != Replacement::Lru || shape.ways > MAX_WAYS {
            Self::Any(Assoc::new(shape, rng))
        } else if key_bits <= 32 {
            Self::Narrow(LruSets::new(shape.sets, shape.ways, false))
        } else {
            Self::Wide(LruSets::new(shape.sets, shape.ways, true))
        }
    }

    /// Is this key there? Touches it if so.
    #[inline(always)]
    pub(crate) fn access(&mut self, set: usize, key: u64) -> bool {
        match self {
            Self::Narrow(sets) => sets.access(set, key as u32),
            Self::Wide(sets) => sets.access_wide(set, key as u32, (key >> 32) as u32),
            Self::Tree(sets) => sets.access(set, key as u32),
            Self::Any(assoc) => assoc.access(set, key),
        }
    }

    /// Is this key there? Touches it if so, else fills it.
    #[inline(always)]
    pub(crate) fn access_or_fill(&mut self, set: usize, key: u64) -> LookupResult {
        match self {
            Self::Narrow(sets) => sets.access_or_fill(set, key as u32),
            Self::Wide(sets) => sets.access_or_fill_wide(set, key as u32, (key >> 32) as u32),
            Self::Tree(sets) => sets.access_or_fill(set, key as u32),
            Self::Any(assoc) => assoc.access_or_fill(set, key),
        }
    }

    /// [`Self::access_or_fill`] of each key of a list.
    pub(crate) fn look_up_list(&mut self, simd: SimdLevel, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
        match self {
            Self::Narrow(sets) => sets.look_up_list(simd, LookupKeys { seconds: &[], ..keys }, missed),
            Self::Wide(sets) => sets.look_up_list(simd, keys, missed),
            Self::Tree(sets) => sets.look_up_list(simd, keys, missed),
            Self::Any(assoc) => {
                let mut k = 0;
                one_by_one(keys, missed, |set, low, high| {
                    k += 1;
                    if let Some(&set) = keys.sets.get(k + AHEAD) {
                        assoc.prefetch(set as usize);
                    }
                    assoc.access_or_fill(set, wide(low, high))
                })
            }
        }
    }

    /// Invalidates the keys that the predicate picks: how many.
    pub(crate) fn invalidate(&mut self, mut picks: impl FnMut(u64) -> bool) -> u64 {
        match self {
            Self::Narrow(sets) => sets.update(|tag, _| (!picks(tag.into())).then_some(tag)),
            Self::Wide(sets) => sets.update(|low, high| (!picks(wide(low, high))).then_some(low)),
            Self::Tree(sets) => sets.update(|tag| (!picks(tag.into())).then_some(tag)),
            Self::Any(assoc) => assoc.invalidate(|_, key| picks(key)),
        }
    }

    /// Calls `f` with each key.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u64)) {
        match self {
            Self::Narrow(sets) => sets.for_each(|tag, _| f(tag.into())),
            Self::Wide(sets) => sets.for_each(|low, high| f(wide(low, high))),
            Self::Tree(sets) => sets.for_each(|tag| f(tag.into())),
            Self::Any(assoc) => assoc.keys().iter().filter(|&&key| key != EMPTY_KEY).for_each(|&key| f(key)),
        }
    }

    /// Puts other keys in the place of those that are there, order and all.
    pub(crate) fn rename(&mut self, mut name: impl FnMut(u32) -> u32) {
        match self {
            Self::Narrow(sets) | Self::Wide(sets) => {
                sets.update(|tag, _| Some(name(tag)));
            }
            Self::Tree(sets) => {
                sets.update(|tag| Some(name(tag)));
            }
            Self::Any(assoc) => assoc.rename(|key| name(key as u32).into()),
        }
    }
}

fn wide(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
